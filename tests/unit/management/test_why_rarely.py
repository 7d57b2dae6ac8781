"""Reasons that come rarely: a disk or a client that is too much, a log that is read, damage, and dead letters that did
not fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.core.memory import OUTPUT, TRANSACTIONS
from artemis_py.core.operations.scan import MessageFilter
from artemis_py.core.order.entry import DAMAGED
from artemis_py.core.queue.recovery_point import Recovery
from artemis_py.management.why.blocked import blocked
from artemis_py.management.why.losses import dead, dropped
from artemis_py.server.stats import word_of
from tests.kit.core import NOW_MS, consumer_on, head_of, send, turn
from tests.kit.paged_bench import PagedBench
from tests.unit.management.why_parts import Asked, one, why

MIB = 1 << 20
DEAD = '<address name="DLA"><multicast><queue name="DLQ"/></multicast></address>'


# ---- senders wait ----------------------------------------------------------------------------------


def test_pages_come_faster_than_the_disk_takes_them() -> None:
    bench = PagedBench(1)
    address = bench.broker.addresses["q"]

    taken = 0
    while send(bench.broker, "q", head=head_of("q", persistent=True), body=bytes(MIB)) and taken < 50:
        taken += 1
    assert 8 < taken < 50
    assert (
        one(why(bench, blocked, address), "pages-behind").sentence
        == "pages come faster than the disk takes them: senders wait"
    )
    assert word_of(address) == "pages-behind"
    bench.settle()
    assert [reason.code for reason in why(bench, blocked, address)] == ["not-blocked"]


def test_clients_hold_all_the_memory(tmp_path: Path) -> None:
    core = "<global-max-held-size>1M</global-max-held-size>"
    it = Asked(tmp_path, settings="<address-full-policy>FAIL</address-full-policy>", core=core)
    address = it.address

    holdings = it.broker.holdings
    holdings.bytes_max = MIB  # as the server sets it
    holdings.move(TRANSACTIONS, 2 * MIB)
    assert [reason.code for reason in why(it, blocked, address)] == [
        "not-blocked"
    ]  # a transaction must not keep its own COMMIT away
    holdings.move(OUTPUT, MIB)
    assert send(it.broker) == 0
    reason = one(why(it, blocked, address), "held-memory")
    held = holdings.total_bytes
    assert reason.sentence.startswith(f"the broker holds {held:,} of {MIB:,} bytes for clients: senders get an ERROR")
    assert (reason.used, reason.limit, reason.unit) == (held, MIB, "bytes")
    assert (reason.place.setting, reason.place.where) == ("global-max-held-size", it.line("<global-max-held-size>"))


# ---- nothing is delivered --------------------------------------------------------------------------


def test_a_queue_that_is_being_filled(tmp_path: Path) -> None:
    it = Asked(
        tmp_path,
        'recovery-point="epoch"',
        core='<journal-retention-directory period="1" unit="DAYS">kept</journal-retention-directory>',
        persists=True,
    )
    it.queue().filling = Recovery("epoch", is_view=False, has_past=True)
    send(it.broker, head=head_of(persistent=True))
    reason = one(it.not_delivered(), "filling")
    assert (reason.place.setting, reason.place.value) == ("recovery-point", "epoch")
    assert reason.place.where == it.line("<queue")
    it.queue().filling = None
    assert "filling" not in {found.code for found in it.not_delivered()}


# ---- messages are gone -----------------------------------------------------------------------------


def test_what_could_not_be_read(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    it.queue().contents.counters.kill(3, DAMAGED)
    reason = one(why(it, dropped, it.address, None), "damaged")
    assert (reason.used, reason.about, reason.sentence) == (3, "queue q", "3 messages could not be read")
    assert "check the disk" in reason.remedy
    assert one(it.not_delivered(), "damaged").used == 3


def test_what_an_operator_sent_to_the_dead_letters() -> None:
    """The dead letters say so, and so does the queue that they came from, where nothing was discarded."""
    bench = PagedBench()
    for _ in range(2):
        send(bench.broker, "q", head=head_of("q", persistent=True))
    bench.settle()
    assert (
        bench.finish(bench.broker.message_operations.send_to_dead_letters(bench.queue, MessageFilter())).done_count == 2
    )
    bench.settle()
    reason = one(why(bench, dropped, bench.broker.addresses["q"], None), "sent_by_operator")
    text = "2 messages were sent to the dead letters by an operator; they went to the address graves"
    assert (reason.used, reason.sentence) == (2, text)
    reason = one(why(bench, dead, bench.broker.queues["graves"], 0), "sent_by_operator")
    assert reason.sentence.startswith("2 messages from queue q of address q: an operator sent them there")


# ---- dead letters that did not fail ----------------------------------------------------------------


def test_no_queue_took_them(tmp_path: Path) -> None:
    settings = "<dead-letter-address>DLA</dead-letter-address>\n<send-to-dla-on-no-route>true</send-to-dla-on-no-route>"
    it = Asked(tmp_path, addresses='<address name="a"><multicast/></address>', more=DEAD, settings=settings)
    send(it.broker, count=2)
    turn(it.broker)
    reason = one(why(it, dead, it.queue("DLQ"), 0), "no_route")
    assert reason.sentence.startswith("2 messages from address a: no queue took them")
    assert (reason.used, reason.about) == (2, "a")
    assert reason.place.where.startswith(it.line("<send-to-dla-on-no-route>"))


@pytest.mark.parametrize(
    ("code", "text"),
    [("time_limit", "they expired"), ("forced_expire", "a consumer or an operator had them expire")],
)
def test_they_expired(tmp_path: Path, code: str, text: str) -> None:
    it = Asked(tmp_path, settings="<expiry-address>DLA</expiry-address>", more=DEAD)
    if code == "time_limit":
        send(it.broker, expires_ms=NOW_MS + 1)
        it.queue().expire_due(NOW_MS + 10)
    else:
        consumer = consumer_on(it.broker, it.queue())
        send(it.broker)
        turn(it.broker)
        it.queue().expire_held(consumer, consumer.let_go_all(), NOW_MS)
    turn(it.broker, NOW_MS + 10)
    reason = one(why(it, dead, it.queue("DLQ"), 0), code)
    assert reason.sentence.startswith(f"1 message from queue q of address a: {text}; the oldest came ")
    assert (reason.used, reason.about) == (1, "q")
    if code == "time_limit":
        assert reason.place.where.startswith(it.line("<expiry-address>"))
    assert one(why(it, dead, it.queue(), 0), "time_limit").sentence == "1 message of this queue expired since the start"
