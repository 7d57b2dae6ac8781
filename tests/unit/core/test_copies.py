"""Copies on their way to other addresses: diverts, dead letters, expired messages, and loops of them."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.broker import Broker
from artemis_py.core.events import LOOPED
from artemis_py.core.publish.copies import HOPS_HEADER, HOPS_MAX
from tests.kit.core import (
    NOW_MS,
    broker_of,
    consumer_on,
    divert_config,
    head_of,
    heads_on,
    queue_config,
    send,
    turn,
)


def counts(broker: Broker, *names: str) -> list[int]:
    """Messages on each queue."""
    return [broker.queues[name].message_count for name in names]


# ---- diverts -------------------------------------------------------------------------------------


def diverted(*diverts: Any) -> Broker:
    """Addresses A, B and C with a queue each, and these diverts."""
    return broker_of(queue_config("A", "A"), queue_config("B", "B"), queue_config("C", "C"), diverts=diverts)


def test_headers_of_a_diverted_copy() -> None:
    """Where it came from, under the divert's routing name; the rest as it was sent."""
    broker = diverted(divert_config("d", "A", "B", routing_name="detour"))
    send(broker, "A", head=head_of("A", priority=7, color="red"), expires_ms=NOW_MS + 500)
    turn(broker)
    entry = next(iter(broker.queues["B"].contents.order))
    headers = entry.message.head.properties
    assert headers["destination"] == "B"
    assert headers["color"] == "red"
    assert (headers["_AMQ_ORIG_ADDRESS"], headers["_AMQ_ORIG_QUEUE"]) == ("A", "detour")
    assert headers["_AMQ_ORIG_MESSAGE_ID"] == "1"
    assert entry.message.id != 1
    assert entry.message.head.priority == 7
    assert entry.message.expires_ms == NOW_MS + 500


def test_several_targets_of_a_divert() -> None:
    """A copy for each address in the list."""
    broker = diverted(divert_config("d", "A", "B", "C", exclusive=True))
    send(broker, "A", count=2)
    turn(broker)
    assert counts(broker, "A", "B", "C") == [0, 2, 2]


def test_exclusive_diverts_come_first() -> None:
    """If one matches, neither queues nor the other diverts get the message; several exclusive ones all do."""
    broker = diverted(
        divert_config("copy", "A", "C"),
        divert_config("one", "A", "B", exclusive=True),
        divert_config("two", "A", "B", exclusive=True),
    )
    send(broker, "A")
    turn(broker)
    assert counts(broker, "A", "B", "C") == [0, 2, 0]


def test_divert_alone_is_a_route() -> None:
    """A message that a divert took is routed, also where no queue is: it is no case for the dead-letter address."""
    settings = {"A": {"send_to_dla_on_no_route": True, "dead_letter_address": "C"}}
    broker = broker_of(
        queue_config("B", "B"), queue_config("C", "C"), diverts=[divert_config("d", "A", "B")], settings=settings
    )
    send(broker, "A")
    turn(broker)
    assert (broker.addresses["A"].routed_message_count, broker.addresses["A"].unrouted_message_count) == (1, 0)
    assert counts(broker, "B", "C") == [1, 0]


@pytest.mark.parametrize(
    ("routing_type", "expected"),
    [("STRIP", [1, 1]), ("PASS", [1, 0]), (ANYCAST, [1, 0]), (MULTICAST, [0, 1])],
)
def test_routing_type_of_a_diverted_copy(routing_type: str, expected: list[int]) -> None:
    """None, the message's own (here anycast), or the one named."""
    broker = broker_of(
        queue_config("any", "B", ANYCAST),
        queue_config("multi", "B", MULTICAST),
        queue_config("A", "A", ANYCAST),
        diverts=[divert_config("d", "A", "B", routing_type=routing_type)],
    )
    send(broker, "A", routing_type=ANYCAST)
    turn(broker)
    assert counts(broker, "any", "multi") == expected
    copy = next(name for name in ("any", "multi") if broker.queues[name].message_count)
    header = heads_on(broker, copy)[0].properties.get("destination-type")
    assert header == {"STRIP": None, "PASS": ANYCAST}.get(routing_type, routing_type)
    assert heads_on(broker, copy)[0].properties["_AMQ_ORIG_ROUTING_TYPE"] == "1"


def test_scheduled_message_through_a_divert() -> None:
    """The copy is due when the message is."""
    broker = diverted(divert_config("d", "A", "B"))
    send(broker, "A", due_ms=NOW_MS + 100)
    turn(broker)
    assert [len(broker.queues[name].contents.scheduled) for name in ("A", "B")] == [1, 1]
    turn(broker, NOW_MS + 100)
    assert [broker.queues[name].contents.order.count for name in ("A", "B")] == [1, 1]


