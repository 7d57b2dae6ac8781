"""What one frame asks for and a turn does not finish: its session waits, and nobody else does."""

from __future__ import annotations

import pytest

from artemis_py.server import turns
from tests.kit.in_process import InProcessBroker, configuration

COUNT = 400
SEND = b"SEND\ndestination:/queue/q\n\nx\0"
IN_TRANSACTION = b"SEND\ndestination:/queue/q\ntransaction:t\n\nx\0"


pytestmark = pytest.mark.parametrize("turns_of_any_size", ["whole turns"], indirect=True)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> InProcessBroker:
    """Turns of so few units that hundreds of messages are many of them."""
    monkeypatch.setattr(turns, "TURN_UNITS", 40)
    return InProcessBroker(configuration(acceptor="maxTransactionOperations=3"))


def _hold(world: InProcessBroker, name: str) -> str:
    """The client takes all messages and settles none; returns the ack id of the last."""
    subscribe = "SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nconsumer-window-size:-1\n\n\0"
    world.client(name).send(subscribe.encode())
    queue = world.queue("q")
    assert queue.contents.counters.held_count == COUNT
    (consumer,) = queue.distribution.consumers
    return f"{consumer.id}-{next(reversed(consumer.held))}"


FRAMES = {
    "ack": ("ACK\nid:{last}\nreceipt:r\n\n\0", 0),
    "nack": ("NACK\nid:{last}\nreceipt:r\n\n\0", COUNT),
    "unsubscribe": ("UNSUBSCRIBE\nid:1\nreceipt:r\n\n\0", COUNT),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FRAMES)
def test_the_receipt_comes_when_all_is_done_and_others_are_served(world: InProcessBroker, name: str) -> None:
    frame, left = FRAMES[name]
    for client in ("a", "b"):
        world.client(client).greet("heart-beat:0,1000")
    world.client("b").send(SEND * COUNT)
    last = _hold(world, "a")
    world.queue("q").pause()
    for client in ("a", "b"):
        world.client(client).heard()
    world.together = True
    world.client("a").send(frame.format(last=last).encode())
    world.client("a").frame("SEND", "destination:/queue/later", body="x")
    world.turns.run()
    queue = world.queue("q")
    assert 0 < queue.contents.counters.held_count < COUNT
    assert world.client("a").connection.session.blocked_by is not None
    assert ([frame.command for frame in world.client("a").heard()], "later" in world.broker.queues) == ([], False)
    world.client("b").frame("SEND", "destination:/queue/other", "receipt:b", body="x")
    world.turns.run()
    assert [frame.command for frame in world.client("b").heard()] == ["RECEIPT"]
    assert queue.contents.counters.held_count > 0
    world.together = False
    world.settle()
    assert "RECEIPT" in [frame.command for frame in world.client("a").heard()]
    assert (queue.contents.counters.held_count, queue.contents.order.count) == (0, left)
    assert world.queue("later").message_count == 1


def test_transactions_hold_so_many_operations_only(world: InProcessBroker) -> None:
    world.client("a").greet("heart-beat:0,1000")
    world.client("a").send(b"BEGIN\ntransaction:t\n\n\0")
    world.client("a").send(IN_TRANSACTION * 3)
    assert world.client("a").heard() == []
    world.client("a").send(IN_TRANSACTION)
    (frame,) = world.client("a").collect()
    assert frame.command == "ERROR"
    assert "maxTransactionOperations" in (frame.header("message") or "")


def test_a_cumulative_acknowledgement_counts_what_it_covers(world: InProcessBroker) -> None:
    world.client("a").greet("heart-beat:0,1000")
    world.client("a").send(SEND * COUNT)
    last = _hold(world, "a")
    world.client("a").heard()
    world.client("a").send(f"BEGIN\ntransaction:t\n\n\0ACK\nid:{last}\ntransaction:t\n\n\0".encode())
    assert [frame.command for frame in world.client("a").heard()] == ["ERROR"]
    assert world.queue("q").contents.order.count == COUNT


@pytest.mark.interpreted
def test_each_receipt_of_a_run_waits_for_its_own_work(world: InProcessBroker) -> None:
    """Two cumulative ACKs come together; neither is done in one turn."""
    for client in ("a", "b"):
        world.client(client).greet("heart-beat:0,1000")
    world.client("b").send(SEND * COUNT)
    last = _hold(world, "a")
    queue = world.queue("q")
    (consumer,) = queue.distribution.consumers
    middle = f"{consumer.id}-{list(consumer.held)[COUNT // 2]}"
    world.client("a").heard()
    world.together = True
    data = f"ACK\nid:{middle}\nreceipt:1\n\n\0ACK\nid:{last}\nreceipt:2\n\n\0"
    world.client("a").send(data.encode())
    receipts: list[str | None] = []
    held: list[int] = []
    while len(receipts) < 2:
        world.turns.run()
        frames = world.client("a").collect()
        for frame in frames:
            receipts.append(frame.header("receipt-id"))
            held.append(queue.contents.counters.held_count)
        frames.clear()
    assert receipts == ["1", "2"]
    assert 0 < held[0] <= COUNT // 2
    assert held[1] == 0
