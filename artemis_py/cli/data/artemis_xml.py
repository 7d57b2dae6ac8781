"""Reads the XML that Artemis' ``data exp`` writes, as the lines of our own exports."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from lxml import etree

from artemis_py.management.export_format import FORMAT, PIECE_BYTES, ExportError, line_of, piece_line
from artemis_py.terminal_output import shown_time

_BLOCK_BYTES: Final = 1 << 16
_IN_MEMORY_BYTES_MAX: Final = 1 << 20
_IDENTIFIED_BYTES: Final = 1 << 20
_BLANKS: Final = re.compile(r"\s+")
_NO_VALUE: Final = "_AMQ_NULL"
_OWN_ADDRESSES: Final = ("$sys.", "activemq.notifications", "activemq.management")
_OPAQUE: Final = frozenset({"map", "object", "stream"})
_NOT_FOR_CLIENTS: Final = frozenset(
    {
        *("_AMQ_ROUTING_TYPE", "_AMQ_PREFIX", "_AMQ_LARGE_SIZE", "_AMQ_LARGE_COMPRESSED", "_AMQ_SCHED_DELIVERY"),
        *("__AMQ_CID", "NATIVE_MESSAGE_ID", "content-length", "destination"),
    }
)
"""Properties in which Artemis keeps something for itself, and headers that an export has as members."""
_HEADERS: Final = {
    "_AMQ_CONTENT_TYPE": "content-type",
    "_AMQ_GROUP_ID": "JMSXGroupID",
    "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq",
    "JMSCorrelationID": "correlation-id",
    "JMSReplyTo": "reply-to",
    "JMSType": "type",
}
"""Artemis' property: the header of STOMP."""


def is_artemis_export(file: io.BufferedReader) -> bool:
    """Does the file begin as XML does? Nothing is taken from it: it may be a pipe. Raises OSError."""
    return file.peek(_BLOCK_BYTES).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")


def _scratch() -> IO[bytes]:
    """A place for a body, which is gone with the last who has it."""
    return SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX)


@dataclass(slots=True)
class _Message:
    """A message as far as it is read."""

    attributes: dict[str, str]
    properties: dict[str, str] = field(default_factory=dict)
    queues: list[str] = field(default_factory=list)
    body: IO[bytes] = field(default_factory=_scratch)