def test_settings_of_the_target_apply() -> None:
    """Full routing: the target's own limits and expiry."""
    broker = broker_of(
        queue_config("B", "B"),
        diverts=[divert_config("d", "A", "B")],
        settings={"B": {"expiry_delay": 700, "max_size_messages": 1, "address_full_policy": "DROP"}},
    )
    send(broker, "A", count=3)
    turn(broker)
    assert counts(broker, "B") == [1]
    assert next(iter(broker.queues["B"].contents.order)).message.expires_ms == NOW_MS + 700


@pytest.mark.parametrize("creates", [True, False])
def test_divert_to_an_address_that_does_not_exist(creates: bool) -> None:
    """It is created as for a sender; where it may not be, the copy is gone and nothing else happens."""
    settings = {"new": {"auto_create_addresses": creates, "default_address_routing_type": ANYCAST}}
    broker = broker_of(queue_config("A", "A"), diverts=[divert_config("d", "A", "new")], settings=settings)
    send(broker, "A")
    turn(broker)
    assert counts(broker, "A") == [1]
    assert {name: queue.message_count for name, queue in broker.queues.items() if name != "A"} == (
        {"new": 1} if creates else {}
    )


def test_diverts_in_a_circle() -> None:
    """A message goes round once, then it is dropped and counted; the broker comes to rest."""
    broker = diverted(divert_config("there", "A", "B"), divert_config("back", "B", "A"))
    send(broker, "A")
    turn(broker)
    assert not broker.copy_maker.waiting
    assert broker.copy_maker.looped_message_count == 1
    assert counts(broker, "A", "B") == [2, 1]


def test_circles_of_diverts_that_give_to_several_addresses() -> None:
    """With a bound of hops alone, one message became 43 million."""
    names = ("A", "B", "C")
    broker = broker_of(
        *(queue_config(name, name) for name in names),
        diverts=[divert_config(name, name, "A", "B", "C") for name in names],
    )
    send(broker, "A")
    turn(broker)
    assert not broker.copy_maker.waiting
    assert broker.queues["A"].contents.counters.added < 10
    assert sum(counts(broker, *names)) == 16, "A itself, and each way through diverts that it has not been through"


def test_what_two_ways_bring_is_no_circle() -> None:
    diverts = [divert_config("d", "A", "B", "C"), *(divert_config(f"{name}D", name, "D") for name in "BC")]
    broker = broker_of(
        *(queue_config(name, name) for name in "ABCDE"), diverts=[*diverts, divert_config("DE", "D", "E")]
    )
    send(broker, "A")
    turn(broker)
    assert counts(broker, *"ABCDE") == [1, 1, 1, 2, 2]
    assert broker.copy_maker.looped_message_count == 0


def test_expiry_addresses_in_a_circle() -> None:
    """Each round is another turn, much later; the message knows how often it went, and is dropped, counted and told."""
    settings = {
        "A": {"expiry_address": "B", "expiry_delay": 50},
        "B": {"expiry_address": "A", "expiry_delay": 50},
    }
    queues = queue_config("A", "A"), queue_config("B", "B")
    broker = broker_of(*queues, settings=settings, message_expiry_scan_period=100)
    send(broker, "A")
    for number in range(1, HOPS_MAX + 1):
        turn(broker, NOW_MS + number * 100)
        assert counts(broker, "A", "B") == ([0, 1] if number % 2 else [1, 0])
        headers = heads_on(broker, "B" if number % 2 else "A")[0].properties
        assert headers.get(HOPS_HEADER) == (str(number) if number > 1 else None)
    assert broker.copy_maker.looped_message_count == 0
    turn(broker, NOW_MS + (HOPS_MAX + 1) * 100)
    assert counts(broker, "A", "B") == [0, 0]
    assert broker.copy_maker.looped_message_count == 1
    assert broker.events.counts[LOOPED] == 1
    (told,) = [event for event in broker.events.take() if event.code == LOOPED]
    assert (told.queue, told.fields) == ("A", {"target": "B"})
    assert broker.memory_bytes == 0


def test_a_divert_and_an_expiry_address_in_a_circle() -> None:
    """Hops of all kinds add up."""
    broker = broker_of(
        queue_config("B", "B"),
        diverts=[divert_config("d", "A", "B", exclusive=True)],
        settings={"B": {"expiry_address": "A", "expiry_delay": 50}},
        message_expiry_scan_period=100,
    )
    send(broker, "A")
    for number in range(2 * HOPS_MAX):
        turn(broker, NOW_MS + number * 100)
    assert counts(broker, "B") == [0]
    assert broker.copy_maker.looped_message_count == 1
    assert broker.queues["B"].contents.counters.expired == HOPS_MAX // 2


