"""What waits for a time that clients choose is not kept until then when it has gone before."""

from __future__ import annotations

import random
from heapq import heappop, heappush

from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.clock import drop_void
from artemis_py.core.order.entry import PURGED, Entry
from artemis_py.core.queue_timers import Schedule
from tests.kit.core import NOW_MS, broker_of, consumer_on, entry_of, send, turn, with_queue

FAR_MS = 10**12
COUNT = 20_000


def test_a_schedule_is_not_longer_than_twice_what_waits() -> None:
    alive: dict[int, Entry] = {}
    schedule = Schedule(alive)
    chance = random.Random(1)
    entry = entry_of()
    for number in range(COUNT):
        alive[number] = entry
        schedule.add(number, FAR_MS + chance.randrange(1000), is_date=number % 2 == 0)
        alive.pop(number - 100, None)
    assert len(schedule) <= 2 * len(alive) + 4


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60), st.integers(0, 60))
def test_what_is_taken_out_of_a_heap_leaves_a_heap(added: list[tuple[int, bool]], looks: int) -> None:
    void = {number for number, (_, gone) in enumerate(added) if gone}
    heap: list[tuple[int, int]] = []
    for number, (due_ms, _) in enumerate(added):
        heappush(heap, (due_ms, number))
    before = len(heap)
    drop_void(heap, 0, looks, lambda one: one[1] in void)
    assert before - len(heap) <= min(looks, len(void))
    expected = sorted((due_ms, number) for number, (due_ms, gone) in enumerate(added) if not gone)
    assert [item for item in (heappop(heap) for _ in range(len(heap))) if item[1] not in void] == expected


def test_messages_that_went_long_before_they_expire() -> None:
    """One that still stands is found all the same."""
    broker, queue = with_queue()
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
    broker, queue = with_queue()
    for _ in range(COUNT // 10):
        send(broker, due_ms=FAR_MS, count=10)
        queue.purge(PURGED, NOW_MS)
    assert len(broker.timers.schedules[queue.id]) <= 20


def test_schedules_of_queues_that_are_deleted() -> None:
    broker = broker_of()
    for number in range(1000):
        address = broker.resolver.obtain_address(f"a{number}", "ANYCAST")
        queue = broker.resolver.obtain_anycast_queue(address.name)
        send(broker, address.name, due_ms=FAR_MS)
        broker.registry.delete_queue(queue, NOW_MS)
    assert not broker.timers.schedules
    assert len(broker.clock) <= 6, "with the two rounds"


def test_a_queue_has_one_alarm_however_often_it_is_set() -> None:
    """A sender whose messages expire earlier and earlier, and are gone before."""
    broker, queue = with_queue(max_message_ttl=FAR_MS)
    assert queue.contents.expiry.lifetime is not None
    for number in range(COUNT // 20):
        broker.timers.alarms.set_by(queue.id, FAR_MS - number)
    assert len(broker.clock) <= 5, "with the two rounds"
    broker.registry.delete_queue(queue, NOW_MS)
    assert not broker.timers.alarms.times


def test_a_gate_is_noted_once_however_many_come_meanwhile() -> None:
    broker, queue = with_queue(consumers_before_dispatch=1000, delay_before_dispatch=10**9)
    staying = consumer_on(broker, queue)
    for _ in range(COUNT // 20):
        broker.detach(queue, consumer_on(broker, queue), failed=False, now_ms=NOW_MS)
    assert len(broker.clock) == 3, "with the two rounds"
    turn(broker, NOW_MS + 10**9)
    assert queue.gate.is_open
    assert not staying.closed
