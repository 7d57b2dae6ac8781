"""Writes STOMP frames as WebSocket messages. The headers are made by hand: it runs for each message."""

from __future__ import annotations

from struct import Struct
from typing import Final, Protocol, final

from websockets.extensions import Extension
from websockets.frames import Frame, Opcode

from artemis_py.message import LargeBody
from artemis_py.stomp.wire.outbound import Part
from artemis_py.stomp.wire.writer import END

_CONTINUATION: Final = 0x0
_TEXT: Final = 0x1
_BINARY: Final = 0x2
_CLOSE: Final = 0x8
_PING: Final = 0x9
_PONG: Final = 0xA
_FIN: Final = 0x80
_RSV1: Final = 0x40
_SHORT: Final = Struct("!BBH").pack
_LONG: Final = Struct("!BBQ").pack
SHARED_BYTES_MAX: Final = 8192
"""Several frames share a binary message up to this size; the smallest buffer for messages among usual clients
(Tomcat's) has as many bytes.
"""
_COMPRESSED_BYTES_MIN: Final = 256
_REASON_BYTES_MAX: Final = 123
_BEAT: Final = b"\n"


def header(first_byte: int, size_bytes: int) -> bytes:
    """The header of an unmasked frame (RFC 6455, 5.2). ``first_byte``: FIN, reserved bits and opcode."""
    if size_bytes < 126:
        return bytes((first_byte, size_bytes))
    if size_bytes < 65536:
        return _SHORT(first_byte, 126, size_bytes)
    return _LONG(first_byte, 127, size_bytes)


def ping_frame() -> bytes:
    """A PING without payload."""
    return header(_FIN | _PING, 0)


def pong_frame(payload: bytes) -> bytes:
    """The answer to a PING with this payload of at most 125 bytes."""
    return header(_FIN | _PONG, len(payload)) + payload


def close_frame(code: int, reason: str) -> bytes:
    """A CLOSE; a reason that is too long for it is cut."""
    payload = code.to_bytes(2, "big") + reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore").encode()
    return header(_FIN | _CLOSE, len(payload)) + payload


def echoed_close(payload: bytes) -> bytes:
    """The answer to a client's CLOSE with this payload."""
    return header(_FIN | _CLOSE, len(payload)) + payload


@final
class LargeFrame:
    """A MESSAGE with a large body, as the bytes before it, the body, and the bytes after it."""

    __slots__ = ("body", "end", "head")

    def __init__(self, head: bytes, body: LargeBody, end: bytes) -> None:
        self.head = head
        self.body = body
        self.end = end


class Compressor(Protocol):
    """What an extension does with a message."""

    def encode(self, frame: Frame) -> Frame:
        """The frame as it is sent."""


