"""Overflow and distribution: decisions, and nothing else."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution, RoundRobin
from artemis_py.core.queue.overflow import Ring, Unbounded
from tests.kit.core import PLENTY, lines_run, lone_consumer

# ---- overflow ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "ready", "added", "excess"),
    [(3, 3, 1, 0), (3, 4, 1, 1), (3, 2, 2, 0), (3, 9, 9, 6), (3, 11, 1, 1), (3, 12, 2, 2), (1, 2, 2, 1), (3, 4, 0, 0)],
)
def test_ring_gives_up_at_most_one_for_each_added(size: int, ready: int, added: int, excess: int) -> None:
    """A ring made smaller only stops growing."""
    assert Ring(size).excess(ready, added) == excess


@given(st.integers(0, 10**9), st.integers(0, 10**6))
def test_unbounded_gives_up_nothing(ready: int, added: int) -> None:
    """However much there is."""
    assert Unbounded().excess(ready, added) == 0


# ---- distribution --------------------------------------------------------------------------------


def joined(distribution: Distribution, id: int, *, priority: int = 0, room: int = PLENTY) -> Consumer:
    """A consumer that is there and awake."""
    consumer = lone_consumer(id, room, priority=priority)
    distribution.add(consumer)
    distribution.wake(consumer)
    return consumer


def picks(distribution: Distribution, count: int) -> list[int]:
    """Who is picked, one after the other; 0 for nobody."""
    found = [distribution.pick() for _ in range(count)]
    return [0 if consumer is None else consumer.id for consumer in found]


def test_round_robin_is_fair_over_what_consumers_can_take() -> None:
    """Who has no room is passed over, and comes behind the others when it wakes."""
    distribution = RoundRobin()
    first, second, third = (joined(distribution, id) for id in (1, 2, 3))
    second.room_bytes = 0
    assert picks(distribution, 4) == [1, 3, 1, 3]
    second.room_bytes = 1
    assert second.parked
    distribution.wake(second)
    assert picks(distribution, 6) == [1, 3, 2, 1, 3, 2]
    first.credit_bytes = 0
    third.room_bytes = 0
    assert picks(distribution, 2) == [2, 2]


def test_a_woken_consumer_is_not_offered_twice_a_round() -> None:
    """Waking one that is awake changes nothing."""
    distribution = RoundRobin()
    first = joined(distribution, 1)
    joined(distribution, 2)
    distribution.wake(first)
    distribution.wake(first)
    assert picks(distribution, 4) == [1, 2, 1, 2]


@pytest.mark.parametrize("count", [1, 3, 12, 20])
def test_those_who_are_put_last_come_behind_the_others_of_their_priority(count: int) -> None:
    """In the order in which they are named; a few are moved one by one, many at once. Who sleeps is not woken by it."""
    distribution = RoundRobin()
    everybody = [joined(distribution, id) for id in range(1, 21)]
    above = [joined(distribution, id, priority=1) for id in (31, 32)]
    sleeper = joined(distribution, 40)
    distribution.park_served(sleeper)
    late = everybody[count - 1 :: -1]
    distribution.put_last([*late, above[0], sleeper])
    assert picks(distribution, 2) == [32, 31]
    for consumer in above:
        consumer.room_bytes = 0
    assert picks(distribution, 20) == [*range(count + 1, 21), *range(count, 0, -1)]
    assert sleeper.parked


def test_consumer_priority() -> None:
    """The lower get something only while the higher cannot take anything."""
    distribution = RoundRobin()
    low = joined(distribution, 1, priority=-1)
    high = [joined(distribution, id, priority=7) for id in (2, 3)]
    assert picks(distribution, 3) == [2, 3, 2]
    for consumer in high:
        consumer.room_bytes = 0
    assert picks(distribution, 2) == [1, 1]
    high[0].room_bytes = 1
    distribution.wake(high[0])
    assert picks(distribution, 2) == [2, 2]
    assert not low.parked


def test_parked_for_want_of_a_match() -> None:
    """A consumer that found nothing is not asked again until something new is there."""
    distribution = RoundRobin()
    first, second = joined(distribution, 1), joined(distribution, 2)
    assert distribution.pick() is first
    distribution.park(first)
    assert picks(distribution, 2) == [2, 2]
    assert distribution.pick() is second
    distribution.park(second)
    assert distribution.pick() is None
    distribution.wake_all()
    assert sorted(picks(distribution, 2)) == [1, 2]


def test_wake_all_leaves_those_without_room() -> None:
    """They would only be parked again."""
    distribution = RoundRobin()
    full = joined(distribution, 1, room=0)
    assert distribution.pick() is None
    distribution.wake_all()
    assert full.parked


def test_nobody_is_there() -> None:
    """Nobody is picked."""
    assert RoundRobin().pick() is None
    assert RoundRobin(live_max=1).pick() is None


class CountedConsumer(Consumer):
    """Counts how often somebody compares it."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedConsumer.comparisons += 1
        return self is other

    __hash__ = object.__hash__


def test_picking_and_parking_cost_the_same_with_a_thousand() -> None:
    """One arrival that nobody wants is offered to each consumer once, and finding each costs nothing extra."""
    distribution = RoundRobin()
    for id in range(1000):
        consumer = CountedConsumer(id, object(), settles=False, destructive=True)
        consumer.room_bytes = 1
        distribution.add(consumer)
        distribution.wake(consumer)
    costs = []
    for _ in range(1000):
        consumer_picked = distribution.pick()
        assert consumer_picked is not None
        costs.append(lines_run(partial(distribution.park, consumer_picked)))
    assert distribution.pick() is None
    assert len(set(costs)) == 1
    assert CountedConsumer.comparisons == 0
