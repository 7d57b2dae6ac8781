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


def test_returns_of_one_entry_are_noted_once() -> None:
    """An entry that comes and goes under a cursor that stands still costs it no memory."""
    order = order_of(4)
    cursor = order.open_cursor()
    assert shown(cursor) == [1]
    for _ in range(1000):
        order.restore(take(order, 1))
    assert len(cursor._returns) == 1
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
    for depth in (10, 10_000):
        order = PriorityOrder()
        order.extend([entry_of()] * depth)
        cursor = order.open_cursor()
        while cursor.advance() is not None:
            pass
        costs.append(lines_run(cursor.advance))
    assert costs[0] == costs[1]
    assert costs[0] < 120


STEPS = ["arrive", "arrive", "pop", "least", "remove", "return", "head", "fresh", "open", "advance"]
BACK, TAKE = ("return", "head"), ("pop", "least", "remove")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=80))
def test_order_agrees_with_a_sorted_list(story: list[tuple[str, int]]) -> None:
    """Whatever happens, the order is what sorting by priority and place gives, and no cursor skips or repeats."""
    order, number, head = PriorityOrder(), 0, 0
    here: dict[int, tuple[int, int]] = {}
    out: list[tuple[Entry, tuple[int, int]]] = []
    cursors: list[tuple[Cursor, set[int]]] = []
    for name, pick in story:
        if name == "arrive":
            batch = [entry_of(priority, number + place) for place, priority in enumerate((pick, 4, 9 - pick), 1)]
            number += 3
            order.extend(batch)
            here |= {one.message.id: (-one.message.head.priority, one.message.id) for one in batch}
        elif name == "fresh":
            number, head = number + 1, head - 1
            here[number] = -pick, head
            order.restore_at_head(entry_of(pick, number), fresh=True)
        elif name in TAKE and here:
            by_place = sorted(here, key=lambda id: here[id])
            lowest = max(priority for priority, _ in here.values())
            if name == "pop":
                entry, expected = order.pop(), by_place[0]
            elif name == "least":
                entry, expected = order.pop_least(), next(id for id in by_place if here[id][0] == lowest)
            else:
                expected = by_place[pick % len(here)]
                entry = take(order, expected)
            assert entry.message.id == expected
            out.append((entry, here.pop(expected)))
        elif name in BACK and out:
            entry, place = out.pop(pick % len(out))
            if name == "head":
                head -= 1
                place = place[0], head
                order.restore_at_head(entry, fresh=False)
            else:
                order.restore(entry)
            here[entry.message.id] = place
            for _, seen in cursors:
                seen.discard(entry.message.id)
        elif name == "open":
            cursors.append((order.open_cursor(), set()))
        elif name == "advance" and cursors:
            cursor, seen = cursors[pick % len(cursors)]
            left = sorted((place, id) for id, place in here.items() if id not in seen)
            shows = cursor.advance()
            assert (None if shows is None else shows.message.id) == (left[0][1] if left else None)
            seen.update(id for _, id in left[:1])
        assert order.count == len(here)
    assert ids(order) == sorted(here, key=lambda id: here[id])
    if not here:
        with pytest.raises(IndexError):
            order.pop()
        with pytest.raises(IndexError):
            order.pop_least()
