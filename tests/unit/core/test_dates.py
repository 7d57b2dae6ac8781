"""Which messages of a queue wait, until when, and in which order: ``core/queue/messages.py``."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.queue.messages import RUN_LENGTH, ScheduledCursor, ScheduledDates

MANY = 3 * RUN_LENGTH + 7


def dates_of(count: int) -> ScheduledDates:
    dates = ScheduledDates()
    for number in range(count):
        dates.note(number, 1000 + number)
    return dates


def walked(dates: ScheduledDates, step: int) -> list[int]:
    walk, found = dates.open_cursor(), list[int]()
    while ids := walk.take(step):
        assert len(ids) <= step
        found += ids
    return found


@pytest.mark.parametrize("step", [1, 7, RUN_LENGTH, MANY])
def test_a_walk_finds_all_in_their_order(step: int) -> None:
    assert walked(dates_of(MANY), step) == list(range(MANY))
    assert walked(ScheduledDates(), step) == []


def test_dates_are_known_until_they_are_forgotten() -> None:
    dates = dates_of(MANY)
    assert (dates.of(0), dates.of(MANY - 1), dates.of(MANY), len(dates)) == (1000, 1000 + MANY - 1, 0, MANY)
    for number in range(MANY):
        dates.forget(number)
    assert (dates.of(0), len(dates), walked(dates, 10)) == (0, 0, [])
    dates.forget(0)
    dates.note(0, 5)
    assert (dates.of(0), walked(dates, 10)) == (5, [0])


def test_a_walk_sees_nothing_that_came_later() -> None:
    """Also not a message that it has seen, and that waits again."""
    dates = dates_of(3)
    walk = dates.open_cursor()
    assert walk.take(2) == [0, 1]
    dates.forget(0)
    dates.note(0, 1)
    dates.note(99, 1)
    assert (walk.next_id(), walk.next_id(), walk.take(5)) == (2, None, [])
    assert walked(dates, 5) == [1, 2, 0, 99]


@pytest.mark.parametrize("round", range(20))
def test_what_stays_is_seen_once(round: int, seed: int) -> None:
    """While others come and go, and walks begin at any time."""
    chance = random.Random(seed + round)
    dates, waiting, next_id = ScheduledDates(), dict[int, int](), 0
    walks: list[tuple[set[int], ScheduledCursor, list[int], set[int]]] = []
    for _ in range(4000):
        what = chance.random()
        if what < 0.55:
            dates.note(next_id, next_id + 1)
            waiting[next_id] = next_id + 1
            next_id += 1
        elif what < 0.9 and waiting:
            gone = chance.choice(list(waiting)[:50] if chance.random() < 0.5 else list(waiting)[-50:])
            dates.forget(gone)
            del waiting[gone]
            for _, _, _, stays in walks:
                stays.discard(gone)
        elif what < 0.91 and len(walks) < 8:
            walks.append((set(waiting), dates.open_cursor(), [], set(waiting)))
        else:
            for _, walk, seen, _ in walks:
                seen.extend(walk.take(chance.randrange(1, 40)))
    for begun, walk, seen, stays in walks:
        while ids := walk.take(100):
            seen.extend(ids)
        assert len(seen) == len(set(seen))
        assert stays <= set(seen) <= begun
    assert {number: dates.of(number) for number in waiting} == waiting
    assert walked(dates, 64) == list(waiting)
