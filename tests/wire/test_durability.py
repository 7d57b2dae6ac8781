"""Output waits for what it depends on: a RECEIPT, a MESSAGE and a COMMIT's RECEIPT for their records."""

from __future__ import annotations

import pytest

from tests.wire.test_turn_output import DiskBroker

pytestmark = pytest.mark.wire


@pytest.fixture
def world() -> DiskBroker:
    """A broker whose disk is slow, a producer and a consumer."""
    world = DiskBroker()
    world.client("c").frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client")
    return world


def send(world: DiskBroker, body: str, *headers: str) -> None:
    world.client("p").frame("SEND", "destination:/queue/q", *headers, body=body)


def messages(world: DiskBroker) -> list[bytes]:
    """Those that came since the last look."""
    return [frame.body for frame in world.client("c").heard()]


def test_check_18_receipt_waits_for_its_record(world: DiskBroker) -> None:
    send(world, "one", "persistent:true", "receipt:1")
    send(world, "two", "persistent:true", "receipt:2")
    assert world.log.last_lsn == 2
    assert world.receipts() == []
    world.sync(1)
    assert world.receipts() == ["1"]
    world.sync(2)
    assert world.receipts() == ["2"]


def test_check_18_message_waits_for_its_record(world: DiskBroker) -> None:
    """No consumer sees what a crash could undo."""
    send(world, "one", "persistent:true")
    assert messages(world) == []
    world.sync(1)
    assert messages(world) == [b"one"]


def test_check_18_transient_messages_wait_for_nothing(world: DiskBroker) -> None:
    send(world, "one", "receipt:1")
    assert world.receipts() == ["1"]
    assert messages(world) == [b"one"]


def test_check_18_nothing_overtakes(world: DiskBroker) -> None:
    """Replies and messages keep their order, although some of them depend on nothing."""
    send(world, "one", "persistent:true", "receipt:1")
    send(world, "two", "receipt:2")
    assert world.receipts() == []
    assert messages(world) == []
    world.sync(1)
    assert world.receipts() == ["1", "2"]
    assert messages(world) == [b"one", b"two"]


@pytest.mark.parametrize("header", ["plain:1", "_AMQ_DUPL_ID:1", "AMQ_SCHEDULED_DELAY:1000", "transaction:t"])
def test_check_18_a_receipt_stands_for_what_was_sent_before(world: DiskBroker, header: str) -> None:
    """A client that asks for the receipt of its last frame alone; that frame needs no record of its own."""
    world.client("p").send(b"BEGIN\ntransaction:t\n\n\0")
    send(world, "durable", "persistent:true")
    send(world, "transient", "receipt:1", header)
    assert world.receipts() == []
    world.sync(1)
    assert world.receipts() == ["1"]


@pytest.mark.parametrize("durable_at", [0, 1, 2])
def test_check_18_what_leaves_together_waits_for_all_of_its_records(world: DiskBroker, durable_at: int) -> None:
    """Transient messages depend on nothing themselves; all are in one turn's output, if that takes so many."""
    world.together = True
    lines = ["", "", ""]
    lines[durable_at] = "persistent:true\n"
    world.client("p").send(
        b"".join(f"SEND\ndestination:/queue/q\n{line}\n{at}\0".encode() for at, line in enumerate(lines))
    )
    world.together = False
    world.settle()
    early = messages(world)
    assert len(early) <= durable_at, "what stands before it may have left in a turn of its own"
    world.sync(1)
    assert early + messages(world) == [b"0", b"1", b"2"]


def test_check_18_receipt_of_a_commit(world: DiskBroker) -> None:
    world.client("p").send(b"BEGIN\ntransaction:t\n\n\0")
    send(world, "one", "persistent:true", "transaction:t", "receipt:1")
    assert world.receipts() == ["1"]
    world.client("p").send(b"COMMIT\ntransaction:t\nreceipt:done\n\n\0")
    assert world.receipts() == []
    assert messages(world) == []
    world.sync(1)
    assert world.receipts() == ["done"]
    assert messages(world) == [b"one"]


def test_check_18_receipt_of_disconnect_says_that_all_before_it_is_safe(world: DiskBroker) -> None:
    send(world, "one", "persistent:true")
    world.client("p").send(b"DISCONNECT\nreceipt:bye\n\n\0")
    assert world.receipts() == []
    assert not world.client("p").is_closed
    world.sync(1)
    assert world.receipts() == ["bye"]
    assert world.client("p").is_closed
