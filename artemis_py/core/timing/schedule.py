"""Heaps of everything that falls due: scheduled messages, redelivery delays, gates, alarms."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from sys import maxsize
from typing import Any, Final, Generic, TypeVar

Item = TypeVar("Item")

_LOOKS: Final = 2
"""How many old items each new one makes the heap check, so that void ones stay fewer than the others."""


class Schedule(Generic[Item]):
    """Items by due time. Of two items due at the same time, the one added first comes first. It never reads a clock.

    An item names what is due and does not hold it: clients choose the times, and what is gone must not stay in memory
    until then. ``is_void`` tells whether an item has nothing left to do. Void items are removed little by little.
    """

    __slots__ = ("_added", "_heap", "_is_void", "_looked_at")

    def __init__(self, is_void: Callable[[Item], bool]) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._added = 0
        self._is_void = is_void
        self._looked_at = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ms: int, item: Item) -> None:
        """Add an item that is due at ``due_ms``, in milliseconds of the caller's clock."""
        self._added += 1
        heappush(self._heap, (due_ms, self._added, item))
        self._looked_at = drop_void(self._heap, self._looked_at, _LOOKS, self._is_stale)

    def _is_stale(self, one: tuple[int, int, Item]) -> bool:
        return self._is_void(one[2])

    def next_due_ms(self) -> int | None:
        """When the first item is due, or None."""
        return self._heap[0][0] if self._heap else None

    def is_due(self, now_ms: int) -> bool:
        """Is something due at ``now_ms``?"""
        return len(self._heap) > 0 and self._heap[0][0] <= now_ms

    def pop_due(self, now_ms: int, count_max: int = maxsize) -> list[Item]:
        """Take the items due at ``now_ms``, or the first ``count_max`` of them, earliest first."""
        due: list[Item] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms and len(due) < count_max:
            due.append(heappop(heap)[2])
        return due

    def clear(self) -> None:
        """Forget every item."""
        self._heap.clear()


class Timetable(Generic[Item]):
    """Items that are due at a date, beside items that are due at a steady time. When somebody sets the wall clock, the
    first move and the second do not.

    ``shift_ms`` is ``Clock.shift_ms``; ``is_void`` is as in ``Schedule``.
    """

    __slots__ = ("_added", "_dates", "_dates_looked_at", "_is_void", "_spans", "_spans_looked_at")

    def __init__(self, is_void: Callable[[Item], bool]) -> None:
        self._dates: list[tuple[int, int, Item]] = []
        self._spans: list[tuple[int, int, Item]] = []
        self._added = 0
        self._is_void = is_void
        self._dates_looked_at = 0
        self._spans_looked_at = 0

    def __len__(self) -> int:
        return len(self._dates) + len(self._spans)

    def add_date(self, date_ms: int, item: Item) -> None:
        """Add an item that is due at a date, in epoch ms."""
        self._added += 1
        heappush(self._dates, (date_ms, self._added, item))
        self._dates_looked_at = drop_void(self._dates, self._dates_looked_at, _LOOKS, self._is_stale)

    def add_span(self, steady_ms: int, item: Item) -> None:
        """Add an item that is due at a steady time, in ms."""
        self._added += 1
        heappush(self._spans, (steady_ms, self._added, item))
        self._spans_looked_at = drop_void(self._spans, self._spans_looked_at, _LOOKS, self._is_stale)

    def _is_stale(self, one: tuple[int, int, Item]) -> bool:
        return self._is_void(one[2])

    def next_due_ms(self, shift_ms: int) -> int | None:
        """The date at which the first item is due, if nobody sets the clock until then; None without items."""
        if not self._spans:
            return self._dates[0][0] if self._dates else None
        span_ms = self._spans[0][0] + shift_ms
        return min(span_ms, self._dates[0][0]) if self._dates else span_ms

    def some(self, start: int, count: int, shift_ms: int) -> list[tuple[int, Item]]:
        """At most so many items from a place on, each with the date at which it is due, in no order; fewer: these are
        the last. Who asks again for those behind them may miss one that has moved meanwhile.
        """
        dates = self._dates[start : start + count]
        left = count - len(dates)
        begin = max(start - len(self._dates), 0)
        spans = self._spans[begin : begin + left] if left else []
        return [(due_ms, item) for due_ms, _, item in dates] + [(due_ms + shift_ms, item) for due_ms, _, item in spans]

    def is_due(self, now_ms: int, shift_ms: int) -> bool:
        """Is something due at the date ``now_ms``?"""
        due_ms = self.next_due_ms(shift_ms)
        return due_ms is not None and due_ms <= now_ms

    def pop_due(self, now_ms: int, shift_ms: int, count_max: int = maxsize) -> list[Item]:
        """Take the items due at the date ``now_ms``, or the first ``count_max`` of them, earliest first."""
        due: list[Item] = []
        dates, spans = self._dates, self._spans
        while len(due) < count_max:
            is_date = len(dates) > 0 and dates[0][0] <= now_ms
            is_span = len(spans) > 0 and spans[0][0] + shift_ms <= now_ms
            if is_date and is_span:
                is_date = (dates[0][0], dates[0][1]) < (spans[0][0] + shift_ms, spans[0][1])
            if is_date:
                due.append(heappop(dates)[2])
            elif is_span:
                due.append(heappop(spans)[2])
            else:
                break
        return due


def drop_void(heap: list[Any], start: int, looks: int, is_void: Callable[[Any], bool]) -> int:
    """Check ``looks`` items of a heap, from index ``start`` on, and remove void ones. Returns where the next check goes
    on; repeated checks meet every item.
    """
    place = start
    for _ in range(looks):
        if place >= len(heap):
            place = 0
        if not heap:
            break
        if is_void(heap[place]):
            _remove_at(heap, place)
        else:
            place += 1
    return place


def _remove_at(heap: list[Any], place: int) -> None:
    """Remove one item from a heap (as of heapq), in logarithmic time."""
    moved = heap.pop()
    if place == len(heap):
        return
    while place > 0 and moved < heap[(place - 1) >> 1]:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    size = len(heap)
    while (child := 2 * place + 1) < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < moved:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved
