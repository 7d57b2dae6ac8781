"""Sorted order: by rank, order of arrival where ranks are equal.

The rank is the text of a header (Qpid's sorted queue) or the value of an expression (AMPS' Priority). It also says
which entry is the least: the oldest one, whatever its rank, or the oldest one of the last rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.lane import Lane
from artemis_py.core.order.order import LOWEST, Cursor, Order, Place, Point
from artemis_py.core.order.ranking import Ranking, SortedPlace
from artemis_py.core.order.ranks import Rank
from artemis_py.message import Message

_BEFORE_ALL: SortedPlace = ("", LOWEST)


class SortedOrder(Order):
    """Ready entries of one queue: in one lane by sequence, and ranked."""

    __slots__ = ("_lane", "_sorted_by", "cursors", "ranking")

    def __init__(self, sorted_by: Rank) -> None:
        super().__init__()
        self.cursors: list[RankCursor] = []
        self._sorted_by = sorted_by
        self.expression = sorted_by.expression
        self._lane = Lane()
        self.ranking = Ranking()

    def level_of(self, message: Message) -> int:
        return 0

    def place_of(self, message: Message, sequence: int) -> SortedPlace:
        """The place of a message with this sequence."""
        return (self._sorted_by.rank_of(message), sequence)

    # ---- in --------------------------------------------------------------------------------------

    def extend(self, entries: list[Entry]) -> None:
        self.count += len(entries)
        lane = self._lane
        for entry in entries:
            entry.sequence = lane.tail
            lane.append(entry)
            self._rank(entry, fresh=True)

    def _rank(self, entry: Entry, *, fresh: bool) -> None:
        place = self.place_of(entry.message, entry.sequence)
        self.ranking.add(place)
        for cursor in self.cursors:
            cursor.revisit(place, fresh=fresh)

    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        self._lane.restore(entry)
        self.count += 1
        self._rank(entry, fresh=fresh)

    def place(self, entry: Entry) -> None:
        self._lane.restore(entry)
        self.count += 1
        place = self.place_of(entry.message, entry.sequence)
        self.ranking.add(place)
        for cursor in self.cursors:
            if cursor.is_news(entry.sequence):
                cursor.revisit(place, fresh=True)

    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        entry.sequence = self._lane.take_head_sequence()
        self.restore(entry, fresh=fresh)

    # ---- sequences -------------------------------------------------------------------------------

    def tail_max(self) -> int:
        return self._lane.tail

    def reserve(self, sequence: int) -> None:
        self._lane.tail = max(self._lane.tail, sequence)

    def take_sequence(self, message: Message) -> int:
        self._lane.tail += 1
        return self._lane.tail - 1

    def last_sequence(self, message: Message) -> int:
        return self._lane.tail - 1

    # ---- out -------------------------------------------------------------------------------------

    def _entry_at(self, sequence: int) -> Entry:
        entry = self._lane.at(sequence)
        assert entry is not None, "every ranked place has its entry"
        entry.sequence = sequence
        return entry

    def peek(self) -> Entry:
        return self._entry_at(self.ranking.first()[1])

    def pop(self) -> Entry:
        sequence = self.ranking.pop()[1]
        entry = self._entry_at(sequence)
        self._lane.remove(sequence)
        self.count -= 1
        return entry

    def pop_least(self) -> Entry:
        if self._sorted_by.decides_who_goes:
            place = self.ranking.first_of_last_rank()
            entry = self._entry_at(place[1])
            self._lane.remove(place[1])
            self.ranking.remove(place)
            self.count -= 1
            return entry
        entry = self._lane.pop()
        self.ranking.remove(self.place_of(entry.message, entry.sequence))
        self.count -= 1
        return entry

    def remove(self, entry: Entry, sequence: int) -> bool:
        if self._lane.at(sequence) is not entry:
            return False
        self._lane.remove(sequence)
        self.ranking.remove(self.place_of(entry.message, sequence))
        self.count -= 1
        return True

    # ---- looking ---------------------------------------------------------------------------------

    def standing_at(self, place: Place) -> Entry | None:
        entry = self._lane.at(place[1])
        if entry is not None:
            entry.sequence = place[1]
        return entry

    def at(self, level: int, sequence: int) -> Entry | None:
        return self._lane.at(sequence)

    def next_from(self, sequence: int) -> Entry | None:
        return self._lane.next_from(sequence) if self.count else None

    def find_published(self, lsn: int) -> Entry | None:
        return self._lane.find_published(lsn) if self.count else None

    def oldest_ms(self) -> int:
        entry = self._lane.first()
        return 0 if entry is None else entry.message.timestamp_ms

    def __iter__(self) -> Iterator[Entry]:
        for place in self.ranking:
            if self._lane.at(place[1]) is not None:
                yield self._entry_at(place[1])

    def open_cursor(self, at: Point | None = None) -> RankCursor:
        cursor = RankCursor(self)
        if at is not None:
            cursor.go_to(at)
        self.cursors.append(cursor)
        return cursor

    def close_cursor(self, cursor: Cursor) -> None:
        self.cursors = [other for other in self.cursors if other is not cursor]


class RankCursor(Cursor):
    """A cursor with one place in the ranking. It notes entries that come to a place it has passed, arrivals too."""

    __slots__ = ("_noted", "_order", "_passed", "_returns")

    def __init__(self, order: SortedOrder) -> None:
        super().__init__()
        self._order = order
        self._passed = _BEFORE_ALL
        self._returns: list[SortedPlace] = []
        self._noted: set[SortedPlace] = set()

    def revisit(self, place: SortedPlace, *, fresh: bool) -> None:
        """An entry stands again (``fresh``: for the first time) at a place that the cursor may have passed."""
        if not self.looks_back or not (fresh or self.sees_returns):
            return
        if (place <= self._passed or place[1] < self.seen_before) and place not in self._noted:
            self._noted.add(place)
            heappush(self._returns, place)

    @property
    def has_returns(self) -> bool:
        return len(self._returns) > 0

    @property
    def point(self) -> Point:
        return (*self._passed, self.seen_before)

    def go_to(self, point: Point) -> None:
        """Go where another cursor stood. Raises ValueError if that was one of another kind of order."""
        if len(point) != 3 or not isinstance(point[0], str):
            raise ValueError("the order is sorted, and has one place")
        self._passed = (point[0], point[1])
        self.seen_before = point[2]

    def skip_to(self, sequence: int) -> None:
        self.seen_before = max(self.seen_before, sequence)

    def advance(self) -> Entry | None:
        order = self._order
        returns = self._returns
        while True:
            ahead = order.ranking.after(self._passed)
            if returns and (ahead is None or returns[0] < ahead):
                place = heappop(returns)
                self._noted.discard(place)
            elif ahead is None:
                return None
            else:
                self._passed = place = ahead
                if place[1] < self.seen_before:
                    continue
            entry = order.at(0, place[1])
            if entry is not None:
                entry.sequence = place[1]
                return entry
