"""A sorted queue: entries in the order of a header or of an expression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Fifo
from artemis_py.core.order.order import LOWEST, Cursor, Order, Place, Point
from artemis_py.message import HeaderName, Message
from artemis_py.selector import Expression

# ---- ranking ---------------------------------------------------------------------------------------------------------
#
# A ranking: places in sorted order, each once. A place is a rank (a text) and a sequence, and no two places have the
# same sequence. The places stand in blocks of at most 256, found by the last place of each. So inserting and removing
# cost two binary searches and the moving of a few kilobytes, whatever the number of places. A search compares the
# first bytes of ranks, which stand side by side as numbers. It looks at the texts only where those are equal. With a
# million places it is not comparisons that cost, but fetching each text from memory.


SortedPlace = tuple[str, int]
"""A ``Place`` in a sorted order: the text that it is sorted by, and the sequence."""

_SIZE_MAX: Final = 256
_START_BYTES: Final = 8


def start_of(rank: str) -> int:
    """The first bytes of a rank as a number. The lower of two ranks has the lower number, or the same."""
    beginning = rank[:_START_BYTES].encode("utf-8", "surrogatepass")
    return int.from_bytes(beginning[:_START_BYTES].ljust(_START_BYTES, b"\0"))


class _Sorted:
    """Sorted places, beside the starts of their ranks."""

    __slots__ = ("places", "starts")

    def __init__(self, starts: array[int], places: list[SortedPlace]) -> None:
        self.starts = starts
        self.places = places

    def find(self, start: int, place: SortedPlace) -> int:
        """The index of the first place that is not before this one."""
        starts = self.starts
        index = bisect_left(starts, start)
        if index == len(starts) or starts[index] != start:
            return index
        return bisect_left(self.places, place, index, bisect_right(starts, start, index))

    def insert(self, index: int, start: int, place: SortedPlace) -> None:
        """Insert a place."""
        self.starts.insert(index, start)
        self.places.insert(index, place)

    def replace(self, index: int, start: int, place: SortedPlace) -> None:
        """Replace a place."""
        self.starts[index] = start
        self.places[index] = place

    def delete(self, index: int) -> None:
        """Remove a place."""
        del self.starts[index]
        del self.places[index]


class Ranking:
    """Sorted places. It does not know what stands at them."""

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[_Sorted] = []
        self._lasts = _Sorted(array("Q"), [])
        """The last place of each block."""

    def add(self, place: SortedPlace) -> None:
        """Insert a place."""
        start = start_of(place[0])
        blocks, lasts = self._blocks, self._lasts
        index = lasts.find(start, place)
        if index == len(blocks):
            if not blocks or len(blocks[-1].places) >= _SIZE_MAX:
                blocks.append(_Sorted(array("Q", [start]), [place]))
                lasts.insert(index, start, place)
                return
            index -= 1
            lasts.replace(index, start, place)
        block = blocks[index]
        block.insert(block.find(start, place), start, place)
        if len(block.places) > _SIZE_MAX:
            half = len(block.places) // 2
            blocks.insert(index + 1, _Sorted(block.starts[half:], block.places[half:]))
            del block.starts[half:], block.places[half:]
            lasts.insert(index, block.starts[-1], block.places[-1])

    def remove(self, place: SortedPlace) -> None:
        """Remove a place, which must be in."""
        start = start_of(place[0])
        index = self._lasts.find(start, place)
        self._take_out(index, self._blocks[index].find(start, place))

    def first(self) -> SortedPlace:
        """The first place; it stays. Raises IndexError when there is none."""
        return self._blocks[0].places[0]

    def first_of_last_rank(self) -> SortedPlace:
        """Of the places with the last rank, the first; it stays. Raises IndexError when there is none."""
        last = self._blocks[-1].places[-1]
        found = self.after((last[0], LOWEST))
        return last if found is None else found

    def pop(self) -> SortedPlace:
        """Take the first place out. Raises IndexError when there is none."""
        place = self._blocks[0].places[0]
        self._take_out(0, 0)
        return place

    def after(self, place: SortedPlace) -> SortedPlace | None:
        """The first place behind this one, or None. This one need not be in."""
        start, behind = start_of(place[0]), (place[0], place[1] + 1)
        index = self._lasts.find(start, behind)
        if index == len(self._blocks):
            return None
        block = self._blocks[index]
        return block.places[block.find(start, behind)]

    def _take_out(self, index: int, position: int) -> None:
        block = self._blocks[index]
        block.delete(position)
        if not block.places:
            del self._blocks[index]
            self._lasts.delete(index)
        elif position == len(block.places):
            self._lasts.replace(index, block.starts[-1], block.places[-1])

    def __iter__(self) -> Iterator[SortedPlace]:
        for block in list(self._blocks):
            yield from list(block.places)


# ---- ranks -----------------------------------------------------------------------------------------------------------
#
# What a sorted order sorts by: the text of a header, or the value of an expression. A rank is a text; the lower comes
# first.


_KEYLESS: Final = ""
_KEYED: Final = "\0"
VALUE_MAX: Final = 2**64 - 1
"""The largest value of an expression."""
_REVERSED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")
_DIGITS_MAX: Final = 16
_ZERO: Final = ord("0")


def utf16_order(text: str) -> str:
    """A text that sorts, by characters, as the UTF-16 units of ``text`` do. That is how Java compares strings."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(units[index] << 8 | units[index + 1]) for index in range(0, len(units), 2))


