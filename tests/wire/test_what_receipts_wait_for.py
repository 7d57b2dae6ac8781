"""A RECEIPT stands for everything that its client asked for, and for nothing that others did."""

from __future__ import annotations

import pytest

from artemis_py.server import turns
from tests.kit.in_process import DiskLog
from tests.wire.test_turn_output import SEND, DiskBroker

SUBSCRIBE = b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nconsumer-window-size:-1\nreceipt:s\n\n\0"


class WholeLog(DiskLog):
    """Numbers everything that these tests make a broker record."""

    settled = queue_changed = duplicate_id = DiskLog.number


def syncs_until_answered(world: DiskBroker, name: str) -> int:
    """The lsn at which a client has its RECEIPT."""
    for lsn in range(world.log.last_lsn + 1):
        world.sync(lsn)
        if world.receipts(name):
            return lsn
    raise AssertionError("not answered although all is durable")


def test_a_receipt_waits_for_nothing_of_others() -> None:
    world = DiskBroker(WholeLog())
    world.client("p").send(SEND)
    world.client("c").send(b"SEND\ndestination:/queue/q\nreceipt:1\n\n\0")
    assert world.log.last_lsn > world.log.durable_lsn
    assert (world.receipts("p"), world.receipts("c")) == ([], ["1"])


def test_a_subscription_is_confirmed_when_its_queue_outlives_a_crash() -> None:
    """Also if somebody else made the queue, a moment ago."""
    world = DiskBroker(WholeLog())
    world.client("p").send(SUBSCRIBE)
    made_lsn = world.log.last_lsn
    assert made_lsn > 0
    world.client("c").send(SUBSCRIBE)
    assert (world.log.last_lsn, world.receipts("c")) == (made_lsn, [])
    assert syncs_until_answered(world, "c") == made_lsn


def test_a_duplicate_is_confirmed_when_the_first_one_is_durable() -> None:
    world = DiskBroker(WholeLog())
    send = SEND.replace(b"receipt:1", b"receipt:1\n_AMQ_DUPL_ID:d")
    world.client("p").send(send)
    last_lsn = world.log.last_lsn
    world.client("c").send(send)
    assert (world.log.last_lsn, world.receipts("c")) == (last_lsn, [])
    assert syncs_until_answered(world, "c") == last_lsn


def test_a_repeated_commit_is_confirmed_when_the_first_one_is_durable() -> None:
    world = DiskBroker(WholeLog())
    commit = (
        b"BEGIN\ntransaction:t\n\n\0" + SEND.replace(b"receipt:1", b"transaction:t")
        + b"COMMIT\ntransaction:t\nreceipt:1\n_AMQ_DUPL_ID:c\n\n\0"
    )  # fmt: skip
    world.client("p").send(commit)
    last_lsn = world.log.last_lsn
    world.client("c").send(commit)
    assert (world.log.last_lsn, world.receipts("c")) == (last_lsn, [])
    assert syncs_until_answered(world, "c") == last_lsn


@pytest.mark.interpreted
def test_an_acknowledgement_of_many_turns_is_confirmed_when_its_last_record_is_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "TURN_UNITS", 40)
    world = DiskBroker(WholeLog())
    world.log.is_fast = True
    client = world.client("c")
    client.send(SEND * 200)
    client.send(SUBSCRIBE)
    (consumer,) = world.queue("q").distribution.consumers
    assert len(consumer.held) == 200
    client.collect().clear()
    world.log.is_fast = False
    before_lsn = world.log.last_lsn
    client.send(f"ACK\nid:{consumer.id}-{next(reversed(consumer.held))}\nreceipt:a\n\n\0".encode())
    assert not consumer.held
    assert world.log.last_lsn > before_lsn + 1, "it takes more than one turn, and each has a record"
    assert world.receipts("c") == []
    world.sync(world.log.last_lsn - 1)
    assert world.receipts("c") == []
    world.sync(world.log.last_lsn)
    assert world.receipts("c") == ["a"]


def test_what_is_refused_in_the_middle_of_a_run_is_not_confirmed() -> None:
    world = DiskBroker(
        core="""<address-settings><address-setting match="#"><max-size-messages>2</max-size-messages>
        <address-full-policy>FAIL</address-full-policy></address-setting></address-settings>"""
    )
    sends = [f"SEND\ndestination:/queue/q\nreceipt:{number}\n\n\0".encode() for number in range(3)]
    world.client("p").send(b"".join(sends))
    told = [(frame.command, frame.header("receipt-id")) for frame in world.client("p").collect()]
    assert told == [("RECEIPT", "0"), ("RECEIPT", "1"), ("ERROR", "2")]
