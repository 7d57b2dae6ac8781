"""Rings and full addresses under real senders: what waits, what is refused; nothing is lost or out of order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import BrokerProcess, configuration, needs_descriptors

pytestmark = pytest.mark.e2e

ROOM = 10


@pytest.fixture
def narrow_place(place: str) -> str:
    """An address that takes 10 messages; then its senders wait."""
    return f"blocks.{place}"


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
def test_a_blocked_sender_goes_on_where_it_stopped(shared_broker: BrokerProcess, narrow_place: str, ack: str) -> None:
    with (
        blocked_sender(shared_broker, narrow_place, 100) as sender,
        connected(shared_broker.port) as consumer,
    ):
        consumer.subscribe(f"/queue/{narrow_place}", ack=ack)
        for n in range(100):
            message = consumer.message()
            assert message.header("n") == str(n)
            if ack != "auto":
                consumer.acknowledge(message)
        assert receipts(sender, 100 - ROOM) == [str(n) for n in range(ROOM, 100)]
        sender.nothing_waits()
    shared_broker.await_count(narrow_place, 0)


def test_several_blocked_senders_lose_nothing(shared_broker: BrokerProcess, narrow_place: str) -> None:
    senders = [connected(shared_broker.port) for _ in range(8)]
    for number, sender in enumerate(senders):
        for n in range(50):
            sender.send("SEND", {"destination": f"/queue/{narrow_place}", "sender": number, "n": n})
    with connected(shared_broker.port) as consumer:
        shared_broker.await_count(narrow_place, ROOM)
        consumer.subscribe(f"/queue/{narrow_place}")
        seen: dict[str | None, list[str | None]] = {}
        for _ in range(8 * 50):
            message = consumer.message()
            seen.setdefault(message.header("sender"), []).append(message.header("n"))
            consumer.send("ACK", {"id": message.header("ack")})
        assert seen == {str(number): [str(n) for n in range(50)] for number in range(8)}
    for sender in senders:
        sender.nothing_waits()
        sender.close()


def test_a_sender_that_consumes_its_own_messages_does_not_block_itself(
    shared_broker: BrokerProcess, narrow_place: str
) -> None:
    with connected(shared_broker.port) as client:
        client.subscribe(f"/queue/{narrow_place}", ack="auto")
        client.raw(numbered(narrow_place, 200))
        frames = [client.receive() for _ in range(400)]
        assert [got.header("n") for got in frames if got.command == "MESSAGE"] == [str(n) for n in range(200)]
        assert [got.header("receipt-id") for got in frames if got.command == "RECEIPT"] == [str(n) for n in range(200)]


def test_a_blocked_sender_may_close_its_side(shared_broker: BrokerProcess, narrow_place: str) -> None:
    with blocked_sender(shared_broker, narrow_place, 40) as sender, connected(shared_broker.port) as consumer:
        sender.finish()
        consumer.subscribe(f"/queue/{narrow_place}", ack="auto")
        assert [consumer.message().header("n") for _ in range(40)] == [str(n) for n in range(40)]
        assert [got.header("receipt-id") for got in sender.read_to_end()] == [str(n) for n in range(ROOM, 40)]


def test_a_commit_waits_for_room_as_a_whole(shared_broker: BrokerProcess, narrow_place: str) -> None:
    with blocked_sender(shared_broker, narrow_place, ROOM) as first, connected(shared_broker.port) as sender:
        sender.ask("BEGIN", {"transaction": "t"})
        for n in range(3):
            sender.ask("SEND", {"destination": f"/queue/{narrow_place}", "transaction": "t", "n": f"t{n}"})
        sender.send("COMMIT", {"transaction": "t", "receipt": "committed"})
        first.nothing_waits()
        shared_broker.await_count(narrow_place, ROOM)
        first.subscribe(f"/queue/{narrow_place}", ack="auto")
        expected = [str(n) for n in range(ROOM)] + [f"t{n}" for n in range(3)]
        assert [first.message().header("n") for _ in expected] == expected
        assert receipts(sender, 1) == ["committed"]


def test_a_blocked_sender_that_vanishes_is_forgotten(shared_broker: BrokerProcess, narrow_place: str) -> None:
    sender = blocked_sender(shared_broker, narrow_place, 11)
    shared_broker.await_metric(1, "artemis_connections", state="blocked")
    sender.reset()
    with connected(shared_broker.port) as consumer:
        consumer.subscribe(f"/queue/{narrow_place}", ack="auto")
        assert [consumer.message().header("n") for _ in range(11)] == [str(n) for n in range(11)]
        shared_broker.await_metric(0, "artemis_connections", state="blocked")
        shared_broker.await_metric(1, "artemis_connections", state="open")


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_a_failing_address_says_so(shared_broker: BrokerProcess, place: str, version: str) -> None:
    there = f"/queue/fails.{place}"
    with connected(shared_broker.port, version) as sender:
        sender.ask("SEND", {"destination": there})
        sender.ask("SEND", {"destination": there})
        sender.send("SEND", {"destination": there, "receipt": "third"})
        error = sender.expect("ERROR")
        assert error.header("receipt-id") == "third"
        assert f"fails.{place}" in (error.header("message") or "")
        if version == "1.2":
            assert sender.read_to_end() == []
        else:
            sender.subscribe(there, ack="auto")
            assert [sender.message().command for _ in range(2)] == ["MESSAGE"] * 2
            sender.ask("SEND", {"destination": there})
            assert sender.message().header("destination") == there


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
