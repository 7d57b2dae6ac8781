"""A client's side of STOMP 1.0, 1.1 and 1.2, without a socket: bytes for the broker, and frames of what came from it.

Every client of this project is one of these with a socket of its own. It imports nothing of the broker, so that a load
generator or a worker of Spark has it for little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from artemis_py.errors import StompError
from artemis_py.message import escape_header

HEART_BEAT: Final = b"\n"
_DIGITS_MAX: Final = 18
ROUTING: Final = "receipt-routing"
"""The header of CONNECT that asks for RECEIPTs which tell on which queues a message is; CONNECTED repeats it if this
broker does so.
"""
_PLAIN: Final = frozenset({"CONNECT", "STOMP", "CONNECTED"})
"""Frames whose headers have no escapes in any version (STOMP 1.2, "Value Encoding")."""
_UNESCAPES: Final = {
    "1.1": {"\\\\": "\\", "\\n": "\n", "\\c": ":"},
    "1.2": {"\\\\": "\\", "\\n": "\n", "\\c": ":", "\\r": "\r"},
}
_MISSED_BEATS_MAX: Final = 3.0
"""A broker that was silent for so many of its heart-beats has gone."""
_BEAT_SHARE: Final = 0.4
"""After this share of the time in which a heart-beat is due it is sent: the way to the broker takes time, too."""
_TEXT_MAX: Final = 300
Headers = Sequence[tuple[str, str]]


# ---- to the broker -----------------------------------------------------------------------------------


def frame(command: str, headers: Headers, body: bytes = b"", version: str = "1.2") -> bytes:
    """One frame. A body with a NUL gets its length where the headers lack it. Raises StompError for a header that this
    frame cannot carry.
    """
    found = head(command, headers, version)
    if b"\0" in body and not any(name == "content-length" for name, _ in headers):
        found += header_line("content-length", str(len(body)), version)
    return b"%b\n%b\0" % (found, body)


def head(command: str, headers: Headers, version: str = "1.2") -> bytes:
    """The command and the headers of a frame, without the empty line behind them. Raises StompError."""
    own = "1.0" if command in _PLAIN else version
    return b"%b\n%b" % (command.encode(), b"".join([header_line(name, value, own) for name, value in headers]))


def header_line(name: str, value: str, version: str = "1.2") -> bytes:
    """The line of a header by the rules of a version. Raises StompError where they have no way to write it."""
    if "\0" in name or "\0" in value:
        raise StompError(f"A header contains NUL, which STOMP cannot carry: {_shown(name)}")
    if version == "1.0":
        if ":" in name or "\n" in name or "\n" in value or "\r" in name or "\r" in value:
            raise StompError(f"{_shown(name)} has a line end, or a colon in its name: nothing here can write that")
        return f"{name}:{value}\n".encode()
    if version == "1.1" and ("\r" in name or "\r" in value):
        raise StompError(f"{_shown(name)} has a carriage return, which STOMP 1.1 cannot carry")
    return f"{escape_header(name)}:{escape_header(value)}\n".encode()


def _shown(name: str) -> str:
    return f"the header {name[:80]!r}"


# ---- from the broker ---------------------------------------------------------------------------------


@final
class ServerFrame:
    """A frame from the broker. Of repeated headers the first counts; names and values are plain."""

    __slots__ = ("body", "command", "headers")

    def __init__(self, command: str, headers: dict[str, str], body: bytes) -> None:
        self.command = command
        self.headers = headers
        self.body = body

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerFrame):
            return False
        return (self.command, self.headers, self.body) == (other.command, other.headers, other.body)

    def __hash__(self) -> int:
        return hash((self.command, self.body))

    def __repr__(self) -> str:
        return f"ServerFrame({self.command!r}, {self.headers!r}, {self.body!r})"

    @property
    def text(self) -> str:
        """The text of an ERROR frame: its ``message`` and the beginning of its body, on one line."""
        body = " ".join(self.body.decode(errors="replace").split())
        parts = [part for part in (self.headers.get("message", ""), body[:_TEXT_MAX]) if part]
        return " | ".join(dict.fromkeys(parts)) or "(no text)"

    @property
    def reason(self) -> str:
        """Why the broker refuses: the ``message`` of an ERROR, or else all that there is."""
        return self.headers.get("message") or self.text

    def confirms(self, receipt: str) -> bool:
        """Is it the RECEIPT of this name?"""
        return self.command == "RECEIPT" and self.headers.get("receipt-id") == receipt


@final
class FrameReader:
    """Splits a stream into frames, however it is read. Bodies with ``content-length`` may contain NULs. ``version`` is
    that of the stream's escapes; a text that is no escape stays as it is.
    """

    __slots__ = ("_pending", "version")

    def __init__(self, version: str = "1.2") -> None:
        self._pending = bytearray()
        self.version = version

    def feed(self, data: bytes) -> None:
        """Append what was read."""
        self._pending += data

    def frames(self) -> list[ServerFrame]:
        """All complete frames. Raises StompError."""
        found: list[ServerFrame] = []
        while (one := self.pop()) is not None:
            found.append(one)
        return found

    def pop(self) -> ServerFrame | None:
        """The next complete frame, or None. Raises StompError for bytes that are not a STOMP frame."""
        pending = self._pending
        while pending.startswith((b"\n", b"\r")):
            del pending[:1]
        end, start = _end_of_head(pending)
        if end < 0:
            return None
        command, headers = self._head(bytes(pending[:end]))
        body_end = _end_of_body(pending, start, headers.get("content-length"))
        if body_end < 0:
            return None
        body = bytes(pending[start:body_end])
        del pending[: body_end + 1]
        return ServerFrame(command, headers, body)

    def _head(self, block: bytes) -> tuple[str, dict[str, str]]:
        lines = block.decode(errors="replace").split("\n")
        command = lines[0].removesuffix("\r").strip()
        unescapes = None if command in _PLAIN else _UNESCAPES.get(self.version)
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.removesuffix("\r").partition(":")
            if not colon:
                raise StompError(f"the broker sent a header line without a colon: {line!r}")
            if unescapes is not None and "\\" in line:
                name, value = _unescaped(name, unescapes), _unescaped(value, unescapes)
            headers.setdefault(name, value)
        return command, headers


def _unescaped(text: str, unescapes: dict[str, str]) -> str:
    parts: list[str] = []
    position = 0
    while (slash := text.find("\\", position)) >= 0:
        escape = text[slash : slash + 2]
        parts.append(text[position:slash])
        parts.append(unescapes.get(escape, escape))
        position = slash + 2
    parts.append(text[position:])
    return "".join(parts)


def _end_of_head(pending: bytearray) -> tuple[int, int]:
    """Where the header block ends and where the body starts; -1 until the blank line has arrived."""
    plain = pending.find(b"\n\n")
    carriage = pending.find(b"\n\r\n", 0, None if plain < 0 else plain)
    return (plain, plain + 2) if carriage < 0 else (carriage, carriage + 3)


def _end_of_body(pending: bytearray, start: int, length: str | None) -> int:
    """Where the body ends; -1 until it is there."""
    if length is None:
        return pending.find(b"\0", start)
    if not (length.isascii() and length.isdigit() and len(length) <= _DIGITS_MAX):
        raise StompError(f"the broker sent content-length:{length}, which is not a number")
    end = start + int(length)
    if len(pending) <= end:
        return -1
    if pending[end]:
        raise StompError(f"the broker's frame has no NUL after {length} bytes of body")
    return end


# ---- a connection ------------------------------------------------------------------------------------


@final
class Client:
    """One connection. ``versions`` are those that it accepts; CONNECTED says which it is. ``beats_ms`` are the
    heart-beats that this side can send, and those that it wants, one in so many ms; 0: none; None: CONNECT says nothing
    of them.
    """

    __slots__ = ("_beats_ms", "_reader", "_receipts", "_versions", "beat_s", "silence_s", "version")

    def __init__(self, versions: Sequence[str] = ("1.2",), beats_ms: tuple[int, int] | None = None) -> None:
        self._versions = versions
        self._beats_ms = beats_ms
        self._reader = FrameReader(versions[-1])
        self._receipts = 0
        self.version = versions[-1]
        """Until CONNECTED came, the highest that was asked for."""
        self.beat_s = 0.0
        """After so many seconds without a byte to the broker a heart-beat is to be sent; 0: none is agreed on."""
        self.silence_s = 0.0
        """After so many seconds without a byte from it the broker has gone; 0: it promised none."""

    def connect(self, host: str, login: str | None, passcode: str | None, more: Headers = ()) -> bytes:
        """The CONNECT frame. Headers of ``more`` come last, and instead of others with the same names. Raises
        StompError for a login that it cannot carry.
        """
        headers: list[tuple[str, str]] = []
        if self._versions != ("1.0",):
            headers += [("accept-version", ",".join(self._versions)), ("host", host)]
            if self._beats_ms is not None:
                sends_ms, wants_ms = self._beats_ms
                headers.append(("heart-beat", f"{sends_ms},{wants_ms}"))
        if login is not None:
            headers.append(("login", login))
        if passcode is not None:
            headers.append(("passcode", passcode))
        given = {name for name, _ in more}
        return frame("CONNECT", [*[one for one in headers if one[0] not in given], *more])

    def frame(self, command: str, headers: Headers, body: bytes = b"") -> bytes:
        """A frame for this connection. Raises StompError."""
        return frame(command, headers, body, self.version)

    def next_receipt(self) -> str:
        """A name for a receipt that no other has."""
        self._receipts += 1
        return str(self._receipts)

    def feed(self, data: bytes) -> None:
        """Bytes came from the broker."""
        self._reader.feed(data)

    def next(self) -> ServerFrame | None:
        """The next complete frame, or None. Raises StompError if the bytes are no STOMP frame."""
        found = self._reader.pop()
        if found is not None and found.command == "CONNECTED":
            self.version = self._reader.version = found.headers.get("version", "1.0")
            self._agree(found.headers.get("heart-beat", "0,0"))
        return found

    def frames(self) -> list[ServerFrame]:
        """All frames that are complete. Raises StompError."""
        found: list[ServerFrame] = []
        while (one := self.next()) is not None:
            found.append(one)
        return found

    def _agree(self, offered: str) -> None:
        """Heart-beats are sent as often as both sides can (STOMP 1.2, "Heart-beating")."""
        sends, _, wants = offered.partition(",")
        if not (sends.isascii() and sends.isdigit() and wants.isascii() and wants.isdigit()):
            raise StompError(f"the broker sent heart-beat:{offered}, which is not a pair of numbers")
        can_ms, wanted_ms = self._beats_ms or (0, 0)
        self.beat_s = max(can_ms, int(wants)) / 1000 * _BEAT_SHARE if can_ms and int(wants) else 0.0
        self.silence_s = max(wanted_ms, int(sends)) / 1000 * _MISSED_BEATS_MAX if wanted_ms and int(sends) else 0.0
