"""The regular rounds: what nobody uses is deleted, in the second round that finds it so."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.addresses.retroactive import ring_name
from artemis_py.core.addresses.routing_table import RoundCursor
from artemis_py.core.broker import Broker
from artemis_py.core.destinations.registry import Registry, kept_of_address
from artemis_py.core.events import ORPHANED
from artemis_py.core.order.entry import PURGED
from artemis_py.errors import NotFoundError
from artemis_py.message import Account, Message
from artemis_py.record_log import RecoveredState, Survivor
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.core import NOW_MS, breaking, broker_of, consumer_on, head_of, lines_run, queue_config, send, turn
from tests.kit.disk import SimDisk

PERIOD_MS = 100


def swept(**settings: Any) -> Broker:
    """A broker that sweeps every 100 ms."""
    return broker_of(settings={"#": settings} if settings else {}, address_queue_scan_period=PERIOD_MS)


def rounds(broker: Broker, count: int, start: int = 1) -> None:
    """Make so many rounds, from the ``start``-th on."""
    for number in range(start, start + count):
        turn(broker, NOW_MS + number * PERIOD_MS)


def use_once(broker: Broker, name: str = "auto") -> None:
    """Send to an anycast address, read, acknowledge and leave."""
    send(broker, name, routing_type=ANYCAST)
    queue = broker.queues[name]
    consumer = consumer_on(broker, queue)
    turn(broker)
    queue.acknowledge(consumer, consumer.let_go_all())
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)


def test_used_queue_goes_in_the_second_round() -> None:
    """And its address two rounds after it has no queue any more."""
    broker = swept()
    use_once(broker)
    rounds(broker, 1)
    assert "auto" in broker.queues
    rounds(broker, 1, start=2)
    assert "auto" not in broker.queues
    assert "auto" in broker.addresses
    rounds(broker, 2, start=3)
    assert "auto" not in broker.addresses
    send(broker, "auto", routing_type=ANYCAST)
    assert broker.queues["auto"].message_count == 1


def test_used_between_two_rounds() -> None:
    """A queue that is in use in one of them starts again."""
    broker = swept()
    use_once(broker)
    rounds(broker, 1)
    queue = broker.queues["auto"]
    consumer = consumer_on(broker, queue)
    rounds(broker, 1, start=2)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    rounds(broker, 1, start=3)
    assert "auto" in broker.queues
    rounds(broker, 1, start=4)
    assert "auto" not in broker.queues


@pytest.mark.parametrize("keeps", ["message", "consumer", "unused", "switched off", "declared"])
def test_what_stays(keeps: str) -> None:
    """Messages, consumers, never having been used, the setting, and being declared."""
    settings = {"auto_delete_queues": False} if keeps == "switched off" else {}
    broker = broker_of(
        *([queue_config("auto", "auto", ANYCAST)] if keeps == "declared" else []),
        settings={"#": settings},
        address_queue_scan_period=PERIOD_MS,
    )
    if keeps == "unused":
        broker.resolver.obtain_queue("auto", "auto", MULTICAST)  # a SEND would make another one
    else:
        use_once(broker)
    if keeps == "message":
        send(broker, "auto", routing_type=ANYCAST)
    if keeps == "consumer":
        consumer_on(broker, broker.queues["auto"])
    rounds(broker, 5)
    assert "auto" in broker.queues
    assert "auto" in broker.addresses


def test_never_consumed_queue_with_a_message_stays() -> None:
    """Row 2.17.15 (tests/queues/rows.py)."""
    broker = swept()
    send(broker, "auto", routing_type=ANYCAST)
    rounds(broker, 5)
    assert broker.queues["auto"].message_count == 1


@pytest.mark.parametrize("how", ["expired", "killed"])
def test_queue_whose_messages_expired_or_were_killed_was_used(how: str) -> None:
    """It need not have had a consumer."""
    broker = broker_of(address_queue_scan_period=PERIOD_MS, message_expiry_scan_period=PERIOD_MS)
    send(broker, "auto", routing_type=ANYCAST, expires_ms=NOW_MS + 50 if how == "expired" else 0)
    if how == "killed":
        broker.queues["auto"].purge(PURGED, NOW_MS)
    rounds(broker, 3)
    assert "auto" not in broker.queues


def test_usage_check_may_be_skipped() -> None:
    """Then a queue that was never used goes too."""
    broker = swept(auto_delete_queues_skip_usage_check=True)
    broker.resolver.obtain_queue("auto", "auto", MULTICAST)
    rounds(broker, 2)
    assert "auto" not in broker.queues


@pytest.mark.parametrize("routing_type", [ANYCAST, MULTICAST])
def test_what_a_refused_message_has_made_goes(routing_type: str) -> None:
    """Nothing ever came there: the address, and its queue."""
    broker = swept(address_full_policy="FAIL", max_size_messages=0)
    assert send(broker, "auto", routing_type=routing_type) == 0
    assert "auto" in broker.addresses
    assert ("auto" in broker.queues) is (routing_type == ANYCAST)
    rounds(broker, 5)
    assert ("auto" in broker.queues, "auto" in broker.addresses) == (False, False)


@pytest.mark.parametrize(("limit", "stays"), [(0, True), (1, True), (2, False), (-1, False)])
def test_message_count(limit: int, stays: bool) -> None:
    """With up to so many messages the queue goes all the same, and they with it; -1: with any number."""
    broker = swept(auto_delete_queues_message_count=limit)
    use_once(broker)
    send(broker, "auto", 2, routing_type=ANYCAST)
    rounds(broker, 2)
    assert ("auto" in broker.queues) is stays
    assert broker.addresses["auto"].account.message_count == (2 if stays else 0)


def test_delay() -> None:
    """Counted from when the last consumer left."""
    broker = swept(auto_delete_queues_delay=250)
    use_once(broker)
    rounds(broker, 3)
    assert "auto" in broker.queues
    rounds(broker, 1, start=4)
    assert "auto" not in broker.queues


def test_declared_queues_may_be_deleted_too() -> None:
    """By a setting of its own."""
    broker = broker_of(
        queue_config("q", "a", ANYCAST),
        settings={"a": {"auto_delete_created_queues": True}},
        address_queue_scan_period=PERIOD_MS,
    )
    consumer = consumer_on(broker, broker.queues["q"])
    broker.detach(broker.queues["q"], consumer, failed=False, now_ms=NOW_MS)
    rounds(broker, 5)
    assert "q" not in broker.queues
    assert "a" in broker.addresses


def test_address_that_nobody_ever_used_stays() -> None:
    """Unless the check is skipped."""
    for skip in (False, True):
        broker = swept(auto_delete_addresses_skip_usage_check=skip)
        broker.registry.create_address("topic", auto_created=True)
        rounds(broker, 4)
        assert ("topic" in broker.addresses) is not skip


def test_address_that_never_had_a_queue_goes_as_others_do() -> None:
    """A message that nobody took has made it. While clients send to it, it is in use."""
    broker = swept()
    for number in range(1, 6):
        send(broker, "topic")
        rounds(broker, 1, start=number)
        assert "topic" in broker.addresses
    rounds(broker, 1, start=6)
    assert "topic" in broker.addresses
    rounds(broker, 1, start=7)
    assert "topic" not in broker.addresses


def test_address_that_never_had_a_queue_has_its_delay() -> None:
    """From the last message on."""
    broker = swept(auto_delete_addresses_delay=5 * PERIOD_MS)
    send(broker, "topic")
    rounds(broker, 3)
    send(broker, "topic")
    rounds(broker, 6, start=4)
    assert "topic" in broker.addresses
    rounds(broker, 2, start=10)
    assert "topic" not in broker.addresses


def test_address_that_retains_messages_stays() -> None:
    """Somebody may come for them: they would go with it."""
    broker = swept(retroactive_message_count=2)
    send(broker, "topic")
    rounds(broker, 6)
    assert "topic" in broker.addresses
    for kind in (ANYCAST, MULTICAST):
        ring = broker.queues[ring_name("topic", kind)]
        assert ring.message_count == 1
        ring.purge(PURGED, NOW_MS)
    rounds(broker, 2, start=7)
    assert "topic" not in broker.addresses


def test_paused_address_stays() -> None:
    """An operator paused it."""
    broker = swept()
    send(broker, "topic")
    broker.addresses["topic"].paused = True
    rounds(broker, 6)
    assert "topic" in broker.addresses


@pytest.mark.parametrize(
    ("settings", "gone"),
    [({"auto_delete_addresses": False}, False), ({"auto_delete_addresses_delay": 10_000}, False), ({}, True)],
)
def test_address_delay_and_switch(settings: dict[str, Any], gone: bool) -> None:
    """Addresses have settings of their own."""
    broker = swept(**settings)
    use_once(broker)
    rounds(broker, 6)
    assert "auto" not in broker.queues
    assert ("auto" not in broker.addresses) is gone


def test_a_queue_made_anew_is_not_condemned() -> None:
    """The verdict is on the queue that was seen, not on its name."""
    broker = swept(auto_delete_queues_skip_usage_check=True)
    broker.resolver.obtain_anycast_queue("auto")
    rounds(broker, 1)
    broker.registry.delete_queue(broker.queues["auto"], NOW_MS)
    broker.resolver.obtain_anycast_queue("auto")
    rounds(broker, 1, start=2)
    assert "auto" in broker.queues
    rounds(broker, 1, start=3)
    assert "auto" not in broker.queues


def test_rounds_may_be_switched_off() -> None:
    """-1: nothing is ever deleted, and nothing is due."""
    broker = broker_of(address_queue_scan_period=-1, message_expiry_scan_period=-1)
    assert broker.next_due_ms() is None
    use_once(broker)
    rounds(broker, 5)
    assert "auto" in broker.queues


def test_rounds_are_due_in_time() -> None:
    """The broker asks to be woken for the next one."""
    broker = broker_of(address_queue_scan_period=300, message_expiry_scan_period=200)
    assert broker.next_due_ms() == NOW_MS + 200
    turn(broker, NOW_MS + 200)
    assert broker.next_due_ms() == NOW_MS + 300


def test_subscription_queue_goes_with_its_subscription() -> None:
    """At once; a durable one stays, whatever the rounds do."""
    broker = swept(auto_delete_queues_skip_usage_check=True)
    address = broker.resolver.obtain_address("topic", MULTICAST)
    passing = broker.resolver.create_subscription_queue("passing", address, durable=False, selector=None)
    lasting = broker.resolver.create_subscription_queue("lasting", address, durable=True, selector=None)
    for queue in (passing, lasting):
        consumer = consumer_on(broker, queue)
        broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    assert list(broker.queues) == ["lasting"]
    rounds(broker, 5)
    assert list(broker.queues) == ["lasting"]


def test_temporary_address_goes_with_its_queue() -> None:
    """A connection's temporary destination."""
    broker = swept()
    broker.resolver.create_temporary_address("temp", ANYCAST)
    send(broker, "temp", routing_type=ANYCAST)
    broker.registry.delete_queue(broker.queues["temp"], NOW_MS)
    assert "temp" not in broker.addresses


