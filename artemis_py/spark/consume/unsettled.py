"""What the broker has sent to a stream that consumes a queue, and what has become of it. Messages stand in it by their
bookmarks; bodies never come here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that the broker has sent."""

    bookmark: int
    message_id: int
    timestamp_ms: int
    """When the broker accepted it."""
    size_bytes: int
    """Of its body."""
    lease_ends_ms: int
    """The broker's date at which the lease ends; 0: it does not."""


@final
class Unsettled:
    """A message *waits* until it is *planned* in a batch, and is *done* when the batch is. What comes again because its
    lease has ended, or the connection, is recognised.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, Arrival] = {}
        """In the order of the queue."""
        self.planned: dict[int, Arrival | None] = {}
        """The messages of the batch that is not done; None: the broker has not sent it over this connection."""
        self.done: set[int] = set()
        """Messages of batches that are done, as long as they may be on the queue."""
        self.came_again: set[int] = set()
        """Those of them that the broker has sent again: they are to be acknowledged again."""
        self.arrival_count = 0
        self.lapsed_count = 0
        """How often a message of the batch came again although the connection held."""

    @property
    def held_count(self) -> int:
        """How many messages the broker believes to be here."""
        return len(self.waiting) + sum(one is not None for one in self.planned.values()) + len(self.came_again)

    # ---- what the broker does --------------------------------------------------------------------

    def arrived(self, one: Arrival) -> None:
        """The broker has sent a message."""
        self.arrival_count += 1
        bookmark = one.bookmark
        if bookmark in self.planned:
            self.lapsed_count += self.planned[bookmark] is not None
            self.planned[bookmark] = one
        elif bookmark in self.done:
            self.came_again.add(bookmark)
        else:
            self.waiting[bookmark] = one

    def lost(self) -> None:
        """The connection is lost, and everything is back on the queue."""
        self.waiting.clear()
        self.came_again.clear()
        self.planned = dict.fromkeys(self.planned)

    # ---- batches ---------------------------------------------------------------------------------

    def count_up_to(self, top: int | None) -> int:
        """How many messages wait, up to a bookmark (None: any)."""
        if top is None:
            return len(self.waiting)
        return sum(bookmark <= top for bookmark in self.waiting)

    def plan(self, count_max: int, bytes_max: int | None, top: int | None, now_ms: float) -> list[Arrival]:
        """Plan a batch, the first messages of the queue first: at most so many, with so many bytes (but at least one
        message), and up to a bookmark. Messages whose leases have ended are not here any more.
        """
        taken: list[Arrival] = []
        filled = 0
        for one in list(self.waiting.values()):
            if one.lease_ends_ms and one.lease_ends_ms <= now_ms:
                del self.waiting[one.bookmark]
            elif top is None or one.bookmark <= top:
                filled += one.size_bytes
                if len(taken) == count_max or (bytes_max is not None and taken and filled > bytes_max):
                    break
                taken.append(one)
        for one in taken:
            self.planned[one.bookmark] = self.waiting.pop(one.bookmark)
        return taken

    def restore(self, bookmarks: Iterable[int]) -> None:
        """A batch runs that was planned before this pool was there."""
        for bookmark in bookmarks:
            if bookmark not in self.planned:
                self.planned[bookmark] = self.waiting.pop(bookmark, None)

    def finish(self, bookmarks: Iterable[int]) -> int:
        """These messages are done. What was planned besides was never used, and waits again. Returns how many of them
        the broker believed to be here.
        """
        done = set(bookmarks)
        held = sum(self.planned.pop(bookmark, None) is not None for bookmark in done)
        self.done |= done
        self.came_again.update([bookmark for bookmark in done if self.waiting.pop(bookmark, None) is not None])
        unused = self.planned
        self.planned = {}
        ahead = {bookmark: one for bookmark, one in unused.items() if one is not None}
        self.waiting = {**ahead, **self.waiting}
        return held

    def settled(self, bookmarks: Collection[int], kept: Collection[int]) -> None:
        """The broker has confirmed that these are gone, except for those that it kept."""
        gone = set(bookmarks) - set(kept)
        self.done -= gone
        self.came_again -= gone
