"""Why senders wait, messages are gone or dead, a queue grows, and the broker is slow; with the lines of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.core.addresses.address import ANYCAST
from artemis_py.errors import NotFoundError
from artemis_py.histogram import Histogram
from artemis_py.management.managed import Space
from artemis_py.management.why.blocked import blocked, blocked_connection
from artemis_py.management.why.causes import CAUSES, QUESTIONS
from artemis_py.management.why.causes import DEAD as OF_THE_DEAD
from artemis_py.management.why.dropped import dropped
from artemis_py.management.why.growing import growing, in_words
from artemis_py.management.why.question import Finding, Findings, Question
from artemis_py.management.why.slow import slow
from artemis_py.server.stats import word_of
from tests.kit.core import NOW_MS, consumer_on, head_of, send, turn
from tests.kit.managed import FakeClient
from tests.kit.paged_bench import PagedBench
from tests.unit.management.why_parts import Asked, one

PLAIN = '<address name="a"><multicast>\n<queue name="q"/>\n</multicast></address>'
DEAD = '<address name="DLA"><multicast><queue name="DLQ"/></multicast></address>'


def of(match: str, lines: str) -> str:
    return f'<address-setting match="{match}">\n{lines}\n</address-setting>'


def why_blocked(it: Asked) -> list[Finding]:
    return it.why(lambda question: blocked(question, it.broker.addresses["a"]), address="a")


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
    settings = of("a", f"{lines}\n<address-full-policy>BLOCK</address-full-policy>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings)
    assert one(why_blocked(it), "not-blocked").limit in (-1, limit)
    assert send(it.broker, count=3) == 2
    it.health.waiting = [(it.broker.addresses["a"], 3)]
    reason = one(why_blocked(it), code)
    assert (reason.used, reason.limit) == (used, limit)
    assert reason.place.setting == setting
    assert reason.place.where == it.line(f"<{setting}>") + " (address-setting a)"
    assert "senders wait (address-full-policy BLOCK); 3 connections wait for it" in reason.sentence
    assert reason.remedy.startswith("Consume ")


def test_all_addresses_together(tmp_path: Path) -> None:
    it = Asked(
        tmp_path,
        addresses=PLAIN,
        settings=of("a", "<address-full-policy>FAIL</address-full-policy>"),
        core="<global-max-size>300</global-max-size>\n<global-max-messages>1</global-max-messages>",
    )
    send(it.broker, count=2)
    found = why_blocked(it)
    assert one(found, "global-max-messages").place.where == it.line("<global-max-messages>")
    assert "senders get an ERROR" in found[0].sentence


def test_an_operator_has_blocked_it(tmp_path: Path) -> None:
    settings = of("a", "<max-size-messages>1</max-size-messages>\n<address-full-policy>BLOCK</address-full-policy>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings)
    address = it.broker.addresses["a"]
    it.broker.address_changes.block(address)
    assert send(it.broker) == 0
    it.health.waiting = [(address, 1)]
    assert word_of(address) == "address-blocked"
    reason = one(why_blocked(it), "address-blocked")
    assert reason.sentence == "an operator has blocked the address: senders wait; 1 connection waits for it"
    assert "artemis-py address unblock a" in reason.remedy
    it.broker.address_changes.unblock(address)
    assert [found.code for found in why_blocked(it)] == ["not-blocked"]
    send(it.broker)
    it.broker.address_changes.block(address)
    assert [found.code for found in why_blocked(it)] == ["address-blocked", "max-messages"]


def test_a_remedy_may_be_pasted_whatever_the_name(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses='<address name="QUEUE; reboot"><multicast><queue name="q"/></multicast></address>')
    address = it.broker.addresses["QUEUE; reboot"]
    it.broker.address_changes.block(address)
    found = it.why(lambda question: blocked(question, address), queue="q")
    assert "artemis-py address unblock 'QUEUE; reboot'." in one(found, "address-blocked").remedy


def test_a_full_disk(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses=PLAIN, core="<max-disk-usage>70</max-disk-usage>")
    it.broker.memory.disk_full = True
    reason = one(why_blocked(it), "disk-full")
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
    it = Asked(tmp_path, addresses=PLAIN, core=limit)
    it.broker.memory.disk_full = True
    it.use_disks([Space("data/journal", 900, 600, 33, 300), Space("data/paging", 1000, 290, 71, -10)])
    for reason in (one(why_blocked(it), "disk-full"), one(it.why(slow), "disk")):
        assert reason.sentence.startswith(f"the disk of data/paging is full: 71 % of it is used{text}; ")
        assert (reason.used, reason.limit, reason.unit) == figures
    it.use_disks(None)
    assert one(it.why(slow), "disk").sentence.startswith("a disk of the broker is full; ")


@pytest.mark.parametrize(("policy", "text"), [("REJECT", "get an ERROR"), ("PRODUCER_FLOW_CONTROL", "senders wait")])
def test_a_deep_queue(tmp_path: Path, policy: str, text: str) -> None:
    queue = f'<queue name="q" overflow-policy="{policy}" max-depth-messages="2"/>'
    it = Asked(tmp_path, addresses=f'<address name="a"><multicast>\n{queue}\n</multicast></address>')
    send(it.broker, count=3)
    reason = one(why_blocked(it), "queue-depth")
    assert (reason.place.setting, reason.place.where) == ("max-depth-messages", it.line("<queue"))
    assert text in reason.sentence
    assert reason.limit == 2


def test_a_connection(tmp_path: Path) -> None:
    settings = of("a", "<max-size-messages>1</max-size-messages><address-full-policy>BLOCK</address-full-policy>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings)
    it.clients = [FakeClient(7)]

    def ask(number: int = 7) -> list[Finding]:
        return it.why(lambda question: blocked_connection(question, number))

    assert ask()[0].code == "not-blocked"
    for word in ("work", "login", "disk-slow", "spreading"):
        it.health.waiting = [(word, 1)]
        assert [reason.code for reason in ask()] == [word]
    send(it.broker)
    it.health.waiting = [(it.broker.addresses["a"], 1)]
    reason = one(ask(), "max-messages")
    assert reason.place.where.startswith(it.line("<max-size-messages>"))
    it.health.waiting = []
    it.clients = [FakeClient(7, state="stalled")]
    assert ask()[0].code == "not-reading"
    with pytest.raises(NotFoundError, match="there is no connection 8"):
        ask(8)


# ---- dropped ---------------------------------------------------------------------------------------


def test_each_way_to_be_lost(tmp_path: Path) -> None:
    settings = of("a", "<max-size-messages>2</max-size-messages>\n<address-full-policy>DROP</address-full-policy>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings)
    assert [reason.code for reason in it.dropped()] == ["nothing-dropped"]
    send(it.broker, count=5)
    reason = one(it.dropped(), "policy-drop")
    assert (reason.used, reason.place.value) == (3, "DROP")
    assert reason.place.where.startswith(it.line("<address-full-policy>"))
    it.broker.queue_operations.purge("q", NOW_MS)
    assert one(it.dropped(), "purged").used == 2


def test_a_ring_and_last_values(tmp_path: Path) -> None:
    it = Asked(
        tmp_path, addresses='<address name="a"><multicast>\n<queue name="q" ring-size="2"/>\n</multicast></address>'
    )
    send(it.broker, count=5)
    reason = one(it.dropped(), "ring")
    assert (reason.used, reason.limit, reason.place.where) == (3, 2, it.line("<queue"))
    queue = '<queue name="q" last-value-key="k"/>'
    it = Asked(tmp_path, addresses=f'<address name="a"><multicast>\n{queue}\n</multicast></address>')
    send(it.broker, count=3, head=head_of(k="1"))
    reason = one(it.dropped(), "last-value")
    assert (reason.used, reason.place.setting) == (2, "last-value-key")


def test_nobody_took_them_or_they_came_twice(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses='<address name="a"><multicast/></address>')
    send(it.broker, count=2)
    assert one(it.dropped(), "unrouted").used == 2
    queue = '<queue name="q" purge-on-no-consumers="true"><filter string="x = \'1\'"/></queue>'
    it = Asked(tmp_path, addresses=f'<address name="a"><multicast>\n{queue}\n</multicast></address>')
    consumer = consumer_on(it.broker, it.queue(), room=0)
    send(it.broker, count=2, head=head_of(x="1", duplicate_id="7"))
    send(it.broker, count=3)
    it.broker.detach(it.queue(), consumer, failed=False, now_ms=NOW_MS)
    found = it.dropped()
    assert one(found, "duplicate").used == 1
    purged = one(found, "purge-on-no-consumers")
    assert (purged.used, purged.place.value, purged.place.where) == (1, "true", it.line("<queue"))
    assert one(found, "no-match").about == "queue q"


def test_expired_and_dead(tmp_path: Path) -> None:
    settings = of("#", "<max-delivery-attempts>1</max-delivery-attempts>\n<expiry-address>E</expiry-address>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings)
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker)
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    consumer.room_bytes = 0
    send(it.broker, expires_ms=NOW_MS + 1)
    it.queue().expire_due(NOW_MS + 10)
    found = it.dropped()
    assert one(found, "expired").place[:2] == ("expiry-address", "E")
    assert "there is no dead-letter-address" in one(found, "dead").sentence


# ---- dead ------------------------------------------------------------------------------------------


def test_dead_letters_by_origin_and_cause(tmp_path: Path) -> None:
    lines = "<dead-letter-address>DLA</dead-letter-address>\n<max-delivery-attempts>1</max-delivery-attempts>"
    it = Asked(tmp_path, addresses=PLAIN + DEAD, settings=of("#", lines))
    assert [reason.code for reason in it.dead("DLQ")] == ["no-dead-letters"]
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker, count=2)
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    turn(it.broker)
    reason = one(it.dead("DLQ"), "max_deliveries")
    assert reason.sentence.startswith("2 messages from queue q of address a: their last delivery failed")
    assert reason.place == ("max-delivery-attempts", "1", it.line("<max-delivery") + " (address-setting #)")
    reason = one(it.dead("q"), "dead")
    assert "they went to the address DLA (queues DLQ)" in reason.sentence
    first = next(iter(it.queue("DLQ").contents.order)).message.id
    assert one(it.dead("DLQ", first), "max_deliveries").used == 1
    with pytest.raises(NotFoundError, match="have no dead letter 99"):
        it.dead("DLQ", 99)


def test_a_client_may_write_any_reason(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses=PLAIN)
    send(it.broker, head=head_of(_AMQ_ORIG_ADDRESS="x", reason="paused"))
    assert one(it.dead("q"), "unknown").used == 1


# ---- growing ---------------------------------------------------------------------------------------


def test_rates_and_what_follows(tmp_path: Path) -> None:
    settings = of("a", "<max-size-messages>100</max-size-messages>\n<address-full-policy>BLOCK</address-full-policy>")
    it = Asked(tmp_path, addresses=PLAIN, settings=settings, core="<global-max-size>1000000</global-max-size>")

    def ask(window_ms: int = 1000) -> list[Finding]:
        return it.why(lambda question: growing(question, it.queue(), window_ms), queue="q")

    assert [reason.code for reason in ask()] == ["not-growing"]

    def busy(span_ms: int) -> None:
        it.now_ms += span_ms
        send(it.broker, count=20, now_ms=it.now_ms)

    it.pause = busy  # type: ignore[method-assign]
    found = ask(2000)
    assert one(found, "no-acknowledgements").sentence.startswith("10/s come in and 0/s are acknowledged, over 2 s")
    full, of_all = (reason for reason in found if reason.code == "will-be-full")
    assert (full.used, full.limit) == (20, 100)
    assert "reached in 8.0 s at this rate; then BLOCK" in full.sentence
    assert full.place.where.startswith(it.line("<max-size-messages>"))
    assert (of_all.place.setting, of_all.place.value) == ("global-max-size", "1000000 bytes")
    assert of_all.place.where == it.line("<global-max-size>")


def test_rates_by_consumer(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses=PLAIN)
    consumer = consumer_on(it.broker, it.queue())
    idle = consumer_on(it.broker, it.queue(), room=0)
    send(it.broker, count=8)
    turn(it.broker)

    def works(span_ms: int) -> None:
        it.now_ms += span_ms
        it.queue().acknowledge(consumer, consumer.let_go_up_to(4))

    it.pause = works  # type: ignore[method-assign]
    found = it.why(lambda question: growing(question, it.queue(), 1000), queue="q")
    told = {reason.about: reason.used for reason in found if reason.code == "consumer-rate"}
    assert told == {f"consumer {idle.id}": 0, f"consumer {consumer.id}": 4}
    assert one(found, "will-drain").sentence == "empty in 1.0 s at this rate"


def test_spans_in_words() -> None:
    assert [in_words(one) for one in (5, 90, 7200, 172_800)] == ["5.0 s", "1.5 min", "2.0 h", "2.0 days"]


# ---- slow ------------------------------------------------------------------------------------------


def test_the_worst_comes_first(tmp_path: Path) -> None:
    it = Asked(tmp_path, addresses=PLAIN, core="<max-disk-usage>70</max-disk-usage>")
    assert [reason.code for reason in it.why(slow)] == ["nothing-slow"]
    it.health.turn_buckets, it.health.turn_ns_max = (50, 0, 50, 0), 90_000_000
    syncs = it.health.sync_times = Histogram([1_000_000, 50_000_000], 1_000_000_000)
    for _ in range(10):
        syncs.note(40_000_000)
    consumer_on(it.broker, it.queue(), window_bytes=1)
    send(it.broker, count=3)
    turn(it.broker)
    it.health.waiting = [(it.broker.addresses["a"], 2)]
    it.health.is_busy = True
    it.broker.memory.disk_full = True
    found = it.why(slow)
    assert [reason.code for reason in found] == [
        "disk", "turns", "senders-wait", "syncs", "readers-wait", "slow-consumers",
    ]  # fmt: skip
    assert "99 of 100 end within 100 ms, the longest took 90.0 ms" in found[1].sentence
    assert found[0].place.where == it.line("<max-disk-usage>")


def test_a_question_is_asked_in_steps(tmp_path: Path) -> None:
    """Of many queues, some in each."""
    queues = "".join(f'<queue name="q{place}"/>' for place in range(2_000))
    it = Asked(tmp_path, addresses=f'<address name="a"><multicast>{queues}</multicast></address>')

    def steps(work: Findings) -> int:
        return sum(1 for _ in work)

    address = it.broker.addresses["a"]
    assert steps(slow(Question(it.managed))) > 10
    assert steps(dropped(Question(it.managed, address), address, None)) > 10
    assert steps(blocked(Question(it.managed, address), address)) > 10


def test_pages_are_told_with_the_setting_of_their_address() -> None:
    desk = PagedBench(settings={"max_size_bytes": 20_000})
    send(desk.broker, "q", 20, routing_type=ANYCAST)
    desk.settle()
    question = Question(desk.managed)
    for _ in slow(question):
        pass
    paging = one(question.findings, "paging")
    assert paging.sentence == "1 queue has messages in pages, such as q"
    assert paging.place == ("max-size-bytes", "20000 bytes", "default (address-setting q.#)")


def test_what_an_operator_has_set_is_told_as_that(tmp_path: Path) -> None:
    """A file has no line for it."""
    it = Asked(tmp_path, addresses=PLAIN)
    it.broker.settings_changes.put("a", {"max_size_messages": 1, "address_full_policy": "BLOCK"})
    for _ in it.broker.settle(lambda: NOW_MS, lambda *_: None).run():
        pass
    send(it.broker, count=2)
    full = one(why_blocked(it), "max-messages")
    assert full.place == ("max-size-messages", "1 messages", "an operator (address-setting a)")