class _Elements:
    """What a parser of lxml calls. ``lines`` has what is complete."""

    def __init__(self) -> None:
        self.lines: deque[bytes | _Message] = deque()
        self.addresses: dict[str, tuple[str, str]] = {}
        """Address and routing type, by the queue's name."""
        self._message: _Message | None = None
        self._encoded = ""
        self._is_in_body = False
        self._is_first = True

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A start tag. Raises ValueError if the first one is not that of an export."""
        if self._is_first and tag != "activemq-journal":
            raise ValueError(f"it begins with <{tag}>")
        self._is_first = False
        if tag == "message":
            self._message = _Message(dict(attributes))
        elif tag == "address-binding":
            if not attributes["name"].startswith(_OWN_ADDRESSES):
                types = attributes["routing-types"].replace(" ", "").split(",")
                self.lines.append(line_of("address", {"name": attributes["name"], "routing_types": types}))
        elif tag == "queue-binding":
            self._bind(attributes)
        elif self._message is not None:
            if tag == "property" and attributes["value"] != _NO_VALUE:
                self._message.properties[attributes["name"]] = attributes["value"]
            elif tag == "queue":
                self._message.queues.append(attributes["name"])
            elif tag == "body":
                self._is_in_body = True

    def data(self, text: str) -> None:
        """Text, or a part of it. A large body comes in several blocks of Base64, with blanks between."""
        if not self._is_in_body:
            return
        for number, block in enumerate(_BLANKS.split(text)):
            if number:
                self._decode()
            self._encoded += block
        if len(self._encoded) >= _BLOCK_BYTES:
            whole = len(self._encoded) // 4 * 4 - 4  # the last group may be the end, with its padding
            kept, self._encoded = self._encoded[whole:], self._encoded[:whole]
            self._decode()
            self._encoded = kept

    def end(self, tag: str) -> None:
        """An end tag."""
        if tag == "body":
            self._decode()
            self._is_in_body = False
        elif tag == "message" and self._message is not None:
            self.lines.append(self._message)
            self._message = None

    def close(self) -> None:
        """The end of the file."""

    def _bind(self, attributes: dict[str, str]) -> None:
        name, address, routing_type = attributes["name"], attributes["address"], attributes["routing-type"]
        self.addresses[name] = address, routing_type
        if not address.startswith(_OWN_ADDRESSES):
            told = {"name": name, "address": address, "routing_type": routing_type}
            self.lines.append(line_of("queue", told | {"filter": attributes.get("filter-string") or None}))

    def _decode(self) -> None:
        assert self._message is not None
        self._message.body.write(base64.b64decode(self._encoded, altchars=b"-_", validate=True))
        self._encoded = ""


class ArtemisExport(io.TextIOBase):
    """The file as text of an export. It is read once, from its beginning to its end. Raises OSError, and ExportError if
    it is no export of Artemis.
    """

    def __init__(self, path: Path, file: io.BufferedReader) -> None:
        self.opaque: Counter[str] = Counter()
        """Messages whose bodies have an encoding of Java's, by type."""
        self._path = path
        self._file = file
        self._count = 0
        self._body_bytes = 0
        self._lines = self._read()

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # a line is never cut
        """The next line; empty at the end."""
        return next(self._lines, b"").decode()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _read(self) -> Iterator[bytes]:
        yield line_of("export", {"format": FORMAT, "id": self._id()})
        elements = _Elements()
        target: Any = elements
        parser = etree.XMLParser(target=target, huge_tree=True, resolve_entities=False, no_network=True)
        try:
            while data := self._file.read(_BLOCK_BYTES):
                parser.feed(data)
                while elements.lines:
                    one = elements.lines.popleft()
                    yield from [one] if isinstance(one, bytes) else self._of_message(one, elements)
            parser.close()
        except (etree.XMLSyntaxError, KeyError, ValueError) as error:
            raise ExportError(f"{self._path}: this is not an export of Artemis, or not all of it: {error}") from None
        yield line_of("end", {"messages": self._count, "body_bytes": self._body_bytes})

    def _id(self) -> str:
        """The same for the same file: an import that broke off goes on."""
        size_bytes = self._path.stat().st_size
        beginning = self._file.read(_IDENTIFIED_BYTES)
        self._file.seek(0)
        return hashlib.sha256(b"%d\n" % size_bytes + beginning).hexdigest()[:32]

    def _of_message(self, one: _Message, elements: _Elements) -> Iterator[bytes]:
        known = [name for name in one.queues if not elements.addresses[name][0].startswith(_OWN_ADDRESSES)]
        if not known:
            return
        address, routing_type = elements.addresses[known[0]]
        kind = one.attributes["type"]
        if kind in _OPAQUE or one.properties.get("_AMQ_LARGE_COMPRESSED") == "true":
            self.opaque[kind] += 1
        body = _text_of(one.body) if kind == "text" else one.body
        size_bytes = body.seek(0, io.SEEK_END)
        body.seek(0)
        told: dict[str, Any] = {
            "id": int(one.attributes["id"]),
            "address": address,
            "queues": known,
            "persistent": True,
            "priority": int(one.attributes["priority"]),
            "sent": shown_time(int(one.attributes["timestamp"])),
            "sized": kind != "text",
            "headers": _headers(one, address, routing_type),
        }
        if one.attributes["expiration"] != "0":
            told["expires"] = shown_time(int(one.attributes["expiration"]))
        if due_ms := one.properties.get("_AMQ_SCHED_DELIVERY"):
            told["due"] = dict.fromkeys(known, shown_time(int(due_ms)))
        if size_bytes <= PIECE_BYTES:
            told["base64"] = base64.b64encode(body.read()).decode()
        else:
            told["piece_bytes"] = size_bytes
        yield line_of("message", told)
        while data := body.read(PIECE_BYTES):
            yield piece_line(data)
        self._count += 1
        self._body_bytes += size_bytes


def _headers(one: _Message, address: str, routing_type: str) -> list[tuple[str, str]]:
    found = [
        ("destination", one.properties.get("destination", address)),
        ("priority", one.attributes["priority"]),
        ("persistent", "true"),
        ("destination-type", routing_type),
    ]
    for name, value in one.properties.items():
        if name not in _NOT_FOR_CLIENTS and not name.startswith("JMS_AMQP_"):
            found.append((_HEADERS.get(name, name), value))
    return found


def _text_of(body: IO[bytes]) -> IO[bytes]:
    """A text as UTF-8. Artemis has a byte that says whether there is one, its length in bytes, and two bytes for each
    character, the lower one first.
    """
    found = _scratch()
    body.seek(0)
    if body.read(1) == b"\x01":
        left = int.from_bytes(body.read(4), "big")
        rest = b""
        while left > 0 and (data := body.read(min(_BLOCK_BYTES, left))):
            left -= len(data)
            data = rest + data
            whole = len(data) // 2 * 2
            if left and 0xD8 <= data[whole - 1] < 0xDC:  # half of a pair
                whole -= 2
            found.write(data[:whole].decode("utf-16-le").encode())
            rest = data[whole:]
    return found
