"""The axis "order": which ready entry is next, and which is the least, the one that a ring gives up.

An entry's place is its level and its sequence. What a level is, the order alone knows; queues keep it only to look
again at a place where an entry stood.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from artemis_py.core.queue.entry import Entry
from artemis_py.message import Message

Place = tuple[Any, int]
"""What decides which entry is next, smaller first: what the entry is worth in its order, and its sequence."""


LOWEST: Final = -(1 << 62)
"""No sequence is lower."""


class Cursor(ABC):
    """One reader's place in an order: it shows each entry once, in the order's own sequence.

    It does not take entries. An entry that comes back to a place already passed is shown (again) only while
    ``sees_returns`` is true, and one that comes from a page only where it does not read pages itself
    (``reads_pages``).
    """

    __slots__ = ("reads_pages", "seen_before", "sees_returns")

    def __init__(self) -> None:
        self.sees_returns = True
        self.reads_pages = True
        self.seen_before = LOWEST
        """What has a lower sequence than this and comes from a page was seen there."""

    def is_news(self, sequence: int) -> bool:
        """Was what comes from a page to this sequence not seen in its page?"""
        return not self.reads_pages or sequence >= self.seen_before

    @abstractmethod
    def skip_to(self, sequence: int) -> None:
        """What stands before this sequence was seen elsewhere (in a page)."""

    @abstractmethod
    def advance(self) -> Entry | None:
        """The next entry not shown yet, or None. Its ``sequence`` is filled in; it stays in the order."""


class Order(ABC):
    """Ready entries of one queue."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @abstractmethod
    def level_of(self, message: Message) -> int:
        """The level on which an entry of this message stands."""

    # ---- in --------------------------------------------------------------------------------------

    @abstractmethod
    def extend(self, entries: list[Entry]) -> None:
        """Put in arrivals, in order; there is at least one."""

    @abstractmethod
    def restore(self, entry: Entry, *, fresh: bool = False) -> None:
        """Put an entry back to its own place; cursors that have passed it are told. ``fresh``: no cursor can have shown
        it.
        """

    @abstractmethod
    def place(self, entry: Entry) -> None:
        """Put an entry that comes from a page to its own place. Cursors that have seen it in its page are not told."""

    @abstractmethod
    def restore_at_head(self, entry: Entry, *, fresh: bool) -> None:
        """Put an entry before all others that are worth the same. ``fresh``: it never stood here, so no cursor has
        shown it.
        """

    # ---- sequences -------------------------------------------------------------------------------

    @abstractmethod
    def tail_max(self) -> int:
        """A sequence above those of all entries."""

    @abstractmethod
    def reserve(self, sequence: int) -> None:
        """Arrivals stand at or behind this sequence from now on: what is before it is for messages in pages, which
        cursors have passed there.
        """

    @abstractmethod
    def take_sequence(self, message: Message) -> int:
        """The sequence that an arrival of this message would take; it is not given again."""

    @abstractmethod
    def last_sequence(self, message: Message) -> int:
        """The sequence that the newest arrival on this message's level took."""

    # ---- out -------------------------------------------------------------------------------------

    @abstractmethod
    def peek(self) -> Entry:
        """The next entry; it stays. Its ``sequence`` is filled in. Raises IndexError when there is none."""

    @abstractmethod
    def pop(self) -> Entry:
        """Take the next entry out. Raises IndexError when there is none."""

    @abstractmethod
    def pop_least(self) -> Entry:
        """Take out the entry that a ring gives up. Raises IndexError when there is none."""

    @abstractmethod
    def remove(self, entry: Entry, sequence: int) -> bool:
        """Take this very entry out from its place; False when it does not stand there (in delivery, or gone)."""

    # ---- looking ---------------------------------------------------------------------------------

    @abstractmethod
    def place_of(self, message: Message, sequence: int) -> Place:
        """The place of a message with this sequence."""

    @abstractmethod
    def standing_at(self, place: Place) -> Entry | None:
        """The entry at this place, if any; its ``sequence`` is filled in."""

    @abstractmethod
    def at(self, level: int, sequence: int) -> Entry | None:
        """The entry at exactly this place, if any."""

    @abstractmethod
    def __iter__(self) -> Iterator[Entry]:
        """Every entry, the next one first."""

    @abstractmethod
    def open_cursor(self) -> Cursor:
        """A cursor before the first entry."""

    @abstractmethod
    def close_cursor(self, cursor: Cursor) -> None:
        """Forget a cursor; entries that come back are no longer noted for it."""
