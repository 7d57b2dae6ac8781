"""A lane keeps entries by sequence: every operation costs the same at any depth, and empty blocks are given back."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Fifo
from tests.kit.core import entry_of, lines_run

BLOCK = 256
MILLION = 1_000_000


def filled(size: int) -> Fifo:
    """A lane with ids 0, 1, 2, …: sequence and id are the same."""
    fifo = Fifo()
    fifo.extend([entry_of(id=number) for number in range(size)])
    return fifo


def test_blocks_are_given_back() -> None:
    """A lane through which much has passed is as small as one that is new."""
    fifo = Fifo()
    for number in range(40 * BLOCK):
        fifo.extend([entry_of(id=number)])
        fifo.pop()
    assert len(fifo._blocks) <= 1
    fifo = filled(40 * BLOCK)
    for sequence in range(40 * BLOCK):
        if sequence % (10 * BLOCK):
            fifo.remove(sequence)
    assert len(fifo._blocks) <= 4 + 1
    assert sorted(fifo._blocks) == fifo._numbers


def test_a_million_entries_cost_no_more_each() -> None:
    """Each operation runs as many lines at a depth of ten as at a depth of a million."""
    costs: list[list[int]] = []
    shared = entry_of(id=1)
    for depth in (10, MILLION):
        fifo = Fifo()
        fifo.extend([shared] * depth)
        back = Entry(shared.message)
        back.sequence = fifo.take_head_sequence()
        middle = depth // 2
        costs.append(
            [
                lines_run(partial(fifo.extend, [shared])),
                lines_run(partial(fifo.restore, back)),
                lines_run(fifo.pop),
                lines_run(fifo.pop),
                lines_run(partial(fifo.at, middle)),
                lines_run(partial(fifo.next_from, middle)),
                lines_run(partial(fifo.remove, middle)),
                lines_run(partial(fifo.next_from, fifo.tail)),
            ]
        )
    assert costs[0] == costs[1]
    assert max(costs[0]) < 40


def test_append_of_many_costs_per_block() -> None:
    """A batch is laid down block by block, not entry by entry."""
    shared = entry_of()
    fifo = Fifo()
    assert lines_run(lambda: fifo.extend([shared] * 100 * BLOCK)) < 100 * 30


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.integers(1, 2 * BLOCK)),
        st.tuples(st.just("pop"), st.integers(1, BLOCK) | st.just(MILLION)),
        st.tuples(st.just("remove"), st.integers(0, 10_000)),
        st.tuples(st.just("restore"), st.integers(0, 10_000)),
        st.tuples(st.just("head"), st.just(0)),
        st.tuples(st.just("next"), st.integers(-300, 5_000)),
    ),
    max_size=60,
)


@given(OPERATIONS)
def test_lane_agrees_with_a_sorted_dict(operations: list[tuple[str, int]]) -> None:
    """Whatever is done, the lane holds what a dict sorted by sequence would hold, in blocks that it needs."""
    fifo, numbers, tail, head = Fifo(), count(1), 0, 0
    here: dict[int, Entry] = {}
    out: list[Entry] = []
    for name, number in operations:
        if name == "extend":
            entries = [entry_of(id=next(numbers)) for _ in range(number)]
            fifo.extend(entries)
            here |= dict(enumerate(entries, tail))
            tail += number
        elif name == "pop":
            for sequence in sorted(here)[:number]:
                out.append(fifo.pop())
                assert (out[-1], out[-1].sequence) == (here.pop(sequence), sequence)
            if not here:
                with pytest.raises(IndexError):
                    fifo.pop()
        elif name == "remove" and here:
            sequence = sorted(here)[number % len(here)]
            out.append(here.pop(sequence))
            out[-1].sequence = sequence
            fifo.remove(sequence)
        elif name == "restore" and out:
            entry = out.pop(number % len(out))
            fifo.restore(entry)
            here[entry.sequence] = entry
        elif name == "head":
            head -= 1
            here[head] = entry_of(id=next(numbers))
            here[head].sequence = fifo.take_head_sequence()
            assert here[head].sequence == head
            fifo.restore(here[head])
        elif name == "next":
            wanted = min((one for one in here if one >= number), default=number)
            found = fifo.next_from(number)
            assert found is here.get(wanted)
            assert found is None or found.sequence == wanted
            assert fifo.at(number) is here.get(number)
        assert fifo.count == len(here)
    assert list(fifo) == [here[sequence] for sequence in sorted(here)]
    live = {sequence // BLOCK for sequence in here}
    assert live <= set(fifo._blocks) <= live | {tail // BLOCK}


def test_behind_a_gap_a_pop_costs_what_it_does_elsewhere() -> None:
    """Only the pop that meets the gap looks for the next entry."""
    whole, gapped = filled(100), filled(100)
    for sequence in range(10, 20):
        gapped.remove(sequence)
    for fifo in (whole, gapped):
        for _ in range(20):
            fifo.pop()
    assert lines_run(gapped.pop) == lines_run(whole.pop)