@final
class Messages:
    """How one client gets its messages.

    With ``is_text`` a frame is a text message of its own, or a binary one if it is not valid UTF-8: some clients of
    this kind (React Native) see nothing behind the first NUL of a message. Binary messages hold several frames.
    ``pings``: the client wants no heart-beats of STOMP, so a PING takes their place.
    """

    __slots__ = ("_compressor", "_frame_bytes_max", "_stride", "error", "is_ended", "is_text", "pings")

    def __init__(self, frame_bytes_max: int, extensions: list[Extension]) -> None:
        self.is_text = True
        self.is_ended = False
        """Was CLOSE sent? Nothing may follow it."""
        self.pings = False
        self.error = b""
        """The ERROR that was written last."""
        self._frame_bytes_max = frame_bytes_max
        self._compressor: Compressor | None = extensions[0] if extensions else None
        self._stride = 7
        """How many parts the last MESSAGE had: the next one has as many, nearly always."""

    def join(self, parts: list[Part]) -> bytes:
        """Whole frames as messages. Raises TypeError if a large body is among them."""
        if self.is_ended:
            return b""
        out: list[bytes] = []
        shared: list[bytes] = []
        shared_bytes = 0
        start, count = 0, len(parts)
        while start < count:
            end = self._end_of_frame(parts, start)
            if end == start + 1:
                frame = self._whole(parts[start])
                if not frame:
                    out.append(ping_frame())
                    start = end
                    continue
            else:
                frame = b"".join(parts[start:end])  # type: ignore[arg-type]
            start = end
            if self.is_text:
                self._write(out, frame, is_text=True)
                continue
            if shared_bytes + len(frame) > SHARED_BYTES_MAX and shared:
                self._write(out, b"".join(shared), is_text=False)
                shared.clear()
                shared_bytes = 0
            shared.append(frame)
            shared_bytes += len(frame)
        if shared:
            self._write(out, shared[0] if len(shared) == 1 else b"".join(shared), is_text=False)
        return b"".join(out)

    def arrange(self, parts: list[Part]) -> list[bytes | LargeFrame]:
        """The same with large bodies, which are left for later."""
        arranged: list[bytes | LargeFrame] = []
        plain: list[Part] = []
        start, count = 0, len(parts)
        while start < count:
            end = self._end_of_frame(parts, start)
            frame = parts[start:end]
            start = end
            place = next((at for at, part in enumerate(frame) if isinstance(part, LargeBody)), -1)
            if place < 0:
                plain += frame
                continue
            if plain:
                arranged.append(self.join(plain))
                plain = []
            body = frame[place]
            assert isinstance(body, LargeBody)
            head, tail = b"".join(frame[:place]), b"".join(frame[place + 1 :])  # type: ignore[arg-type]
            arranged.append(LargeFrame(head, body, tail))
        if plain:
            arranged.append(self.join(plain))
        return arranged

    def fragments(self, data: bytes, *, is_first: bool = False, is_last: bool = False, is_text: bool = False) -> bytes:
        """A part of a fragmented message, as one or more frames."""
        size_max = self._frame_bytes_max
        out: list[bytes] = []
        opcode = (_TEXT if is_text else _BINARY) if is_first else _CONTINUATION
        for at in range(0, len(data), size_max):
            piece = data[at : at + size_max]
            if is_last and at + size_max >= len(data):
                opcode |= _FIN
            out += (header(opcode, len(piece)), piece)
            opcode = _CONTINUATION
        return b"".join(out)

    def _end_of_frame(self, parts: list[Part], start: int) -> int:
        """Where the parts of the frame end that begins at ``start``."""
        first = parts[start]
        if isinstance(first, bytes) and first[-1:] == _BEAT:  # a whole frame other than MESSAGE, or a heart-beat
            return start + 1
        end = start + self._stride
        if end <= len(parts) and parts[end - 1] is END:
            return end
        end = start
        while parts[end] is not END:
            end += 1
        self._stride = end + 1 - start
        return end + 1

    def _whole(self, frame: Part) -> bytes:
        """A frame in one part; nothing for a heart-beat that becomes a PING."""
        assert isinstance(frame, bytes)
        if frame.startswith(b"ERROR\n"):
            self.error = frame
        return b"" if self.pings and frame == _BEAT else frame

    def _write(self, out: list[bytes], data: bytes, *, is_text: bool) -> None:
        """Append a message."""
        opcode = _TEXT if is_text and is_utf8(data) else _BINARY
        size_bytes = len(data)
        if self._compressor is not None and size_bytes >= _COMPRESSED_BYTES_MIN:
            squeezed = bytes(self._compressor.encode(Frame(Opcode(opcode), data)).data)
            if len(squeezed) <= self._frame_bytes_max:
                out += (header(_FIN | _RSV1 | opcode, len(squeezed)), squeezed)
                return
        if size_bytes <= self._frame_bytes_max:
            out += (header(_FIN | opcode, size_bytes), data)
        else:
            out.append(self.fragments(data, is_first=True, is_last=True, is_text=opcode == _TEXT))


def is_utf8(data: bytes) -> bool:
    """May these bytes stand in a text message?"""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
