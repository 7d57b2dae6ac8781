"""No operation of one client makes a turn long: the longest turn is the same with ten times as many messages.

Counted twice: in the units that the budget is charged with, and in lines of Python, which nobody charges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.budget import WORK_PARTS
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.arrivals import AfterEnqueue
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.errors import ArtemisError
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, lines_run, queue_config, send, write

pytestmark = pytest.mark.interpreted

UNITS: Final = 300
"""Of a turn here: so little that few messages are more than a turn."""
UNITS_OVER: Final = 20
"""A step that has begun ends."""
FEW: Final = 600
TURNS_MAX: Final = 10_000
LATER_MS: Final = NOW_MS + 1000

Step = Callable[[], object]


class Bench:
    """A broker of which each turn is measured."""

    def __init__(self, **attributes: Any) -> None:
        settings = {"a": {"expiry_address": "x", "dead_letter_address": "d", "redelivery_delay": 0}}
        queues = queue_config(**attributes), queue_config("x", "x"), queue_config("d", "d")
        self.broker: Broker = broker_of(*queues, settings=settings)
        self.queue: Queue = self.broker.queues["q"]
        self.now_ms = NOW_MS
        self.units = 0
        self.turns = 0

    def _turn(self, step: Step) -> None:
        self.broker.budget.refill(UNITS)
        self.broker.log.now_ms = self.now_ms
        step()
        self.broker.tick(self.now_ms)
        spent = UNITS - self.broker.budget.left
        self.broker.dispatch(self.now_ms)
        write(self.broker)
        self.units = max(self.units, spent, UNITS - self.broker.budget.left)

    def run(self, step: Step) -> int:
        """Take a step, and turns until all that comes of it is done; returns the lines of the longest turn."""
        longest = lines_run(lambda: self._turn(step))
        for _ in range(TURNS_MAX):
            if not self.broker.has_ready:
                return longest
            self.turns += 1
            longest = max(longest, lines_run(lambda: self._turn(int)))
        raise AssertionError("no end")


def _filled(count: int, **attributes: Any) -> Bench:
    bench = Bench(**attributes)
    send(bench.broker, count=count)
    return bench


def _held(count: int, **options: Any) -> tuple[Bench, Any]:
    bench = _filled(count)
    consumer = consumer_on(bench.broker, bench.queue, **options)
    bench.broker.dispatch(NOW_MS)
    write(bench.broker)
    assert len(consumer.held) == count
    return bench, consumer


def choose(count: int) -> tuple[Bench, int]:
    bench = _filled(count)
    for number in range(10):
        consumer_on(bench.broker, bench.queue, selector=f"color = '{number}'")
    return bench, bench.run(int)


def deliver(count: int) -> tuple[Bench, int]:
    bench = _filled(count)
    for _ in range(10):
        consumer_on(bench.broker, bench.queue)
    lines = bench.run(int)
    assert bench.queue.contents.counters.held_count == count
    return bench, lines


def expire(count: int) -> tuple[Bench, int]:
    bench = Bench()
    send(bench.broker, count=count, expires_ms=LATER_MS)
    bench.now_ms = LATER_MS
    lines = bench.run(lambda: bench.queue.expire_due(LATER_MS))
    assert (bench.queue.contents.counters.expired, bench.broker.queues["x"].message_count) == (count, count)
    return bench, lines


def fall_due(count: int) -> tuple[Bench, int]:
    bench = Bench()
    for number in range(count):
        send(bench.broker, due_ms=LATER_MS - count + number)
    bench.now_ms = LATER_MS
    lines = bench.run(int)
    ready = [entry.message.id for entry in bench.queue.contents.order]
    assert ready == sorted(ready)
    assert len(ready) == count
    return bench, lines


def delete(count: int) -> tuple[Bench, int]:
    bench = _filled(count)
    lines = bench.run(lambda: bench.broker.registry.delete_queue(bench.queue, NOW_MS))
    assert (bench.queue.message_count, bench.queue.contents.counters.killed, bench.broker.memory_bytes) == (0, count, 0)
    return bench, lines


def purge(count: int) -> tuple[Bench, int]:
    bench = _filled(count)
    lines = bench.run(lambda: bench.queue.purge(PURGED, NOW_MS))
    assert (bench.queue.message_count, bench.queue.contents.counters.killed) == (0, count)
    return bench, lines


def lose(count: int) -> tuple[Bench, int]:
    bench, consumer = _held(count)
    lines = bench.run(lambda: bench.broker.detach(bench.queue, consumer, failed=True, now_ms=NOW_MS))
    ready = [entry.message.id for entry in bench.queue.contents.order]
    assert ready == sorted(ready)
    assert (len(ready), bench.queue.contents.counters.held_count) == (count, 0)
    return bench, lines


def bury(count: int) -> tuple[Bench, int]:
    """Each has failed for the last time, and goes to the dead-letter address."""
    bench, consumer = _held(count)
    for entry in consumer.held.values():
        entry.attempts = 9
    lines = bench.run(lambda: bench.broker.detach(bench.queue, consumer, failed=True, now_ms=NOW_MS))
    assert (bench.queue.contents.counters.killed, bench.broker.queues["d"].message_count) == (count, count)
    return bench, lines


def refuse(count: int) -> tuple[Bench, int]:
    bench, consumer = _held(count)
    bench.broker.queue_operations.pause("q")
    last_id = next(reversed(consumer.held))
    lines = bench.run(lambda: bench.queue.refuse_up_to(consumer, last_id, NOW_MS))
    assert (bench.queue.contents.order.count, bench.queue.contents.counters.held_count) == (count, 0)
    return bench, lines


def acknowledge(count: int) -> tuple[Bench, int]:
    bench, consumer = _held(count)
    last_id = next(reversed(consumer.held))
    lines = bench.run(lambda: bench.queue.acknowledge_up_to(consumer, last_id, NOW_MS))
    assert (bench.queue.message_count, bench.queue.contents.counters.acknowledged) == (0, count)
    return bench, lines


def shed(count: int) -> tuple[Bench, int]:
    """What comes back to a ring that has become small meanwhile is given up."""
    bench, consumer = _held(count)
    bench.broker.queue_operations.set_ring_size("q", 10)
    lines = bench.run(lambda: bench.broker.detach(bench.queue, consumer, failed=False, now_ms=NOW_MS))
    assert (bench.queue.contents.order.count, bench.queue.contents.counters.replaced) == (10, count - 10)
    return bench, lines


def activate(count: int) -> tuple[Bench, int]:
    """All that stands behind a barrier may go at once when it has gone."""
    bench = Bench(barrier_expression="kind = 'barrier'")
    send(bench.broker, head=head_of(kind="barrier"))
    send(bench.broker, count=count)
    bench.run(int)
    assert (bench.queue.contents.order.count, bench.queue.message_count) == (0, count + 1)
    consumer_on(bench.broker, bench.queue, selector="kind = 'barrier'")
    lines = bench.run(int)
    assert (bench.queue.contents.order.count, bench.queue.message_count) == (count, count)
    return bench, lines


def broadcast(count: int) -> tuple[Bench, int]:
    """A barrier goes to as many consumers."""
    bench = Bench(barrier_expression="kind = 'barrier'")
    for _ in range(count):
        consumer_on(bench.broker, bench.queue)
    bench.run(int)
    send(bench.broker, head=head_of(kind="barrier"))
    lines = bench.run(int)
    assert (bench.queue.message_count, bench.queue.contents.counters.acknowledged) == (0, 1)
    return bench, lines


CASES = (
    choose, deliver, expire, fall_due, delete, purge, lose, bury, refuse, acknowledge, shed, activate, broadcast,
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_longest_turn_does_not_grow(case: Callable[[int], tuple[Bench, int]]) -> None:
    few, lines_of_few = case(FEW)
    many, lines_of_many = case(10 * FEW)
    assert few.turns > 0, "this is no more than a turn"
    assert many.turns > 5 * few.turns - 5
    assert many.units <= UNITS + UNITS_OVER
    assert lines_of_many <= lines_of_few * 1.3


# ---- what others see meanwhile -------------------------------------------------------------------------


def _once(bench: Bench, step: Step = int) -> None:
    bench._turn(step)


def test_nothing_is_dispatched_before_all_is_back() -> None:
    """Or a consumer would be given what stands behind an entry that is on its way."""
    bench, leaving = _held(FEW)
    staying = consumer_on(bench.broker, bench.queue)
    _once(bench, lambda: bench.broker.detach(bench.queue, leaving, failed=False, now_ms=NOW_MS))
    assert 0 < bench.queue.contents.order.count < FEW
    assert not staying.held
    bench.run(int)
    assert list(staying.held) == sorted(staying.held)
    assert len(staying.held) == FEW


def test_other_queues_are_served_meanwhile() -> None:
    bench, leaving = _held(FEW)
    other = consumer_on(bench.broker, bench.broker.queues["x"])
    _once(bench, lambda: bench.broker.detach(bench.queue, leaving, failed=False, now_ms=NOW_MS))
    send(bench.broker, "x")
    _once(bench)
    assert len(other.held) == 1
    assert bench.broker.agenda


def test_the_name_of_a_deleted_queue_is_free_at_once() -> None:
    bench = _filled(FEW)
    broker, old = bench.broker, bench.queue

    def delete_and_create() -> None:
        broker.registry.delete_queue(old, NOW_MS)
        broker.registry.create_queue(broker.addresses["a"], queue_config(), auto_created=False)
        send(broker)

    _once(bench, delete_and_create)
    assert 0 < old.message_count < FEW
    assert broker.queues["q"].message_count == 1
    bench.run(int)
    assert (old.message_count, old.contents.counters.killed, broker.queues["q"].message_count) == (0, FEW, 1)
    assert broker.addresses["a"].account.message_count == 1


def test_a_purge_takes_its_share_of_a_turn() -> None:
    """Two in the first turn, which begins it and goes on with it: so nobody waits long for theirs."""
    bench = _filled(FEW * 10)
    bench.run(lambda: bench.broker.queue_operations.purge("q", NOW_MS))
    assert bench.queue.message_count == 0
    assert bench.units <= 2 * (UNITS // WORK_PARTS) + UNITS_OVER


def test_what_comes_during_a_purge_stays() -> None:
    """Also where it stands before the others."""
    bench = _filled(FEW)
    _once(bench, lambda: bench.queue.purge(PURGED, NOW_MS))
    send(bench.broker, head=head_of(priority=9))
    send(bench.broker, due_ms=LATER_MS)
    bench.run(int)
    assert (
        bench.queue.contents.order.count,
        len(bench.queue.contents.scheduled),
        bench.queue.contents.counters.killed,
    ) == (1, 1, FEW)


def test_a_lost_consumer_has_acknowledged_what_it_acknowledged() -> None:
    """The connection goes while a cumulative acknowledgement is being carried out: that comes first."""
    bench, consumer = _held(FEW)
    middle_id = list(consumer.held)[FEW // 2]

    def acknowledge_and_leave() -> None:
        bench.queue.acknowledge_up_to(consumer, middle_id, NOW_MS)
        bench.broker.detach(bench.queue, consumer, failed=True, now_ms=NOW_MS)

    _once(bench, acknowledge_and_leave)
    assert bench.queue.contents.counters.held_count > 0
    bench.run(int)
    assert (bench.queue.contents.counters.acknowledged, bench.queue.contents.order.count) == (
        FEW // 2 + 1,
        FEW // 2 - 1,
    )


def test_the_last_of_many_that_choose_is_not_starved() -> None:
    """Those before it look at far more than a turn allows; it has its turn after one of each."""
    bench = Bench()
    send(bench.broker, head=head_of(color="red"))
    send(bench.broker, count=FEW * 10)
    for number in range(10):
        consumer_on(bench.broker, bench.queue, selector=f"color = '{number}'")
    last = consumer_on(bench.broker, bench.queue, selector="color = 'red'")
    turns = 0
    while not last.held:
        _once(bench)
        turns += 1
    assert turns <= 12


def test_a_task_that_fails_lets_the_next_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it is told, and the queue serves its consumers again."""
    bench, consumer = _held(FEW)
    queue = bench.queue
    other = consumer_on(bench.broker, queue)
    work = None

    def begin() -> None:
        nonlocal work
        work = queue.refuse_up_to(consumer, next(reversed(consumer.held)), NOW_MS)

    _once(bench, begin)

    def fail(*_: object) -> None:
        raise ArtemisError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(Contents, "is_outdated", fail)
        _once(bench)
    assert bench.broker.events.counts["ART-1006"] == 1
    assert work is not None
    assert (work.failed, work.may_go_on) == (True, True)
    assert (len(bench.broker.agenda), queue.tasks.may_go_on) == (0, True)
    bench.run(int)
    assert other.held


