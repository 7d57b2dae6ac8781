"""A lane finds a message by its place in the log, without a look at most of the others."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Fifo
from artemis_py.message import Account, Head, Message

HEAD = Head(b"destination:q\n\n", "q")


class Counted(Message):
    """A message that counts how often anybody looks at its lsn."""

    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name == "lsn":
            Counted.looks += 1
        return super().__getattribute__(name)


def entry(lsn: int, kind: type[Message] = Message) -> Entry:
    message = kind(HEAD, b"", lsn, 0, 0, Account(), 0)
    message.lsn = lsn
    return Entry(message)


def test_what_is_there_is_found_and_nothing_else(seed: int) -> None:
    """With gaps, with messages that the log does not have, and with some at the head, in any order."""
    rng = random.Random(seed)
    for _ in range(15):
        fifo = Fifo()
        lsns = sorted(rng.sample(range(1, 20_000), rng.choice((1, 5, 300, 3000))))
        there: dict[int, Entry] = {}
        for lsn in lsns:
            one = entry(lsn if rng.random() < 0.9 else 0)
            one.sequence = fifo.tail
            fifo.append(one)
            there[one.message.lsn] = one
        for lsn in rng.sample(range(20_000, 30_000), 5):
            one = there[lsn] = entry(lsn)
            one.sequence = fifo.take_head_sequence()
            fifo.restore(one)
        for lsn in rng.sample(sorted(there), len(there) // 2):
            if lsn:
                fifo.remove(there.pop(lsn).sequence)
        there.pop(0, None)
        for lsn in range(1, 30_100, 29):
            assert fifo.find_published(lsn) is there.get(lsn)
        for lsn, one in there.items():
            found = fifo.find_published(lsn)
            assert found is one
            assert fifo.at(found.sequence) is one


def test_an_empty_lane_has_nothing() -> None:
    fifo = Fifo()
    assert fifo.find_published(1) is None
    fifo.append(entry(3))
    fifo.pop()
    assert fifo.find_published(3) is None


@pytest.mark.interpreted
def test_it_looks_at_few() -> None:
    """At no more of twenty thousand than of a thousand, but for the steps of a search."""
    looks: list[int] = []
    for count in (1_000, 20_000):
        fifo = Fifo()
        fifo.extend([entry(lsn, Counted) for lsn in range(1, count + 1)])
        Counted.looks = 0
        for lsn in range(1, count, count // 100):
            assert fifo.find_published(lsn) is not None
        looks.append(Counted.looks)
    assert looks[1] < 1.2 * looks[0]
