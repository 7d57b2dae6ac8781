"""Output waits for what it depends on: a RECEIPT, a MESSAGE and a COMMIT's RECEIPT for their records."""

from __future__ import annotations

import pytest

from artemis_py.message import Message
from artemis_py.record_log import MemoryLog
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire


class SlowLog(MemoryLog):
    """Numbers its records; nothing is durable until the test says so."""

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        self.last_lsn += 1
        return self.last_lsn


class SlowDiskBroker(InProcessBroker):
    """A broker whose disk is slow."""

    log: SlowLog

    def __init__(self) -> None:
        super().__init__(configuration(), log=SlowLog())
        for name in "pc":
            self.client(name).send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            self.client(name).collect().clear()
        self.client("c").send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\n\n\0")

    def sync(self, lsn: int) -> None:
        """Records up to this one are on the disk."""
        self.log.durable_lsn = lsn
        for client in self.clients.values():
            self.turns.output.mark_dirty(client.connection)
        self.turns.schedule()
        self.settle()

    def send(self, body: str, *headers: str) -> None:
        lines = "".join(f"{header}\n" for header in headers)
        self.client("p").send(f"SEND\ndestination:/queue/q\n{lines}\n{body}\0".encode())

    def receipts(self) -> list[str | None]:
        frames = self.client("p").collect()
        found = [frame.header("receipt-id") for frame in frames]
        frames.clear()
        return found

    def messages(self) -> list[bytes]:
        frames = self.client("c").collect()
        found = [frame.body for frame in frames]
        frames.clear()
        return found


def test_check_18_receipt_waits_for_its_record() -> None:
    world = SlowDiskBroker()
    world.send("one", "persistent:true", "receipt:1")
    world.send("two", "persistent:true", "receipt:2")
    assert world.log.last_lsn == 2
    assert world.receipts() == []
    world.sync(1)
    assert world.receipts() == ["1"]
    world.sync(2)
    assert world.receipts() == ["2"]


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
    assert world.receipts() == ["1"]
    assert world.messages() == [b"one"]


def test_check_18_nothing_overtakes() -> None:
    """Replies and messages keep their order, although some of them depend on nothing."""
    world = SlowDiskBroker()
    world.send("one", "persistent:true", "receipt:1")
    world.send("two", "receipt:2")
    assert world.receipts() == []
    assert world.messages() == []
    world.sync(1)
    assert world.receipts() == ["1", "2"]
    assert world.messages() == [b"one", b"two"]


@pytest.mark.parametrize("header", ["plain:1", "_AMQ_DUPL_ID:1", "AMQ_SCHEDULED_DELAY:1000", "transaction:t"])
def test_check_18_a_receipt_stands_for_what_was_sent_before(header: str) -> None:
    """A client that asks for the receipt of its last frame alone; that frame needs no record of its own."""
    world = SlowDiskBroker()
    world.client("p").send(b"BEGIN\ntransaction:t\n\n\0")
    world.send("durable", "persistent:true")
    world.send("transient", "receipt:1", header)
    assert world.receipts() == []
    world.sync(1)
    assert world.receipts() == ["1"]


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
    assert world.receipts() == ["1"]
    world.client("p").send(b"COMMIT\ntransaction:t\nreceipt:done\n\n\0")
    assert world.receipts() == []
    assert world.messages() == []
    world.sync(1)
    assert world.receipts() == ["done"]
    assert world.messages() == [b"one"]


def test_check_18_receipt_of_disconnect_says_that_all_before_it_is_safe() -> None:
    world = SlowDiskBroker()
    world.send("one", "persistent:true")
    world.client("p").send(b"DISCONNECT\nreceipt:bye\n\n\0")
    assert world.receipts() == []
    assert not world.client("p").is_closed
    world.sync(1)
    assert world.receipts() == ["bye"]
    assert world.client("p").is_closed