def test_an_address_with_pages_stays() -> None:
    """A queue on a wildcard address may still need them: nobody would bring it what it asks of the disk."""
    disk, committer = SimDisk(Random(0)), SteppedCommitter(lambda: None)
    files = PageFiles(disk, committer, pytest.fail)
    paging = {"max_size_messages": 0, "auto_delete_addresses_skip_usage_check": True}
    broker = broker_of(
        queue_config("w", "a.#"),
        settings={"#": paging},
        log=SpillLog(committer, files),
        pages=files,
        address_queue_scan_period=1000,
    )
    send(broker, "a.b")
    assert broker.addresses["a.b"].is_paging
    broker.tick(NOW_MS + 1000)
    broker.tick(NOW_MS + 2000)
    assert "a.b" in broker.addresses
    broker.queues["w"].purge(PURGED, NOW_MS + 2000)
    broker.tick(NOW_MS + 3000)
    broker.tick(NOW_MS + 4000)
    assert "a.b" not in broker.addresses


# ---- rounds that last ----------------------------------------------------------------------------


def test_a_round_lasts_as_many_turns_as_it_takes() -> None:
    """Each turn looks at no more than it may; everything is seen, and deleted in the round after."""
    count, units = 300, 20
    broker = swept()
    for number in range(count):
        use_once(broker, f"q{number}")
    lines = []
    for round_number in (1, 2):
        turns = 0
        while turns == 0 or broker.has_ready:
            lines.append(lines_run(lambda number=round_number: turn(broker, NOW_MS + number * PERIOD_MS, units=units)))  # type: ignore[misc]
            turns += 1
        assert turns >= 2 * count // units
        assert len(broker.queues) == (count if round_number == 1 else 0)
    assert max(lines) < 100 * units
    broker.budget.refill(1 << 30)
    rounds(broker, 2, start=3)
    assert not broker.addresses


