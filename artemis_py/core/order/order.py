"""The axis "order": which ready entry is next, and which is the least, the one that a ring drops.

An entry's place is its level and its sequence. Only the order knows what a level means. Queues keep a level only to
find the place of an entry again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from artemis_py.core.order.entry import Entry
from artemis_py.message import Message
from artemis_py.selector import Expression

Point = tuple[Any, ...]
"""The position of a cursor, as numbers and texts that only cursors of the same kind of order understand."""
Place = tuple[Any, int]
"""The order key of an entry, smaller first: its rank in the order, and its sequence."""


LOWEST: Final = -(1 << 62)
"""No sequence is lower."""
HIGHEST: Final = 1 << 62
"""No sequence is higher."""


class Cursor(ABC):
    """One reader's place in an order. It shows each entry once, in the order's own sequence, and takes none out.

    An entry may get a place that the cursor has passed. One that returns there is shown only while ``sees_returns`` is
    true, and a new one only while ``looks_back`` is true. Entries read from pages are shown only to a cursor that does
    not read pages itself (``reads_pages``).
    """

    __slots__ = ("looks_back", "reads_pages", "seen_before", "sees_returns")

    def __init__(self) -> None:
        self.looks_back = True
        """Is anything shown that comes to a place already passed?"""
        self.sees_returns = True
        self.reads_pages = True
        self.seen_before = LOWEST
        """An entry from a page with a lower sequence was seen in the page."""

    def is_news(self, sequence: int) -> bool:
        """Is an entry from a page, with this sequence, new to the reader?"""
        return not self.reads_pages or sequence >= self.seen_before

    @property
    @abstractmethod
    def has_returns(self) -> bool:
        """Are there entries at places it has passed that it must still show?"""

    @property
    @abstractmethod
    def point(self) -> Point:
        """The position. It does not contain which entries returned before it and have not been shown yet."""

    @abstractmethod
    def skip_to(self, sequence: int) -> None:
        """Pass everything before this sequence: the reader has seen it in a page."""

    @abstractmethod
    def advance(self) -> Entry | None:
        """The next entry not shown yet, or None. It stays in the order, and its ``sequence`` is filled in."""


class Order(ABC):
    """Ready entries of one queue."""

    __slots__ = ("count", "expression")

    def __init__(self) -> None:
        self.count = 0
        self.expression: Expression | None = None
        """What is evaluated to find an entry's place, which costs something; None when nothing is."""

    @abstractmethod
    def level_of(self, message: Message) -> int:
        """The level of a message's entry."""

    # ---- in --------------------------------------------------------------------------------------

    @abstractmethod
    def extend(self, entries: list[Entry]) -> None:
        """Append arrivals in order; at least one."""

    @abstractmethod
    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        """Put an entry back in its own place. Cursors that have passed the place note it. ``fresh``: no cursor can
        have shown the entry.
        """

    @abstractmethod
    def place(self, entry: Entry) -> None:
        """Put an entry from a page in its own place. Cursors that have seen it in the page do not note it."""

    @abstractmethod
    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        """Put an entry before all others of the same rank. ``fresh``: it never stood here, so no cursor has shown
        it.
        """

    # ---- sequences -------------------------------------------------------------------------------

    @abstractmethod
    def tail_max(self) -> int:
        """A sequence above those of all entries."""

    @abstractmethod
    def reserve(self, sequence: int) -> None:
        """Give arrivals this sequence or a higher one from now on. Those below belong to messages in pages, which
        cursors have passed there.
        """

    @abstractmethod
    def take_sequence(self, message: Message) -> int:
        """Take the sequence that an arrival of this message would get. It is not given again."""

    @abstractmethod
    def last_sequence(self, message: Message) -> int:
        """The sequence of the newest arrival on this message's level."""

    # ---- out -------------------------------------------------------------------------------------

    @abstractmethod
    def peek(self) -> Entry:
        """The next entry; it stays. Its ``sequence`` is filled in. Raises IndexError when there is none."""

    @abstractmethod
    def pop(self) -> Entry:
        """Take the next entry out. Raises IndexError when there is none."""

    @abstractmethod
    def pop_least(self) -> Entry:
        """Take out the least entry, the one that a ring drops. Raises IndexError when there is none."""

    @abstractmethod
    def remove(self, entry: Entry, sequence: int) -> bool:
        """Take this very entry out of its place. Returns False when it is not in the order (in delivery, or gone)."""

    # ---- looking ---------------------------------------------------------------------------------

    @abstractmethod
    def place_of(self, message: Message, sequence: int) -> Place:
        """The place of a message with this sequence."""

    @abstractmethod
    def standing_at(self, place: Place) -> Entry | None:
        """The entry at this place, or None. Its ``sequence`` is filled in."""

    @abstractmethod
    def at(self, level: int, sequence: int) -> Entry | None:
        """The entry with exactly this level and sequence, or None."""

    @abstractmethod
    def next_from(self, sequence: int) -> Entry | None:
        """The entry with the lowest sequence that is at least this, on whatever level; None when there is none. It
        stays, and its ``sequence`` is filled in.
        """

    @abstractmethod
    def find_published(self, lsn: int) -> Entry | None:
        """The entry of the message that was published at this lsn; None when it is not here. It stays, and its
        ``sequence`` is filled in. Arrivals must have come in the order of their publication.
        """

    @abstractmethod
    def oldest_ms(self) -> int:
        """When the oldest of the messages arrived that are first on their levels, in epoch ms; 0: nothing is ready. Of
        messages on one level, those behind the first are not looked at.
        """

    @abstractmethod
    def __iter__(self) -> Iterator[Entry]:
        """Every entry, the next one first."""

    @abstractmethod
    def open_cursor(self, at: Point | None = None) -> Cursor:
        """A cursor before the first entry, or where another one stood (``at``). Raises ValueError if no cursor of this
        order can have stood there.
        """

    @abstractmethod
    def close_cursor(self, cursor: Cursor) -> None:
        """Close a cursor: it does not note returned entries any more."""
