"""Types of queues together with schedules, expiry, transactions, dead letters, pages and restarts."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

LVQ = "queue-type='lvq' last-value-key='k'"
TYPES = {
    "standard": ("queue-type='standard'", ["b", "a", "c", "a2"]),
    "priority": ("priority-levels='10'", ["a2", "c", "b", "a"]),
    "sorted": ("sort-key='k'", ["a", "a2", "b", "c"]),
    "last-value": ("last-value-key='k'", ["a2", "c", "b"]),
    "lvq": (LVQ, ["b", "c", "a2"]),
}
"""Attributes, and the order in which ``MESSAGES`` arrive."""
MESSAGES = [("b", 1), ("a", 1), ("c", 5), ("a2", 9)]


# ---- schedules -----------------------------------------------------------------------------------


def test_a_scheduled_value_counts_when_it_is_due(cut: bool) -> None:
    """As in Artemis: of five scheduled values four are replaced, the last one stays."""
    bench = Bench(LVQ, cut=cut)
    bench.send("now", "k:x")
    for number in range(5):
        bench.send(f"m{number}", "k:x", f"AMQ_SCHEDULED_DELAY:{100 + 100 * number}")
    assert bench.count() == 6
    bench.world.advance(150)
    assert (bench.count(), bench.queue().contents.counters.replaced) == (5, 1)
    bench.world.advance(1000)
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 5)
    bench.subscribe("c")
    assert bench.got("c") == ["m4"]


def test_values_due_at_once_leave_the_last(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for number in range(3):
        bench.send(f"m{number}", "k:x", f"AMQ_SCHEDULED_DELAY:{100 + number}")
    bench.queue().pause()
    bench.world.loop.now_ms += 500
    bench.world.turns.schedule()
    bench.world.settle()
    bench.queue().resume()
    bench.subscribe("c")
    assert bench.got("c") == ["m2"]
    assert bench.queue().contents.counters.replaced == 2


def test_a_scheduled_message_stands_before_its_equals(cut: bool) -> None:
    bench = Bench("sort-key='k'", cut=cut)
    bench.send("late", "k:b", "AMQ_SCHEDULED_DELAY:100")
    for body in ("b1", "a1", "c1"):
        bench.send(body, f"k:{body[0]}")
    bench.world.advance(200)
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["a1", "late", "b1", "c1"]


def test_a_value_that_waits_for_redelivery_is_replaced(cut: bool) -> None:
    bench = Bench(LVQ, settings="<redelivery-delay>500</redelivery-delay>", cut=cut)
    bench.send("v1", "k:x")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    bench.settle("c", frame, "NACK")
    assert (bench.count(), len(bench.queue().contents.scheduled)) == (1, 1)
    bench.send("v2", "k:x")
    assert bench.got("c") == ["v2"]
    bench.world.advance(1000)
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 1)


# ---- expiry, dead letters, transactions ----------------------------------------------------------


def test_an_expired_value_frees_its_key(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("v1", "k:x", f"expires:{bench.world.now_ms + 100}")
    bench.world.advance(200)
    bench.subscribe("c")
    assert bench.got("c") == []
    bench.send("v2", "k:x")
    assert bench.got("c") == ["v2"]
    assert (bench.queue().contents.counters.expired, bench.queue().contents.counters.replaced) == (1, 0)


@pytest.mark.parametrize("attributes", ["sort-key='k'", "priority-levels='3'", "queue-type='standard'"])
def test_expired_messages_are_passed_in_every_order(attributes: str, cut: bool) -> None:
    bench = Bench(attributes, cut=cut)
    for body in "bca":
        expires = f"expires:{bench.world.now_ms + 100}" if body != "b" else "x:y"
        bench.send(body, f"k:{body}", expires)
    bench.world.advance(200)
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["b"]
    assert bench.queue().contents.counters.expired == 2


def test_a_dead_value_frees_its_key(cut: bool) -> None:
    bench = Bench(LVQ, settings="<max-delivery-attempts>1</max-delivery-attempts>", cut=cut)
    bench.send("v1", "k:x")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    bench.settle("c", frame, "NACK")
    bench.send("v2", "k:x")
    assert bench.got("c") == ["v2"]
    assert (bench.queue().contents.counters.killed, bench.queue().contents.counters.replaced) == (1, 0)


def test_values_of_a_transaction_come_at_its_commit(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("v1", "k:x")
    bench.write("p", "BEGIN", "transaction:t")
    for body in ("v2", "v3"):
        bench.write("p", "SEND", "destination:/queue/q", "transaction:t", "k:x", body=body)
    assert bench.count() == 1
    bench.write("p", "COMMIT", "transaction:t")
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 2)
    bench.subscribe("c")
    assert bench.got("c") == ["v3"]


def test_an_aborted_acknowledgement_of_an_outdated_value(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("v1", "k:x")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    bench.write("c", "BEGIN", "transaction:t")
    bench.write("c", "ACK", f"id:{frame.header('ack')}", "transaction:t")
    bench.send("v2", "k:x")
    assert bench.count() == 2
    bench.write("c", "ABORT", "transaction:t")
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 1)


# ---- Artemis' scenarios (rows 2.17.1 to 2.17.3) --------------------------------------------------


def test_runtime_2_17_1_last_value_without_consumer(cut: bool) -> None:
    """Also while the queue is paused: values are replaced at once here, not when delivery goes on."""
    bench = Bench("last-value-key='k'", cut=cut)
    bench.queue().pause()
    bench.send("v1", "k:a")
    bench.send("v2", "k:a")
    bench.send("p")
    bench.send("v3", "k:a")
    counters = bench.queue().contents.counters
    assert (bench.count(), counters.added, counters.replaced) == (2, 4, 2)
    bench.queue().resume()
    bench.subscribe("c")
    assert bench.got("c") == ["p", "v3"]


@pytest.mark.parametrize("way", ["ACK", "UNSUBSCRIBE"])
def test_runtime_2_17_2_a_value_in_delivery(way: str, cut: bool) -> None:
    bench = Bench("last-value-key='k'", cut=cut)
    bench.send("v1", "k:a")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    assert (bench.count(), bench.queue().contents.delivering_count) == (1, 1)
    for body in ("v2", "v3"):
        bench.send(body, "k:a")
    assert bench.count() == 2
    if way == "ACK":
        bench.settle("c", frame)
        assert bench.got("c") == ["v3"]
    else:
        bench.leave("c")
        assert bench.count() == 1
        bench.subscribe("d")
        assert bench.got("d") == ["v3"]


# ---- restarts ------------------------------------------------------------------------------------


def send_all(life: Life) -> None:
    """Send MESSAGES."""
    for body, priority in MESSAGES:
        life.send(body, f"k:{body[0]}", f"priority:{priority}")


@pytest.mark.parametrize("name", TYPES)
def test_a_restart_keeps_type_and_order(name: str) -> None:
    """Also of what was in delivery when the broker went."""
    attributes, arrival = TYPES[name]
    life = Life(attributes)
    send_all(life)
    assert life.read("taker", count_max=2) == arrival[:2]
    life = life.again()
    assert life.read() == arrival[1:]


def test_runtime_2_17_3_last_value_over_a_restart() -> None:
    life = Life("last-value-key='k'")
    for body in ("v1", "v2", "v3"):
        life.write("producer", "SEND", "destination:/queue/q", "persistent:true", "k:x", body=body)
    life = life.again()
    assert life.count() == 1
    assert life.read() == ["v3"]


def test_an_outdated_value_does_not_survive_a_restart() -> None:
    """It was with a consumer, and the newer one is there."""
    life = Life(LVQ)
    life.write("producer", "SEND", "destination:/queue/q", "persistent:true", "k:x", body="v1")
    assert life.read("taker", count_max=1) == ["v1"]
    life.write("producer", "SEND", "destination:/queue/q", "persistent:true", "k:x", body="v2")
    assert life.count() == 2
    life = life.again()
    assert life.read() == ["v2"]


def test_Q_70_another_type_after_a_restart() -> None:
    """The type is that of the file: the messages take the places that it gives them."""
    life = Life(TYPES["standard"][0])
    send_all(life)
    life = life.again(TYPES["sorted"][0])
    assert life.read("taker", count_max=1) == ["a"]
    life = life.again(TYPES["lvq"][0])
    assert life.read() == TYPES["lvq"][1]


# ---- pages ---------------------------------------------------------------------------------------

LITTLE_ROOM = "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"


PAGED = {
    "standard": ["b", "a", "c", "a2"],
    "priority": ["b", "a2", "c", "a"],
    "sorted": ["b", "a", "a2", "c"],
    "last-value": ["b", "a2", "c"],
    "lvq": ["b", "c", "a2"],
}


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("name", TYPES)
def test_types_on_an_address_that_pages(name: str, restart: bool) -> None:
    """A message in a page takes part when it comes into memory. Only the first one was there when the consumer came; it
    got that, and all others came in behind it.
    """
    life = Life(TYPES[name][0], settings=LITTLE_ROOM)
    send_all(life)
    assert life.queue().contents.paged.count == 3
    if restart:
        life = life.again()
    assert life.read() == PAGED[name]
    assert life.count() == 0
