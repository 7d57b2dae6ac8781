"""A small blocking STOMP client that shows every frame it gets and hides nothing."""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
WAIT_S = 10.0

_ESCAPES = {
    "1.0": {},
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"},
}
_UNESCAPES = {"\\\\": "\\", "\\n": "\n", "\\c": ":", "\\r": "\r"}


class Ended(AssertionError):
    """The broker closed the connection."""


@dataclass(frozen=True)
class Frame:
    """A frame as it came; of repeated headers the first."""

    command: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def __str__(self) -> str:
        return f"{self.command} {dict(self.headers)} {self.text[:200]!r}"


def escape(text: str, version: str) -> str:
    """A header name or value as a version writes it."""
    escapes = _ESCAPES[version]
    return "".join(escapes.get(char, char) for char in text)


def unescape(text: str, version: str) -> str:
    """A header name or value as a version means it; codes that it does not know stay."""
    if version == "1.0" or "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        pair = text[position : position + 2]
        if pair in _UNESCAPES:
            parts.append(_UNESCAPES[pair])
            position += 2
        else:
            parts.append(text[position])
            position += 1
    return "".join(parts)


def render(command: str, headers: Mapping[str, str], body: bytes, version: str) -> bytes:
    """A frame's bytes; CONNECT and STOMP are not escaped."""
    version = "1.0" if command in ("CONNECT", "STOMP") else version
    lines = [command, *(f"{escape(name, version)}:{escape(value, version)}" for name, value in headers.items())]
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


class Client:
    """One connection. Messages wait in ``messages`` until a step asks for them."""

    def __init__(self, port: int, version: str, wait_s: float = WAIT_S) -> None:
        self.version = version
        self.wait_s = wait_s
        self.messages: deque[Frame] = deque()
        self.delivered: dict[str, Frame] = {}
        """What steps have taken from ``messages``, by body: an ACK names a message by it."""
        self.beats = 0
        """Line feeds that came between frames."""
        self._socket = socket.create_connection((LOOPBACK, port), timeout=wait_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending = b""
        self._receipts = 0

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        self._socket.sendall(data)

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """A frame."""
        self.write(render(command, headers, body, self.version))

    def request(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> Frame:
        """Sends a frame with a receipt header; returns RECEIPT or ERROR."""
        self._receipts += 1
        receipt = f"receipt-{self._receipts}"
        self.send(command, {**headers, "receipt": receipt}, body)
        answer = self.answer()
        if answer.command == "RECEIPT":
            assert answer.headers.get("receipt-id") == receipt, f"another receipt than {receipt}: {answer}"
        return answer

    def answer(self) -> Frame:
        """The next frame that is no MESSAGE. Fails when none comes in time."""
        until = time.monotonic() + self.wait_s
        while True:
            frame = self._read_frame(until)
            assert frame is not None, f"no answer in {self.wait_s} s"
            if frame.command != "MESSAGE":
                return frame
            self.messages.append(frame)

    def message(self, wait_s: float) -> Frame | None:
        """The next MESSAGE, or None when none comes in time. An ERROR fails."""
        if self.messages:
            return self.messages.popleft()
        frame = self._read_frame(time.monotonic() + wait_s)
        assert frame is None or frame.command == "MESSAGE", f"not a message: {frame}"
        return frame

    def wait_for_end(self) -> None:
        """Returns when the broker has closed the connection. Fails when it sends something else, or nothing."""
        try:
            while (frame := self._read_frame(time.monotonic() + self.wait_s)) is not None:
                assert frame.command == "MESSAGE", f"the connection goes on: {frame}"
        except (Ended, ConnectionResetError):
            return
        raise AssertionError(f"the connection is still open after {self.wait_s} s")

    def reset(self) -> None:
        """Ends the connection as a crash does: the broker's side sees an error, not an orderly end."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def shut_output(self) -> None:
        """Says that nothing more will be sent; goes on reading."""
        self._socket.shutdown(socket.SHUT_WR)

    def read_beat(self) -> None:
        """Waits for a heart-beat."""
        until = time.monotonic() + self.wait_s
        seen = self.beats
        while self.beats == seen:
            assert self._receive(until), f"no heart-beat in {self.wait_s} s"
            self._skip_beats()

    def _read_frame(self, until: float) -> Frame | None:
        while True:
            self._skip_beats()
            frame = self._cut()
            if frame is not None:
                return frame
            if not self._receive(until):
                return None

    def _receive(self, until: float) -> bool:
        left = until - time.monotonic()
        if left <= 0:
            return False
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(262_144)
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(self.wait_s)
        if not data:
            raise Ended(f"the broker closed the connection; left over: {self._pending[:200]!r}")
        self._pending += data
        return True

    def _skip_beats(self) -> None:
        rest = self._pending.lstrip(b"\r\n")
        self.beats += len(self._pending) - len(rest)
        self._pending = rest

    def _cut(self) -> Frame | None:
        head, blank, rest = self._pending.partition(b"\n\n")
        if not blank:
            return None
        lines = head.decode().split("\n")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            version = "1.0" if lines[0] == "CONNECTED" else self.version
            headers.setdefault(unescape(name, version), unescape(value, version))
        length = int(headers["content-length"]) if "content-length" in headers else rest.find(b"\0")
        if length < 0 or len(rest) <= length:
            return None
        self._pending = rest[length + 1 :]
        return Frame(lines[0], headers, rest[:length])
