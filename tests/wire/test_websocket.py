"""A connection over WebSocket: what the client gets, how it ends, and what it may cost."""

from __future__ import annotations

import gc
import zlib
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from artemis_py.core.budget import TURN_UNITS
from artemis_py.server.websocket.websocket import PING_MS, SHARED_BYTES_MAX, WebSocket
from tests.kit.in_process import Client, InProcessBroker, configuration
from tests.kit.web_client import BinaryWebClient, WebClient
from tests.kit.web_frames import BINARY, CLOSE, CONTINUATION, PING, RSV1, TEXT, WebStream, frame, request
from tests.wire.test_large import BODY, CORE, LargeBodiesBroker, sent

pytestmark = pytest.mark.wire

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"


def greeted(
    world: InProcessBroker, make: Callable[..., WebClient] = WebClient, name: str = "c", *headers: str
) -> WebClient:
    """A client that said CONNECT."""
    client = make(world, *headers)
    world.clients[name] = client
    client.send(CONNECT)
    assert [one.command for one in client.collect()] == ["CONNECTED"]
    client.collect().clear()
    return client


def subscribed(
    world: InProcessBroker, make: Callable[..., WebClient] = WebClient, name: str = "c", *headers: str
) -> WebClient:
    """A client that reads the queue."""
    client = greeted(world, make, name, *headers)
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\nconsumer-window-size:-1\n\n\0")
    return client


# ---- the beginning ---------------------------------------------------------------------------------


def test_plain_and_web_clients_share_the_port() -> None:
    world = InProcessBroker(configuration(CORE))
    web = subscribed(world)
    plain = world.client("plain")
    plain.send(CONNECT + sent(b"hello"))
    assert [one.body for one in web.heard()] == [b"hello"]


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\n", b"DELETE /x"])
def test_another_request_is_told_to_upgrade(start: bytes) -> None:
    world = InProcessBroker(configuration(CORE))
    for step in (len(start), 1):
        client = Client(world)
        for at in range(0, len(start), step):
            client.send(start[at : at + step])
        stream = WebStream()
        stream.take(bytes(client.transport.taken))
        assert stream.status == 426
        assert "WebSocket" in stream.body
        assert client.is_closed


def test_an_origin_that_is_not_allowed() -> None:
    world = InProcessBroker(configuration(CORE, "allowedOrigins=https://shop.example,http://localhost:3000"))
    client = WebClient(world, "Origin: https://evil.example")
    client.collect()
    assert (client.web.status, client.is_closed) == (403, True)
    assert greeted(world, WebClient, "good", "Origin: https://shop.example").web.status == 101


def test_a_request_that_does_not_end() -> None:
    """The acceptor's handshakeTimeout covers the request and CONNECT."""
    world = InProcessBroker(configuration(CORE, "handshakeTimeout=1000"))
    client = Client(world)
    client.send(request()[:-2])
    world.advance(1001)
    assert client.transport.taken.startswith(b"HTTP/1.1 408 ")
    assert client.is_closed


def test_no_connect() -> None:
    world = InProcessBroker(configuration(CORE, "handshakeTimeout=1000"))
    client = WebClient(world)
    world.advance(1001)
    assert "No CONNECT frame within 1000 ms" in client.heard()[0].text
    assert client.web.closed is not None
    assert client.web.closed[0] == 1008


def test_connect_behind_the_request() -> None:
    """In one piece with it, which browsers never do."""
    world = InProcessBroker(configuration(CORE))
    client = Client(world)
    client.send(request() + frame(TEXT, CONNECT))
    stream = WebStream()
    stream.take(bytes(client.transport.taken))
    assert stream.messages[0].payload.startswith(b"CONNECTED")


def test_a_client_that_is_no_web_client_after_all() -> None:
    """Its first bytes could have been a request."""
    world = InProcessBroker(configuration(CORE))
    for start in (b"G", b"GE", b"D", b"DELETE"):
        client = Client(world)
        client.send(start)
        assert not client.transport.taken
        client.send(b"\n\n\0")
        assert client.transport.taken.startswith(b"ERROR")


# ---- text and binary -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acceptor", "make", "opcodes"),
    [
        ("", WebClient, [TEXT, TEXT, BINARY]),
        ("", BinaryWebClient, [BINARY, BINARY, BINARY]),
        ("webSocketEncoderType=text", BinaryWebClient, [TEXT, TEXT, BINARY]),
        ("webSocketEncoderType=binary", WebClient, [BINARY, BINARY, BINARY]),
    ],
)
def test_the_kind_of_messages(acceptor: str, make: Callable[..., WebClient], opcodes: list[int]) -> None:
    world = InProcessBroker(configuration(CORE, acceptor))
    client = subscribed(world, make)
    for body in ("Ж".encode(), b"\xff\0\xfe"):
        client.send(sent(body))
    assert [one.body for one in client.heard()] == ["Ж".encode(), b"\xff\0\xfe"]
    assert [message.opcode for message in client.got] == opcodes


