"""The ranking beside a plain sorted list, at sizes at which blocks are made, split and dropped."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.sorted import Ranking, SortedPlace, start_of, utf16_order

STARTS = ("", "\0", "eight by", "eight byt", "\U0001f600", "\ud83d\ude00", "\uffff\uffff\uffff")
"""Ranks whose first bytes are the same, and characters that need several bytes."""


@given(st.text(st.characters(), max_size=12), st.text(st.characters(), max_size=12))
def test_starts_are_in_the_order_of_ranks(one: str, other: str) -> None:
    """Also of halves of characters, which is what ranks have instead of those beyond 16 bits."""
    for first, second in ((one, other), (utf16_order(one), utf16_order(other)), (one, one + other)):
        low, high = sorted((first, second))
        assert start_of(low) <= start_of(high)


def test_ranking_agrees_with_a_sorted_list(seed: int) -> None:
    """Whatever is put in and taken out, first, next and all are those of a list that is sorted each time."""
    rng = random.Random(seed)
    ranking = Ranking()
    places: list[SortedPlace] = []
    for sequence in range(6000):
        wanted = 4000 if sequence < 5000 else 100
        place = (rng.choice(STARTS) + rng.choice("abc") * rng.randrange(3), rng.choice((1, -1)) * sequence)
        ranking.add(place)
        places.append(place)
        while len(places) > wanted:
            places.sort()
            if rng.random() < 0.5:
                assert ranking.pop() == places.pop(0)
            else:
                ranking.remove(places.pop(rng.randrange(len(places))))
        if sequence % 97 == 0:
            places.sort()
            assert list(ranking) == places
            assert ranking.first() == places[0]
            assert ranking.first_of_last_rank() == min(place for place in places if place[0] == places[-1][0])
            looked = (rng.choice(STARTS) + rng.choice("abc"), rng.randrange(-sequence - 1, sequence + 1))
            pending = bisect_right(places, looked)
            assert ranking.after(looked) == (places[pending] if pending < len(places) else None)


def test_an_empty_ranking() -> None:
    ranking = Ranking()
    ranking.add(("a", 1))
    assert ranking.pop() == ("a", 1)
    assert list(ranking) == []
    assert ranking.after(("", 0)) is None
    with pytest.raises(IndexError):
        ranking.pop()
    with pytest.raises(IndexError):
        ranking.first()
    with pytest.raises(IndexError):
        ranking.first_of_last_rank()
