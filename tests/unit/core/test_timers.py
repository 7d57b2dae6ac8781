"""What waits for a time that clients choose is not kept until then when it has gone before."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.entry import PURGED
from artemis_py.core.timers import Schedule, drop_void
from tests.unit.core.parts import NOW_MS, broker_of, consumer_on, queue_config, send, turn

FAR_MS = 10**12
COUNT = 20_000


def test_a_schedule_is_not_longer_than_twice_what_waits() -> None:
    alive: set[int] = set()
    schedule: Schedule[int] = Schedule(lambda item: item not in alive)
    chance = random.Random(1)
    for number in range(COUNT):
        alive.add(number)
        schedule.add(FAR_MS + chance.randrange(1000), number)
        if number >= 100:
            alive.discard(number - 100)
    assert len(schedule) <= 2 * len(alive) + 2


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60), st.integers(0, 60))
def test_what_is_taken_out_of_a_heap_leaves_a_heap(added: list[tuple[int, bool]], looks: int) -> None:
    void = {number for number, (_, gone) in enumerate(added) if gone}
    schedule: Schedule[int] = Schedule(lambda _: False)
    for number, (due_ms, _) in enumerate(added):
        schedule.add(due_ms, number)
    before = len(schedule)
    drop_void(schedule._heap, 0, looks, lambda one: one[2] in void)
    assert before - len(schedule) <= min(looks, len(void))
    expected = sorted((due_ms, number) for number, (due_ms, gone) in enumerate(added) if not gone)
    assert [item for item in schedule.pop_due(9) if item not in void] == [number for _, number in expected]


def test_messages_that_went_long_before_they_expire() -> None:
    """One that still stands is found all the same."""
    broker = broker_of(queue_config())
    queue = broker.queues["q"]
    send(broker, expires_ms=NOW_MS + 500)
    standing = next(iter(queue.contents.order))
    for _ in range(COUNT // 10):
        send(broker, expires_ms=FAR_MS, count=10)
        for entry in list(queue.contents.order)[1:]:
            queue.contents.order.remove(entry, entry.sequence)
    assert len(queue.contents.expiry) <= 2000
    assert queue.message_count == 1
    queue.expire_due(NOW_MS + 500)
    assert queue.message_count == 0
    assert standing.message.refs == 0


def test_messages_that_were_scheduled_and_purged() -> None:
    broker = broker_of(queue_config())
    queue = broker.queues["q"]
    for _ in range(COUNT // 10):
        send(broker, due_ms=FAR_MS, count=10)
        queue.purge(PURGED, NOW_MS)
    assert len(broker.timers.scheduled) <= 20


def test_schedules_of_queues_that_are_deleted() -> None:
    broker = broker_of()
    for number in range(1000):
        address = broker.resolver.obtain_address(f"a{number}", "ANYCAST")
        queue = broker.resolver.obtain_anycast_queue(address.name)
        send(broker, address.name, due_ms=FAR_MS)
        broker.registry.delete_queue(queue, NOW_MS)
    assert len(broker.timers.scheduled) <= 2
    assert not len(broker.timers)


def test_a_queue_has_one_alarm_however_often_it_is_set() -> None:
    """A sender whose messages expire earlier and earlier, and are gone before."""
    broker = broker_of(queue_config(max_message_ttl=FAR_MS))
    queue = broker.queues["q"]
    assert queue.contents.expiry.lifetime is not None
    for number in range(COUNT // 20):
        broker.timers.note_alarm(FAR_MS - number, queue.id)
    assert len(broker.timers._alarms) <= 3
    broker.registry.delete_queue(queue, NOW_MS)
    assert not broker.timers._alarm_ms


def test_a_gate_is_noted_once_however_many_come_meanwhile() -> None:
    broker = broker_of(queue_config(consumers_before_dispatch=1000, delay_before_dispatch=10**9))
    queue = broker.queues["q"]
    staying = consumer_on(broker, queue)
    for _ in range(COUNT // 20):
        broker.detach(queue, consumer_on(broker, queue), failed=False, now_ms=NOW_MS)
    assert len(broker.timers._gates) == 1
    turn(broker, NOW_MS + 10**9)
    assert queue.gate.is_open
    assert not staying.closed
