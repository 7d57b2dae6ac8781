"""No operation of one client makes a turn long: the longest turn is the same with ten times as many messages.

Counted twice: in the units that the budget is charged with, and in lines of Python, which nobody charges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from unittest.mock import Mock

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.budget import WORK_PARTS
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.arrivals import AfterEnqueue
from artemis_py.core.queue.messages import Contents, Counters
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.errors import ArtemisError
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, lines_run, queue_config, send, write

pytestmark = pytest.mark.interpreted

UNITS: Final = 150
"""Of a turn here: so little that few messages are more than a turn."""
UNITS_OVER: Final = 20
"""A step that has begun ends."""
FEW: Final = 300
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
        self.counters: Counters = self.queue.contents.counters
        self.now_ms = NOW_MS
        self.consumer: Any = None
        """Of all that is held."""
        self.units = 0
        self.turns = 0

    @property
    def ready(self) -> int:
        """How many stand on the queue, in the order in which they came."""
        ids = [entry.message.id for entry in self.queue.contents.order]
        assert ids == sorted(ids)
        return len(ids)

    def turn(self, step: Step = int) -> None:
        """A step, and the turn that it is in."""
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
        longest = lines_run(lambda: self.turn(step))
        for _ in range(TURNS_MAX):
            if not self.broker.has_ready:
                return longest
            self.turns += 1
            longest = max(longest, lines_run(self.turn))
        raise AssertionError("no end")


def _filled(count: int, selectors: Iterable[str | None] = (), *, expires_ms: int = 0) -> Bench:
    bench = Bench()
    send(bench.broker, count=count, expires_ms=expires_ms)
    bench.now_ms = expires_ms or NOW_MS
    for selector in selectors:
        consumer_on(bench.broker, bench.queue, selector=selector)
    return bench


def _held(count: int) -> tuple[Bench, Any]:
    bench = _filled(count)
    bench.consumer = consumer_on(bench.broker, bench.queue)
    bench.broker.dispatch(NOW_MS)
    write(bench.broker)
    assert len(bench.consumer.held) == count
    return bench, bench.consumer


def _due(count: int) -> Bench:
    bench = Bench()
    for number in range(count):
        send(bench.broker, due_ms=LATER_MS - count + number)
    bench.now_ms = LATER_MS
    return bench


def _dying(count: int) -> Bench:
    """Each is to fail for the last time, and to go to the dead-letter address."""
    bench, consumer = _held(count)
    for entry in consumer.held.values():
        entry.attempts = 9
    return bench


def _behind_a_barrier(count: int) -> Bench:
    """All may go at once when it has gone."""
    bench = Bench(barrier_expression="kind = 'barrier'")
    send(bench.broker, head=head_of(kind="barrier"))
    send(bench.broker, count=count)
    bench.run(int)
    assert (bench.ready, bench.queue.message_count) == (0, count + 1)
    consumer_on(bench.broker, bench.queue, selector="kind = 'barrier'")
    return bench


def _before_many(count: int) -> Bench:
    """A barrier goes to as many consumers."""
    bench = Bench(barrier_expression="kind = 'barrier'")
    for _ in range(count):
        consumer_on(bench.broker, bench.queue)
    bench.run(int)
    send(bench.broker, head=head_of(kind="barrier"))
    return bench


def _leave(it: Bench, *, failed: bool) -> None:
    it.broker.detach(it.queue, it.consumer, failed=failed, now_ms=NOW_MS)


CASES: dict[str, tuple[Callable[[int], Bench], Callable[[Bench], object] | None, Callable[[Bench, int], bool]]] = {
    "choose": (
        lambda n: _filled(n, [f"color = '{one}'" for one in range(10)]),
        None,
        lambda it, n: it.ready == n,
    ),
    "deliver": (lambda n: _filled(n, [None] * 10), None, lambda it, n: it.counters.held_count == n),
    "expire": (
        lambda n: _filled(n, expires_ms=LATER_MS),
        lambda it: it.queue.expire_due(LATER_MS),
        lambda it, n: it.counters.expired == it.broker.queues["x"].message_count == n,
    ),
    "fall due": (_due, None, lambda it, n: it.ready == n),
    "delete": (
        _filled,
        lambda it: it.broker.registry.delete_queue(it.queue, NOW_MS),
        lambda it, n: (it.queue.message_count, it.counters.killed, it.broker.memory_bytes) == (0, n, 0),
    ),
    "purge": (
        _filled,
        lambda it: it.queue.purge(PURGED, NOW_MS),
        lambda it, n: (it.queue.message_count, it.counters.killed) == (0, n),
    ),
    "lose": (
        lambda n: _held(n)[0],
        lambda it: _leave(it, failed=True),
        lambda it, n: (it.ready, it.counters.held_count) == (n, 0),
    ),
    "bury": (
        _dying,
        lambda it: _leave(it, failed=True),
        lambda it, n: it.counters.killed == it.broker.queues["d"].message_count == n,
    ),
    "refuse": (
        lambda n: _held(n)[0],
        lambda it: (
            it.broker.queue_operations.pause("q"),
            it.queue.refuse_up_to(it.consumer, next(reversed(it.consumer.held)), NOW_MS),
        ),
        lambda it, n: (it.ready, it.counters.held_count) == (n, 0),
    ),
    "acknowledge": (
        lambda n: _held(n)[0],
        lambda it: it.queue.acknowledge_up_to(it.consumer, next(reversed(it.consumer.held)), NOW_MS),
        lambda it, n: (it.queue.message_count, it.counters.acknowledged) == (0, n),
    ),
    # what comes back to a ring that has become small meanwhile is given up
    "shed": (
        lambda n: _held(n)[0],
        lambda it: (it.broker.queue_operations.set_ring_size("q", 10), _leave(it, failed=False)),
        lambda it, n: (it.ready, it.counters.replaced) == (10, n - 10),
    ),
    "activate": (_behind_a_barrier, None, lambda it, n: it.ready == it.queue.message_count == n),
    "broadcast": (
        _before_many,
        None,
        lambda it, _: (it.queue.message_count, it.counters.acknowledged) == (0, 1),
    ),
}


@pytest.mark.parametrize(("made", "step", "is_done"), CASES.values(), ids=CASES)
def test_the_longest_turn_does_not_grow(
    made: Callable[[int], Bench], step: Callable[[Bench], object] | None, is_done: Callable[[Bench, int], bool]
) -> None:
    few, many = made(FEW), made(10 * FEW)
    lines_of_few, lines_of_many = (bench.run(int if step is None else partial(step, bench)) for bench in (few, many))
    assert is_done(few, FEW)
    assert is_done(many, 10 * FEW)
    assert few.turns > 0, "this is no more than a turn"
    assert many.turns > 5 * few.turns - 5
    assert many.units <= UNITS + UNITS_OVER
    assert lines_of_many <= lines_of_few * 1.3


# ---- what others see meanwhile -------------------------------------------------------------------------


def test_nothing_is_dispatched_before_all_is_back() -> None:
    """Or a consumer would be given what stands behind an entry that is on its way."""
    bench, _ = _held(FEW)
    staying = consumer_on(bench.broker, bench.queue)
    bench.turn(lambda: _leave(bench, failed=False))
    assert 0 < bench.queue.contents.order.count < FEW
    assert not staying.held
    bench.run(int)
    assert list(staying.held) == sorted(staying.held)
    assert len(staying.held) == FEW


def test_other_queues_are_served_meanwhile() -> None:
    bench, _ = _held(FEW)
    other = consumer_on(bench.broker, bench.broker.queues["x"])
    bench.turn(lambda: _leave(bench, failed=False))
    send(bench.broker, "x")
    bench.turn()
    assert len(other.held) == 1
    assert bench.broker.agenda


def test_the_name_of_a_deleted_queue_is_free_at_once() -> None:
    bench = _filled(FEW)
    broker, old = bench.broker, bench.queue
    bench.turn(
        lambda: (
            broker.registry.delete_queue(old, NOW_MS),
            broker.registry.create_queue(broker.addresses["a"], queue_config(), auto_created=False),
            send(broker),
        )
    )
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
    bench.turn(lambda: bench.queue.purge(PURGED, NOW_MS))
    send(bench.broker, head=head_of(priority=9))
    send(bench.broker, due_ms=LATER_MS)
    bench.run(int)
    assert (bench.ready, len(bench.queue.contents.scheduled), bench.counters.killed) == (1, 1, FEW)


def test_a_lost_consumer_has_acknowledged_what_it_acknowledged() -> None:
    """The connection goes while a cumulative acknowledgement is being carried out: that comes first."""
    bench, consumer = _held(FEW)
    middle_id = list(consumer.held)[FEW // 2]
    bench.turn(lambda: (bench.queue.acknowledge_up_to(consumer, middle_id, NOW_MS), _leave(bench, failed=True)))
    assert bench.counters.held_count > 0
    bench.run(int)
    assert (bench.counters.acknowledged, bench.ready) == (FEW // 2 + 1, FEW // 2 - 1)


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
        bench.turn()
        turns += 1
    assert turns <= 12


def test_a_task_that_fails_lets_the_next_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it is told, and the queue serves its consumers again."""
    bench, consumer = _held(FEW)
    queue = bench.queue
    other = consumer_on(bench.broker, queue)
    works: list[Task | None] = []
    bench.turn(lambda: works.append(queue.refuse_up_to(consumer, next(reversed(consumer.held)), NOW_MS)))
    work = works[0]
    with monkeypatch.context() as broken:
        broken.setattr(Contents, "is_outdated", Mock(side_effect=ArtemisError("broken")))
        bench.turn()
    assert bench.broker.events.counts["ART-1006"] == 1
    assert work is not None
    assert (work.failed, work.may_go_on) == (True, True)
    assert (len(bench.broker.agenda), queue.tasks.may_go_on) == (0, True)
    bench.run(int)
    assert other.held


