"""Priority order: the highest priority first, arrival order inside a priority (Artemis' plain queue).

The least entry is the oldest of the lowest priority (seed: Qpid's rule for rings).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from artemis_py.core.entry import Entry
from artemis_py.core.order.lane import Lane

LEVELS: Final = 10
_LOWEST: Final = -(1 << 62)


class PriorityOrder:
    """Ready entries of one queue, in a lane per priority."""

    __slots__ = ("_lanes", "_reserved", "_top", "count", "cursors")

    def __init__(self) -> None:
        self.count = 0
        self.cursors: list[Cursor] = []
        self._lanes: list[Lane | None] = [None] * LEVELS
        self._top = 0
        """No entry has a higher priority than this."""
        self._reserved = 0

    def _lane(self, priority: int) -> Lane:
        lane = self._lanes[priority]
        if lane is None:
            lane = self._lanes[priority] = Lane()
        return lane

    def extend(self, entries: list[Entry]) -> None:
        """Append arrivals, in order."""
        self.count += len(entries)
        priority = entries[0].message.head.priority
        if len(entries) == 1:
            self._append_run(priority, entries)
            return
        start = 0
        for index, entry in enumerate(entries):
            if entry.message.head.priority != priority:
                self._append_run(priority, entries[start:index])
                start = index
                priority = entry.message.head.priority
        self._append_run(priority, entries[start:] if start else entries)

    def _append_run(self, priority: int, entries: list[Entry]) -> None:
        lane = self._lanes[priority]
        if lane is None:
            lane = self._lanes[priority] = Lane()
        if len(entries) == 1:
            lane.append(entries[0])
        else:
            lane.extend(entries)
        if priority > self._top:
            self._top = priority

    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        """Put an entry back to its own place; cursors that have passed it are told. ``fresh``: no cursor can have shown
        it.
        """
        priority = entry.message.head.priority
        self._lane(priority).restore(entry)
        self.count += 1
        if priority > self._top:
            self._top = priority
        for cursor in self.cursors:
            cursor.revisit(priority, entry.sequence, fresh=fresh)

    def place(self, entry: Entry) -> None:
        """Put an entry that comes from a page to its own place. Cursors are not told: those that have passed it have
        seen it in the page.
        """
        priority = entry.message.head.priority
        self._lane(priority).restore(entry)
        self.count += 1
        if priority > self._top:
            self._top = priority

    def tail_max(self) -> int:
        """A sequence above those of all entries, of any priority."""
        return max((lane.tail for lane in self._lanes if lane is not None), default=0)

    def reserve(self, sequence: int) -> None:
        """Arrivals of every priority stand at or behind this sequence from now on: what is before it is for messages in
        pages, which cursors have passed there.
        """
        if sequence > self._reserved:
            self._reserved = sequence
            for priority in range(LEVELS):
                lane = self._lane(priority)
                lane.tail = max(lane.tail, sequence)

    def take_sequence(self, priority: int) -> int:
        """The sequence that an arrival of this priority would take; it is not given again."""
        lane = self._lane(priority)
        lane.tail += 1
        return lane.tail - 1

    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        """Put an entry before all others of its priority. ``fresh``: it never stood here, so no cursor has shown it."""
        entry.sequence = self._lane(entry.message.head.priority).take_head_sequence()
        self.restore(entry, fresh=fresh)

    def peek(self) -> Entry:
        """The next entry; it stays. Its ``sequence`` is filled in. Raises IndexError when there is none."""
        entry = self.pop()
        self._lane(entry.message.head.priority).restore(entry)
        self.count += 1
        return entry

    def pop(self) -> Entry:
        """Take the next entry out. Raises IndexError when there is none."""
        while True:
            lane = self._lanes[self._top]
            if lane is not None and lane.count:
                self.count -= 1
                return lane.pop()
            if not self._top:
                raise IndexError("no entry is ready")
            self._top -= 1

    def pop_least(self) -> Entry:
        """Take out the entry that a ring gives up. Raises IndexError when there is none."""
        for lane in self._lanes:
            if lane is not None and lane.count:
                self.count -= 1
                return lane.pop()
        raise IndexError("no entry is ready")

    def remove(self, entry: Entry, sequence: int) -> bool:
        """Take this very entry out from its place; False when it does not stand there (in delivery, or gone)."""
        lane = self._lanes[entry.message.head.priority]
        if lane is None or lane.at(sequence) is not entry:
            return False
        lane.remove(sequence)
        self.count -= 1
        return True

    def last_sequence(self, priority: int) -> int:
        """The sequence that the newest arrival of this priority took."""
        return self._lane(priority).tail - 1

    def __iter__(self) -> Iterator[Entry]:
        for priority in range(LEVELS - 1, -1, -1):
            lane = self._lanes[priority]
            if lane is not None and lane.count:
                yield from lane

    def open_cursor(self) -> Cursor:
        """A cursor before the first entry."""
        cursor = Cursor(self, [_LOWEST] * LEVELS)
        self.cursors.append(cursor)
        return cursor

    def close_cursor(self, cursor: Cursor) -> None:
        """Forget a cursor; entries that come back are no longer noted for it."""
        self.cursors.remove(cursor)

    def next_at(self, priority: int, sequence: int) -> Entry | None:
        """The first entry of this priority at or after ``sequence``; it stays."""
        lane = self._lanes[priority]
        return None if lane is None or not lane.count else lane.next_from(sequence)

    def at(self, priority: int, sequence: int) -> Entry | None:
        """The entry at exactly this place, if any."""
        lane = self._lanes[priority]
        return None if lane is None else lane.at(sequence)


class Cursor:
    """One reader's place in an order: it shows each entry once, highest priority first.

    It does not take entries. An entry that comes back to a place already passed is shown (again) only while
    ``sees_returns`` is true.
    """

    __slots__ = ("_noted", "_order", "_places", "_returns", "sees_returns")

    def __init__(self, order: PriorityOrder, places: list[int]) -> None:
        self._order = order
        self._places = places
        self._returns: list[tuple[int, int]] = []
        self._noted: set[tuple[int, int]] = set()
        self.sees_returns = True

    def revisit(self, priority: int, sequence: int, *, fresh: bool) -> None:
        """An entry stands again (``fresh``: for the first time) at a place that the cursor may have passed."""
        place = (-priority, sequence)
        if (fresh or self.sees_returns) and sequence < self._places[priority] and place not in self._noted:
            self._noted.add(place)
            heappush(self._returns, place)

    def skip_to(self, sequence: int) -> None:
        """What stands before this sequence was seen elsewhere (in a page)."""
        places = self._places
        for priority in range(LEVELS):
            if places[priority] < sequence:
                places[priority] = sequence

    def advance(self) -> Entry | None:
        """The next entry not shown yet, or None. Its ``sequence`` is filled in; it stays in the order."""
        order = self._order
        places = self._places
        returns = self._returns
        for priority in range(LEVELS - 1, -1, -1):
            while returns and returns[0][0] == -priority:
                place = heappop(returns)
                self._noted.discard(place)
                sequence = place[1]
                entry = order.at(priority, sequence)
                if entry is not None:
                    entry.sequence = sequence
                    return entry
            entry = order.next_at(priority, places[priority])
            if entry is not None:
                places[priority] = entry.sequence + 1
                return entry
        return None