def test_a_circle_with_a_consumer_that_fails_goes_on() -> None:
    """What waits for another attempt on an address of its own, and expires back to where it failed, is not lost."""
    settings = {
        "work": {"max_delivery_attempts": 1, "dead_letter_address": "retry"},
        "retry": {"expiry_address": "work", "expiry_delay": 50},
    }
    broker = broker_of(
        queue_config("work", "work"), queue_config("retry", "retry"), settings=settings, message_expiry_scan_period=100
    )
    send(broker, "work")
    for number in range(1, 2 * HOPS_MAX):
        fail(broker, "work", now_ms=NOW_MS + number * 100)
        assert counts(broker, "work", "retry") == [0, 1]
        turn(broker, NOW_MS + number * 100 + 99)
        turn(broker, NOW_MS + (number + 1) * 100)
        assert counts(broker, "work", "retry") == [1, 0]
    assert broker.copy_maker.looped_message_count == 0


# ---- no route ------------------------------------------------------------------------------------


def test_no_route_goes_to_the_dead_letter_address() -> None:
    """Where the setting says so; with the origin's headers, without a queue."""
    settings = {"A": {"send_to_dla_on_no_route": True, "dead_letter_address": "D"}}
    broker = broker_of(queue_config("D", "D"), addresses=["A"], settings=settings)
    send(broker, "A", count=2)
    turn(broker)
    assert counts(broker, "D") == [2]
    headers = heads_on(broker, "D")[0].properties
    assert (headers["_AMQ_ORIG_ADDRESS"], headers["reason"]) == ("A", "no_route")
    assert "_AMQ_ORIG_QUEUE" not in headers
    assert broker.addresses["A"].unrouted_message_count == 2


def test_dead_letter_addresses_in_a_circle() -> None:
    """Two addresses without queues, each the other's dead-letter address: it ends."""
    settings = {
        "A": {"send_to_dla_on_no_route": True, "dead_letter_address": "B"},
        "B": {"send_to_dla_on_no_route": True, "dead_letter_address": "A"},
    }
    broker = broker_of(addresses=["A", "B"], settings=settings)
    send(broker, "A")
    turn(broker)
    assert not broker.copy_maker.waiting
    assert broker.copy_maker.looped_message_count == 1


def test_no_route_on_the_dead_letter_address_itself() -> None:
    """There is nowhere else to go."""
    settings = {"D": {"send_to_dla_on_no_route": True, "dead_letter_address": "D"}}
    broker = broker_of(addresses=["D"], settings=settings)
    send(broker, "D")
    turn(broker)
    assert broker.addresses["D"].unrouted_message_count == 1
    assert broker.copy_maker.looped_message_count == 0


# ---- dead letters --------------------------------------------------------------------------------


def fail(broker: Broker, queue: str, times: int = 1, now_ms: int = NOW_MS) -> list[bool]:
    """Let a consumer's connection be lost so many times; returns the redelivered flags that it saw."""
    flags: list[bool] = []
    for _ in range(times):
        consumer = consumer_on(broker, broker.queues[queue])
        turn(broker, now_ms)
        flags.extend(entry.redelivered for entry in consumer.held.values())
        broker.detach(broker.queues[queue], consumer, failed=True, now_ms=now_ms)
        turn(broker, now_ms)
    return flags


def test_dead_on_the_dead_letter_address_itself() -> None:
    """It goes round: a new copy, whose attempts begin again; killed counts."""
    broker = broker_of(queue_config(), settings={"a": {"max_delivery_attempts": 1, "dead_letter_address": "a"}})
    send(broker)
    for round_number in (1, 2):
        fail(broker, "q")
        entry = next(iter(broker.queues["q"].contents.order))
        assert (entry.message.id, entry.attempts, entry.redelivered) == (1 + round_number, 0, False)
        assert broker.queues["q"].contents.counters.killed == round_number
        assert broker.queues["q"].message_count == 1


def test_expired_on_the_expiry_address_itself() -> None:
    """It goes round once: what has expired before is gone for good."""
    settings = {"a": {"expiry_address": "a", "expiry_delay": 50}}
    broker = broker_of(queue_config(), settings=settings, message_expiry_scan_period=100)
    send(broker)
    turn(broker, NOW_MS + 100)
    assert [head.properties["_AMQ_ACTUAL_EXPIRY"] for head in heads_on(broker, "q")] == [str(NOW_MS + 100)]
    turn(broker, NOW_MS + 200)
    assert counts(broker, "q") == [0]
    assert broker.queues["q"].contents.counters.expired == 2
    assert broker.addresses["a"].account.message_count == 0


