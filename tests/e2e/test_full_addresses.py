"""Full addresses under real senders, whose sockets are not read while they wait; ``tests/wire`` has the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import BrokerProcess, configuration, needs_descriptors

pytestmark = pytest.mark.e2e

ROOM = 10


def numbered(place: str, count: int) -> bytes:
    """SEND frames with receipts, numbered from 0."""
    return b"".join(frame("SEND", {"destination": f"/queue/{place}", "n": n, "receipt": n}) for n in range(count))


def blocked_sender(broker: BrokerProcess, place: str, count: int, **headers: object) -> StompSocket:
    """A connection that has sent more than the address takes, and has the receipts of what it took."""
    sender = connected(broker.port, **headers)
    sender.raw(numbered(place, count))
    assert receipts(sender, ROOM) == [str(n) for n in range(ROOM)]
    broker.await_count(place, ROOM)
    return sender


def receipts(client: StompSocket, count: int) -> list[str | None]:
    """The next receipts."""
    return [client.expect("RECEIPT").header("receipt-id") for _ in range(count)]


@pytest.mark.parametrize("ack", ["auto", "client-individual"])
def test_a_blocked_sender_goes_on_where_it_stopped(shared_broker: BrokerProcess, place: str, ack: str) -> None:
    with (
        blocked_sender(shared_broker, f"blocks.{place}", 100) as sender,
        connected(shared_broker.port) as consumer,
    ):
        consumer.subscribe(f"/queue/blocks.{place}", ack=ack)
        for n in range(100):
            message = consumer.message()
            assert message.header("n") == str(n)
            if ack != "auto":
                consumer.acknowledge(message)
        assert receipts(sender, 100 - ROOM) == [str(n) for n in range(ROOM, 100)]
        sender.nothing_waits()
    shared_broker.await_count(f"blocks.{place}", 0)


def test_a_sender_that_consumes_its_own_messages_does_not_block_itself(
    shared_broker: BrokerProcess, place: str
) -> None:
    with connected(shared_broker.port) as client:
        client.subscribe(f"/queue/blocks.{place}", ack="auto")
        client.raw(numbered(f"blocks.{place}", 200))
        frames = [client.receive() for _ in range(400)]
        assert [got.header("n") for got in frames if got.command == "MESSAGE"] == [str(n) for n in range(200)]
        assert [got.header("receipt-id") for got in frames if got.command == "RECEIPT"] == [str(n) for n in range(200)]


def test_a_blocked_sender_may_close_its_side(shared_broker: BrokerProcess, place: str) -> None:
    with blocked_sender(shared_broker, f"blocks.{place}", 40) as sender, connected(shared_broker.port) as consumer:
        sender.finish()
        consumer.subscribe(f"/queue/blocks.{place}", ack="auto")
        assert [consumer.message().header("n") for _ in range(40)] == [str(n) for n in range(40)]
        assert [got.header("receipt-id") for got in sender.read_to_end()] == [str(n) for n in range(ROOM, 40)]


def test_a_blocked_sender_that_vanishes_is_forgotten(shared_broker: BrokerProcess, place: str) -> None:
    """Its socket is not read, but asked again and again; what was not accepted is lost with it."""
    sender = blocked_sender(shared_broker, f"blocks.{place}", 11)
    shared_broker.await_metric(1, "artemis_connections", state="blocked")
    sender.reset()
    shared_broker.await_metric(0, "artemis_connections", state="blocked")
    with connected(shared_broker.port) as consumer:
        consumer.subscribe(f"/queue/blocks.{place}", ack="auto")
        assert [consumer.message().header("n") for _ in range(ROOM)] == [str(n) for n in range(ROOM)]
        consumer.nothing_waits()
        shared_broker.await_metric(1, "artemis_connections", state="open")


def test_an_idle_connection_costs_little(start_broker: Callable[[str], BrokerProcess]) -> None:
    needs_descriptors(1_500)
    broker = start_broker(configuration())
    first = connected(broker.port)
    idle: list[StompSocket] = []
    memory_each: list[float] = []
    for batch in range(1, 4):  # in one of them libraries may be loaded, which a broker does a while after its start
        broker.await_metric(len(idle) + 1, "artemis_connection_count")
        memory_before = broker.memory_bytes
        idle += [connected(broker.port) for _ in range(300)]
        broker.await_metric(batch * 300 + 1, "artemis_connection_count")
        memory_each.append((broker.memory_bytes - memory_before) / 300)
    print(f"{min(memory_each):.0f} bytes for each of 300 idle connections")
    first.nothing_waits()
    for client in idle:
        client.close()
    broker.await_metric(1, "artemis_connection_count")
    assert min(memory_each) < 5000
