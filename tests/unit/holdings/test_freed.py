"""What is over is freed at once, by counting references: the garbage collector has wide thresholds on a broker that
runs, and what it is to find stays for hours.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from artemis_py.core.order.entry import PURGED
from tests.kit.frames import frame
from tests.kit.live_server import CONNECT, STEPS, Client, LiveServer, census, no_collector

KIBIBYTE = 1024
ACCEPTOR = "stompMinLargeMessageSize=100000;handshakeTimeout=60000"
"""A broker on which small bodies are large."""
CORE = """<address-settings><address-setting match="full"><max-size-bytes>1000</max-size-bytes>
<address-full-policy>BLOCK</address-full-policy></address-setting>
<address-setting match="paged"><max-size-bytes>2000</max-size-bytes><page-size-bytes>4000</page-size-bytes>
<address-full-policy>PAGE</address-full-policy></address-setting></address-settings>
<addresses><address name="values"><anycast><queue name="values" non-destructive="true" last-value-key="key"/></anycast>
</address></addresses>"""


def rounds_that_leave_nothing(stage: LiveServer) -> Iterator[None]:
    """What is done again and again leaves no object behind."""
    with no_collector():
        for number in range(3 + STEPS):
            if number == 3:
                settled(stage)
                before = census()
            yield
        settled(stage)
        grown = census()
        grown.subtract(before)
        left = {name: count for name, count in grown.items() if count >= STEPS}
        assert not left, f"left behind by {STEPS}: {left}"


def leaves_nothing(stage: LiveServer, *parts: bytes, greeted: bool = True, unread: bool = False) -> None:
    """Clients that send ``parts`` (each is read before the next) and go leave no object behind."""
    stats = stage.server.stats
    for _ in rounds_that_leave_nothing(stage):
        client = stage.greeted(unread=unread) if greeted else Client(stage)
        for part in parts:
            before = stats.bytes_in
            client.send(part)
            stage.until(lambda before=before, part=part: stats.bytes_in >= before + len(part), "all was read")  # type: ignore[misc]
        a_turn(stage)
        client.socket.close()
        stage.until(lambda: len(stats.connections) == len(stage.readers), "the connection is gone")


def settled(stage: LiveServer) -> None:
    """Nothing is under way: no turn, no write, no file that is read."""
    turns, log, large = stage.server.turns, stage.broker.log, stage.server.turns.large
    assert large is not None
    durability = stage.server.store.durability
    a_turn(stage)
    while (
        turns.input.lost
        or turns.output.waiting
        or turns.output.dirty
        or large.body_writer.has_pending
        or durability.durable_lsn < log.last_lsn
    ):
        a_turn(stage)
    for _ in range(3):
        a_turn(stage)


def a_turn(stage: LiveServer) -> None:
    """The server has one."""
    before = stage.server.stats.turns
    stage.server.turns.schedule()
    stage.until(lambda: stage.server.stats.turns > before, "a turn")


BEGUN = {
    "nothing": [],
    "CONNECT not finished": [b"CONNECT\naccept-version:1.2\nho"],
    "no CONNECT": [frame("SEND", "destination:/queue/q")],
    "a bad CONNECT": [frame("CONNECT", "accept-version:1.2", "heart-beat:x")],
    "no version in common": [frame("CONNECT", "accept-version:9")],
    "heart-beats": [frame("CONNECT", "accept-version:1.2", "heart-beat:100000,999999999")],
}


@pytest.mark.parametrize("parts", BEGUN.values(), ids=BEGUN.keys())
def test_before_the_greeting(stage: LiveServer, parts: list[bytes]) -> None:
    leaves_nothing(stage, *parts, greeted=False)


def subscribed(destination: str, *headers: str) -> bytes:
    return frame("SUBSCRIBE", "id:1", f"destination:{destination}", *headers)


def sent(destination: str, *headers: str, body: bytes = b"hello") -> bytes:
    return frame("SEND", f"destination:{destination}", *headers, body=body)


STATES = {
    "a header not finished": [b"SEND\ndestination:/queue/q\nfoo"],
    "a body not finished": [b"SEND\ndestination:/queue/q\n\nhello"],
    "a large body not finished": [b"SEND\ndestination:/queue/q\ncontent-length:300000\n\n" + bytes(200_000)],
    "a receipt": [sent("/queue/q", "receipt:1"), sent("/queue/q", "receipt:2")],
    "an unknown command": [frame("FOO", "receipt:1")],
    "a bad number": [b"SEND\ndestination:/queue/q\nreceipt:1\ncontent-length:x\n\n\0"],
    "a bad escape": [b"SEND\ndestination:/queue/q\nx:\\q\n\n\0"],
    "a bad header": [sent("/queue/q", "priority:99", "receipt:7")],
    "a bad selector": [subscribed("/queue/q", "selector:a === 1")],
    "a wrong length": [b"SEND\ndestination:/queue/q\ncontent-length:1\n\nabc\0"],
    "a reader": [subscribed("/queue/q"), sent("/queue/q")],
    "a reader that acknowledges nothing": [subscribed("/queue/held", "ack:client"), sent("/queue/held")],
    "a reader with a selector": [subscribed("/queue/q", "selector:colour = 'red'"), sent("/queue/q", "colour:red")],
    "a browser": [sent("/queue/q"), subscribed("/queue/q", "browser:true")],
    "a reader of last values": [sent("/queue/values", "key:a"), subscribed("/queue/values")],
    "a reader of groups": [subscribed("/queue/groups", "ack:client"), sent("/queue/groups", "JMSXGroupID:a")],
    "a topic": [subscribed("/topic/t", "selector:colour = 'red'"), sent("/topic/t", "colour:red")],
    "a temporary queue": [subscribed("/temp-queue/t"), sent("/temp-queue/t")],
    "a reply": [subscribed("/temp-queue/t"), sent("/queue/q", "reply-to:/temp-queue/t")],
    "a transaction": [frame("BEGIN", "transaction:1"), sent("/queue/q", "transaction:1")],
    "a commit": [frame("BEGIN", "transaction:1"), sent("/queue/q", "transaction:1"), frame("COMMIT", "transaction:1")],
    "DISCONNECT": [frame("DISCONNECT", "receipt:1")],
    "DISCONNECT and more": [frame("DISCONNECT", "receipt:1") + sent("/queue/q")],
    "later": [subscribed("/temp-queue/t"), sent("/temp-queue/t", "AMQ_SCHEDULED_DELAY:999999999")],
    "expiry": [subscribed("/temp-topic/t"), sent("/temp-topic/t", "expires:9999999999999")],
}


@pytest.mark.parametrize("parts", STATES.values(), ids=STATES.keys())
def test_after_the_greeting(stage: LiveServer, parts: list[bytes]) -> None:
    drain = [frame("UNSUBSCRIBE", "id:1")] if parts[0].startswith(b"SUBSCRIBE\nid:1\ndestination:/topic") else []
    reader = stage.greeted()
    for number, name in enumerate(("q", "held", "groups")):
        reader.send(frame("SUBSCRIBE", f"id:{number}", f"destination:/queue/{name}", "receipt:here"))
        reader.expect(b"RECEIPT")
    stage.readers.append(reader)
    leaves_nothing(stage, *parts, *drain)


def test_output_that_nobody_reads(stage: LiveServer) -> None:
    """More than the kernel takes."""
    body = bytes(64 * KIBIBYTE)
    with_length = [sent("/topic/t", f"content-length:{len(body)}", body=body)] * 40
    leaves_nothing(stage, subscribed("/topic/t"), *with_length, unread=True)


def test_a_large_body_that_nobody_reads(stage: LiveServer) -> None:
    body = bytes(4000 * KIBIBYTE)
    leaves_nothing(
        stage, subscribed("/topic/t"), sent("/topic/t", f"content-length:{len(body)}", body=body), unread=True
    )


def test_a_sender_that_waits_for_room(stage: LiveServer) -> None:
    """A sender that is not read is found gone when its address has room."""
    address = stage.broker.resolver.obtain_address("full", "ANYCAST")
    stats = stage.server.stats
    for _ in rounds_that_leave_nothing(stage):
        address.bytes_max = 0
        client = stage.greeted()
        client.send(sent("/queue/full") * 10)
        stage.until(lambda: stats.connections_by_state()["blocked"] == 1, "it waits")
        client.socket.close()
        address.bytes_max = -1
        stage.server.turns.schedule()
        stage.until(lambda: not stats.connections, "it is gone")
        stage.broker.queues["full"].purge(PURGED, stage.broker.host.log.now_ms)


def test_a_sender_that_waits_for_room_and_is_gone(stage: LiveServer) -> None:
    """Nobody reads its socket, and there is never room: the reset is found all the same."""
    stage.broker.resolver.obtain_address("full", "ANYCAST").bytes_max = 0
    stats = stage.server.stats
    client = stage.greeted()
    client.send(sent("/queue/full") * 10)
    stage.until(lambda: stats.connections_by_state()["blocked"] == 1, "it waits")
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()
    stage.until(lambda: not stats.connections, "it is gone")
    stage.until(lambda: not stage.server.turns.input.blocked, "nobody waits")


def test_a_handshake_that_does_not_come(tmp_path: Path) -> None:
    stage = LiveServer(tmp_path, "handshakeTimeout=1")
    for _ in rounds_that_leave_nothing(stage):
        client = Client(stage)
        client.expect(b"No CONNECT frame")
        client.socket.close()
        stage.until(lambda: not stage.server.stats.connections, "the connection is gone")
    stage.close()


def test_a_durable_subscription_that_is_deleted(stage: LiveServer) -> None:
    body = b"x" * 500
    name = "durable-subscription-name:d"
    for _ in rounds_that_leave_nothing(stage):
        client = stage.greeted("client-id:c")
        client.send(subscribed("/topic/durable", name, "ack:client", "selector:colour = 'red'"))
        client.send(sent("/topic/durable", "colour:red", "receipt:1", body=body) * 3)
        client.expect(b"RECEIPT")
        client.send(frame("UNSUBSCRIBE", "id:1", name, "receipt:2"))
        client.expect(b"receipt-id:2")
        client.socket.close()
        stage.until(lambda: not stage.server.stats.connections and "c.d" not in stage.broker.queues, "it is deleted")


def test_queues_and_addresses_that_are_deleted(stage: LiveServer) -> None:
    """With all that queues can have: pages, schedules, groups, readers with cursors."""
    client = stage.greeted()
    name = "auto"
    for _ in rounds_that_leave_nothing(stage):
        client.send(frame("SUBSCRIBE", "id:r", f"destination:/queue/{name}", "selector:colour = 'red'", "ack:client"))
        client.send(sent(f"/queue/{name}", "colour:red", "JMSXGroupID:g", "receipt:1"))
        client.send(sent(f"/queue/{name}", "colour:red", "AMQ_SCHEDULED_DELAY:99999999", "_AMQ_DUPL_ID:7"))
        client.expect(b"MESSAGE")
        client.send(frame("UNSUBSCRIBE", "id:r", "receipt:2"))
        client.expect(b"receipt-id:2")
        queue = stage.broker.queues[name]
        stage.broker.registry.delete_queue(queue, 0)
        stage.broker.registry.delete_address(stage.broker.addresses[queue.address.name])
    client.socket.close()


REQUESTS = {
    "half a request": b"GET /metr",
    "half a body": b"PUT /log/cursors/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    "nonsense": b"\0\0\r\n\r\n",
    "metrics": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "health": b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS.keys())
def test_http(stage: LiveServer, data: bytes) -> None:
    acceptor = stage.server.ports.http.acceptors[0]
    for _ in rounds_that_leave_nothing(stage):
        client = Client(stage, http=True)
        stage.until(lambda: acceptor.connections_open == 1, "it is accepted")
        client.send(data)
        if data.endswith(b"\r\n\r\n"):
            client.expect(b"HTTP/1.1")
        client.socket.close()
        stage.until(lambda: acceptor.connections_open == 0, "it is gone")


def test_many_clients_come_together_and_go_together(stage: LiveServer) -> None:
    for _ in rounds_that_leave_nothing(stage):
        clients: list[Client] = [Client(stage) for _ in range(20)]
        for client in clients:
            client.send(CONNECT + subscribed("/topic/t") + b"SEND\ndestination:/queue/q\nx")
        for client in clients:
            client.socket.close()
        stage.until(lambda: not stage.server.stats.connections, "they are gone")
