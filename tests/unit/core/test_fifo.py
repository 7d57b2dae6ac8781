"""A lane keeps entries by sequence: every operation costs the same at any depth, and empty blocks are given back."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Fifo
from tests.kit.core import entry_of, ids, lines_run

BLOCK = 256
MILLION = 1_000_000


def filled(count: int) -> Fifo:
    """A lane with ids 0, 1, 2, …: sequence and id are the same."""
    fifo = Fifo()
    fifo.extend([entry_of(id=number) for number in range(count)])
    return fifo


def test_append_and_pop_in_order() -> None:
    """First in, first out, across blocks."""
    fifo = filled(3 * BLOCK + 5)
    assert [fifo.pop().message.id for _ in range(3 * BLOCK + 5)] == list(range(3 * BLOCK + 5))
    assert fifo.count == 0


def test_pop_of_an_empty_lane() -> None:
    """There is nothing to take."""
    with pytest.raises(IndexError):
        Fifo().pop()
    fifo = filled(1)
    fifo.pop()
    with pytest.raises(IndexError):
        fifo.pop()


def test_pop_tells_the_sequence() -> None:
    """What was taken out knows its place."""
    fifo = filled(BLOCK + 2)
    assert [fifo.pop().sequence for _ in range(BLOCK + 2)] == list(range(BLOCK + 2))


def test_restore_goes_to_the_own_place() -> None:
    """Taken entries come back between the others, in any order of coming back."""
    fifo = filled(10)
    taken = [fifo.pop() for _ in range(6)]
    for entry in (taken[4], taken[1], taken[5]):
        fifo.restore(entry)
    assert ids(fifo) == [1, 4, 5, 6, 7, 8, 9]
    assert fifo.pop() is taken[1]


def test_restore_to_an_empty_lane_far_behind_the_tail() -> None:
    """The block of the place is gone by then; it is made again."""
    fifo = filled(4 * BLOCK)
    first = fifo.pop()
    while fifo.count:
        fifo.pop()
    fifo.restore(first)
    fifo.extend([entry_of(id=5000)])
    assert ids(fifo) == [0, 5000]
    assert fifo.pop() is first
    assert fifo.pop().message.id == 5000


def test_head_sequences_stand_before_all() -> None:
    """Each head sequence is below every one before it."""
    fifo = filled(2)
    for number in range(100, 100 + BLOCK + 1):
        entry = entry_of(id=number)
        entry.sequence = fifo.take_head_sequence()
        fifo.restore(entry)
    assert ids(fifo) == [*range(100 + BLOCK, 99, -1), 0, 1]


def test_remove_and_at() -> None:
    """An entry can be taken out of the middle; its place is empty then."""
    fifo = filled(300)
    entry = fifo.at(290)
    assert entry is not None
    fifo.remove(290)
    assert fifo.at(290) is None
    assert fifo.at(10_000) is None
    assert fifo.count == 299
    entry.sequence = 290
    fifo.restore(entry)
    assert fifo.at(290) is entry


def test_next_from_skips_holes() -> None:
    """The first entry at or after a sequence, over empty places and missing blocks."""
    fifo = filled(4 * BLOCK)
    for sequence in range(5, 3 * BLOCK + 7):
        fifo.remove(sequence)
    found = fifo.next_from(5)
    assert found is not None
    assert found.sequence == 3 * BLOCK + 7
    assert fifo.next_from(4 * BLOCK) is None


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
        st.tuples(st.just("pop"), st.integers(1, BLOCK)),
        st.tuples(st.just("remove"), st.integers(0, 10_000)),
        st.tuples(st.just("restore"), st.integers(0, 10_000)),
        st.tuples(st.just("head"), st.just(0)),
        st.tuples(st.just("next"), st.integers(-300, 5_000)),
    ),
    max_size=60,
)


class LaneBesideDict:
    """A lane and a plain dict of sequence to entry."""

    def __init__(self) -> None:
        self.fifo = Fifo()
        self.here: dict[int, Entry] = {}
        self.out: list[Entry] = []
        self.tail = 0
        self.head = 0
        self.number = 0

    def new(self) -> Entry:
        """A new entry."""
        self.number += 1
        return entry_of(id=self.number)

    def extend(self, count: int) -> None:
        """Append."""
        entries = [self.new() for _ in range(count)]
        self.fifo.extend(entries)
        for entry in entries:
            self.here[self.tail] = entry
            self.tail += 1

    def pop(self, count: int) -> None:
        """Take the first ones."""
        for _ in range(min(count, len(self.here))):
            sequence = min(self.here)
            entry = self.fifo.pop()
            assert entry is self.here.pop(sequence)
            assert entry.sequence == sequence
            self.out.append(entry)

    def remove(self, pick: int) -> None:
        """Take one out of the middle."""
        if self.here:
            sequence = sorted(self.here)[pick % len(self.here)]
            entry = self.here.pop(sequence)
            entry.sequence = sequence
            self.fifo.remove(sequence)
            self.out.append(entry)

    def restore(self, pick: int) -> None:
        """Put one back."""
        if self.out:
            entry = self.out.pop(pick % len(self.out))
            self.fifo.restore(entry)
            self.here[entry.sequence] = entry

    def put_at_head(self, _: int) -> None:
        """Put a new one before all."""
        self.head -= 1
        entry = self.new()
        entry.sequence = self.fifo.take_head_sequence()
        assert entry.sequence == self.head
        self.fifo.restore(entry)
        self.here[self.head] = entry

    def look(self, sequence: int) -> None:
        """Ask for the next one."""
        after = [one for one in self.here if one >= sequence]
        found = self.fifo.next_from(sequence)
        assert found is (self.here[min(after)] if after else None)
        assert self.fifo.at(sequence) is self.here.get(sequence)


@given(OPERATIONS)
def test_lane_agrees_with_a_sorted_dict(operations: list[tuple[str, int]]) -> None:
    """Whatever is done, the lane holds what a dict sorted by sequence would hold."""
    both = LaneBesideDict()
    steps = {
        "extend": both.extend,
        "pop": both.pop,
        "remove": both.remove,
        "restore": both.restore,
        "head": both.put_at_head,
        "next": both.look,
    }
    for name, argument in operations:
        steps[name](argument)
        assert both.fifo.count == len(both.here)
    assert list(both.fifo) == [both.here[sequence] for sequence in sorted(both.here)]
    live = {sequence // BLOCK for sequence in both.here}
    assert live <= set(both.fifo._blocks) <= live | {both.tail // BLOCK}


def test_behind_a_gap_a_pop_costs_what_it_does_elsewhere() -> None:
    """Only the pop that meets the gap looks for the next entry."""
    whole, gapped = filled(100), filled(100)
    for sequence in range(10, 20):
        gapped.remove(sequence)
    for fifo in (whole, gapped):
        for _ in range(20):
            fifo.pop()
    assert lines_run(gapped.pop) == lines_run(whole.pop)