def test_a_broker_that_stops_carries_out_what_was_decided() -> None:
    bench, _ = _held(FEW)
    bench.broker.budget.refill(UNITS)
    _leave(bench, failed=False)
    assert bench.queue.contents.order.count < FEW
    bench.broker.finish(NOW_MS)
    assert (bench.queue.contents.order.count, len(bench.broker.agenda)) == (FEW, 0)


def test_a_queue_that_breaks_off_behind_a_task_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done stays done, and consumers are served in the next turn."""
    bench, consumer = _held(FEW)
    queue = bench.queue
    other = consumer_on(bench.broker, queue)
    works: list[Task | None] = []
    bench.turn(lambda: works.append(queue.refuse_up_to(consumer, next(reversed(consumer.held)), NOW_MS)))
    work = works[0]
    assert work is not None, "it takes more than a turn"
    send(bench.broker)
    with monkeypatch.context() as broken:
        broken.setattr(AfterEnqueue, "run", Mock(side_effect=ArtemisError("broken")))
        for _ in range(1000):
            if work.done:
                break
            bench.turn()
    assert (work.done, work.failed) == (True, False)
    assert bench.broker.events.counts["ART-1006"] == 1
    assert (len(bench.broker.agenda), queue.tasks.may_go_on) == (0, True)
    bench.run(int)
    assert other.held
