"""The ranking beside a plain sorted list, at sizes at which blocks are made, split and dropped."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest

from artemis_py.core.order.ranking import Place, Ranking


def test_ranking_agrees_with_a_sorted_list(seed: int) -> None:
    """Whatever is put in and taken out, first, next and all are those of a list that is sorted each time."""
    rng = random.Random(seed)
    ranking = Ranking()
    places: list[Place] = []
    for sequence in range(6000):
        wanted = 4000 if sequence < 5000 else 100
        place = (rng.choice("abc") * rng.randrange(3), rng.choice((1, -1)) * sequence)
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
            looked = (rng.choice("abc"), rng.randrange(-sequence - 1, sequence + 1))
            behind = bisect_right(places, looked)
            assert ranking.after(looked) == (places[behind] if behind < len(places) else None)


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
