"""WebSocket: whatever comes on the STOMP port, the answer is valid WebSocket or HTTP, and others are served."""

from __future__ import annotations

import random

from tests.fuzz import sessions
from tests.fuzz.fuzzing import Fuzzer, Input
from tests.kit.conservation import check
from tests.kit.frames import ServerFrame
from tests.kit.in_process import InProcessBroker, configuration
from tests.kit.web_client import WebClient
from tests.kit.web_frames import BINARY, CLOSE, CONTINUATION, PING, PONG, RSV1, TEXT, frame, request

CONFIGS = (
    configuration(sessions.CORE),
    configuration(sessions.CORE, "webSocketMaxFramePayloadLength=125;webSocketEncoderType=text"),
    configuration(sessions.CORE, "webSocketCompressionSupported=true;maxHeaderBytes=500;maxBodyBytes=300"),
    configuration(sessions.CORE, "allowedOrigins=https://own.example;stompMinLargeMessageSize=20"),
)
PIECES = (1, 2, 3, 9)
HEADERS = (
    "Origin: https://own.example", "Origin: https://other.example", "Sec-WebSocket-Extensions: permessage-deflate",
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=99", "Sec-WebSocket-Version: 8",
    "Sec-WebSocket-Key: x", "Content-Length: 5", "Transfer-Encoding: chunked", "Upgrade: h2c", "X: " + "y" * 900,
    "Connection: close", "Sec-WebSocket-Protocol: v10.stomp", ": x", "é: ü", "Expect: 100-continue",
)  # fmt: skip
OPCODES = (TEXT, TEXT, BINARY, BINARY, CONTINUATION, PING, PONG, CLOSE, 3, 11)
CLOSES = (
    b"",
    b"\x03\xe8",
    b"\x03\xe8bye",
    b"\x03",
    b"\x03\xed",
    b"\xff\xff",
    b"\x03\xe8\xff",
    b"\x03\xe8" + b"x" * 124,
)
TOKENS = (
    *sessions.TOKENS, *(frame(opcode) for opcode in OPCODES), *(frame(CLOSE, payload) for payload in CLOSES),
    *(header.encode("latin-1") + b"\r\n" for header in HEADERS), b"\x81\xfe\x00\x00", b"\x81\xff" + b"\xff" * 8,
    b"\x81\x80", b"\x01\x80" + bytes(4), b"\xc1\x80" + bytes(4), b"\r\n\r\n", b"GET ", b"HTTP/1.1", b"HTTP/1.0",
)  # fmt: skip
REQUESTED, HALF_CLOSED = 1024, 2048
"""Bits of a choice: a valid request comes before the bytes; the client says that nothing more comes."""


def stream(rng: random.Random) -> bytes:
    """A conversation in frames, cut up as clients do, with control frames between; sometimes a request before it."""
    data = sessions.conversation(rng)
    parts: list[bytes] = []
    opcode, at = rng.choice((TEXT, BINARY)), 0
    while at < len(data):
        size = rng.choice((1, 10, 60, 125, 1000, 1000))
        fin = rng.random() < 0.7
        parts.append(frame(opcode, data[at : at + size], fin=fin))
        opcode = rng.choice((TEXT, BINARY)) if fin else CONTINUATION
        at += size
        if rng.random() < 0.1:
            bits = rng.choice((0, 0, 0, RSV1))
            parts.append(frame(rng.choice(OPCODES), rng.choice(CLOSES), fin=rng.random() < 0.9, bits=bits))
    if rng.random() < 0.3:
        parts.append(frame(CLOSE, rng.choice(CLOSES)))
    if rng.random() < 0.3:
        parts.insert(0, request(*rng.sample(HEADERS, rng.randrange(3))))
    return b"".join(parts)


class RawClient(WebClient):
    """It may begin with no handshake."""

    def collect(self) -> list[ServerFrame]:
        """Bytes that did not begin with GET may be of any protocol, so that STOMP may answer."""
        if not self.web.head and bytes(self.transport.taken[:5]) not in (b"", b"HTTP/"):
            self.stream.take(bytes(self.transport.taken))
            self.transport.taken.clear()
        return super().collect()


def judge(one: Input) -> str:
    """The broker's side is strict WebSocket; nothing in it fails; what it kept it lets go; others are served."""
    world = InProcessBroker(CONFIGS[one.choice % len(CONFIGS)])
    client = RawClient(world, asks=bool(one.choice & REQUESTED))
    world.clients["one"] = client
    step = len(one.data) // PIECES[one.choice // len(CONFIGS) % len(PIECES)] + 1
    for start in range(0, len(one.data), step):
        client.send_wire(one.data[start : start + step])
    got = list(client.collect())
    check(world)
    world.advance(1 + one.choice % 300)
    got = list(client.collect())
    if one.choice & HALF_CLOSED and not client.is_closed:
        client.half_close()
        client.collect()
    client.drop()
    check(world)
    sessions.judge_after(world)
    web = client.web
    assert web.status != 500, f"a handshake failed: {web.head!r}"
    commands = " ".join(each.command for each in got[:4])
    return f"{web.status} {web.closed} {client.pings} {commands}"[:120]


WEBSOCKET = Fuzzer("websocket", stream, lambda _: judge, TOKENS)
