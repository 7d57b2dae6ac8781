"""The client's side of WebSocket (RFC 6455), for the tests alone: it shares no code with the broker and its library."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN = 0x80
RSV1, RSV2, RSV3 = 0x40, 0x20, 0x10
MASK = b"\x1f\x2e\x3d\x4c"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""Key and answer of the example in RFC 6455, 1.3."""


def request(
    *headers: str, path: str = "/", protocols: str | None = "v12.stomp, v11.stomp, v10.stomp", method: str = "GET"
) -> bytes:
    """An upgrade request."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: broker.example",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {KEY}",
        "Sec-WebSocket-Version: 13",
        *headers,
    ]
    if protocols is not None:
        lines.append(f"Sec-WebSocket-Protocol: {protocols}")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, bits: int = 0, mask: bytes | None = MASK) -> bytes:
    """A frame with its header; without a mask if ``mask`` is None."""
    flag = 0 if mask is None else 0x80
    first = (FIN if fin else 0) | bits | opcode
    if len(payload) < 126:
        head = bytes((first, flag | len(payload)))
    elif len(payload) < 65536:
        head = bytes((first, flag | 126)) + len(payload).to_bytes(2, "big")
    else:
        head = bytes((first, flag | 127)) + len(payload).to_bytes(8, "big")
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


@dataclass
class WebMessage:
    """A message or control frame from the broker; of how many frames it consisted."""

    opcode: int
    payload: bytes
    frames: int = 1
    is_compressed: bool = False

    @property
    def plain(self) -> bytes:
        """The payload, inflated if it is compressed; the broker keeps nothing between messages."""
        if not self.is_compressed:
            return self.payload
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(self.payload + b"\0\0\xff\xff")


@dataclass
class WebStream:
    """Reads what the broker sends, and is strict about it."""

    frame_bytes_max: int | None = None
    head: bytes = b""
    """The response to the upgrade request, without what follows it."""
    status: int = 0
    """Of the response; 0 if there is none yet."""
    messages: list[WebMessage] = field(default_factory=list)
    closed: tuple[int, str] | None = None
    _rest: bytes = b""
    _begun: WebMessage | None = None

    def header(self, name: str) -> str | None:
        """A header of the response."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.decode().partition(": ")
            if key.lower() == name.lower():
                return value
        return None

    def take(self, data: bytes) -> None:
        """Read what is complete."""
        self._rest += data
        if not self.head:
            end = self._rest.find(b"\r\n\r\n")
            if end < 0:
                return
            self.head, self._rest = self._rest[: end + 4], self._rest[end + 4 :]
            self.status = int(self.head.split(b" ")[1])
        while self.status == 101 and self._take_frame():
            pass

    @property
    def body(self) -> str:
        """What follows the head of a refusal."""
        assert self.status != 101
        return self._rest.decode()

    def _take_frame(self) -> bool:
        data = self._rest
        if len(data) < 2:
            return False
        first, size = data[0], data[1]
        assert not size & 0x80, "a server must not mask"
        at = 2
        if size == 126:
            at, size = 4, int.from_bytes(data[2:4], "big")
            assert len(data) < 4 or size >= 126, "not the shortest form of a length"
        elif size == 127:
            at, size = 10, int.from_bytes(data[2:10], "big")
            assert len(data) < 10 or size >= 65536, "not the shortest form of a length"
        if len(data) < at + size:
            return False
        self._rest = data[at + size :]
        self._note(first, data[at : at + size])
        return True

    def _note(self, first: int, payload: bytes) -> None:
        assert self.closed is None, "something follows CLOSE"
        opcode, fin = first & 0x0F, bool(first & FIN)
        assert self.frame_bytes_max is None or len(payload) <= self.frame_bytes_max
        if opcode >= CLOSE:
            assert fin
            assert len(payload) <= 125
            assert not first & 0x70
            if opcode == CLOSE:
                code = int.from_bytes(payload[:2], "big") if payload else 1005
                self.closed = code, payload[2:].decode()
            else:
                self.messages.append(WebMessage(opcode, payload))
            return
        if opcode == CONTINUATION:
            assert self._begun is not None, "a continuation of nothing"
            self._begun.payload += payload
            self._begun.frames += 1
        else:
            assert opcode in (TEXT, BINARY)
            assert self._begun is None, "a message in the middle of another"
            self._begun = WebMessage(opcode, payload, is_compressed=bool(first & RSV1))
        assert not first & 0x30
        if fin:
            self.messages.append(self._begun)
            self._begun = None
