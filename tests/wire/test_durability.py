"""Output waits for what it depends on: a RECEIPT, a MESSAGE and a COMMIT's RECEIPT for their records."""

from __future__ import annotations

import pytest

from tests.wire.test_turn_output import DiskBroker

pytestmark = pytest.mark.wire


class SlowDiskBroker(DiskBroker):
    """A broker whose disk is slow, a producer and a consumer."""

    def __init__(self) -> None:
        super().__init__()
        self.client("c").frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client")

    def send(self, body: str, *headers: str) -> None:
        self.client("p").frame("SEND", "destination:/queue/q", *headers, body=body)

    def receipt_ids(self) -> list[str | None]:
        return [frame.header("receipt-id") for frame in self.client("p").heard()]

    def messages(self) -> list[bytes]:
        return [frame.body for frame in self.client("c").heard()]


def test_check_18_receipt_waits_for_its_record() -> None:
    world = SlowDiskBroker()
    world.send("one", "persistent:true", "receipt:1")
    world.send("two", "persistent:true", "receipt:2")
    assert world.log.last_lsn == 2
    assert world.receipt_ids() == []
    world.sync(1)
    assert world.receipt_ids() == ["1"]
    world.sync(2)
    assert world.receipt_ids() == ["2"]


def test_check_18_message_waits_for_its_record() -> None:
    """No consumer sees what a crash could undo."""
    world = SlowDiskBroker()
    world.send("one", "persistent:true")
    assert world.messages() == []
    world.sync(1)
    assert world.messages() == [b"one"]


def test_check_18_transient_messages_wait_for_nothing() -> None:
    world = SlowDiskBroker()
    world.send("one", "receipt:1")
    assert world.receipt_ids() == ["1"]
    assert world.messages() == [b"one"]


def test_check_18_nothing_overtakes() -> None:
    """Replies and messages keep their order, although some of them depend on nothing."""
    world = SlowDiskBroker()
    world.send("one", "persistent:true", "receipt:1")
    world.send("two", "receipt:2")
    assert world.receipt_ids() == []
    assert world.messages() == []
    world.sync(1)
    assert world.receipt_ids() == ["1", "2"]
    assert world.messages() == [b"one", b"two"]


@pytest.mark.parametrize("header", ["plain:1", "_AMQ_DUPL_ID:1", "AMQ_SCHEDULED_DELAY:1000", "transaction:t"])
def test_check_18_a_receipt_stands_for_what_was_sent_before(header: str) -> None:
    """A client that asks for the receipt of its last frame alone; that frame needs no record of its own."""
    world = SlowDiskBroker()
    world.client("p").send(b"BEGIN\ntransaction:t\n\n\0")
    world.send("durable", "persistent:true")
    world.send("transient", "receipt:1", header)
    assert world.receipt_ids() == []
    world.sync(1)
    assert world.receipt_ids() == ["1"]


@pytest.mark.parametrize("durable_at", [0, 1, 2])
def test_check_18_what_leaves_together_waits_for_all_of_its_records(durable_at: int) -> None:
    """Transient messages depend on nothing themselves; all are in one turn's output, if that takes so many."""
    world = SlowDiskBroker()
    world.together = True
    lines = ["", "", ""]
    lines[durable_at] = "persistent:true\n"
    world.client("p").send(
        b"".join(f"SEND\ndestination:/queue/q\n{line}\n{at}\0".encode() for at, line in enumerate(lines))
    )
    world.together = False
    world.settle()
    early = world.messages()
    assert len(early) <= durable_at, "what stands before it may have left in a turn of its own"
    world.sync(1)
    assert early + world.messages() == [b"0", b"1", b"2"]


def test_check_18_receipt_of_a_commit() -> None:
    world = SlowDiskBroker()
    world.client("p").send(b"BEGIN\ntransaction:t\n\n\0")
    world.send("one", "persistent:true", "transaction:t", "receipt:1")
    assert world.receipt_ids() == ["1"]
    world.client("p").send(b"COMMIT\ntransaction:t\nreceipt:done\n\n\0")
    assert world.receipt_ids() == []
    assert world.messages() == []
    world.sync(1)
    assert world.receipt_ids() == ["done"]
    assert world.messages() == [b"one"]


def test_check_18_receipt_of_disconnect_says_that_all_before_it_is_safe() -> None:
    world = SlowDiskBroker()
    world.send("one", "persistent:true")
    world.client("p").send(b"DISCONNECT\nreceipt:bye\n\n\0")
    assert world.receipt_ids() == []
    assert not world.client("p").is_closed
    world.sync(1)
    assert world.receipt_ids() == ["bye"]
    assert world.client("p").is_closed
