"""The end of a turn: what depends on a record leaves when the record is durable, neither sooner nor only with the next
input.
"""

from __future__ import annotations

import pytest

from tests.kit.in_process import DiskLog, InProcessBroker, configuration

pytestmark = pytest.mark.wire

SEND = b"SEND\ndestination:/queue/q\npersistent:true\nreceipt:1\n\n\0"


class DiskBroker(InProcessBroker):
    """A broker on such a log, with two clients that were greeted."""

    log: DiskLog

    def __init__(self, log: DiskLog | None = None, core: str = "") -> None:
        super().__init__(configuration(core), log=log or DiskLog())
        for name in "pc":
            self.client(name).greet()

    def sync(self, lsn: int) -> None:
        """The disk has records up to this one, and wakes the broker; no client does anything."""
        self.log.synced_lsn = lsn
        self.turns.disk_has_news()
        self.settle()

    def receipts(self, name: str = "p") -> list[str | None]:
        """Those that a client got since the last look, at which it got nothing else but messages."""
        frames = self.client(name).heard()
        assert {frame.command for frame in frames} <= {"RECEIPT", "MESSAGE"}
        return [frame.header("receipt-id") for frame in frames if frame.command == "RECEIPT"]


def test_what_waited_leaves_once_the_disk_has_it_though_no_client_does_anything() -> None:
    world = DiskBroker()
    world.client("p").send(SEND)
    world.client("c").send(SEND)
    assert (world.receipts("p"), world.receipts("c")) == ([], [])
    world.sync(1)
    assert (world.receipts("p"), world.receipts("c")) == (["1"], [])
    world.sync(2)
    assert (world.receipts("p"), world.receipts("c")) == ([], ["1"])


def test_what_the_disk_has_at_the_end_of_a_turn_leaves_in_that_turn() -> None:
    world = DiskBroker()
    world.log.is_fast = True
    turns = world.stats.turns
    world.client("p").send(SEND)
    assert world.receipts() == ["1"]
    assert world.stats.turns == turns + 1


def test_who_waits_for_a_record_is_called_when_exactly_that_one_is_durable() -> None:
    """So are HTTP clients answered whose cursor was set."""
    world = DiskBroker()
    called: list[int] = []
    for lsn in (2, 3, 3, 5):
        world.turns.when_durable(lsn, lambda lsn=lsn: called.append(lsn))  # type: ignore[misc]
    world.settle()
    seen = []
    for lsn in (0, 1, 2, 3, 4, 5):
        world.sync(lsn)
        seen.append(called.copy())
    assert seen == [[], [], [2], [2, 3, 3], [2, 3, 3], [2, 3, 3, 5]]


def test_a_turn_waits_for_the_disk_only_while_nobody_else_waits() -> None:
    world = DiskBroker()
    world.log.inlines.clear()
    world.client("p").send(SEND)
    assert world.log.inlines == [True]
    world.client("c").send(SEND)
    assert world.log.inlines == [True, False]
    world.sync(2)
    world.log.inlines.clear()
    world.client("p").send(SEND)
    assert world.log.inlines == [True]


def test_a_connection_that_is_gone_no_longer_waits() -> None:
    world = DiskBroker()
    world.client("p").send(SEND)
    assert len(world.turns.output.waiting) == 1
    world.client("p").drop()
    assert not world.turns.output.waiting


def test_a_connection_waits_no_longer_than_for_its_last_record() -> None:
    world = DiskBroker()
    world.client("p").send(SEND)
    world.client("c").send(SEND)
    world.sync(1)
    assert world.turns.output.waiting == {world.client("c").connection}
    world.sync(2)
    assert not world.turns.output.waiting
