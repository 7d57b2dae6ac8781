"""Levels, sorted order and last values: the parts alone. What queues make of them: tests/model and tests/queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.priority import PriorityOrder, levels_of_priorities
from artemis_py.core.order.sorted import VALUE_MAX, HeaderRank, Rank, SortedOrder, ValueRank, utf16_order
from artemis_py.message import Head, HeaderName, encode_headers
from artemis_py.selector import compile_expression
from tests.kit.core import entry_of, ids

BY_TEXT = HeaderRank("k")
BY_VALUE = ValueRank(compile_expression("k"))


def sorted_of(*keys: str | None, rank: Rank = BY_TEXT) -> SortedOrder:
    """A sorted order with these arrivals, by their header k, ids from 1."""
    order = SortedOrder(rank)
    order.extend([entry_of(id=id) if key is None else entry_of(id=id, k=key) for id, key in enumerate(keys, 1)])
    return order


# ---- levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "levels"),
    [
        (1, (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        (2, (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)),
        (3, (0, 0, 0, 0, 1, 2, 2, 2, 2, 2)),
        (4, (0, 0, 0, 0, 1, 2, 3, 3, 3, 3)),
        (5, (0, 0, 0, 1, 2, 3, 4, 4, 4, 4)),
        (10, tuple(range(10))),
    ],
)
def test_levels_of_priorities(count: int, levels: tuple[int, ...]) -> None:
    """Row Q-07."""
    assert levels_of_priorities(count) == levels


def test_one_level_is_fifo() -> None:
    order = PriorityOrder(1)
    entries = [entry_of(0, 1), entry_of(9, 2), entry_of(4, 3)]
    order.extend(entries)
    assert [order.at(0, sequence) for sequence in range(3)] == entries
    assert ids(order) == [1, 2, 3]
    assert order.pop_least().message.id == 1
    assert order.pop().message.id == 2


# ---- sorted --------------------------------------------------------------------------------------


def test_sorted_order() -> None:
    """Keyless first, then by text; the empty text stands behind no text."""
    order = sorted_of("c", None, "a", "", "b", None, "a")
    assert ids(order) == [2, 6, 4, 3, 7, 5, 1]
    assert order.peek().message.id == 2
    assert ids([order.pop() for _ in range(order.count)]) == [2, 6, 4, 3, 7, 5, 1]
    with pytest.raises(IndexError):
        order.pop()


def test_texts_compare_as_java_does() -> None:
    """By UTF-16 units: what needs two of them stands before the last characters that need one."""
    keys = ["\U0001f600", "\uffee", "z", "10", "9", "B", "a"]
    assert sorted(keys, key=utf16_order) == ["10", "9", "B", "a", "z", "\U0001f600", "\uffee"]


def test_the_least_of_a_sorted_order_is_the_oldest() -> None:
    order = sorted_of("b", "a", "c")
    assert order.pop_least().message.id == 1
    back = order.pop_least()
    order.extend([entry_of(id=4, k="a")])
    order.restore(back)
    assert order.pop_least().message.id == 2, "one that came back is as old as it was"
    assert ids(order) == [4, 3]


def test_A_49_the_largest_value_comes_first() -> None:
    """As numbers, of any length; equal ones in order of arrival."""
    order = sorted_of("1", "5", "10", "5", "255", "256", "0", "9", str(2**40), rank=BY_VALUE)
    assert ids(order) == [9, 6, 5, 3, 8, 2, 4, 1, 7]
    assert ids([order.pop() for _ in range(order.count)]) == [9, 6, 5, 3, 8, 2, 4, 1, 7]


def test_A_49_what_is_no_number_of_64_bits() -> None:
    """No number, nothing or a negative one is 0; a fraction is cut off; what is too large is the largest."""
    rank = ValueRank(compile_expression("k"))
    values = {
        None: 0, "": 0, "x": 0, "-1": 0, "-1e400": 0, "0.9": 0, "2.9": 2, "1e3": 1000,
        str(VALUE_MAX): VALUE_MAX, str(VALUE_MAX - 1): VALUE_MAX - 1, str(2**64): VALUE_MAX, "9" * 5000: VALUE_MAX,
        "1e19": 10**19, "1e400": VALUE_MAX,
    }  # fmt: skip
    entries = {text: entry_of() if text is None else entry_of(k=text) for text in values}
    assert {text: rank.value_of(entry.message) for text, entry in entries.items()} == values
    nan = ValueRank(compile_expression("k - k"))
    assert nan.value_of(entry_of(id=1, k="1e400").message) == 0


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300), min_size=2, max_size=2))
def test_ranks_of_values_are_in_reverse_order(values: list[int]) -> None:
    rank = ValueRank(compile_expression("k"))
    ranks = [rank.rank_of(entry_of(k=str(value)).message) for value in values]
    assert (values[0] > values[1]) == (ranks[0] < ranks[1])
    assert (values[0] == values[1]) == (ranks[0] == ranks[1])


def test_A_49_the_least_is_the_oldest_of_the_lowest_value() -> None:
    order = sorted_of("5", "1", "7", "1", None, rank=BY_VALUE)
    gone = []
    order.restore_at_head(entry_of(id=9, k="1"), fresh=True)
    while order.count:
        gone.append(order.pop_least().message.id)
    assert gone == [5, 9, 2, 4, 1, 3]
    with pytest.raises(IndexError):
        order.pop_least()


def test_an_entry_leaves_its_place() -> None:
    order = sorted_of("b", "a", "c")
    entry = next(iter(order))
    assert order.remove(entry, entry.sequence)
    assert not order.remove(entry, entry.sequence)
    assert order.count == 2
    assert ids(order) == [1, 3]


def test_a_scheduled_entry_stands_before_its_equals() -> None:
    order = sorted_of("b", "a", "b")
    late = entry_of(id=9, k="b")
    order.restore_at_head(late, fresh=True)
    assert ids(order) == [2, 9, 1, 3]


def test_a_cursor_passes_each_entry_once() -> None:
    """Arrivals before its place are shown; what it has passed comes again only if it sees returns."""
    order = sorted_of("b", "d")
    cursor = order.open_cursor()
    assert [order.pop().message.id] == [1]
    gone = entry_of(id=8, k="c")
    first = cursor.advance()
    assert first is not None
    assert first.message.id == 2
    order.extend([gone, entry_of(id=9, k="e"), entry_of(id=10, k="a")])
    seen = []
    while (entry := cursor.advance()) is not None:
        seen.append(entry.message.id)
    assert seen == [10, 8, 9]
    assert order.remove(gone, gone.sequence)
    order.restore(gone)
    shown = cursor.advance()
    assert shown is gone
    cursor.sees_returns = False
    assert order.remove(gone, gone.sequence)
    order.restore(gone)
    assert cursor.advance() is None
    order.close_cursor(cursor)
    assert order.cursors == []


def test_a_cursor_skips_what_it_saw_in_a_page() -> None:
    order = sorted_of("b")
    cursor = order.open_cursor()
    assert cursor.advance() is not None
    order.reserve(100)
    cursor.skip_to(50)
    in_page = entry_of(id=5, k="z")
    in_page.sequence = 40
    order.place(in_page)
    assert cursor.advance() is None
    order.extend([entry_of(id=6, k="c")])
    shown = cursor.advance()
    assert shown is not None
    assert (shown.message.id, shown.sequence) == (6, 100)
    assert order.remove(in_page, 40)
    order.restore(in_page)
    assert cursor.advance() is in_page


# ---- last value ----------------------------------------------------------------------------------


def test_last_values() -> None:
    values = LastValues("k")
    first, second, other, keyless = entry_of(id=1, k="a"), entry_of(id=2, k="a"), entry_of(id=3, k="b"), entry_of(id=4)
    for entry in (first, other, keyless):
        assert values.older(entry.message) is None
        values.enter(entry)
    assert values.older(keyless.message) is None
    assert values.older(second.message) is first
    values.enter(second)
    assert values.is_outdated(first)
    assert not values.is_outdated(second)
    values.forget([first.message])
    assert not values.is_outdated(first)
    values.forget([second.message, other.message])
    assert values.older(entry_of(id=5, k="a").message) is None
    assert values.older(entry_of(id=6, k="b").message) is None


# ---- headers -------------------------------------------------------------------------------------


def test_one_header_is_found_without_the_others() -> None:
    """At either end, escaped, repeated, part of another's name or value, absent; and the same when all are known."""
    block = encode_headers([("k", "1"), ("ak", "2"), ("x", "k:3"), ("a:b", "c\nd"), ("k", "4"), ("empty", "")])
    expected = {"k": "1", "ak": "2", "x": "k:3", "a:b": "c\nd", "empty": "", "b": None, "3": None}
    for known in (False, True):
        head = Head(block, "a")
        if known:
            assert head.properties["k"] == "1"
        assert {name: head.first(HeaderName(name)) for name in expected} == expected