@pytest.mark.parametrize("dead_letter_address", [None, "", "missing", "empty"])
def test_dead_without_anywhere_to_go(dead_letter_address: str | None) -> None:
    """No dead-letter address, none that exists, or one without queues: gone, and killed counts."""
    settings = {"a": {"max_delivery_attempts": 1, "dead_letter_address": dead_letter_address}}
    broker = broker_of(queue_config(), addresses=["empty"], settings=settings)
    send(broker)
    fail(broker, "q")
    assert counts(broker, "q") == [0]
    assert broker.queues["q"].contents.counters.killed == 1
    assert sum(address.account.message_count for address in broker.addresses.values()) == 0


def test_dead_letter_resources_are_created() -> None:
    """A queue for each source address, whose filter lets in only what came from there."""
    settings = {
        "#": {"max_delivery_attempts": 1, "dead_letter_address": "DLA", "auto_create_dead_letter_resources": True}
    }
    broker = broker_of(queue_config("x", "it's"), queue_config("y", "b"), settings=settings)
    for address, queue in (("it's", "x"), ("b", "y")):
        send(broker, address)
        fail(broker, queue)
    assert counts(broker, "DLQ.it's", "DLQ.b") == [1, 1]
    assert all(broker.queues[name].auto_created for name in ("DLQ.it's", "DLQ.b"))
    assert broker.queues["DLQ.b"].address.name == "DLA"


def test_names_of_dead_letter_resources() -> None:
    """Prefix and suffix are settings."""
    settings = {
        "a": {
            "max_delivery_attempts": 1,
            "dead_letter_address": "DLA",
            "auto_create_dead_letter_resources": True,
            "dead_letter_queue_prefix": "dead.",
            "dead_letter_queue_suffix": ".letters",
        }
    }
    broker = broker_of(queue_config(), settings=settings)
    send(broker)
    fail(broker, "q")
    assert counts(broker, "dead.a.letters") == [1]


@pytest.mark.parametrize(("policy", "kept"), [("BLOCK", 3), ("FAIL", 3), ("DROP", 1)])
def test_full_dead_letter_address(policy: str, kept: int) -> None:
    """Nobody can be blocked or told, so only DROP drops: a dead letter is not lost because there are many."""
    broker = broker_of(
        queue_config(),
        queue_config("DLQ", "DLA"),
        settings={
            "a": {"max_delivery_attempts": 1, "dead_letter_address": "DLA"},
            "DLA": {"max_size_messages": 1, "address_full_policy": policy},
        },
    )
    send(broker, count=3)
    fail(broker, "q")
    assert counts(broker, "q", "DLQ") == [0, kept]


def test_settings_are_those_of_the_message_not_of_the_queue() -> None:
    """A queue on a wildcard address: what was sent to an address dies by that address' settings."""
    broker = broker_of(
        queue_config("all", "news.#"),
        queue_config("DLQ", "DLA"),
        addresses=["news.sport"],
        settings={"news.#": {"max_delivery_attempts": 1}, "news.sport": {"dead_letter_address": "DLA"}},
    )
    send(broker, "news.sport")
    fail(broker, "all")
    assert counts(broker, "all", "DLQ") == [0, 1]
    assert heads_on(broker, "DLQ")[0].properties["_AMQ_ORIG_ADDRESS"] == "news.sport"


def test_redelivery_delay_schedules_the_return() -> None:
    """Counted as scheduled, overtaken by what comes later, back at the head when due; the gaps grow."""
    settings = {
        "a": {
            "redelivery_delay": 1000, "redelivery_delay_multiplier": 2.0, "max_redelivery_delay": 3000,
            "max_delivery_attempts": -1,
        }
    }  # fmt: skip
    broker = broker_of(queue_config(), settings=settings)
    queue = broker.queues["q"]
    send(broker)
    now_ms = NOW_MS
    for gap in (1000, 2000, 3000, 3000):
        fail(broker, "q", now_ms=now_ms)
        assert (queue.message_count, len(queue.contents.scheduled)) == (1, 1)
        turn(broker, now_ms + gap - 1)
        assert queue.contents.order.count == 0
        now_ms += gap
        turn(broker, now_ms)
        assert queue.contents.order.count == 1


