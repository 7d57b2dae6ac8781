"""STOMP over WebSocket (RFC 6455): handshake, messages in, messages out."""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from collections import deque
from struct import Struct
from typing import Final, Protocol, final

from websockets.datastructures import Headers
from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.extensions import Extension
from websockets.frames import CloseCode, Frame, Opcode
from websockets.frames import apply_mask as unmasked  # type: ignore[attr-defined]  # in C, where it was compiled
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from artemis_py.core.budget import Budget
from artemis_py.message import LargeBody
from artemis_py.pending_output import Part
from artemis_py.server.client_socket import WRITE_HIGH_BYTES, Flow
from artemis_py.server.http.requests import doubt_in, oddity_in
from artemis_py.server.turn_client import Client
from artemis_py.server.websocket.rules import INVALID, NORMAL, POLICY, TOO_BIG, WebSocketRules
from artemis_py.stomp.session.session import Session
from artemis_py.stomp.wire.writer import END
from artemis_py.storage.bodies import PIECE_BYTES, BodyReader, LargeStore

# ---- handshake -------------------------------------------------------------------------------------------------------
#
# The HTTP request that asks for a WebSocket, and its answer.


REQUEST_BYTES_MAX: Final = 16384
"""The largest upgrade request; browsers send their cookies in it."""
_GET: Final = b"GET "
_END: Final = b"\r\n\r\n"
_SAYS_STOMP: Final = "This port speaks STOMP, also over WebSocket: open it with a WebSocket client"


@final
class Handshake:
    """Gathers the request and answers it. Afterwards ``response`` is what the client gets, and ``protocol`` reads what
    follows, or is None if the client was turned away.
    """

    __slots__ = ("_request", "_rules", "protocol", "response")

    def __init__(self, rules: WebSocketRules) -> None:
        self.protocol: ServerProtocol | None = None
        self.response = b""
        self._rules = rules
        self._request = bytearray()

    @property
    def held_bytes(self) -> int:
        """What it keeps of the request."""
        return len(self._request)

    def take(self, data: bytes) -> bytes:
        """Add bytes; returns those behind the request, once there is a response."""
        request = self._request
        searched_bytes = max(len(request) - len(_END) + 1, 0)
        request += data
        if not request.startswith(_GET[: len(request)]):
            self._turn_away(426, _SAYS_STOMP)
            return b""
        end = request.find(_END, searched_bytes)
        if max(end, len(request) if end < 0 else 0) > REQUEST_BYTES_MAX:
            self._turn_away(431, f"The headers of the request have more than {REQUEST_BYTES_MAX} bytes")
            return b""
        if end < 0:
            return b""
        rest = bytes(request[end + len(_END) :])
        head, self._request = bytes(request[: end + len(_END)]), bytearray()
        self._answer(head)
        return rest

    def give_up(self, why: str) -> None:
        """The request is not complete, and will not be waited for."""
        self._turn_away(408, why)

    def _answer(self, head: bytes) -> None:
        doubt = oddity_in(head) or doubt_in(head)
        if doubt:
            self._turn_away(400, f"The request cannot be read: {doubt}")
            return
        protocol = self._rules.new_protocol()
        protocol.receive_data(head)
        protocol.data_to_send()
        requests = [event for event in protocol.events_received() if isinstance(event, Request)]
        if not requests:
            refusal = protocol.handshake_exc
            cause = refusal.__cause__ if refusal is not None else None
            self._turn_away(400, f"The request cannot be read: {cause or refusal}")
            return
        response = protocol.accept(requests[0])
        if response.status_code == 101:
            protocol.send_response(response)
            self.response = b"".join(protocol.data_to_send())
            self.protocol = protocol
        elif response.status_code == 426:
            self._turn_away(426, _SAYS_STOMP)
        elif response.status_code == 403:
            origin = requests[0].headers.get("Origin")
            self._turn_away(403, f"Pages of {origin} may not connect (allowedOrigins of the acceptor)")
        else:
            self._turn_away(response.status_code, response.body.decode().strip())

    def _turn_away(self, status: int, why: str) -> None:
        self._request = bytearray()
        body = why.encode("utf-8", "replace") + b"\n"
        headers = Headers()
        if status == 426:
            headers["Upgrade"] = "websocket"
        headers["Connection"] = "Upgrade, close" if status == 426 else "close"
        headers["Content-Type"] = "text/plain; charset=utf-8"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Content-Length"] = str(len(body))
        self.response = Response(status, _PHRASES.get(status, "Refused"), headers, body).serialize()


