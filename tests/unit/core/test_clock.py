"""The one timetable: what rings when, for whom, and how much of it in one turn."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.broker import Broker
from artemis_py.core.clock import NEVER_MS, NOBODY, Alarms, Clock
from artemis_py.core.events import SET_ASIDE
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.scheduled import AGAIN_MS
from artemis_py.errors import StorageError
from tests.kit.core import NOW_MS, breaking, broker_of, consumer_on, queue_config, send, turn

FAR_MS = 10**12
HOUR_MS = 3_600_000
ALL = 1 << 40


def taken(alarms: Alarms) -> list[int]:
    """What has rung, in the order in which its part works it off."""
    return [alarms.take() for _ in range(len(alarms.due))]


# ---- order ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30), st.lists(st.integers(0, 25), max_size=10))
def test_the_earliest_rings_first_and_of_one_time_what_was_set_first(
    times: list[tuple[int, bool]], looks: list[int]
) -> None:
    clock = Clock()
    spans, dates = clock.alarms(), clock.alarms(by_date=True)
    rung: list[int] = []
    for number, (due_ms, by_date) in enumerate(times):
        (dates if by_date else spans).set(number, due_ms)
    waiting = sorted((due_ms, number) for number, (due_ms, _) in enumerate(times))
    for now_ms in sorted(looks):
        assert clock.due_ms == (waiting[0][0] if waiting else NEVER_MS)
        expected = [number for due_ms, number in waiting if due_ms <= now_ms]
        waiting = [one for one in waiting if one[0] > now_ms]
        rung.clear()
        while clock.ring(now_ms, 1):
            rung += taken(spans) + taken(dates)
        assert rung == expected
        assert len(clock) == len(waiting)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 5), st.integers(0, 50)),
            st.tuples(st.just("by"), st.integers(0, 5), st.integers(0, 50)),
            st.tuples(st.just("clear"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("pass"), st.integers(0, 3), st.integers(0, 8)),
            st.tuples(st.just("ahead"), st.integers(-30, 30), st.just(0)),
        ),
        max_size=60,
    )
)
def test_alarms_beside_a_table(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is set, cleared and set again, and however the wall clock is set: each alarm rings once, not before its
    time, and is never later than ``due_ms`` says.
    """
    clock = Clock()
    parts = [clock.alarms(), clock.alarms(by_date=True)]
    table: list[dict[int, int]] = [{}, {}]
    steady_ms = 0
    ahead_ms = [0, 0]
    for what, one, other in steps:
        for part, alarms in enumerate(parts):
            before = table[part].get(one)
            if what == "set":
                alarms.set(one, other)
                table[part][one] = other
            elif what == "by":
                alarms.set_by(one, other)
                table[part][one] = other if before is None else min(before, other)
            elif what == "clear":
                alarms.clear(one)
                table[part].pop(one, None)
        if what == "ahead":
            clock.set_ahead(one)
            ahead_ms[1] = clock.shift_ms
        elif what == "pass":
            steady_ms += other
            clock.ring(steady_ms, one)
            for part, alarms in enumerate(parts):
                for number in taken(alarms):
                    assert table[part][number] - ahead_ms[part] <= steady_ms
                    del table[part][number]
        assert [{number: due_ms for number, (due_ms, _) in alarms.times.items()} for alarms in parts] == table
        for part in (0, 1):
            assert all(clock.due_ms <= due_ms - ahead_ms[part] for due_ms in table[part].values())
    while clock.ring(NEVER_MS, 3):
        rung = [taken(alarms) for alarms in parts]
        for part in (0, 1):
            for number in rung[part]:
                if number != NOBODY:
                    del table[part][number]
    assert table == [{}, {}]
    assert clock.due_ms == NEVER_MS