def test_leaving_in_good_order_does_not_delay() -> None:
    """UNSUBSCRIBE counts no attempt and waits for nothing."""
    broker = broker_of(queue_config(), settings={"a": {"redelivery_delay": 1000, "max_delivery_attempts": 1}})
    queue = broker.queues["q"]
    send(broker)
    consumer = consumer_on(broker, queue)
    turn(broker)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    entry = next(iter(queue.contents.order))
    assert (entry.redelivered, entry.attempts, len(queue.contents.scheduled)) == (True, 0, 0)


# ---- expired messages ----------------------------------------------------------------------------


def test_expired_message_goes_to_the_expiry_address() -> None:
    """With its headers, without an expiry of its own."""
    settings = {"a": {"expiry_address": "EXP"}}
    broker = broker_of(queue_config(), queue_config("E", "EXP"), settings=settings, message_expiry_scan_period=100)
    send(broker, head=head_of("a", color="red"), expires_ms=NOW_MS + 50)
    turn(broker, NOW_MS + 99)
    assert counts(broker, "q", "E") == [1, 0]
    turn(broker, NOW_MS + 100)
    assert counts(broker, "q", "E") == [0, 1]
    assert broker.queues["q"].contents.counters.expired == 1
    entry = next(iter(broker.queues["E"].contents.order))
    headers = entry.message.head.properties
    assert (headers["_AMQ_ORIG_ADDRESS"], headers["_AMQ_ORIG_QUEUE"], headers["color"]) == ("a", "q", "red")
    assert (headers["_AMQ_ACTUAL_EXPIRY"], headers["reason"]) == (str(NOW_MS + 100), "time_limit")
    assert entry.message.expires_ms == 0


def test_settings_of_the_expiry_address_apply() -> None:
    """Its own expiry-delay for instance."""
    broker = broker_of(
        queue_config(),
        queue_config("E", "EXP"),
        settings={"a": {"expiry_address": "EXP"}, "EXP": {"expiry_delay": 500}},
        message_expiry_scan_period=100,
    )
    send(broker, expires_ms=NOW_MS + 50)
    turn(broker, NOW_MS + 100)
    assert next(iter(broker.queues["E"].contents.order)).message.expires_ms == NOW_MS + 600


def test_expiry_is_found_at_dispatch() -> None:
    """Also without scans; a consumer never sees an expired message."""
    broker = broker_of(queue_config(), message_expiry_scan_period=-1)
    send(broker, expires_ms=NOW_MS + 50)
    send(broker)
    turn(broker, NOW_MS + 50)
    assert counts(broker, "q") == [2]
    consumer = consumer_on(broker, broker.queues["q"])
    turn(broker, NOW_MS + 50)
    assert list(consumer.held) == [2]
    assert broker.queues["q"].contents.counters.expired == 1


def test_expiry_resources_are_created() -> None:
    """A queue for each source address on the expiry address."""
    settings = {"a": {"expiry_address": "EXP", "auto_create_expiry_resources": True, "expiry_queue_suffix": ".old"}}
    broker = broker_of(queue_config(), settings=settings, message_expiry_scan_period=100)
    send(broker, expires_ms=NOW_MS + 50)
    turn(broker, NOW_MS + 100)
    assert counts(broker, "EXP.a.old") == [1]


def test_scheduled_and_delivered_messages_do_not_expire() -> None:
    """The scan leaves them alone; a scheduled one expires once it is due."""
    broker = broker_of(queue_config(), message_expiry_scan_period=100)
    queue = broker.queues["q"]
    consumer = consumer_on(broker, queue)
    send(broker, expires_ms=NOW_MS + 50)
    turn(broker)
    broker.detach(queue, consumer_on(broker, queue), failed=False, now_ms=NOW_MS)
    send(broker, expires_ms=NOW_MS + 50, due_ms=NOW_MS + 450)
    turn(broker, NOW_MS + 400)
    assert (queue.contents.delivering_count, len(queue.contents.scheduled), queue.contents.counters.expired) == (
        1,
        1,
        0,
    )
    queue.pause()
    turn(broker, NOW_MS + 500)
    assert (queue.contents.delivering_count, queue.message_count, queue.contents.counters.expired) == (1, 1, 1)
    queue.acknowledge(consumer, [consumer.let_go(1)])
    assert queue.message_count == 0


def test_returned_message_still_expires() -> None:
    """What comes back is watched again."""
    broker = broker_of(queue_config(), message_expiry_scan_period=100)
    queue = broker.queues["q"]
    send(broker, expires_ms=NOW_MS + 250)
    consumer = consumer_on(broker, queue)
    turn(broker)
    turn(broker, NOW_MS + 300)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS + 300)
    turn(broker, NOW_MS + 400)
    assert (queue.message_count, queue.contents.counters.expired) == (0, 1)