class Rank(ABC):
    """Ranks messages. A rank depends on the message alone, so a restart finds the same."""

    __slots__ = ()

    @property
    def expression(self) -> Expression | None:
        """What is evaluated; None when a look at the message is enough."""
        return None

    @property
    @abstractmethod
    def decides_who_goes(self) -> bool:
        """Does a ring give up the message of the last rank? Otherwise it gives up the oldest one."""

    @abstractmethod
    def rank_of(self, message: Message) -> str:
        """The rank of a message."""


@final
class HeaderRank(Rank):
    """By the text of one header, as Java compares texts. Messages without the header come first; an empty text comes
    behind no text at all (Qpid's sorted queue).
    """

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key = HeaderName(key)

    @property
    def decides_who_goes(self) -> bool:
        return False  # only a priority queue has another rule than age

    def rank_of(self, message: Message) -> str:
        key = message.head.first(self._key)
        return _KEYLESS if key is None else _KEYED + utf16_order(key)


@final
class ValueRank(Rank):
    """By the value of an expression, the largest first (AMPS' Priority). Values are
    whole numbers from 0 to ``VALUE_MAX``.
    """

    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    @property
    def expression(self) -> Expression | None:
        return self._expression

    @property
    def decides_who_goes(self) -> bool:
        return True

    def value_of(self, message: Message) -> int:
        """A message's value: fractions are cut off, what is too large is ``VALUE_MAX``, and what is negative or no
        number is 0.
        """
        value = self._expression.value(message.lookup)
        if value is None or not value > 0:  # no NaN is
            return 0
        return VALUE_MAX if value >= VALUE_MAX else int(value)

    def rank_of(self, message: Message) -> str:
        digits = f"{self.value_of(message):x}"  # a rank begins with what tells small values apart (see ``start_of``)
        return chr(_ZERO + _DIGITS_MAX - len(digits)) + digits.translate(_REVERSED)


# ---- sorted ----------------------------------------------------------------------------------------------------------
#
# Sorted order: by rank, order of arrival where ranks are equal. The rank is the text of a header (Qpid's sorted
# queue) or the value of an expression (AMPS' Priority). It also says which entry is the least: the oldest one,
# whatever its rank, or the oldest one of the last rank.


_BEFORE_ALL: SortedPlace = ("", LOWEST)