def test_what_comes_and_goes_during_a_round() -> None:
    """Nobody is condemned twice by one round, nobody is left out, and a round ends."""
    broker = swept()
    random = Random(1)
    for number in range(50):
        use_once(broker, f"q{number}")
    for _ in range(60):
        turn(broker, NOW_MS + PERIOD_MS, units=3)
        name = random.choice(list(broker.queues))
        broker.registry.delete_queue(broker.queues[name], NOW_MS)
        use_once(broker, f"late{random.random()}")
    assert not broker.agenda, "the first round is over"
    assert len(broker.queues) == 50, "no queue goes in its first round"
    early = set(broker.queues)
    broker.budget.refill(1 << 30)
    rounds(broker, 2, start=2)
    assert not early & set(broker.queues)


def test_expiry_in_a_round_that_lasts() -> None:
    """Each queue's messages expire, in one turn or another."""
    broker = broker_of(message_expiry_scan_period=PERIOD_MS)
    for number in range(30):
        send(broker, f"q{number}", routing_type=ANYCAST, expires_ms=NOW_MS + 10)
    turn(broker, NOW_MS + PERIOD_MS, units=5)
    assert len(broker.agenda) > 0
    assert 0 < sum(queue.message_count for queue in broker.queues.values()) < 30
    for _ in range(2 * 30):  # an expiry, and its copy to nowhere
        turn(broker, NOW_MS + PERIOD_MS, units=5)
    assert not broker.has_ready
    assert sum(queue.message_count for queue in broker.queues.values()) == 0


