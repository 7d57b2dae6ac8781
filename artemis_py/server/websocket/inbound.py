"""Reads WebSocket frames: payload for the STOMP parser, and what a client controls the connection with."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import Final, final

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import CloseCode, Frame, Opcode
from websockets.server import ServerProtocol

from artemis_py.server.websocket.messages import is_utf8

SLICE_BYTES: Final = 1024
"""How much is read at once, so that a turn can stop between frames of a few bytes, and compressed ones that swell."""
FRAME_UNITS: Final = 5
"""What reading a frame costs of a turn's budget, whatever is in it."""
INFLATE_BYTES: Final = 49152
"""What a connection that may send compressed messages holds: zlib's window and tables."""
_Utf8: Final = getincrementaldecoder("utf-8")


@final
class Inbound:
    """One client's frames. ``code`` and ``reason`` say why nothing more is read, with the close code for it; code 0 as
    long as more is. ``is_text``: is the client's first message text? None before that.
    """

    __slots__ = (
        "_at", "_data", "_frame_bytes_max", "_in_text", "_protocol", "_utf8", "close", "code",
        "is_text", "pong", "reason", "units",
    )  # fmt: skip

    def __init__(self, protocol: ServerProtocol, frame_bytes_max: int) -> None:
        self.is_text: bool | None = None
        self.pong: bytes | None = None
        """The payload of the last PING, until somebody takes it to answer: earlier ones need no answer (RFC 6455,
        5.5.3).
        """
        self.close: bytes | None = None
        """The payload of the client's CLOSE."""
        self.code = 0
        self.reason = ""
        self.units = 0
        """What reading cost; whoever charges it resets it."""
        self._protocol = protocol
        self._frame_bytes_max = frame_bytes_max
        self._data = b""
        self._at = 0
        """Where the bytes begin that are not read yet."""
        self._in_text = False
        """Does a continuation belong to a text?"""
        self._utf8 = _Utf8()

    @property
    def has_more(self) -> bool:
        """Are there bytes that were not read?"""
        return bool(self._data)

    @property
    def held_bytes(self) -> int:
        """What it holds in memory: unread bytes, and an incomplete frame."""
        held_bytes = len(self._data) + len(self._protocol.reader.buffer)
        return held_bytes + INFLATE_BYTES if self._protocol.extensions else held_bytes

    def add(self, data: bytes) -> None:
        """Take in bytes; none after the end."""
        if self.code or self.close is not None:
            return
        self._data = self._data[self._at :] + data if self._data else data
        self._at = 0

    def read(self) -> bytes:
        """The payload in the next slice of the bytes."""
        data, at = self._data, self._at
        end = at + SLICE_BYTES
        if end >= len(data):
            piece = data[at:] if at else data
            self._data = b""
            self._at = 0
        else:
            piece = data[at:end]
            self._at = end
        protocol = self._protocol
        protocol.receive_data(piece)
        if protocol.writes:
            protocol.data_to_send()  # its pongs and closes; the broker writes them itself, and not so many
        return self._payload(protocol)

    def _payload(self, protocol: ServerProtocol) -> bytes:
        payload: list[bytes] = []
        events = protocol.events_received()
        for frame in events:
            assert isinstance(frame, Frame)
            opcode = frame.opcode
            if opcode is Opcode.CLOSE:
                self.close = bytes(frame.data)
            elif opcode is Opcode.PING:
                self.pong = bytes(frame.data)
            elif opcode is not Opcode.PONG:
                if opcode is not Opcode.CONT:
                    self._in_text = opcode is Opcode.TEXT
                    if self.is_text is None:
                        self.is_text = self._in_text
                data = bytes(frame.data)
                is_whole = frame.fin and opcode is not Opcode.CONT
                if self._in_text and not (is_utf8(data) if is_whole else self._goes_on_as_utf8(data, frame)):
                    self._stop(CloseCode.INVALID_DATA, "A text message is not valid UTF-8")
                    return b"".join(payload)
                payload.append(data)
        self.units += FRAME_UNITS * len(events)
        if protocol.parser_exc is not None:
            self._fail(protocol.parser_exc)
        elif self.close is not None:
            self._stop(0, "")
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _goes_on_as_utf8(self, data: bytes, frame: Frame) -> bool:
        """May a fragment stand in a text? It may end in the middle of a character."""
        try:
            self._utf8.decode(data, final=frame.fin)
        except UnicodeDecodeError:
            return False
        return True

    def _fail(self, failure: Exception) -> None:
        """Say why the client's frames cannot be read. Raises what is not the client's fault."""
        if self._protocol.close_rcvd is not None:  # it has said goodbye, if in the middle of a message
            self.close = b""
            self._stop(0, "")
        elif isinstance(failure, PayloadTooBig):
            limit = self._frame_bytes_max
            reason = f"A WebSocket frame has more than {limit} bytes (webSocketMaxFramePayloadLength of the acceptor)"
            self._stop(CloseCode.MESSAGE_TOO_BIG, reason)
        elif isinstance(failure, UnicodeDecodeError):
            self._stop(CloseCode.INVALID_DATA, "The reason of a CLOSE is not valid UTF-8")
        elif isinstance(failure, ProtocolError):
            self._stop(CloseCode.PROTOCOL_ERROR, f"WebSocket: {failure}")
        else:
            raise failure

    def _stop(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        self._data = b""
        self._at = 0
        self._protocol.reader.discard()