def test_a_broker_that_stops_carries_out_what_was_decided() -> None:
    bench, consumer = _held(FEW)
    bench.broker.budget.refill(UNITS)
    bench.broker.detach(bench.queue, consumer, failed=False, now_ms=NOW_MS)
    assert bench.queue.contents.order.count < FEW
    bench.broker.finish(NOW_MS)
    assert (bench.queue.contents.order.count, len(bench.broker.agenda)) == (FEW, 0)


def test_a_queue_that_breaks_off_behind_a_task_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done stays done, and consumers are served in the next turn."""
    bench, consumer = _held(FEW)
    queue = bench.queue
    other = consumer_on(bench.broker, queue)
    works: list[Task | None] = []
    _once(bench, lambda: works.append(queue.refuse_up_to(consumer, next(reversed(consumer.held)), NOW_MS)))
    work = works[0]
    assert work is not None, "it takes more than a turn"
    send(bench.broker)

    def fail(*_: object) -> None:
        raise ArtemisError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(AfterEnqueue, "run", fail)
        for _ in range(1000):
            if work.done:
                break
            _once(bench)
    assert (work.done, work.failed) == (True, False)
    assert bench.broker.events.counts["ART-1006"] == 1
    assert (len(bench.broker.agenda), queue.tasks.may_go_on) == (0, True)
    bench.run(int)
    assert other.held