_PHRASES: Final = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    426: "Upgrade Required",
    431: "Request Header Fields Too Large",
    505: "HTTP Version Not Supported",
}


# ---- messages --------------------------------------------------------------------------------------------------------
#
# Writes STOMP frames as WebSocket messages. The headers are made by hand: it runs for each message.


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


# ---- inbound ---------------------------------------------------------------------------------------------------------
#
# Reads WebSocket frames: payload for the STOMP parser, and what a client controls the connection with.


SLICE_BYTES: Final = 1024
"""How much is read at once, so that a turn can stop between frames of a few bytes, and compressed ones that swell."""
FRAME_UNITS: Final = 5
"""What reading a frame costs of a turn's budget, whatever is in it, if the library reads it."""
WHOLE_UNITS: Final = 1
"""What it costs otherwise."""
_MASKED: Final = 0x80
_SIZE: Final = 0x7F
_SIZE_16: Final = 126
_SIZE_64: Final = 127
INFLATE_BYTES: Final = 49152
"""What a connection that may send compressed messages holds: zlib's window and tables."""
_Utf8: Final = getincrementaldecoder("utf-8")


@final
class Inbound:
    """One client's frames. ``code`` and ``reason`` say why nothing more is read, with the close code for it; code 0 as
    long as more is. ``is_text``: is the client's first message text? None before that.

    Messages of one frame of less than 64 KiB, which nearly all are, are read here when they are whole. The library
    reads every other frame, from its first byte to its last: large ones, fragments, compressed ones, control frames,
    and whatever is not allowed.
    """

    __slots__ = (
        "_at", "_data", "_frame_bytes_max", "_in_text", "_is_in_message", "_left", "_protocol", "_utf8", "_waits",
        "close", "code", "is_text", "pong", "reason", "units",
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
        self._left = 0
        """So many bytes of a frame the library is still to get."""
        self._waits = False
        """Do the unread bytes end within a frame, which goes on when more come?"""
        self._is_in_message = False
        """Will another fragment follow?"""
        self._in_text = False
        """Does a continuation belong to a text?"""
        self._utf8 = _Utf8()

    @property
    def has_more(self) -> bool:
        """Are there bytes that can be read and were not?"""
        return bool(self._data) and not self._waits

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
        self._waits = False

    def read(self) -> bytes:
        """The payload of the next frames, or of the next slice of one."""
        if not self._left:
            payload = b"" if self._is_in_message or self._protocol.extensions else self._read_whole()
            if payload or self._waits or not self._data or self.code:
                return payload
            self._left = self._frame_bytes()
            if not self._left:
                self._waits = True
                return b""
        return self._read_slice()

    def _read_whole(self) -> bytes:
        """The payload of the messages of one frame that are next and whole."""
        data, at, end = self._data, self._at, len(self._data)
        payload: list[bytes] = []
        stop = at + SLICE_BYTES
        while at < stop and at + 1 < end:
            opcode, size = data[at], data[at + 1]
            if opcode not in (_FIN | _TEXT, _FIN | _BINARY) or not size & _MASKED:
                break
            size &= _SIZE
            mask_at = at + 2
            if size == _SIZE_16:
                if end < mask_at + 2:
                    self._waits = True
                    break
                size = data[mask_at] << 8 | data[mask_at + 1]
                mask_at += 2
            if (size == _SIZE_64 and mask_at == at + 2) or size > self._frame_bytes_max:
                break
            body_at = mask_at + 4
            if end < body_at + size:
                self._waits = True
                break
            body = unmasked(data[body_at : body_at + size], data[mask_at:body_at])
            is_text = opcode == _FIN | _TEXT
            if self.is_text is None:
                self.is_text = is_text
            self.units += WHOLE_UNITS
            if is_text and not is_utf8(body):
                self._stop(CloseCode.INVALID_DATA, "A text message is not valid UTF-8")
                return b"".join(payload)
            payload.append(body)
            at = body_at + size
        else:
            self._waits = at + 1 == end
        self._at = at
        if at == end:
            self._data = b""
            self._at = 0
        return b"".join(payload)

    def _frame_bytes(self) -> int:
        """The size of the next frame with its header; 0: that has not come."""
        data, at = self._data, self._at
        if len(data) < at + 2:
            return 0
        size, header_bytes = data[at + 1] & _SIZE, 2
        if size >= _SIZE_16:
            header_bytes = 4 if size == _SIZE_16 else 10
            if len(data) < at + header_bytes:
                return 0
            size = int.from_bytes(data[at + 2 : at + header_bytes], "big")
        return header_bytes + size + (4 if data[at + 1] & _MASKED else 0)

    def _read_slice(self) -> bytes:
        """The payload in the next slice of a frame that the library reads."""
        data, at = self._data, self._at
        end = at + min(SLICE_BYTES, self._left)
        self._left -= min(end, len(data)) - at
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
                self._is_in_message = not frame.fin
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


# ---- outflow ---------------------------------------------------------------------------------------------------------
#
# Output with large bodies in it, as fragmented messages.


@final
class MessageOutflow:
    """Messages that wait behind one with a large body.

    The type of a message is said first, so for a client of text messages a body is read twice: once to learn whether it
    is valid UTF-8.
    """

    __slots__ = (
        "_has_begun", "_is_text", "_messages", "_moves", "_pieces", "_seen_moves", "_utf8", "_waiting", "is_paused",
        "waiting_bytes",
    )  # fmt: skip

    def __init__(self, messages: Messages, large: LargeStore, owner: object) -> None:
        self.is_paused = False
        """Does the socket accept nothing now?"""
        self.waiting_bytes = 0
        """Bytes that wait in memory."""
        self._messages = messages
        self._waiting: deque[bytes | LargeFrame] = deque()
        self._pieces = BodyReader(large, owner)
        self._has_begun = False
        """Was the beginning of the first waiting message written?"""
        self._is_text: bool | None = None
        """Is that message a text? None if it is not known yet."""
        self._utf8 = _Utf8()
        self._moves = 0
        self._seen_moves = 0

    @property
    def failure(self) -> str | None:
        """Why a body cannot be read; the message already begun cannot be completed."""
        return self._pieces.failure

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""
        return not self._waiting

    def has_moved(self) -> bool:
        """Did the socket accept anything since the last call, or was a piece looked at?"""
        seen_moves, self._seen_moves = self._seen_moves, self._moves
        return self._moves > seen_moves

    def add(self, parts: list[Part]) -> None:
        """Add whole frames after those that already wait."""
        for message in self._messages.arrange(parts):
            self._waiting.append(message)
            self.waiting_bytes += _memory_bytes(message)

    def pump(self, transport: asyncio.Transport) -> int:
        """Write until the socket accepts no more or a piece must be read first; returns the number of bytes."""
        if self._messages.is_ended:  # the client has closed
            self._waiting.clear()
            self.waiting_bytes = 0
        written_bytes = 0
        while self._waiting and not self.is_paused:
            first = self._waiting[0]
            if isinstance(first, bytes):
                data: bytes | None = first
                self._drop_first()
            else:
                data = self._next(first)
            if data is None:
                break
            self._moves += 1
            written_bytes += len(data)
            if data:
                transport.write(data)
        return written_bytes

    def _next(self, frame: LargeFrame) -> bytes | None:
        """The next fragments of a message; none after a look at a piece; None if a piece must be read first."""
        messages, pieces = self._messages, self._pieces
        if not self._has_begun:
            if not messages.is_text:
                self._is_text = False
            elif self._is_text is None:
                return self._look(frame)
            self._has_begun = True
            return messages.fragments(frame.head, is_first=True, is_text=self._is_text is True)
        data = pieces.next(frame.body)
        if data is None:
            return None
        sent = messages.fragments(data)
        if pieces.is_at_start:
            sent += messages.fragments(frame.end, is_last=True)
            self._drop_first()
            self._has_begun = False
            self._is_text = None
        return sent

    def _look(self, frame: LargeFrame) -> bytes | None:
        """Learn from the next piece whether the message may be a text."""
        pieces, utf8 = self._pieces, self._utf8
        is_start = pieces.is_at_start
        data = pieces.next(frame.body)
        if data is None:
            return None
        try:
            if is_start:
                utf8.reset()
                utf8.decode(frame.head)
            utf8.decode(data, final=pieces.is_at_start)
        except UnicodeDecodeError:
            self._is_text = False
            pieces.rewind()
        else:
            if pieces.is_at_start:
                self._is_text = True
        return b""

    def _drop_first(self) -> None:
        self.waiting_bytes -= _memory_bytes(self._waiting.popleft())


def _memory_bytes(message: bytes | LargeFrame) -> int:
    return len(message) if isinstance(message, bytes) else len(message.head) + len(message.end)


# ---- websocket -------------------------------------------------------------------------------------------------------
#
# One client's WebSocket between its socket and its session.


HANDSHAKE_UNITS: Final = 200
"""What answering the request costs of a turn's budget."""
PAYLOAD_BYTES: Final = 16384
"""How much payload is gathered before the session gets it."""
PONG_BYTES_MAX: Final = WRITE_HIGH_BYTES + PIECE_BYTES
"""With more waiting for the client, a PING is not answered: a client must not pile up answers."""
PING_MS: Final = 30_000
"""How often a client without heart-beats gets a PING: proxies close what is silent for a minute."""


@final
class WebSocket:
    """Takes what the client sends, and wraps what it gets. It begins with the handshake.

    CLOSE counts as the end of the client's sending side. Until somebody takes the session's output, nothing is written
    but the answer to the handshake, PONG and the answer to CLOSE.
    """

    __slots__ = ("_budget", "_client", "_handshake", "_inbound", "_messages", "_rules")

    def __init__(self, client: Client, rules: WebSocketRules) -> None:
        self._client = client
        self._rules = rules
        self._budget: Budget = client.session.service.broker.budget
        self._handshake: Handshake | None = Handshake(rules)
        self._inbound: Inbound | None = None
        self._messages: Messages | None = None
        """None before the handshake, and for good if the client was turned away."""

    # ---- input -----------------------------------------------------------------------------------

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""
        session, inbound = self._client.session, self._inbound
        if session.has_more:
            return True
        if inbound is None or session.blocked_by is not None or session.is_closing:
            return False
        return inbound.has_more or inbound.code > 0

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held in memory: of the input, of frames to be written, and of open transactions."""
        input_bytes, output_bytes, kept_bytes = self._client.session.held_bytes
        if self._inbound is not None:
            input_bytes += self._inbound.held_bytes
        elif self._handshake is not None:
            input_bytes += self._handshake.held_bytes
        return input_bytes, output_bytes, kept_bytes

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes, and carry out what the turn's budget allows down to ``stop_at``; at least a little."""
        if self._handshake is not None:
            data = self._shake_hands(self._handshake, data, now_ms)
        if self._inbound is not None:
            self._inbound.add(data)
            self.go_on(now_ms, stop_at)

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what was received, until the budget is down to ``stop_at``."""
        session, inbound, budget = self._client.session, self._inbound, self._budget
        session.heartbeat.note_alive(now_ms)  # frames without payload, too, show that the client lives
        if session.has_more:
            session.go_on(now_ms, stop_at)
        if inbound is None:
            return
        while inbound.has_more and session.blocked_by is None and not session.has_more and not session.is_closing:
            payload = self._read(inbound, budget, stop_at)
            if payload:
                self._hand_on(session, inbound, payload, now_ms, stop_at)
            if budget.left <= stop_at:
                break
        self._answer(session, inbound, now_ms)

    def _read(self, inbound: Inbound, budget: Budget, stop_at: int) -> bytes:
        """The next payload: enough of it that frames of STOMP are carried out together, if the budget allows."""
        gathered: list[bytes] = []
        gathered_bytes = 0
        while inbound.has_more and gathered_bytes < PAYLOAD_BYTES:
            payload = inbound.read()
            budget.spend(inbound.units)
            inbound.units = 0
            gathered.append(payload)
            gathered_bytes += len(payload)
            if budget.left <= stop_at:
                break
        return b"".join(gathered)

    def _shake_hands(self, handshake: Handshake, data: bytes, now_ms: int) -> bytes:
        """Take bytes of the request; returns those behind it."""
        rest = handshake.take(data)
        if not handshake.response:
            return b""
        self._budget.spend(HANDSHAKE_UNITS)
        self._handshake = None
        self._write(handshake.response)
        if handshake.protocol is None:
            self._client.session.lost(now_ms)
            return b""
        self._client.session.heartbeat.ping_ms = PING_MS
        self._inbound = Inbound(handshake.protocol, self._rules.frame_bytes_max)
        self._messages = Messages(self._rules.frame_bytes_max, handshake.protocol.extensions)
        if self._rules.is_text is not None:
            self._messages.is_text = self._rules.is_text
        return rest

    def _hand_on(self, session: Session, inbound: Inbound, payload: bytes, now_ms: int, stop_at: int) -> None:
        if not session.is_open and self._rules.is_text is None and self._messages is not None:
            self._messages.is_text = inbound.is_text is not False
        session.receive(payload, now_ms, stop_at)

    def _answer(self, session: Session, inbound: Inbound, now_ms: int) -> None:
        """React to the frames that are not for the session."""
        if inbound.close is not None:
            if self._messages is not None and not self._messages.is_ended:
                self._write(echoed_close(inbound.close))
                self._messages.is_ended = True
                self._client.eof_received()
        elif inbound.code:
            if session.has_more or session.blocked_by is not None:
                return  # what came before is carried out first
            session.kick(inbound.reason, now_ms)
        elif inbound.pong is not None:
            self._write(pong_frame(inbound.pong), is_needed=False)
            inbound.pong = None

    # ---- output ----------------------------------------------------------------------------------

    def _write(self, data: bytes, *, is_needed: bool = True) -> None:
        """Write between messages, or between the fragments of one: a client that reads nothing gets only what it
        needs.
        """
        transport: asyncio.Transport | None = self._client.socket.transport
        if transport is None or (self._messages is not None and self._messages.is_ended):
            return
        if is_needed or transport.get_write_buffer_size() < PONG_BYTES_MAX:
            transport.write(data)

    def join(self, parts: list[Part]) -> bytes:
        """The bytes of whole STOMP frames. Raises TypeError if a large body is among them."""
        if self._messages is not None:
            self._messages.pings = self._client.session.heartbeat.pings
            return self._messages.join(parts)
        handshake, self._handshake = self._handshake, None
        if handshake is None:
            return b""
        handshake.give_up("The request did not come to its end")
        return handshake.response

    def flow(self, large: LargeStore, owner: object) -> Flow:
        """A flow for output with large bodies."""
        assert self._messages is not None  # only a session that was greeted gets any
        return MessageOutflow(self._messages, large, owner)

    def farewell(self, code: int | None = None) -> bytes:
        """CLOSE, once. ``code`` None: what the end of the session suggests."""
        messages = self._messages
        if messages is None or messages.is_ended:
            return b""
        messages.is_ended = True
        reason = ""
        if code is None:
            reason = _message_of(messages.error)
            code = self._code(self._client.session, is_error=bool(reason))
        return close_frame(code, reason)

    def _code(self, session: Session, *, is_error: bool) -> int:
        if self._inbound is not None and self._inbound.code:
            return self._inbound.code
        unreadable = session.unreadable
        if unreadable is not None:
            return TOO_BIG if unreadable.too_large else INVALID
        return POLICY if is_error else NORMAL


def _message_of(error: bytes) -> str:
    """What an ERROR frame says; empty if there is none."""
    return error.partition(b"\n\n")[2].rstrip(b"\0\n").decode()
