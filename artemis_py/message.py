"""A message: the publisher's header block, the body, and the few fields that decide about it.

The header block is stored as the bytes of a STOMP 1.2 frame (LF line ends, 1.2 escapes, without hop headers). Journal
records, page records and MESSAGE frames contain the same bytes; headers are decoded only if a selector, key or group
needs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

MESSAGE_OVERHEAD_BYTES: Final = 200
"""The memory cost of a message besides its header block and body; part of an address' size."""

HEADER_ESCAPES: Final = {"\\": "\\\\", "\r": "\\r", "\n": "\\n", ":": "\\c"}
_UNESCAPES: Final = {"\\\\": "\\", "\\r": "\r", "\\n": "\n", "\\c": ":"}


def escape_header(text: str) -> str:
    """Write one header name or value as STOMP 1.2 does (STOMP 1.2, "Value Encoding")."""
    if "\\" in text or ":" in text or "\n" in text or "\r" in text:
        return "".join(HEADER_ESCAPES.get(character, character) for character in text)
    return text


def unescape_header(text: str) -> str:
    """Read one header name or value in STOMP 1.2 form; the text is well-formed."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (slash := text.find("\\", position)) >= 0:
        parts.append(text[position:slash])
        parts.append(_UNESCAPES[text[slash : slash + 2]])
        position = slash + 2
    parts.append(text[position:])
    return "".join(parts)


def encode_headers(headers: list[tuple[str, str]]) -> bytes:
    """Header lines in STOMP 1.2 form followed by the empty line that ends a header block."""
    lines = [f"{escape_header(name)}:{escape_header(value)}\n" for name, value in headers]
    lines.append("\n")
    return "".join(lines).encode()


class HeaderName:
    """A header name prepared for searching many blocks."""

    __slots__ = ("line", "line_inside", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.line = f"{escape_header(text)}:".encode()
        """The beginning of this header's line."""
        self.line_inside = b"\n" + self.line


_HEADER_NAMES_MAX: Final = 4096
_HEADER_NAME_MAX: Final = 256
_header_names: Final[dict[str, HeaderName]] = {}
"""Names used by selectors; bounded, because clients choose them."""


def header_name(text: str) -> HeaderName:
    """Prepare a header name for searching."""
    name = _header_names.get(text)
    if name is None:
        if len(_header_names) >= _HEADER_NAMES_MAX:
            _header_names.clear()
        name = HeaderName(text)
        if len(text) <= _HEADER_NAME_MAX:
            _header_names[text] = name
    return name


class Account:
    """The memory of one address: each message counts once, however many queues refer to it. ``total`` is the account of
    all addresses, and has none above it.
    """

    __slots__ = ("_total", "message_count", "size_bytes")

    def __init__(self, total: Account | None = None) -> None:
        self.size_bytes = 0
        self.message_count = 0
        self._total = total

    def charge(self, count: int, size_bytes: int) -> None:
        """Add messages with this total size."""
        self.message_count += count
        self.size_bytes += size_bytes
        total = self._total
        if total is not None:
            total.message_count += count
            total.size_bytes += size_bytes

    def credit(self, count: int, size_bytes: int) -> None:
        """Remove messages with this total size."""
        self.charge(-count, -size_bytes)


UNKNOWN: Final = 0
SENT: Final = 1
COPIED: Final = 2
COPIED_QUEUE: Final = 1
COPIED_REASON: Final = 2
"""Who wrote the headers that say of what a message is a copy. Clients may write them, too. Unknown: the message is from
an older log, or was imported; sent: its sender wrote them; from ``COPIED`` on: the broker made it, and wrote
``_AMQ_ORIG_ADDRESS`` and ``_AMQ_ORIG_MESSAGE_ID``, and if these are added also ``_AMQ_ORIG_QUEUE`` and ``reason``.
"""
_ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
_ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"


