"""WebSocket for the load generator: just enough of it that the generator is not what is measured."""

from __future__ import annotations

import socket
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.target import Target

_MASK: Final = bytes(4)
"""It leaves the bytes as they are, so that frames can be rendered once; a broker has the same work with it."""
_TEXT: Final = 0x81
_CLOSE: Final = 0x8
_RESPONSE_BYTES_MAX: Final = 65536


def message(data: bytes) -> bytes:
    """A text message of a client."""
    size = len(data)
    if size < 126:
        return bytes((_TEXT, 0x80 | size)) + _MASK + data
    if size < 65536:
        return bytes((_TEXT, 0xFE)) + size.to_bytes(2, "big") + _MASK + data
    return bytes((_TEXT, 0xFF)) + size.to_bytes(8, "big") + _MASK + data


def upgraded(sock: socket.socket, target: Target) -> socket.socket:
    """Ask the broker for a WebSocket. Raises PerfError."""
    lines = (
        "GET / HTTP/1.1",
        f"Host: {target.host}:{target.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: v{target.version.replace('.', '')}.stomp",
    )
    response = b""
    try:
        sock.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        while b"\r\n\r\n" not in response and len(response) < _RESPONSE_BYTES_MAX:
            data = sock.recv(1)  # what follows is for others
            if not data:
                break
            response += data
    except OSError as error:
        sock.close()
        raise PerfError(f"no WebSocket with {target.url}: {error.strerror or error}") from error
    if not response.startswith(b"HTTP/1.1 101 "):
        sock.close()
        said = response.split(b"\r\n")[0].decode("latin-1")
        raise PerfError(f"no WebSocket with {target.url}: it answers {said or 'nothing'}")
    return sock


class PayloadReader:
    """Takes the frames of a broker apart."""

    __slots__ = ("_missing", "_pending")

    def __init__(self) -> None:
        self._pending = b""
        self._missing = 0
        """How many bytes of the current frame's payload are still to come."""

    def begin_inside(self, data: bytes) -> bytes:
        """Go on behind a message of which ``data`` has the last line feed, where there is one; returns the payload
        of what follows.
        """
        self._pending, self._missing = b"", 0
        return self.feed(data.removeprefix(b"\n"))

    def feed(self, data: bytes) -> bytes:
        """The payload in what was read, whatever kind of message it belongs to; none of control frames."""
        pending = self._pending + data
        payload = b""
        at = 0
        while at < len(pending):
            if not self._missing:
                size_at = at + 2
                if size_at > len(pending):
                    break
                size = pending[at + 1]
                if size >= 126:
                    size_at += 2 if size == 126 else 8
                    if size_at > len(pending):
                        break
                    size = int.from_bytes(pending[at + 2 : size_at], "big")
                if pending[at] & _CLOSE:
                    if size_at + size > len(pending):
                        break
                    at = size_at + size
                    continue
                at, self._missing = size_at, size
            part = pending[at : at + self._missing]
            payload += part
            at += len(part)
            self._missing -= len(part)
        self._pending = pending[at:]
        return payload
