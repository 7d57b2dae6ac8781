"""Finds expired messages in pages without a consumer that reads them.

A page knows when the first of its messages expires. Only pages for which that time has come are searched. The search
notes when the next message of a page expires, so no page is read twice for the same messages. A queue with
``max-message-ttl`` or ``expiration`` must read each page once to know that time.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.pages.backlog import Backlog
from artemis_py.core.pages.stream import PageReader
from artemis_py.core.reference.lifetime import Lifetime
from artemis_py.paged import Page
from artemis_py.records import PagedEntry


@final
class PageExpiry:
    """One queue's search in one stream. It moves no entries and reads no clock."""

    __slots__ = ("_backlog", "_count", "_earliest_ms", "_known", "_lifetime", "_page", "_reader")

    def __init__(self, backlog: Backlog, lifetime: Lifetime | None) -> None:
        self._backlog = backlog
        self._lifetime = lifetime
        self._page: Page | None = None
        self._reader: PageReader | None = None
        self._count = 0
        self._earliest_ms = 0
        self._known: dict[int, tuple[int, int]] = {}
        """By page number: how many messages the page had when it was searched, and when the next of them expires (epoch
        ms).
        """

    @property
    def is_under_way(self) -> bool:
        """Is a page being searched?"""
        return self._page is not None

    @property
    def waits(self) -> bool:
        """Does it wait for the disk?"""
        return self._reader is not None and self._reader.waits

    def search(self, now_ms: int, reads_max: int) -> list[PagedEntry]:
        """Expired messages, found by looking at ``reads_max`` messages at most."""
        expired: list[PagedEntry] = []
        lifetime = self._lifetime
        while reads_max > 0 and (self._page is not None or self._begin(now_ms)):
            assert self._reader is not None
            found = self._backlog.next_for(self._reader)
            if found is None and self._reader.waits:
                break
            if found is None or found.message.page is not self._page:
                self._end()
                continue
            reads_max -= 1
            message = found.message
            expires_ms = message.expires_ms if lifetime is None else lifetime.expires_ms(message)
            if 0 < expires_ms <= now_ms:
                expired.append(found)
            elif expires_ms and not 0 < self._earliest_ms <= expires_ms:
                self._earliest_ms = expires_ms
        return expired

    def _begin(self, now_ms: int) -> bool:
        """Turn to the next page for which the time has come. Returns False when there is none."""
        backlog = self._backlog
        gives_expiry = self._lifetime is not None and self._lifetime.gives_expiry
        for page in backlog.stream.pages:
            if backlog.reader.queue.id not in page.left:
                continue
            count, earliest_ms = self._known.get(page.number, (-1, 0))
            first_ms = now_ms if gives_expiry else page.expires_ms
            due_ms = earliest_ms if count == page.count else first_ms
            if 0 < due_ms <= now_ms:
                self._page, self._count, self._earliest_ms = page, page.count, 0
                self._reader = backlog.reader.at(page)
                return True
        return False

    def _end(self) -> None:
        assert self._page is not None
        self._known[self._page.number] = (self._count, self._earliest_ms)
        if len(self._known) > 2 * len(self._backlog.stream.pages) + 16:
            numbers = {page.number for page in self._backlog.stream.pages}
            self._known = {number: known for number, known in self._known.items() if number in numbers}
        self._page = self._reader = None