class SortedOrder(Order):
    """Ready entries of one queue: in one FIFO by sequence, and ranked."""

    __slots__ = ("_fifo", "_sorted_by", "cursors", "ranking")

    def __init__(self, sorted_by: Rank) -> None:
        super().__init__()
        self.cursors: list[RankCursor] = []
        self._sorted_by = sorted_by
        self.expression = sorted_by.expression
        self._fifo = Fifo()
        self.ranking = Ranking()

    def level_of(self, message: Message) -> int:
        return 0

    def place_of(self, message: Message, sequence: int) -> SortedPlace:
        """The place of a message with this sequence."""
        return (self._sorted_by.rank_of(message), sequence)

    # ---- in --------------------------------------------------------------------------------------

    def extend(self, entries: list[Entry]) -> None:
        self.count += len(entries)
        fifo = self._fifo
        for entry in entries:
            entry.sequence = fifo.tail
            fifo.append(entry)
            self._rank(entry, fresh=True)

    def _rank(self, entry: Entry, *, fresh: bool) -> None:
        place = self.place_of(entry.message, entry.sequence)
        self.ranking.add(place)
        for cursor in self.cursors:
            cursor.revisit(place, fresh=fresh)

    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        self._fifo.restore(entry)
        self.count += 1
        self._rank(entry, fresh=fresh)

    def place(self, entry: Entry) -> None:
        self._fifo.restore(entry)
        self.count += 1
        place = self.place_of(entry.message, entry.sequence)
        self.ranking.add(place)
        for cursor in self.cursors:
            if cursor.is_news(entry.sequence):
                cursor.revisit(place, fresh=True)

    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        entry.sequence = self._fifo.take_head_sequence()
        self.restore(entry, fresh=fresh)

    # ---- sequences -------------------------------------------------------------------------------

    def tail_max(self) -> int:
        return self._fifo.tail

    def reserve(self, sequence: int) -> None:
        self._fifo.tail = max(self._fifo.tail, sequence)

    def take_sequence(self, message: Message) -> int:
        self._fifo.tail += 1
        return self._fifo.tail - 1

    def last_sequence(self, message: Message) -> int:
        return self._fifo.tail - 1

    # ---- out -------------------------------------------------------------------------------------

    def _entry_at(self, sequence: int) -> Entry:
        entry = self._fifo.at(sequence)
        assert entry is not None, "every ranked place has its entry"
        entry.sequence = sequence
        return entry

    def peek(self) -> Entry:
        return self._entry_at(self.ranking.first()[1])

    def pop(self) -> Entry:
        sequence = self.ranking.pop()[1]
        entry = self._entry_at(sequence)
        self._fifo.remove(sequence)
        self.count -= 1
        return entry

    def pop_least(self) -> Entry:
        if self._sorted_by.decides_who_goes:
            place = self.ranking.first_of_last_rank()
            entry = self._entry_at(place[1])
            self._fifo.remove(place[1])
            self.ranking.remove(place)
            self.count -= 1
            return entry
        entry = self._fifo.pop()
        self.ranking.remove(self.place_of(entry.message, entry.sequence))
        self.count -= 1
        return entry

    def remove(self, entry: Entry, sequence: int) -> bool:
        if self._fifo.at(sequence) is not entry:
            return False
        self._fifo.remove(sequence)
        self.ranking.remove(self.place_of(entry.message, sequence))
        self.count -= 1
        return True

    # ---- looking ---------------------------------------------------------------------------------

    def standing_at(self, place: Place) -> Entry | None:
        entry = self._fifo.at(place[1])
        if entry is not None:
            entry.sequence = place[1]
        return entry

    def at(self, level: int, sequence: int) -> Entry | None:
        return self._fifo.at(sequence)

    def next_from(self, sequence: int) -> Entry | None:
        return self._fifo.next_from(sequence) if self.count else None

    def find_published(self, lsn: int) -> Entry | None:
        return self._fifo.find_published(lsn) if self.count else None

    def oldest_ms(self) -> int:
        entry = self._fifo.first()
        return 0 if entry is None else entry.message.timestamp_ms

    def __iter__(self) -> Iterator[Entry]:
        for place in self.ranking:
            if self._fifo.at(place[1]) is not None:
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