class Head:
    """A canonical header block, shared by all messages with the same headers.

    ``block`` ends with the empty line. It never contains ``message-id``, ``subscription``, ``ack``, ``receipt``,
    ``transaction``, ``redelivered``, ``timestamp`` or ``expires``: those belong to one hop or one message and are added
    to each MESSAGE.
    """

    __slots__ = (
        "address",
        "block",
        "duplicate_id",
        "persistent",
        "priority",
        "provenance",
        "routing_type",
        "sized",
        "size_bytes",
    )

    def __init__(
        self,
        block: bytes,
        address: str,
        priority: int = 4,
        persistent: bool = False,
        sized: bool = False,
        routing_type: str | None = None,
        duplicate_id: str | None = None,
    ) -> None:
        self.block = block
        self.address = address
        self.priority = priority
        self.persistent = persistent
        self.sized = sized
        """True if the sender set a content-length (Artemis: a bytes message)."""
        self.routing_type = routing_type
        self.duplicate_id = duplicate_id
        self.size_bytes = len(block)
        self.provenance = SENT
        """Who wrote the headers that say of what the message is a copy: ``SENT`` and so on."""

    def headers(self) -> Iterator[tuple[str, str]]:
        """Every header of the block, decoded, in order."""
        for line in self.block[:-2].decode().split("\n"):
            name, _, value = line.partition(":")
            yield unescape_header(name), unescape_header(value)

    @property
    def properties(self) -> dict[str, str]:
        """The headers by name; of repeated ones the first counts (STOMP 1.2, "Repeated Header Entries"). They are
        decoded each time: stored, they would take seven times the block's memory.
        """
        properties: dict[str, str] = {}
        for name, value in self.headers():
            properties.setdefault(name, value)
        return properties

    def first(self, name: HeaderName) -> str | None:
        """The value of one header, or None; other headers are not decoded."""
        block = self.block
        if block.startswith(name.line):
            start = len(name.line)
        else:
            line = block.find(name.line_inside)
            if line < 0:
                return None
            start = line + len(name.line_inside)
        return unescape_header(block[start : block.find(b"\n", start)].decode())

    def with_header(self, name: str, value: str) -> Head:
        """The same head with one header's value replaced."""
        headers = [(key, value if key == name else text) for key, text in self.headers()]
        head = Head(
            encode_headers(headers), self.address, priority=self.priority, persistent=self.persistent, sized=self.sized,
            routing_type=self.routing_type, duplicate_id=self.duplicate_id,
        )  # fmt: skip
        head.provenance = self.provenance
        return head

    def at(self, address: str) -> Head:
        """The same head on another address; the block stays as it is."""
        head = Head(
            self.block, address, priority=self.priority, persistent=self.persistent, sized=self.sized,
            routing_type=self.routing_type, duplicate_id=self.duplicate_id,
        )  # fmt: skip
        head.provenance = self.provenance
        return head

    def forwarded(self, address: str, changes: dict[str, str], drop: frozenset[str] = frozenset()) -> Head:
        """A new head for a copy of the message to ``address``: ``changes`` come first, headers in ``drop`` are
        removed.
        """
        kept = [
            (name, value)
            for name, value in self.headers()
            if name not in changes and name not in drop and name != "destination"
        ]
        block = encode_headers([("destination", address), *changes.items(), *kept])
        head = Head(
            block,
            address,
            priority=self.priority,
            persistent=self.persistent,
            sized=self.sized,
            routing_type=None if "destination-type" in drop else self.routing_type,
        )
        head.provenance = self.provenance
        if _ORIGINAL_ADDRESS in changes:
            told = self.provenance - COPIED if self.provenance >= COPIED else 0
            told |= (_ORIGINAL_QUEUE in changes) * COPIED_QUEUE | ("reason" in changes) * COPIED_REASON
            if self.provenance != UNKNOWN or told == COPIED_QUEUE | COPIED_REASON:
                head.provenance = COPIED + told
        return head


@mypyc_attr(allow_interpreted_subclasses=True)
class BodyFiles(ABC):
    """Keeps bodies in their own files. A file has holders and is removed when the last of them releases it."""

    @abstractmethod
    def hold(self, number: int, size_bytes: int) -> None:
        """Add a holder of the file, which has this size."""

    @abstractmethod
    def release(self, number: int) -> None:
        """Remove a holder of the file. For any thread."""


class LargeBody:
    """A body in its own file, which exists as long as this object does.

    ``files`` is None if a log or page is only read: then the object does not hold the file. ``checksum`` is the CRC-32
    of the body, -1 if unknown.
    """

    __slots__ = ("checksum", "files", "number", "size_bytes")

    def __init__(self, number: int, size_bytes: int, files: BodyFiles | None = None, checksum: int = -1) -> None:
        self.number = number
        self.size_bytes = size_bytes
        self.checksum = checksum
        self.files: BodyFiles | None = None
        if files is not None:
            self.keep_in(files)

    def keep_in(self, files: BodyFiles) -> None:
        """Let the object hold the file from now on."""
        self.files = files
        files.hold(self.number, self.size_bytes)

    def __len__(self) -> int:
        return self.size_bytes

    def __del__(self) -> None:
        if self.files is not None:
            self.files.release(self.number)


class Message:
    """One message on the broker.

    ``refs`` counts the queue entries that still need it, ``origin`` is the number of the connection that sent it (0:
    the broker itself), ``lsn`` is 0 if it was not journalled. ``expires_ms`` is 0 if it never expires.
    """

    __slots__ = ("account", "body", "expires_ms", "head", "id", "lsn", "origin", "refs", "timestamp_ms")

    def __init__(
        self,
        head: Head,
        body: bytes | LargeBody,
        id: int,
        timestamp_ms: int,
        expires_ms: int,
        account: Account,
        origin: int,
    ) -> None:
        self.head = head
        self.body = body
        self.id = id
        self.timestamp_ms = timestamp_ms
        self.expires_ms = expires_ms
        self.account = account
        self.origin = origin
        self.refs = 0
        self.lsn = 0

    @property
    def size_bytes(self) -> int:
        """Encoded size: header block and body."""
        return self.head.size_bytes + len(self.body)

    @property
    def inline_bytes(self) -> int:
        """Size of the header block, and of the body unless it is in its own file."""
        body = self.body
        return self.head.size_bytes if body.__class__ is LargeBody else self.head.size_bytes + len(body)

    @property
    def memory_bytes(self) -> int:
        """The message's share of its address' size."""
        body = self.body
        body_bytes = 0 if body.__class__ is LargeBody else len(body)
        return self.head.size_bytes + body_bytes + MESSAGE_OVERHEAD_BYTES

    def lookup(self, name: str) -> str | int | None:
        """The value a selector sees under ``name``: a header as text, or one of Artemis' built-in identifiers."""
        if name.startswith("AMQ"):
            builtin = self._builtin(name)
            if builtin is not None:
                return builtin
        return self.head.first(header_name(name))

    def _builtin(self, name: str) -> str | int | None:
        if name == "AMQPriority":
            return self.head.priority
        if name == "AMQTimestamp":
            return self.timestamp_ms
        if name == "AMQExpiration":
            return self.expires_ms
        if name == "AMQSize":
            return self.size_bytes
        if name == "AMQDurable":
            return "DURABLE" if self.head.persistent else "NON_DURABLE"
        if name == "AMQAddress":
            return self.head.address
        if name == "AMQGroupID":
            return self.head.first(header_name("_AMQ_GROUP_ID"))
        if name == "AMQUserID":
            return self.head.first(header_name("JMSXUserID"))
        return None