@pytest.mark.parametrize(("make", "most"), [(WebClient, 100), (BinaryWebClient, 10)])
def test_frames_share_binary_messages(make: Callable[..., WebClient], most: int, turns_of_any_size: str) -> None:
    """Up to the smallest buffer for messages among usual clients; a text has one frame."""
    if turns_of_any_size == "tiny turns":
        pytest.skip("each turn sends what it has")
    world = InProcessBroker(configuration(CORE))
    client = subscribed(world, make)
    before = len(client.got)
    client.send(b"".join(sent(b"%d" % number) for number in range(100)))
    assert [one.body for one in client.heard()] == [b"%d" % number for number in range(100)]
    messages = client.got[before:]
    assert len(messages) <= most
    assert max(len(message.payload) for message in messages) <= SHARED_BYTES_MAX
    assert (len(messages) == 100) == (make is WebClient)


@pytest.mark.parametrize("make", [WebClient, BinaryWebClient])
@pytest.mark.parametrize("size", [100, 125, 126, 5000, 65535, 65536, 70000, 200000])
def test_no_frame_is_longer_than_allowed(make: Callable[..., WebClient], size: int) -> None:
    world = InProcessBroker(configuration(CORE, "webSocketMaxFramePayloadLength=60000;stompMinLargeMessageSize=-1"))
    client = subscribed(world, make)
    client.web.frame_bytes_max = 60000
    body = b"x" * size
    client.send(sent(body))
    assert [one.body for one in client.heard()] == [body]
    last = client.got[-1]
    assert last.frames == -(-len(last.payload) // 60000)


# ---- large bodies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [WebClient, BinaryWebClient])
@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("size", [1000, 65536, 262144, 262145, 1_000_000])
def test_a_large_body(make: Callable[..., WebClient], is_text: bool, size: int) -> None:
    """One message in fragments, a text only if all of it is valid UTF-8, with other frames around it, in order."""
    world = LargeBodiesBroker()
    client = subscribed(world, make)
    client.web.frame_bytes_max = 65536
    body = ("Ж" * size).encode()[:size] if is_text and size % 2 == 0 else (b"x" if is_text else b"\xff") * size
    large = sent(body) if is_text else sent(b"x" * (size - 1) + b"\xff")
    client.send(sent(b"first") + large + sent(b"last"))
    frames = client.heard()
    assert [len(one.body) for one in frames] == [5, size, 4]
    found = next(message for message in client.got if len(message.payload) > size)
    assert found.opcode == (TEXT if make is WebClient and is_text else BINARY)
    assert found.frames > 1
    world_flow = client.connection.socket.flow
    assert world_flow is None


def test_a_ping_between_the_fragments() -> None:
    """A client that reads slowly is answered in the middle of a large body."""
    world = LargeBodiesBroker()
    client = subscribed(world)
    client.stall()
    client.send(sent(BODY))
    client.send_wire(frame(PING, b"still there?"))
    client.read_again()
    client.web.take(bytes(client.transport.taken))
    client.transport.taken.clear()
    kinds = [message.opcode for message in client.web.messages]
    assert kinds.count(0xA) == 1
    assert len(client.web.messages[-1].payload) > len(BODY) or client.web.messages[-1].opcode == 0xA


def test_a_client_closes_in_the_middle_of_a_large_body() -> None:
    world = LargeBodiesBroker()
    client = subscribed(world)
    client.stall()
    client.send(sent(BODY))
    client.leave()
    client.read_again()
    assert client.is_closed
    assert not world.stats.connections


# ---- the end ---------------------------------------------------------------------------------------


def test_disconnect_is_a_normal_end() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.send(b"DISCONNECT\nreceipt:bye\n\n\0")
    assert [one.header("receipt-id") for one in client.heard()] == ["bye"]
    assert client.web.closed == (1000, "")
    assert client.is_closed


ENDS: dict[str, tuple[Callable[[WebClient], object], int, str]] = {
    "WebSocket broken": (lambda c: c.send_wire(frame(BINARY, b"x", mask=None)), 1002, "WebSocket"),
    "no UTF-8": (lambda c: c.send_wire(frame(TEXT, b"\xff")), 1007, "UTF-8"),
    "frame too long": (lambda c: c.send_wire(frame(TEXT, b"x" * 70000)), 1009, "webSocketMaxFramePayloadLength"),
    "no STOMP": (lambda c: c.send(b"SEND\nno colon\n\nx\0"), 1007, "colon"),
    "STOMP that cannot be read": (lambda c: c.send(b"SEND\nd:\0"), 1007, "NUL"),
    "body too large": (lambda c: c.send(sent(b"x" * 2000)), 1009, "Body too large"),
    "headers too large": (lambda c: c.send(b"SEND\nx:" + b"y" * 5000), 1009, "maxHeaderBytes"),
    "refused": (lambda c: c.send(b"ACK\nid:nothing\n\n\0"), 1008, "nothing"),
}


@pytest.mark.parametrize("case", ENDS)
def test_close_codes(case: str) -> None:
    """The ERROR first, then CLOSE with its words, as far as they fit."""
    end, code, words = ENDS[case]
    world = InProcessBroker(configuration(CORE, "maxBodyBytes=1000;maxHeaderBytes=2000"))
    client = greeted(world)
    end(client)
    error = client.heard()[-1]
    assert error.command == "ERROR"
    assert words in (error.header("message") or "")
    assert client.web.closed is not None
    assert client.web.closed[0] == code
    assert client.web.closed[1]
    assert error.body.decode().startswith(client.web.closed[1])
    assert client.is_closed


def test_what_came_before_a_bad_frame_is_carried_out() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.send_wire(frame(TEXT, sent(b"kept", "receipt:1")) + frame(BINARY, b"x", mask=None))
    assert [one.command for one in client.heard()] == ["RECEIPT", "ERROR"]
    assert world.queue("q").message_count == 1


@pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x0f\xa0my own reason"])
def test_close_counts_as_a_lost_connection(payload: bytes) -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\n\n\0" + sent(b"x"))
    client.send_wire(frame(TEXT, sent(b"last words")) + frame(CLOSE, payload))
    client.collect()
    assert client.web.closed == (int.from_bytes(payload[:2], "big") if payload else 1005, payload[2:].decode())
    world.settle()
    assert client.transport.lost
    assert world.queue("q").message_count == 2
    again = subscribed(world, WebClient, "again")
    assert [one.header("redelivered") for one in again.heard()] == ["true", "true"]


def test_close_behind_disconnect() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.send_wire(frame(TEXT, b"DISCONNECT\nreceipt:1\n\n\0") + frame(CLOSE, b"\x03\xe8"))
    client.collect()
    assert client.web.closed == (1000, "")
    assert client.is_closed


def test_the_broker_stops() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.connection.shut(world.now_ms)
    client.collect()
    assert client.web.closed == (1001, "")


@pytest.mark.interpreted
def test_a_failure_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    monkeypatch.setattr(type(client.connection.intake), "go_on", Mock(side_effect=ValueError("broken")))
    client.send(sent(b"x"))
    client.collect()
    assert client.web.closed == (1011, "")
    assert world.stats.connection_faults["read"] == 1


# ---- heart-beats and pings -------------------------------------------------------------------------


def test_a_client_without_heart_beats_gets_pings() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    for count in range(1, 4):
        world.advance(PING_MS)
        client.collect()
        assert (client.pings, client.stream.beats) == (count, 0)


def test_a_client_with_heart_beats_gets_line_feeds() -> None:
    world = InProcessBroker(configuration(CORE))
    client = WebClient(world)
    world.clients["c"] = client
    client.send(CONNECT.replace(b"\n\n", b"\nheart-beat:0,10000\n\n"))
    world.advance(35000)
    client.collect()
    assert client.stream.beats > 2
    assert client.pings == 0
    assert [message.payload for message in client.got[1:]] == [b"\n"] * client.stream.beats


def test_a_pong_shows_that_a_client_lives() -> None:
    world = InProcessBroker(configuration(CORE, "connectionTtl=60000"))
    client = greeted(world)
    for _ in range(10):
        world.advance(PING_MS)
        client.send_wire(frame(0xA))
    assert not client.is_closed
    world.advance(70000)
    assert client.is_closed


@pytest.mark.parametrize("payload", [b"", b"x" * 125])
def test_a_ping_is_answered(payload: bytes) -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    client.send_wire(frame(PING, payload))
    client.web.take(bytes(client.transport.taken))
    assert [(one.opcode, one.payload) for one in client.web.messages] == [(0xA, payload)]


# ---- what it may cost ------------------------------------------------------------------------------


@pytest.mark.parametrize("flood", [frame(PING, b"x" * 100), frame(BINARY), frame(CONTINUATION, fin=False)])
def test_a_flood_spends_the_share_of_its_own_connection(flood: bytes, turns_of_any_size: str) -> None:
    """Other clients are served in between, and what a client does not read is not written without end."""
    if turns_of_any_size == "tiny turns":
        pytest.skip("about the size of a turn")
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    other = greeted(world, WebClient, "other")
    if flood[0] == 0:
        client.send_wire(frame(BINARY, fin=False))
    client.stall()
    world.together = True
    turns = world.turns
    spent: list[int] = []
    receive = type(client.connection.intake).receive

    def watched(self: object, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        before = world.broker.budget.left
        receive(self, data, now_ms, stop_at)  # type: ignore[arg-type]
        spent.append(before - world.broker.budget.left)

    type(client.connection.intake).receive = watched  # type: ignore[method-assign]
    try:
        for _ in range(5):
            client.send_wire(flood * (65536 // len(flood)))
            other.send(sent(b"x", "receipt:1"))
            turns.run()
            assert [one.command for one in other.heard()] == ["RECEIPT"]
        world.together = False
        world.settle()
    finally:
        type(client.connection.intake).receive = receive  # type: ignore[method-assign]
    assert max(spent) <= TURN_UNITS // 2
    assert client.transport.get_write_buffer_size() <= 262144 + 65536
    assert not client.is_closed


def test_a_message_without_an_end_is_limited_as_any_body() -> None:
    world = InProcessBroker(configuration(CORE, "maxBodyBytes=100000;stompMinLargeMessageSize=-1"))
    client = greeted(world)
    client.send_wire(frame(TEXT, b"SEND\ndestination:/queue/q\n\n", fin=False))
    for _ in range(30):
        if client.is_closed:
            break
        client.send_wire(frame(CONTINUATION, b"x" * 10000, fin=False))
    assert client.web is not None
    assert "maxBodyBytes" in client.heard()[0].text
    assert client.web.closed is not None
    assert client.web.closed[0] == 1009


def test_an_unfinished_frame_counts() -> None:
    world = InProcessBroker(configuration(CORE))
    client = greeted(world)
    before = world.broker.holdings.total_bytes
    client.send_wire(frame(TEXT, b"x" * 60000)[:50000])
    assert world.broker.holdings.total_bytes - before >= 49900
    client.drop()
    assert world.broker.holdings.total_bytes < before


def test_an_unfinished_request_counts() -> None:
    world = InProcessBroker(configuration(CORE))
    client = Client(world)
    before = world.broker.holdings.total_bytes
    client.send(b"GET /" + b"x" * 9000)
    assert world.broker.holdings.total_bytes - before >= 9000


@pytest.mark.interpreted
def test_a_lost_connection_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is freed at once, without the collector."""
    world = InProcessBroker(configuration(CORE))
    freed: list[str] = []
    gc.disable()
    monkeypatch.setattr(WebSocket, "__del__", lambda self: freed.append("freed"), raising=False)
    try:
        for leave in (WebClient.drop, WebClient.leave):
            client = subscribed(world)
            leave(client)
            world.settle()
            world.clients.clear()
            del client
        assert freed == ["freed", "freed"]
    finally:
        gc.enable()
    assert not world.stats.connections


def test_compression() -> None:
    """Only what is long enough is compressed, and it stays valid."""
    world = InProcessBroker(configuration(CORE, "webSocketCompressionSupported=true"))
    client = subscribed(world, WebClient, "c", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -12)
    body = "Ж東🎈 again and again ".encode() * 200
    data = squeezer.compress(sent(body)) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    client.send_wire(frame(TEXT, data[:-4], bits=RSV1))
    client.web.take(bytes(client.transport.taken))
    client.transport.taken.clear()
    (message,) = client.web.messages
    assert message.is_compressed
    assert len(message.payload) < len(body) // 4
    assert message.plain.endswith(body + b"\0\n")


# ---- senders that wait -----------------------------------------------------------------------------

FULL = """<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>
  <address-settings><address-setting match="q"><max-size-messages>2</max-size-messages>
  <address-full-policy>BLOCK</address-full-policy></address-setting></address-settings>"""


@pytest.mark.parametrize("ends_badly", [False, True])
def test_a_blocked_sender_goes_on(ends_badly: bool) -> None:
    """Frames behind the one that waits are read when it goes on; a bad one ends the session only then."""
    world = InProcessBroker(configuration(FULL))
    sender = greeted(world, WebClient, "sender")
    data = b"".join(frame(TEXT, sent(b"%d" % number, f"receipt:{number}")) for number in range(200))
    sender.send_wire(data + (frame(3) if ends_badly else b""))
    assert sender.connection.state == "blocked"
    assert not sender.transport.reading
    reader = subscribed(world, WebClient, "reader")
    world.settle()
    assert [one.body for one in reader.heard()] == [b"%d" % number for number in range(200)]
    answers = [one.command for one in sender.heard()]
    assert answers == ["RECEIPT"] * 200 + ["ERROR"] * ends_badly
    assert sender.is_closed == ends_badly
