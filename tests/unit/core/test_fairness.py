"""Distributions that rank consumers."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.fairness import Ranked
from artemis_py.message import Account, Head, Message

PLENTY = 1 << 40


def consumer(number: int, backlog: int, priority: int = 0) -> Consumer:
    one = Consumer(number, None, settles=False, destructive=True, backlog_max=backlog, priority=priority)
    one.room_bytes = PLENTY
    return one


def entry(number: int) -> Entry:
    return Entry(Message(Head(b"destination:q\n\n", "q"), b"", number, 1, 0, Account(), 1))


def ranked(backlogs: list[int], *, by_load: bool) -> tuple[Ranked, list[Consumer]]:
    distribution = Ranked(by_load=by_load)
    consumers = [consumer(number, backlog) for number, backlog in enumerate(backlogs, 1)]
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
            picked.take(entry(number))
        else:
            assert picked is None
        for one in rng.sample(consumers, 2):
            if one.held and rng.random() < 0.5:
                one.let_go(rng.choice(list(one.held)))
                if one.parked:
                    distribution.wake(one)


def test_what_it_keeps_does_not_grow_with_messages() -> None:
    distribution, consumers = ranked([5] * 10, by_load=True)
    for number in range(1, 5000):
        picked = distribution.pick()
        assert picked is not None
        picked.take(entry(number))
        picked.let_go(number)
    assert len(distribution._heap) < 100
    for one in consumers:
        distribution.remove(one)
    assert distribution.pick() is None
    assert not distribution._numbers
    assert not distribution._by_number
    assert not distribution._ranks


def test_who_leaves_is_not_picked(rng: random.Random) -> None:
    distribution, consumers = ranked([3] * 5, by_load=True)
    consumers[0].take(entry(1))
    consumers[0].let_go(1)
    distribution.remove(consumers[0])
    picked = distribution.pick()
    assert picked is consumers[1]
