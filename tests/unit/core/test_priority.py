"""The order of a plain queue, and cursors over it: each entry is shown once, highest priority first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Cursor
from artemis_py.core.order.priority import PriorityOrder
from tests.kit.core import entry_of, ids, lines_run


def order_of(*priorities: int) -> PriorityOrder:
    """An order with one entry per priority given; ids count from 1."""
    order = PriorityOrder()
    for number, priority in enumerate(priorities, 1):
        order.extend([entry_of(priority, number)])
    return order


def take(order: PriorityOrder, message_id: int) -> Entry:
    """Take the entry of a message out of its place, as a delivery does."""
    cursor = order.open_cursor()
    entry = cursor.advance()
    while entry is not None and entry.message.id != message_id:
        entry = cursor.advance()
    order.close_cursor(cursor)
    assert entry is not None
    assert order.remove(entry, entry.sequence)
    return entry


def shown(cursor: Cursor) -> list[int]:
    """The ids that a cursor shows from here to the end."""
    found: list[int] = []
    while (entry := cursor.advance()) is not None:
        found.append(entry.message.id)
    return found


def test_highest_priority_first_then_arrival() -> None:
    """Row 2.17.11 (tests/queues/rows.py): 1, 9a, 4, 9b are read 9a, 9b, 4, 1."""
    order = order_of(1, 9, 4, 9)
    assert ids(order) == [2, 4, 3, 1]
    assert [order.pop().message.id for _ in range(4)] == [2, 4, 3, 1]
    with pytest.raises(IndexError):
        order.pop()


def test_a_batch_of_mixed_priorities_is_sorted_in() -> None:
    """One call or many: the order is the same."""
    batch = [entry_of(priority, number) for number, priority in enumerate((4, 4, 9, 9, 0, 4, 9), 1)]
    order = PriorityOrder()
    order.extend(batch)
    assert ids(order) == [3, 4, 7, 1, 2, 6, 5]
    assert order.count == 7


def test_returned_entry_stands_before_later_ones() -> None:
    """9a comes back while 9c waits: 9a is first."""
    order = order_of(9, 4)
    first = order.pop()
    order.extend([entry_of(9, 3)])
    order.restore(first)
    assert ids(order) == [1, 3, 2]


def test_least_is_the_oldest_of_the_lowest_priority() -> None:
    """What a ring gives up."""
    order = order_of(9, 0, 4, 0)
    assert [order.pop_least().message.id for _ in range(4)] == [2, 4, 3, 1]
    with pytest.raises(IndexError):
        order.pop_least()


def test_head_of_its_priority() -> None:
    """A due message goes before the others of its priority, not before higher ones."""
    order = order_of(9, 4)
    order.restore_at_head(entry_of(4, 3), fresh=True)
    order.restore_at_head(entry_of(4, 4), fresh=True)
    assert ids(order) == [1, 4, 3, 2]


def test_remove_only_this_very_entry() -> None:
    """An entry that is out, or another in its place, is left alone."""
    order = order_of(4)
    entry = order.pop()
    assert not order.remove(entry, entry.sequence)
    order.restore(entry)
    assert not order.remove(entry_of(4, 9), entry.sequence)
    assert not order.remove(entry_of(7, 9), 0)
    assert order.remove(entry, entry.sequence)
    assert order.count == 0


def test_cursor_shows_each_entry_once() -> None:
    """Also what arrives while it goes on; higher priorities first whenever they come."""
    order = order_of(4, 4)
    cursor = order.open_cursor()
    first = cursor.advance()
    assert first is not None
    assert first.message.id == 1
    order.extend([entry_of(9, 3), entry_of(4, 4), entry_of(0, 5)])
    assert shown(cursor) == [3, 2, 4, 5]
    assert shown(cursor) == []
    order.extend([entry_of(6, 6)])
    assert shown(cursor) == [6]
    assert order.count == 6


def test_cursor_does_not_show_what_was_taken() -> None:
    """Others may take entries before it comes to them."""
    order = order_of(4, 4, 4)
    cursor = order.open_cursor()
    order.pop()
    take(order, 2)
    assert shown(cursor) == [3]


def test_cursor_of_a_consumer_sees_returns() -> None:
    """What comes back to a place already passed is shown again, once, in order."""
    order = order_of(4, 9, 4)
    cursor = order.open_cursor()
    assert shown(cursor) == [2, 1, 3]
    back = [take(order, number) for number in (3, 2, 1)]
    for entry in back:
        order.restore(entry)
    assert shown(cursor) == [2, 1, 3]
    assert shown(cursor) == []


def test_cursor_of_a_browser_does_not_see_returns() -> None:
    """It has shown them; but what is fresh at the head it has not."""
    order = order_of(4, 4)
    cursor = order.open_cursor()
    cursor.sees_returns = False
    assert shown(cursor) == [1, 2]
    order.restore(take(order, 1))
    assert shown(cursor) == []
    order.restore_at_head(take(order, 2), fresh=False)
    assert shown(cursor) == []
    order.restore_at_head(entry_of(4, 3), fresh=True)
    assert shown(cursor) == [3]


def test_return_ahead_of_the_cursor_is_shown_once() -> None:
    """The cursor comes to the place anyway; the return is not counted twice."""
    order = order_of(4, 4, 4)
    cursor = order.open_cursor()
    entry = take(order, 2)
    assert cursor.advance() is not None
    order.restore(entry)
    assert shown(cursor) == [2, 3]


def test_returns_of_one_entry_are_noted_once() -> None:
    """An entry that comes and goes under a cursor that stands still costs it no memory."""
    order = order_of(4)
    cursor = order.open_cursor()
    assert shown(cursor) == [1]
    for _ in range(1000):
        order.restore(take(order, 1))
    assert len(cursor._returns) == 1
    assert shown(cursor) == [1]


def test_return_that_was_taken_again_is_not_shown() -> None:
    """A noted place that is empty when the cursor looks is passed over."""
    order = order_of(4, 4)
    cursor = order.open_cursor()
    assert shown(cursor) == [1, 2]
    entry = take(order, 1)
    order.restore(entry)
    take(order, 1)
    assert shown(cursor) == []
    order.restore(entry)
    assert shown(cursor) == [1]


def test_closed_cursor_is_forgotten() -> None:
    """Returns are no longer noted for it."""
    order = order_of(4)
    cursor = order.open_cursor()
    shown(cursor)
    order.close_cursor(cursor)
    order.restore(take(order, 1))
    assert order.cursors == []
    assert not cursor._returns


def test_advance_costs_the_same_at_the_end_of_a_long_queue() -> None:
    """A cursor that has seen everything pays for the ten priorities, not for what it has seen."""
    costs = []
    for depth in (10, 100_000):
        order = PriorityOrder()
        order.extend([entry_of()] * depth)
        cursor = order.open_cursor()
        while cursor.advance() is not None:
            pass
        costs.append(lines_run(cursor.advance))
    assert costs[0] == costs[1]
    assert costs[0] < 120


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """What happens to an order while cursors go over it."""
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from(["arrive", "arrive", "pop", "least", "remove", "return", "head", "open", "advance"]),
                st.integers(0, 9),
            ),
            max_size=80,
        )
    )


class OrderBesideList:
    """An order and a plain list of (place, id), sorted when it is looked at."""

    def __init__(self) -> None:
        self.order = PriorityOrder()
        self.here: dict[int, tuple[int, int]] = {}
        self.out: list[Entry] = []
        self.keys: dict[int, int] = {}
        self.cursors: list[tuple[Cursor, set[int]]] = []
        self.number = 0
        self.head = 0

    def arrive(self, priority: int) -> None:
        """A new entry at the tail."""
        self.number += 1
        self.keys[self.number] = self.number
        self.order.extend([entry_of(priority, self.number)])
        self.here[self.number] = (-priority, self.number)

    def _took(self, entry: Entry, expected: int) -> None:
        assert entry.message.id == expected
        del self.here[expected]
        self.out.append(entry)

    def pop(self, _: int) -> None:
        """Take the first."""
        if self.here:
            self._took(self.order.pop(), min(self.here, key=lambda id: self.here[id]))

    def least(self, _: int) -> None:
        """Take the least."""
        if self.here:
            self._took(self.order.pop_least(), min(self.here, key=lambda id: (-self.here[id][0], self.here[id][1])))

    def remove(self, pick: int) -> None:
        """Take one out of the middle."""
        if self.here:
            chosen = sorted(self.here)[pick % len(self.here)]
            self._took(take(self.order, chosen), chosen)

    def give_back(self, pick: int) -> None:
        """Put one back to its place; every cursor may show it again."""
        if self.out:
            entry = self.out.pop(pick % len(self.out))
            self._is_back(entry)
            self.order.restore(entry)

    def to_head(self, pick: int) -> None:
        """Put one back at the head."""
        if self.out:
            entry = self.out.pop(pick % len(self.out))
            self.head -= 1
            self.keys[entry.message.id] = self.head
            self._is_back(entry)
            self.order.restore_at_head(entry, fresh=False)

    def _is_back(self, entry: Entry) -> None:
        id = entry.message.id
        self.here[id] = (-entry.message.head.priority, self.keys[id])
        for _, seen in self.cursors:
            seen.discard(id)

    def open(self, _: int) -> None:
        """A new cursor."""
        self.cursors.append((self.order.open_cursor(), set()))

    def advance(self, pick: int) -> None:
        """One step of a cursor: the first that it has not shown since it came (back)."""
        if self.cursors:
            cursor, seen = self.cursors[pick % len(self.cursors)]
            entry = cursor.advance()
            left = [id for id in self.here if id not in seen]
            expected = min(left, key=lambda id: self.here[id], default=None)
            assert (None if entry is None else entry.message.id) == expected
            if expected is not None:
                seen.add(expected)


@given(stories())
def test_order_agrees_with_a_sorted_list(story: list[tuple[str, int]]) -> None:
    """Whatever happens, the order is what sorting by priority and place gives, and no cursor skips or repeats."""
    both = OrderBesideList()
    steps = {
        "arrive": both.arrive,
        "pop": both.pop,
        "least": both.least,
        "remove": both.remove,
        "return": both.give_back,
        "head": both.to_head,
        "open": both.open,
        "advance": both.advance,
    }
    for name, number in story:
        steps[name](number)
        assert both.order.count == len(both.here)
    assert ids(both.order) == sorted(both.here, key=lambda id: both.here[id])