# ---- a clock that is set --------------------------------------------------------------------------


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_moves_dates_and_no_spans(step_ms: int) -> None:
    clock = Clock()
    spans, dates = clock.alarms(), clock.alarms(by_date=True)
    spans.set(1, NOW_MS + 1000)
    dates.set(2, NOW_MS + 1000)
    clock.set_ahead(step_ms)
    assert clock.due_ms <= NOW_MS, "a turn looks at what waits"
    clock.ring(NOW_MS, ALL)
    assert taken(dates) == ([2] if step_ms > 0 else [])
    assert clock.due_ms == NOW_MS + 1000
    clock.ring(NOW_MS + 1000, ALL)
    assert (taken(spans), taken(dates)) == ([1], [])
    assert clock.due_ms == (NEVER_MS if step_ms > 0 else NOW_MS + 1000 + HOUR_MS)


def test_a_clock_that_is_set_while_alarms_are_worked_off() -> None:
    """The next turn looks at it all the same."""
    clock = Clock()
    alarms = clock.alarms()
    alarms.set(1, 5)
    clock.ring(5, ALL)
    clock.set_ahead(HOUR_MS)
    assert taken(alarms) == [1]
    assert clock.due_ms == -NEVER_MS
    clock.ring(5, ALL)
    assert clock.due_ms == NEVER_MS


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_date", [False, True])
def test_what_is_cleared_or_set_again_leaves_little_behind(by_date: bool) -> None:
    clock, chance = Clock(), random.Random(1)
    alarms = clock.alarms(by_date=by_date)
    for number in range(20_000):
        alarms.set(number % 200, FAR_MS + chance.randrange(10**6))
        alarms.clear((number - 100) % 200)
    assert len(alarms.times) == 100
    assert len(clock) <= 2 * len(alarms.times) + 2


def test_what_is_cleared_and_set_to_the_same_time_again_and_again() -> None:
    """A sender that is blocked and goes on, many times before its next heart-beat."""
    clock = Clock()
    alarms = clock.alarms()
    for _ in range(1000):
        alarms.set(1, FAR_MS)
        alarms.clear(1)
    alarms.set(1, FAR_MS)
    assert len(clock) <= 4
    clock.ring(FAR_MS, ALL)
    assert taken(alarms) == [1]


def test_what_is_cleared_has_no_turn_run() -> None:
    clock = Clock()
    alarms = clock.alarms()
    for number in range(60):
        alarms.set(number, 100 + number)
    alarms.set(60, 1000)
    for number in range(60):
        alarms.clear(number)
    assert clock.due_ms == 100, "too early, and never too late"
    assert clock.ring(100, ALL) == 1
    assert not alarms.due
    assert clock.due_ms == 1000


# ---- how much in one turn --------------------------------------------------------------------------


def test_what_rings_is_handed_out_little_by_little_and_nothing_is_passed_over() -> None:
    clock = Clock()
    many, one = clock.alarms(), clock.alarms()
    for number in range(1000):
        many.set(number, 5)
    one.set(7, 6)
    turns = 0
    while not one.due:
        assert clock.due_ms <= 6
        assert clock.ring(6, 100) <= 100
        turns += 1
    assert (turns, len(many.due), len(one.due)) == (11, 1000, 1)
    assert clock.due_ms == -NEVER_MS, "until all of it is worked off"
    assert taken(one) == [7]
    assert taken(many) == list(range(1000))
    assert clock.due_ms == NEVER_MS


UNITS = 1000
COUNT = 2000


def left_at_most(broker: Broker, now_ms: int) -> list[int]:
    """What each turn spends, until nothing is left to do."""
    spent: list[int] = []
    while broker.has_ready or not spent:
        broker.begin_turn(UNITS, now_ms)
        broker.tick(now_ms)
        spent.append(UNITS - broker.budget.left)
        broker.dispatch(now_ms)
        assert len(spent) < 100 * COUNT
    return spent


