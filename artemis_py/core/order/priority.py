"""Priority order: the highest level first, order of arrival inside a level.

Ten levels are Artemis' plain queue, and one level is strict FIFO. Numbers between map the ten priorities to fewer
levels, as Qpid does. The least entry is the oldest of the lowest level (seed: Qpid's rule for rings).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush
from typing import Final

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Fifo
from artemis_py.core.order.order import LOWEST, Cursor, Order, Place, Point
from artemis_py.message import Message

PRIORITIES: Final = 10
_DEFAULT_PRIORITY: Final = 4


@cache
def levels_of_priorities(level_count: int) -> tuple[int, ...]:
    """The level of each priority from 0 to 9, with ``level_count`` levels from 1 to 10.

    Qpid Broker-J's mapping: with at least two levels the default priority and the one
    above it are on different levels. Priorities further away fall to the lowest and the highest level.
    """
    shift = _DEFAULT_PRIORITY + 1 - (level_count + 1) // 2
    return tuple(min(max(priority - shift, 0), level_count - 1) for priority in range(PRIORITIES))


class PriorityOrder(Order):
    """Ready entries of one queue, one FIFO for each level."""

    __slots__ = ("_levels", "_reserved", "_top", "cursors", "fifos", "level_count")

    def __init__(self, level_count: int = PRIORITIES) -> None:
        super().__init__()
        self.cursors: list[LevelCursor] = []
        self.level_count = level_count
        self._levels = levels_of_priorities(level_count)
        self.fifos: list[Fifo | None] = [None] * level_count
        """By level; None where nothing has come."""
        self._top = 0
        """No entry is on a higher level."""
        self._reserved = 0

    def level_of(self, message: Message) -> int:
        return self._levels[message.head.priority]

    def _fifo(self, level: int) -> Fifo:
        fifo = self.fifos[level]
        if fifo is None:
            fifo = self.fifos[level] = Fifo()
        return fifo

    def extend(self, entries: list[Entry]) -> None:
        self.count += len(entries)
        levels = self._levels
        level = levels[entries[0].message.head.priority]
        if len(entries) == 1 or self.level_count == 1:
            fifo = self.fifos[level]
            if fifo is None or len(entries) > 1:
                self._append_run(level, entries)
            else:
                fifo.append(entries[0])
                if level > self._top:
                    self._top = level
            return
        start = 0
        for index, entry in enumerate(entries):
            if levels[entry.message.head.priority] != level:
                self._append_run(level, entries[start:index])
                start = index
                level = levels[entry.message.head.priority]
        self._append_run(level, entries[start:] if start else entries)

    def _append_run(self, level: int, entries: list[Entry]) -> None:
        fifo = self.fifos[level]
        if fifo is None:
            fifo = self.fifos[level] = Fifo()
        if len(entries) == 1:
            fifo.append(entries[0])
        else:
            fifo.extend(entries)
        if level > self._top:
            self._top = level

    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        level = self._levels[entry.message.head.priority]
        self._fifo(level).restore(entry)
        self.count += 1
        if level > self._top:
            self._top = level
        for cursor in self.cursors:
            cursor.revisit(level, entry.sequence, fresh=fresh)

    def place(self, entry: Entry) -> None:
        level = self._levels[entry.message.head.priority]
        self._fifo(level).restore(entry)
        self.count += 1
        if level > self._top:
            self._top = level
        for cursor in self.cursors:
            if cursor.is_news(entry.sequence):
                cursor.revisit(level, entry.sequence, fresh=True)

    def tail_max(self) -> int:
        return max((fifo.tail for fifo in self.fifos if fifo is not None), default=0)

    def reserve(self, sequence: int) -> None:
        if sequence > self._reserved:
            self._reserved = sequence
            for level in range(self.level_count):
                fifo = self._fifo(level)
                fifo.tail = max(fifo.tail, sequence)

    def take_sequence(self, message: Message) -> int:
        fifo = self._fifo(self.level_of(message))
        fifo.tail += 1
        return fifo.tail - 1

    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        entry.sequence = self._fifo(self.level_of(entry.message)).take_head_sequence()
        self.restore(entry, fresh=fresh)

    def peek(self) -> Entry:
        entry = self.pop()
        self._fifo(self.level_of(entry.message)).restore(entry)
        self.count += 1
        return entry

    def pop(self) -> Entry:
        while True:
            fifo = self.fifos[self._top]
            if fifo is not None and fifo.count:
                self.count -= 1
                return fifo.pop()
            if not self._top:
                raise IndexError("no entry is ready")
            self._top -= 1

    def pop_least(self) -> Entry:
        for fifo in self.fifos:
            if fifo is not None and fifo.count:
                self.count -= 1
                return fifo.pop()
        raise IndexError("no entry is ready")

    def remove(self, entry: Entry, sequence: int) -> bool:
        fifo = self.fifos[self._levels[entry.message.head.priority]]
        if fifo is None or fifo.at(sequence) is not entry:
            return False
        fifo.remove(sequence)
        self.count -= 1
        return True

    def last_sequence(self, message: Message) -> int:
        return self._fifo(self.level_of(message)).tail - 1

    def next_from(self, sequence: int) -> Entry | None:
        first: Entry | None = None
        for fifo in self.fifos:
            entry = fifo.next_from(sequence) if fifo is not None and fifo.count else None
            if entry is not None and (first is None or entry.sequence < first.sequence):
                first = entry
        return first

    def find_published(self, lsn: int) -> Entry | None:
        for fifo in self.fifos:
            found = None if fifo is None or not fifo.count else fifo.find_published(lsn)
            if found is not None:
                return found
        return None

    def oldest_ms(self) -> int:
        oldest_ms = 0
        for fifo in self.fifos:
            entry = None if fifo is None else fifo.first()
            if entry is not None and not 0 < oldest_ms <= entry.message.timestamp_ms:
                oldest_ms = entry.message.timestamp_ms
        return oldest_ms

    def __iter__(self) -> Iterator[Entry]:
        for fifo in reversed(self.fifos):
            if fifo is not None and fifo.count:
                yield from fifo

    def open_cursor(self, at: Point | None = None) -> LevelCursor:
        places = [LOWEST] * self.level_count if at is None else list(at)
        if len(places) != self.level_count:
            raise ValueError(f"the order has {self.level_count} levels, and not {len(places)}")
        cursor = LevelCursor(self, places)
        self.cursors.append(cursor)
        return cursor

    def close_cursor(self, cursor: Cursor) -> None:
        self.cursors = [other for other in self.cursors if other is not cursor]

    def place_of(self, message: Message, sequence: int) -> Place:
        return -self._levels[message.head.priority], sequence

    def standing_at(self, place: Place) -> Entry | None:
        entry = self.at(-place[0], place[1])
        if entry is not None:
            entry.sequence = place[1]
        return entry

    def at(self, level: int, sequence: int) -> Entry | None:
        fifo = self.fifos[level]
        return None if fifo is None else fifo.at(sequence)


class LevelCursor(Cursor):
    """A cursor with a place on each level. It shows the highest level first."""

    __slots__ = ("_noted", "_order", "_places", "_returns")

    def __init__(self, order: PriorityOrder, places: list[int]) -> None:
        super().__init__()
        self._order = order
        self._places = places
        self._returns: list[tuple[int, int]] = []
        self._noted: set[tuple[int, int]] = set()

    def revisit(self, level: int, sequence: int, *, fresh: bool) -> None:
        """An entry stands again (``fresh``: for the first time) at a place that the cursor may have passed."""
        if not self.looks_back:
            return
        place = (-level, sequence)
        if (fresh or self.sees_returns) and sequence < self._places[level] and place not in self._noted:
            self._noted.add(place)
            heappush(self._returns, place)

    @property
    def has_returns(self) -> bool:
        return len(self._returns) > 0

    @property
    def point(self) -> Point:
        return tuple(self._places)

    def skip_to(self, sequence: int) -> None:
        self.seen_before = max(self.seen_before, sequence)
        places = self._places
        for level, place in enumerate(places):
            if place < sequence:
                places[level] = sequence

    def advance(self) -> Entry | None:
        order = self._order
        fifos = order.fifos
        places = self._places
        returns = self._returns
        for level in range(len(places) - 1, -1, -1):
            while returns and returns[0][0] == -level:
                place = heappop(returns)
                self._noted.discard(place)
                sequence = place[1]
                entry = order.at(level, sequence)
                if entry is not None:
                    entry.sequence = sequence
                    return entry
            fifo = fifos[level]
            entry = None if fifo is None or not fifo.count else fifo.next_from(places[level])
            if entry is not None:
                places[level] = entry.sequence + 1
                return entry
        return None
