"""A small blocking STOMP client that shows every frame it gets and hides nothing."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.kit.process import LOOPBACK

WAIT_S = 10.0

ESCAPES = {
    "1.0": str.maketrans({}),
    "1.1": str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c"}),
    "1.2": str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"}),
}
"""How each version writes header names and values: for ``str.translate``."""
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


def unescape(text: str, version: str) -> str:
    """A header name or value as a version means it; codes that it does not know stay."""
    return text if version == "1.0" else re.sub(r"\\[\\ncr]", lambda code: _UNESCAPES[code[0]], text)


@dataclass
class Client:
    """One connection. Messages wait in ``messages`` until a step asks for them."""

    socket: socket.socket
    version: str
    wait_s: float = WAIT_S
    messages: deque[Frame] = field(default_factory=deque)
    delivered: dict[str, Frame] = field(default_factory=dict)
    """What steps have taken from ``messages``, by body: an ACK names a message by it."""
    beats: int = 0
    """Line feeds that came between frames."""
    receipts: int = 0
    pending: bytes = b""

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(data)

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """A frame. CONNECT and STOMP are not escaped."""
        escapes = ESCAPES["1.0" if command in ("CONNECT", "STOMP") else self.version]
        lines = [command, *(f"{name.translate(escapes)}:{value.translate(escapes)}" for name, value in headers.items())]
        self.write("\n".join(lines).encode() + b"\n\n" + body + b"\0")

    def request(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> Frame:
        """Sends a frame with a receipt header; returns RECEIPT or ERROR."""
        self.receipts += 1
        receipt = f"receipt-{self.receipts}"
        self.send(command, {**headers, "receipt": receipt}, body)
        answer = self.answer()
        if answer.command == "RECEIPT":
            assert answer.headers.get("receipt-id") == receipt, f"another receipt than {receipt}: {answer}"
        return answer

    def answer(self) -> Frame:
        """The next frame that is no MESSAGE. Fails when none comes in time."""
        until = time.monotonic() + self.wait_s
        while True:
            frame = self.read_frame(until)
            assert frame is not None, f"no answer in {self.wait_s} s"
            if frame.command != "MESSAGE":
                return frame
            self.messages.append(frame)

    def message(self, wait_s: float) -> Frame | None:
        """The next MESSAGE, or None when none comes in time. An ERROR fails."""
        if self.messages:
            return self.messages.popleft()
        frame = self.read_frame(time.monotonic() + wait_s)
        assert frame is None or frame.command == "MESSAGE", f"not a message: {frame}"
        return frame

    def wait_for_end(self) -> None:
        """Returns when the broker has closed the connection. Fails when it sends something else, or nothing."""
        try:
            while (frame := self.read_frame(time.monotonic() + self.wait_s)) is not None:
                assert frame.command == "MESSAGE", f"the connection goes on: {frame}"
        except (Ended, ConnectionResetError):
            return
        raise AssertionError(f"the connection is still open after {self.wait_s} s")

    def reset(self) -> None:
        """Ends the connection as a crash does: the broker's side sees an error, not an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def shut_output(self) -> None:
        """Says that nothing more will be sent; goes on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def read_beat(self) -> None:
        """Waits for a heart-beat."""
        until = time.monotonic() + self.wait_s
        seen = self.beats
        while self.beats == seen:
            assert self._receive(until), f"no heart-beat in {self.wait_s} s"
            self._skip_beats()

    def read_frame(self, until: float) -> Frame | None:
        """The next frame, or None when none comes in time."""
        while True:
            self._skip_beats()
            head, blank, rest = self.pending.partition(b"\n\n")
            if blank:
                command, *lines = head.decode().split("\n")
                version = "1.0" if command == "CONNECTED" else self.version
                headers: dict[str, str] = {}
                for name, _, value in (line.partition(":") for line in lines):
                    headers.setdefault(unescape(name, version), unescape(value, version))
                length = int(headers["content-length"]) if "content-length" in headers else rest.find(b"\0")
                if 0 <= length < len(rest):
                    self.pending = rest[length + 1 :]
                    return Frame(command, headers, rest[:length])
            if not self._receive(until):
                return None

    def _receive(self, until: float) -> bool:
        left = until - time.monotonic()
        if left <= 0:
            return False
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(262_144)
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(self.wait_s)
        if not data:
            raise Ended(f"the broker closed the connection; left over: {self.pending[:200]!r}")
        self.pending += data
        return True

    def _skip_beats(self) -> None:
        rest = self.pending.lstrip(b"\r\n")
        self.beats += len(self.pending) - len(rest)
        self.pending = rest


def opened(port: int, version: str, wait_s: float = WAIT_S) -> Client:
    """A client on a new connection, which has said nothing yet."""
    client = Client(socket.create_connection((LOOPBACK, port), timeout=wait_s), version, wait_s)
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def connected(port: int, version: str = "1.2", **headers: str) -> Client:
    """A client that was greeted."""
    client = opened(port, version)
    client.send("CONNECT", {"accept-version": version, "host": "oracle", "heart-beat": "0,0", **headers})
    assert client.answer().command == "CONNECTED"
    return client