def test_a_walk_sees_everybody_once() -> None:
    """Also those behind somebody who went, and no more than there were when it began."""
    walk: RoundCursor[str] = RoundCursor()
    for name in "abcde":
        walk.add(name)
    walk.begin()
    seen = [walk.take(), walk.take()]
    walk.discard("a")
    walk.add("f")
    seen += [walk.take() for _ in range(4)]
    assert seen == ["a", "b", "c", "d", "e", None]
    walk.discard("nobody")
    walk.begin()
    assert [walk.take() for _ in range(6)] == ["b", "f", "c", "d", "e", None]


@pytest.mark.interpreted
def test_rounds_go_on_when_an_address_cannot_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks off is told; the others go, in this round and the next."""
    broker = swept()
    for number in range(3):
        use_once(broker, f"auto{number}")
    rounds(broker, 3)
    fails = breaking(Registry.delete_address, lambda _, address: address.name == "auto1")
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "delete_address", fails)
        rounds(broker, 1, start=4)
        turn(broker, NOW_MS + 4 * PERIOD_MS)  # in which the round goes on
    assert set(broker.addresses) == {"auto1"}
    assert broker.events.counts["ART-1006"] == 1
    rounds(broker, 2, start=5)
    assert not broker.addresses


# ---- after a restart -----------------------------------------------------------------------------


def restarted(before: Broker, messages: dict[str, int] | None = None, **settings: Any) -> Broker:
    """What a start makes of what another broker had, with so many messages on its queues."""
    counts = messages or {}
    kept = RecoveredState(
        messages={
            before.queues[name].id: [
                Survivor(Message(head_of(name, persistent=True), b"x", number, NOW_MS, 0, Account(), 0))
                for number in range(1, count + 1)
            ]
            for name, count in counts.items()
        },
        queues=[before.registry.kept_of_queue(each) for each in before.queues.values()],
        addresses=[kept_of_address(each) for each in before.addresses.values()],
    )
    return broker_of(settings={"#": settings}, kept=kept, address_queue_scan_period=PERIOD_MS)


def made(**settings: Any) -> Broker:
    """Queues and addresses as clients make them: by a consumer, by a message to nobody, and for one of several."""
    broker = swept(**settings)
    broker.resolver.obtain_anycast_queue("auto")
    broker.resolver.obtain_queue("topic", "one", MULTICAST)
    send(broker, "nobody")
    return broker


def test_a_start_deletes_what_the_next_use_makes_again() -> None:
    """And the rounds delete the queues that somebody may come back to."""
    broker = restarted(made())
    assert (list(broker.queues), list(broker.addresses)) == (["one"], ["topic"])
    rounds(broker, 2)
    assert list(broker.queues) == []
    rounds(broker, 2, start=3)
    assert list(broker.addresses) == []


def test_a_start_deletes_nothing_with_messages() -> None:
    """Nor later, before somebody has used it, whatever the settings say of messages."""
    counts = {"auto": 2, "one": 1}
    broker = restarted(made(), counts, auto_delete_queues_message_count=-1)
    rounds(broker, 5)
    assert {name: queue.message_count for name, queue in broker.queues.items()} == counts


def test_a_queue_that_was_used_before_may_go_with_messages() -> None:
    """If its settings say so: the log knows that it was used."""
    everything: dict[str, Any] = {"auto_delete_queues_message_count": -1}
    before = made(**everything)
    consumer_on(before, before.queues["auto"])
    broker = restarted(before, {"auto": 2, "one": 1}, **everything)
    rounds(broker, 2)
    assert list(broker.queues) == ["one"]


def test_a_queue_of_an_operator_that_was_used_before_goes() -> None:
    """One that nobody has used yet stays."""
    before = swept(auto_delete_created_queues=True)
    for name in ("used", "new"):
        address = before.registry.create_address(name, auto_created=False)
        before.registry.create_queue(address, queue_config(name, name, ANYCAST), auto_created=False)
    consumer_on(before, before.queues["used"])
    broker = restarted(before, auto_delete_created_queues=True)
    assert set(broker.queues) == {"used", "new"}
    rounds(broker, 4)
    assert set(broker.queues) == {"new"}


def test_delays_begin_again_with_a_start() -> None:
    """Nothing goes sooner than its delay, and nothing stays longer than that and two rounds."""
    delays: dict[str, Any] = {"auto_delete_queues_delay": 300, "auto_delete_addresses_delay": 300}
    broker = restarted(made(), **delays)
    rounds(broker, 3)
    assert set(broker.queues) == {"auto", "one"}
    assert set(broker.addresses) == {"auto", "topic", "nobody"}
    rounds(broker, 1, start=4)
    assert (set(broker.queues), "nobody" in broker.addresses) == (set(), False)
    rounds(broker, 4, start=5)
    assert set(broker.addresses) == set()


def test_a_start_keeps_what_is_switched_off_or_paused() -> None:
    """-1 switches the rounds off, and the start with them."""
    before = made()
    before.queues["auto"].gate.paused = True
    broker = restarted(before)
    assert "auto" in broker.queues
    broker = restarted(made(), auto_delete_queues=False, auto_delete_addresses=False)
    rounds(broker, 5)
    assert set(broker.queues) == {"auto", "one"}
    assert "nobody" in broker.addresses


def test_a_delay_of_a_queue_that_nobody_used_begins_with_it() -> None:
    """Where the usage check is skipped."""
    broker = swept(auto_delete_queues_skip_usage_check=True, auto_delete_queues_delay=300)
    broker.resolver.obtain_anycast_queue("auto")
    rounds(broker, 3)
    assert "auto" in broker.queues
    rounds(broker, 1, start=4)
    assert "auto" not in broker.queues


# ---- temporary destinations ----------------------------------------------------------------------

SECRET = "0123456789abcdef" * 2


def test_a_temporary_queue_stays_while_its_client_is_there() -> None:
    """Also if nobody reads it for a while."""
    broker = swept()
    broker.resolver.create_temporary_address(f"temp-queue.{SECRET}", ANYCAST)
    queue = broker.queues[f"temp-queue.{SECRET}"]
    broker.detach(queue, consumer_on(broker, queue), failed=False, now_ms=NOW_MS)
    rounds(broker, 5)
    assert f"temp-queue.{SECRET}" in broker.queues


def test_nothing_makes_the_address_of_a_client_that_has_gone() -> None:
    """Not a SEND, which reaches nobody, and no consumer."""
    broker = swept()
    for kind in ("queue", "topic"):
        name = f"temp-{kind}.{SECRET}.answers"
        assert broker.resolver.is_gone(name)
        for routing_type in (None, ANYCAST, MULTICAST):
            with pytest.raises(NotFoundError, match="whose client has gone"):
                broker.resolver.route(name, None, routing_type)
        with pytest.raises(NotFoundError, match="whose client has gone"):
            broker.resolver.obtain_queue(name, name, None)
        with pytest.raises(NotFoundError, match="whose client has gone"):
            broker.resolver.obtain_anycast_queue(name)
        route = broker.resolver.route_to_nobody(name, ANYCAST)
        message = broker.message(route, head_of(name, persistent=True, duplicate_id="one"), b"x", NOW_MS)
        assert broker.publisher.publish(Batch(route, [message], message.size_bytes, NOW_MS, False)) == 1
        assert route.address.unrouted_message_count == 1
    assert (dict(broker.addresses), dict(broker.queues)) == ({}, {})
    assert broker.events.counts == {ORPHANED: 2}
