"""A client over WebSocket, in the place of one with a plain socket."""

from __future__ import annotations

from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client, InProcessBroker
from tests.kit.web_frames import BINARY, CLOSE, PING, PONG, TEXT, WebMessage, WebStream, frame, request

PIECE_BYTES = 60_000
"""Less than the broker takes in one frame."""


class WebClient(Client):
    """It sends each write as one message, a text if it is one; long ones in pieces, as stompjs does. ``wire_bytes``:
    how many bytes of its stream arrive together; 0: all. ``asks``: whether it sends the request of a handshake.
    """

    wire_bytes = 0
    opcode = TEXT

    def __init__(
        self, world: InProcessBroker, *headers: str, protocols: str | None = "v12.stomp", asks: bool = True
    ) -> None:
        super().__init__(world)
        self.web = WebStream()
        self.pings = 0
        self.got: list[WebMessage] = []
        """All messages with frames of STOMP."""
        if asks:
            self.send_wire(request(*headers, protocols=protocols))

    def send_wire(self, data: bytes) -> None:
        """Write bytes of the connection itself."""
        size = self.wire_bytes or max(len(data), 1)
        for at in range(0, len(data), size):
            super().send(data[at : at + size])

    def send(self, data: bytes) -> None:
        for at in range(0, max(len(data), 1), PIECE_BYTES):
            piece, opcode = data[at : at + PIECE_BYTES], self.opcode
            if opcode == TEXT:
                try:
                    piece.decode()
                except UnicodeDecodeError:
                    opcode = BINARY
            self.send_wire(frame(opcode, piece))

    def leave(self, payload: bytes = b"\x03\xe8") -> None:
        """Say goodbye."""
        self.send_wire(frame(CLOSE, payload))

    def collect(self) -> list[ServerFrame]:
        taken = self.transport.taken
        self.web.take(bytes(taken))
        taken.clear()
        for message in self.web.messages:
            self.pings += message.opcode == PING
            if message.opcode in (PING, PONG):
                continue
            self.got.append(message)
            before, plain = len(self.stream.frames), message.plain
            self.stream.take(plain)
            assert self.stream.is_whole, f"a message with a part of a frame: {plain[-80:]!r}"
            if message.opcode == TEXT:
                plain.decode()
                assert len(self.stream.frames) - before <= 1, "several frames in a text message"
        self.web.messages.clear()
        return self.stream.frames


class BinaryWebClient(WebClient):
    """It sends all its messages as binary ones."""

    opcode = BINARY


class SlowWebClient(WebClient):
    """Each byte of its stream arrives alone."""

    wire_bytes = 1
