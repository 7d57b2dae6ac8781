"""Distributions that rank consumers."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.distribution import Ranked, RoundRobin
from tests.kit.core import entry_of, lone_consumer


def ranked(backlogs: list[int], *, by_load: bool) -> tuple[Ranked, list[Consumer]]:
    distribution = Ranked(by_load=by_load)
    consumers = [lone_consumer(number, backlog_max=backlog) for number, backlog in enumerate(backlogs, 1)]
    for one in consumers:
        distribution.add(one)
        distribution.wake(one)
    return distribution, consumers


@pytest.mark.parametrize("by_load", [True, False])
def test_it_picks_as_a_search_through_all_would(by_load: bool, rng: random.Random) -> None:
    distribution, consumers = ranked([rng.randrange(1, 6) for _ in range(20)], by_load=by_load)
    for number in range(1, 3000):
        with_room = [one for one in consumers if one.has_room]
        picked = distribution.pick()
        if with_room:
            share = min((len(one.held) / one.backlog_max if by_load else 0, one.id) for one in with_room)
            assert picked is not None
            assert picked.id == share[1]
            picked.take(entry_of(id=number))
        else:
            assert picked is None
        for one in rng.sample(consumers, 2):
            if one.held and rng.random() < 0.5:
                one.let_go(rng.choice(list(one.held)))
                if one.parked:
                    distribution.wake(one)


def expected(consumers: list[Consumer], *, by_load: bool) -> Consumer | None:
    """Who is next, by a search through all."""
    with_room = [one for one in consumers if one.has_room and not one.parked]
    return min(
        with_room,
        key=lambda one: (-one.priority, len(one.held) / one.backlog_max if by_load else 0.0, one.id),
        default=None,
    )


@pytest.mark.parametrize("by_load", [True, False])
def test_those_it_offers_to_are_whom_it_would_pick_one_after_another(by_load: bool, rng: random.Random) -> None:
    distribution = Ranked(by_load=by_load)
    consumers = [
        lone_consumer(
            number,
            backlog_max=rng.choice((2, 4, 5)),
            priority=rng.choice((0, 0, 3)),
            settles=rng.random() < 0.05,
        )
        for number in range(1, 30)
    ]
    for one in consumers:
        distribution.add(one)
        distribution.wake(one)
    number = 0
    for _ in range(1000):
        offered = distribution.offer(rng.randrange(1, 12))
        assert bool(offered) == (expected(consumers, by_load=by_load) is not None)
        some = offered[: rng.randrange(len(offered) + 1)]
        for one in some:
            assert one is expected(consumers, by_load=by_load)
            number += 1
            one.take(entry_of(id=number))
        distribution.taken(some)
        for one in rng.sample(consumers, 4):
            if one.held and rng.random() < 0.7:
                one.let_go(rng.choice(list(one.held)))
            if rng.random() < 0.1 and not one.parked:
                distribution.park_served(one)
            elif one.parked and one.has_room:
                distribution.wake(one)


def test_taking_turns_it_offers_to_whom_it_would_pick(rng: random.Random) -> None:
    pair = [RoundRobin(), RoundRobin()]
    sides = [
        [lone_consumer(number, backlog_max=backlog) for number, backlog in enumerate((1, 3, 3, 2, 5, 1), 1)]
        for _ in pair
    ]
    for distribution, consumers in zip(pair, sides, strict=True):
        for one in consumers:
            distribution.add(one)
            distribution.wake(one)
    number = 0
    for _ in range(500):
        offered = pair[0].offer(rng.randrange(1, 9))
        assert bool(offered) == any(one.has_room for one in sides[0])
        some = offered[: rng.randrange(len(offered) + 1)]
        for one in some:
            twin = pair[1].pick()
            assert twin is not None
            assert one.id == twin.id
            number += 1
            one.take(entry_of(id=number))
            twin.take(entry_of(id=number))
        pair[0].taken(some)
        for one, twin in rng.sample(list(zip(*sides, strict=True)), 2):
            if one.held and rng.random() < 0.7:
                settled = rng.choice(list(one.held))
                for distribution, side in zip(pair, (one, twin), strict=True):
                    side.let_go(settled)
                    if not side.parked:
                        distribution.park_served(side)
                    distribution.wake(side)


def test_what_it_keeps_does_not_grow_with_messages() -> None:
    distribution, consumers = ranked([5] * 10, by_load=True)
    for number in range(1, 5000):
        picked = distribution.pick()
        assert picked is not None
        picked.take(entry_of(id=number))
        picked.let_go(number)
        assert len(distribution._heap) <= 2
        assert sum(len(bucket.numbers) for bucket in distribution._buckets.values()) < 40
    for one in consumers:
        distribution.remove(one)
    assert distribution.pick() is None
    assert not distribution._numbers
    assert not distribution._by_number
    assert not distribution._stands
    assert not distribution._buckets


def test_who_leaves_is_not_picked(rng: random.Random) -> None:
    distribution, consumers = ranked([3] * 5, by_load=True)
    consumers[0].take(entry_of(id=1))
    consumers[0].let_go(1)
    distribution.remove(consumers[0])
    picked = distribution.pick()
    assert picked is consumers[1]