def test_a_multitude_of_alarms_due_at_once_makes_no_turn_long() -> None:
    broker = broker_of(message_expiry_scan_period=-1, address_queue_scan_period=-1)
    for number in range(COUNT):
        broker.timers.alarms.set_by(number, NOW_MS + 5)
    broker.timers.gates.set(COUNT, NOW_MS + 6)
    spent = left_at_most(broker, NOW_MS + 10)
    assert len(spent) > 5
    assert max(spent) <= UNITS + 2
    assert not broker.timers.alarms.times
    assert not broker.timers.gates.times
    assert len(broker.clock) == 0


def test_a_multitude_of_messages_due_at_once_makes_no_turn_long() -> None:
    """And what others wait for does not stand behind them."""
    broker = broker_of(queue_config())
    for _ in range(COUNT // 100):
        send(broker, due_ms=NOW_MS + 5, count=100)
    beats = broker.clock.alarms()
    beats.set(1, NOW_MS + 6)
    broker.begin_turn(UNITS, NOW_MS + 10)
    broker.tick(NOW_MS + 10)
    assert taken(beats) == [1]
    spent = left_at_most(broker, NOW_MS + 10)
    assert len(spent) > 5
    assert max(spent) <= UNITS
    assert [entry.message.id for entry in broker.queues["q"].contents.order] == list(range(1, COUNT + 1))


# ---- what fails ------------------------------------------------------------------------------------


def test_what_fails_in_one_part_leaves_the_others_what_has_rung() -> None:
    clock = Clock()
    first, second = clock.alarms(), clock.alarms()
    for number in (1, 2, 3):
        first.set(number, 5)
        second.set(number, 5)
    clock.ring(5, ALL)
    first.take()  # and what it does then raises
    assert (len(first.due), len(second.due)) == (2, 3)
    assert clock.due_ms == -NEVER_MS, "the next turn goes on"
    assert (taken(first), taken(second)) == ([2, 3], [1, 2, 3])


STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "gate": ("tick_gate", {"consumers_before_dispatch": 2, "delay_before_dispatch": 1000}),
    "alarm": ("look_again", {"max_message_ttl": 1000}),
    "lease": ("end_leases", {}),
    "schedule": ("release_due", {}),
}


def waiting(step: str) -> Broker:
    """Two queues that wait for the same time."""
    names = ("p", "q")
    broker = broker_of(*[queue_config(name, name, **STEPS[step][1]) for name in names])
    for name in names:
        queue = broker.queues[name]
        if step == "gate":
            consumer_on(broker, queue)
        elif step == "lease":
            broker.timers.leases.set_by(queue.id, NOW_MS + 1000)
        else:
            send(broker, name, due_ms=NOW_MS + 1000 if step == "schedule" else 0)
    return broker


@pytest.mark.interpreted
@pytest.mark.parametrize("step", list(STEPS))
def test_a_step_that_fails_is_tried_again_in_a_while(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = waiting(step)
    method, done = STEPS[step][0], []
    fails = breaking(
        getattr(Queue, method), lambda queue, *_: done.append(queue.name) or (queue.name, done.count("p")) == ("p", 1)
    )
    monkeypatch.setattr(Queue, method, fails)
    turn(broker, NOW_MS + 1000)
    assert done == ["p", "q"], "the other one is not concerned"
    assert broker.events.counts[SET_ASIDE] == 1
    turn(broker, NOW_MS + 1000 + AGAIN_MS - 1)
    assert done == ["p", "q"]
    turn(broker, NOW_MS + 1000 + AGAIN_MS)
    assert done == ["p", "q", "p"]
    assert broker.events.counts[SET_ASIDE] == 1


@pytest.mark.interpreted
def test_a_disk_that_fails_leaves_what_has_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = waiting("alarm")
    monkeypatch.setattr(Queue, "look_again", Mock(side_effect=StorageError("the disk is gone")))
    with pytest.raises(StorageError, match="the disk is gone"):
        turn(broker, NOW_MS + 1000)
    assert len(broker.timers.alarms.due) == 1
    assert broker.has_ready
