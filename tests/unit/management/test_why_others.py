"""Why senders wait, messages are gone or dead, a queue grows, and the broker is slow; with the lines of settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.core.addresses.address import ANYCAST
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.histogram import Histogram
from artemis_py.management.managed import Space
from artemis_py.management.why.blocked import blocked, blocked_connection
from artemis_py.management.why.causes import CAUSES, QUESTIONS
from artemis_py.management.why.causes import DEAD as OF_THE_DEAD
from artemis_py.management.why.growing import growing, in_words
from artemis_py.management.why.losses import dead, dropped
from artemis_py.management.why.question import Question
from artemis_py.management.why.slow import slow
from artemis_py.server.stats import word_of
from tests.kit.core import NOW_MS, consumer_on, head_of, send, turn
from tests.kit.managed import FakeClient
from tests.kit.paged_bench import PagedBench
from tests.unit.management.why_parts import Asked, one, why

DEAD = '<address name="DLA"><multicast><queue name="DLQ"/></multicast></address>'


# ---- the table -------------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    """Each reason has a word that a program may keep, a sentence and a question."""
    for code, cause in CAUSES.items():
        assert code == cause.code == code.lower()
        assert "_" not in code or cause.question == OF_THE_DEAD, "only words of the header reason have it"
        assert cause.question in QUESTIONS
        assert cause.meaning.endswith(".")
        assert cause.remedy.endswith(".") or not cause.remedy


# ---- blocked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "setting", "code", "used", "limit"),
    [
        ("<max-size-messages>2</max-size-messages>", "max-size-messages", "max-messages", 2, 2),
        ("<max-size-bytes>400</max-size-bytes>", "max-size-bytes", "max-size", 432, 400),
    ],
)
def test_a_full_address(tmp_path: Path, lines: str, setting: str, code: str, used: int, limit: int) -> None:
    settings = f"{lines}\n<address-full-policy>BLOCK</address-full-policy>"
    it = Asked(tmp_path, match="a", settings=settings)
    assert one(why(it, blocked, it.address), "not-blocked").limit in (-1, limit)
    assert send(it.broker, count=3) == 2
    it.health.waiting = [(it.address, 3)]
    reason = one(why(it, blocked, it.address), code)
    assert (reason.used, reason.limit) == (used, limit)
    assert reason.place.setting == setting
    assert reason.place.where == it.line(f"<{setting}>") + " (address-setting a)"
    assert "senders wait (address-full-policy BLOCK); 3 connections wait for it" in reason.sentence
    assert reason.remedy.startswith("Consume ")


def test_all_addresses_together(tmp_path: Path) -> None:
    it = Asked(
        tmp_path,
        match="a",
        settings="<address-full-policy>FAIL</address-full-policy>",
        core="<global-max-size>300</global-max-size>\n<global-max-messages>1</global-max-messages>",
    )
    send(it.broker, count=2)
    found = why(it, blocked, it.address)
    assert one(found, "global-max-messages").place.where == it.line("<global-max-messages>")
    assert "senders get an ERROR" in found[0].sentence


def test_an_operator_has_blocked_it(tmp_path: Path) -> None:
    settings = "<max-size-messages>1</max-size-messages>\n<address-full-policy>BLOCK</address-full-policy>"
    it = Asked(tmp_path, match="a", settings=settings)
    it.broker.address_changes.block(it.address)
    assert send(it.broker) == 0
    it.health.waiting = [(it.address, 1)]
    assert word_of(it.address) == "address-blocked"
    reason = one(why(it, blocked, it.address), "address-blocked")
    assert reason.sentence == "an operator has blocked the address: senders wait; 1 connection waits for it"
    assert "artemis-py address unblock a" in reason.remedy
    it.broker.address_changes.unblock(it.address)
    assert [found.code for found in why(it, blocked, it.address)] == ["not-blocked"]
    send(it.broker)
    it.broker.address_changes.block(it.address)
    assert [found.code for found in why(it, blocked, it.address)] == ["address-blocked", "max-messages"]


def test_a_remedy_may_be_pasted_whatever_the_name(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses='<address name="QUEUE; reboot"><multicast><queue name="q"/></multicast></address>')
    it.broker.address_changes.block(it.address)
    question = Question(it.managed, queue=it.queue())
    list(blocked(question, it.address))
    assert "artemis-py address unblock 'QUEUE; reboot'." in one(question.findings, "address-blocked").remedy


def test_a_full_disk(tmp_path: Path) -> None:
    it = Asked(tmp_path, core="<max-disk-usage>70</max-disk-usage>")
    it.broker.memory.disk_full = True
    reason = one(why(it, blocked, it.address), "disk-full")
    assert (reason.place.setting, reason.place.where) == ("max-disk-usage", it.line("<max-disk-usage>"))
    assert reason.sentence.startswith("a disk of the broker is full; ")


@pytest.mark.parametrize(
    ("limit", "text", "figures"),
    [
        ("<max-disk-usage>70</max-disk-usage>", "", (71, 70, "percent")),
        ("<min-disk-free>500</min-disk-free>", ", and 290 bytes are free", (290, 500, "bytes")),
    ],
)
def test_which_disk_is_full(tmp_path: Path, limit: str, text: str, figures: tuple[int, int, str]) -> None:
    it = Asked(tmp_path, core=limit)
    it.broker.memory.disk_full = True
    spaces = Mock(return_value=[Space("data/journal", 900, 600, 33, 300), Space("data/paging", 1000, 290, 71, -10)])
    it.managed = replace(it.managed, stored=Mock(spaces=spaces))
    for reason in (one(why(it, blocked, it.address), "disk-full"), one(why(it, slow), "disk")):
        assert reason.sentence.startswith(f"the disk of data/paging is full: 71 % of it is used{text}; ")
        assert (reason.used, reason.limit, reason.unit) == figures
    spaces.side_effect = BrokerError("the system does not say")
    assert one(why(it, slow), "disk").sentence.startswith("a disk of the broker is full; ")


@pytest.mark.parametrize(("policy", "text"), [("REJECT", "get an ERROR"), ("PRODUCER_FLOW_CONTROL", "senders wait")])
def test_a_deep_queue(tmp_path: Path, policy: str, text: str) -> None:
    it = Asked(tmp_path, f'overflow-policy="{policy}" max-depth-messages="2"')
    send(it.broker, count=3)
    reason = one(why(it, blocked, it.address), "queue-depth")
    assert (reason.place.setting, reason.place.where) == ("max-depth-messages", it.line("<queue"))
    assert text in reason.sentence
    assert reason.limit == 2


def test_a_connection(tmp_path: Path) -> None:
    settings = "<max-size-messages>1</max-size-messages><address-full-policy>BLOCK</address-full-policy>"
    it = Asked(tmp_path, match="a", settings=settings)
    it.clients = [FakeClient(7)]

    assert why(it, blocked_connection, 7)[0].code == "not-blocked"
    for word in ("work", "login", "disk-slow", "spreading"):
        it.health.waiting = [(word, 1)]
        assert [reason.code for reason in why(it, blocked_connection, 7)] == [word]
    send(it.broker)
    it.health.waiting = [(it.address, 1)]
    reason = one(why(it, blocked_connection, 7), "max-messages")
    assert reason.place.where.startswith(it.line("<max-size-messages>"))
    it.health.waiting = []
    it.clients = [FakeClient(7, state="stalled")]
    assert why(it, blocked_connection, 7)[0].code == "not-reading"
    with pytest.raises(NotFoundError, match="there is no connection 8"):
        why(it, blocked_connection, 8)


# ---- dropped ---------------------------------------------------------------------------------------


def test_each_way_to_be_lost(tmp_path: Path) -> None:
    settings = "<max-size-messages>2</max-size-messages>\n<address-full-policy>DROP</address-full-policy>"
    it = Asked(tmp_path, match="a", settings=settings)
    assert [reason.code for reason in why(it, dropped, it.address, None)] == ["nothing-dropped"]
    send(it.broker, count=5)
    reason = one(why(it, dropped, it.address, None), "policy-drop")
    assert (reason.used, reason.place.value) == (3, "DROP")
    assert reason.place.where.startswith(it.line("<address-full-policy>"))
    it.broker.queue_operations.purge("q", NOW_MS)
    assert one(why(it, dropped, it.address, None), "purged").used == 2


def test_a_ring_and_last_values(tmp_path: Path) -> None:
    it = Asked(tmp_path, 'ring-size="2"')
    send(it.broker, count=5)
    reason = one(why(it, dropped, it.address, None), "ring")
    assert (reason.used, reason.limit, reason.place.where) == (3, 2, it.line("<queue"))
    it = Asked(tmp_path, 'last-value-key="k"')
    send(it.broker, count=3, head=head_of(k="1"))
    reason = one(why(it, dropped, it.address, None), "last-value")
    assert (reason.used, reason.place.setting) == (2, "last-value-key")


def test_nobody_took_them_or_they_came_twice(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses='<address name="a"><multicast/></address>')
    send(it.broker, count=2)
    assert one(why(it, dropped, it.address, None), "unrouted").used == 2
    it = Asked(tmp_path, 'purge-on-no-consumers="true"', filter="x = '1'")
    consumer = consumer_on(it.broker, it.queue(), room=0)
    send(it.broker, count=2, head=head_of(x="1", duplicate_id="7"))
    send(it.broker, count=3)
    it.broker.detach(it.queue(), consumer, failed=False, now_ms=NOW_MS)
    found = why(it, dropped, it.address, None)
    assert one(found, "duplicate").used == 1
    purged = one(found, "purge-on-no-consumers")
    assert (purged.used, purged.place.value, purged.place.where) == (1, "true", it.line("<queue"))
    assert one(found, "no-match").about == "queue q"


def test_expired_and_dead(tmp_path: Path) -> None:
    settings = "<max-delivery-attempts>1</max-delivery-attempts>\n<expiry-address>E</expiry-address>"
    it = Asked(tmp_path, settings=settings)
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker)
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    consumer.room_bytes = 0
    send(it.broker, expires_ms=NOW_MS + 1)
    it.queue().expire_due(NOW_MS + 10)
    found = why(it, dropped, it.address, None)
    assert one(found, "expired").place[:2] == ("expiry-address", "E")
    assert "there is no dead-letter-address" in one(found, "dead").sentence


# ---- dead ------------------------------------------------------------------------------------------


def test_dead_letters_by_origin_and_cause(tmp_path: Path) -> None:
    lines = "<dead-letter-address>DLA</dead-letter-address>\n<max-delivery-attempts>1</max-delivery-attempts>"
    it = Asked(tmp_path, settings=lines, more=DEAD)
    assert [reason.code for reason in why(it, dead, it.queue("DLQ"), 0)] == ["no-dead-letters"]
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker, count=2)
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    turn(it.broker)
    reason = one(why(it, dead, it.queue("DLQ"), 0), "max_deliveries")
    assert reason.sentence.startswith("2 messages from queue q of address a: their last delivery failed")
    assert reason.place == ("max-delivery-attempts", "1", it.line("<max-delivery") + " (address-setting #)")
    reason = one(why(it, dead, it.queue("q"), 0), "dead")
    assert "they went to the address DLA (queues DLQ)" in reason.sentence
    first = next(iter(it.queue("DLQ").contents.order)).message.id
    assert one(why(it, dead, it.queue("DLQ"), first), "max_deliveries").used == 1
    with pytest.raises(NotFoundError, match="have no dead letter 99"):
        why(it, dead, it.queue("DLQ"), 99)


def test_a_client_may_write_any_reason(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    send(it.broker, head=head_of(_AMQ_ORIG_ADDRESS="x", reason="paused"))
    assert one(why(it, dead, it.queue("q"), 0), "unknown").used == 1


# ---- growing ---------------------------------------------------------------------------------------


def test_rates_and_what_follows(tmp_path: Path) -> None:
    settings = "<max-size-messages>100</max-size-messages>\n<address-full-policy>BLOCK</address-full-policy>"
    it = Asked(tmp_path, match="a", settings=settings, core="<global-max-size>1000000</global-max-size>")

    assert [reason.code for reason in why(it, growing, it.queue(), 1000)] == ["not-growing"]
    found = why(it, growing, it.queue(), 2000, meanwhile=lambda: send(it.broker, count=20, now_ms=it.now_ms))
    assert one(found, "no-acknowledgements").sentence.startswith("10/s come in and 0/s are acknowledged, over 2 s")
    full, of_all = (reason for reason in found if reason.code == "will-be-full")
    assert (full.used, full.limit) == (20, 100)
    assert "reached in 8.0 s at this rate; then BLOCK" in full.sentence
    assert full.place.where.startswith(it.line("<max-size-messages>"))
    assert (of_all.place.setting, of_all.place.value) == ("global-max-size", "1000000 bytes")
    assert of_all.place.where == it.line("<global-max-size>")


def test_rates_by_consumer(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    consumer = consumer_on(it.broker, it.queue())
    idle = consumer_on(it.broker, it.queue(), room=0)
    send(it.broker, count=8)
    turn(it.broker)
    found = why(
        it, growing, it.queue(), 1000, meanwhile=lambda: it.queue().acknowledge(consumer, consumer.let_go_up_to(4))
    )
    told = {reason.about: reason.used for reason in found if reason.code == "consumer-rate"}
    assert told == {f"consumer {idle.id}": 0, f"consumer {consumer.id}": 4}
    assert one(found, "will-drain").sentence == "empty in 1.0 s at this rate"


def test_spans_in_words() -> None:
    assert [in_words(one) for one in (5, 90, 7200, 172_800)] == ["5.0 s", "1.5 min", "2.0 h", "2.0 days"]


# ---- slow ------------------------------------------------------------------------------------------


def test_the_worst_comes_first(tmp_path: Path) -> None:
    it = Asked(tmp_path, core="<max-disk-usage>70</max-disk-usage>")
    assert [reason.code for reason in why(it, slow)] == ["nothing-slow"]
    it.health.turn_buckets, it.health.turn_ns_max = (50, 0, 50, 0), 90_000_000
    syncs = it.health.sync_times = Histogram([1_000_000, 50_000_000], 1_000_000_000)
    for _ in range(10):
        syncs.note(40_000_000)
    consumer_on(it.broker, it.queue(), window_bytes=1)
    send(it.broker, count=3)
    turn(it.broker)
    it.health.waiting = [(it.address, 2)]
    it.health.is_busy = True
    it.broker.memory.disk_full = True
    found = why(it, slow)
    assert [reason.code for reason in found] == [
        "disk", "turns", "senders-wait", "syncs", "readers-wait", "slow-consumers",
    ]  # fmt: skip
    assert "99 of 100 end within 100 ms, the longest took 90.0 ms" in found[1].sentence
    assert found[0].place.where == it.line("<max-disk-usage>")


def test_a_question_is_asked_in_steps(tmp_path: Path) -> None:
    """Of many queues, some in each."""
    queues = "".join(f'<queue name="q{place}"/>' for place in range(2_000))
    it = Asked(tmp_path, addresses=f'<address name="a"><multicast>{queues}</multicast></address>')
    question = Question(it.managed, it.address)
    for work in (slow(Question(it.managed)), dropped(question, it.address, None), blocked(question, it.address)):
        assert len(list(work)) > 10


def test_pages_are_told_with_the_setting_of_their_address() -> None:
    desk = PagedBench(settings={"max_size_bytes": 20_000})
    send(desk.broker, "q", 20, routing_type=ANYCAST)
    desk.settle()
    paging = one(why(desk, slow), "paging")
    assert paging.sentence == "1 queue has messages in pages, such as q"
    assert paging.place == ("max-size-bytes", "20000 bytes", "default (address-setting q.#)")


def test_what_an_operator_has_set_is_told_as_that(tmp_path: Path) -> None:
    """A file has no line for it."""
    it = Asked(tmp_path)
    it.broker.settings_changes.put("a", {"max_size_messages": 1, "address_full_policy": "BLOCK"})
    for _ in it.broker.settle(lambda: NOW_MS, lambda *_: None).run():
        pass
    send(it.broker, count=2)
    full = one(why(it, blocked, it.address), "max-messages")
    assert full.place == ("max-size-messages", "1 messages", "an operator (address-setting a)")
