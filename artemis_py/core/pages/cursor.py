"""What one queue has in an address' pages: how far it has read, what is left, and what has expired there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.settings import AddressSettings
from artemis_py.core.consumer import Consumer
from artemis_py.core.pages.page_stream import PageReader, PageStream
from artemis_py.core.queue_reference import Lifetime
from artemis_py.paged_messages import Page, PagedMessage, PlaceSet
from artemis_py.record_log import PagedEntry

# ---- backlog ---------------------------------------------------------------------------------------------------------
#
# What one queue has in an address' pages: what is still there, what it took out of turn, and how far it has read.
# Order is a key here, too. A message from a page takes the sequence that its place gives it, above everything that
# stood on the queue when paging began. So a message that a consumer fetched from far back, and returned, stands
# behind those that were not read yet.


UNLIMITED: Final = -1
_UNSEEN_MIN: Final = 64
"""A reader that notes more places than this, and twice as many as are in memory, forgets those of settled messages."""


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How much of its pages a queue may have in memory; -1: no such limit. ``bytes_max`` and ``messages_max``
    (``max-read-page-*``) count messages that consumers hold, too. ``ready_*`` (``prefetch-page-*``) count ready ones
    only.
    """

    bytes_max: int
    messages_max: int
    ready_bytes_max: int
    ready_messages_max: int
    bytes_setting: str = "max-read-page-bytes"
    """The setting that ``bytes_max`` comes from."""

    @staticmethod
    def of(settings: AddressSettings) -> ReadAhead:
        """The limits of an address-setting. With all of them off the limit is ``max-size-bytes``, or two pages without
        that.
        """
        limits = (
            settings.max_read_page_bytes,
            settings.max_read_page_messages,
            settings.prefetch_page_bytes,
            settings.prefetch_page_messages,
        )
        if max(limits) < 0:
            if settings.max_size_bytes > 0:
                return ReadAhead(settings.max_size_bytes, UNLIMITED, UNLIMITED, UNLIMITED, "max-size-bytes")
            return ReadAhead(2 * settings.page_size_bytes, UNLIMITED, UNLIMITED, UNLIMITED, "page-size-bytes")
        return ReadAhead(*limits)

    def reached(self, ready_count: int, ready_bytes: int, held_count: int, held_bytes: int) -> str:
        """The setting whose limit keeps one more message from being read; empty: none does."""
        if 0 <= self.ready_messages_max <= ready_count:
            return "prefetch-page-messages"
        if 0 <= self.ready_bytes_max <= ready_bytes:
            return "prefetch-page-bytes"
        if 0 <= self.messages_max <= ready_count + held_count:
            return "max-read-page-messages"
        if 0 <= self.bytes_max <= ready_bytes + held_bytes:
            return self.bytes_setting
        return ""


class Backlog:
    """What one queue has in the pages of one address, while paging lasts.

    ``shared_order`` is false for a queue that also gets messages of other addresses (it is bound to a wildcard, or it
    is a view). There is no order among addresses, so it takes messages in the order in which it reads them.
    """

    __slots__ = (
        "_attempts", "_base", "_early_place", "_taken", "count", "durable_count", "durable_size_bytes",
        "in_memory", "period", "reader", "shared_order", "size_bytes", "stream",
    )  # fmt: skip

    def __init__(self, stream: PageStream, reader: PageReader, base: int, *, shared_order: bool) -> None:
        self.stream = stream
        self.reader = reader
        self.shared_order = shared_order
        self.period = stream.period
        self.count = 0
        self.size_bytes = 0
        self.durable_count = 0
        self.durable_size_bytes = 0
        self.in_memory: dict[int, PagedMessage] = {}
        """Messages that were taken and are not settled, by place: ready, scheduled, or with a consumer or its
        transaction.
        """
        self._base = base
        self._early_place = 0
        self._taken: dict[int, PlaceSet] = {}
        self._attempts: dict[int, tuple[int, int]] = {}

    def add(self, count: int, size_bytes: int, durable_count: int, durable_size_bytes: int) -> None:
        """Count messages that were paged, and their bytes."""
        self.count += count
        self.size_bytes += size_bytes
        self.durable_count += durable_count
        self.durable_size_bytes += durable_size_bytes

    def restore(self, page: Page, settled: PlaceSet, attempts: dict[int, tuple[int, int]]) -> None:
        """After a restart: note which places of a page are settled, and failed deliveries by place."""
        self._taken[page.number] = PlaceSet(page.first_place, settled.encode())
        self._attempts.update(attempts)

    @property
    def end_sequence(self) -> int:
        """An order key above those of everything in pages."""
        return self.sequence_at(self.stream.next_place)

    def sequence(self, message: PagedMessage) -> int:
        """The message's order key on the queue."""
        return self.sequence_at(message.place)

    def came_back(self, message: PagedMessage) -> None:
        """A message is ready again. It may stand behind some that were not read yet; see ``is_early``."""
        if message.place >= self.reader.place:
            self._early_place = max(self._early_place, message.place)

    @property
    def has_early(self) -> bool:
        """Has a consumer fetched a message from far back and returned it, ahead of the reader?"""
        return self.reader.place <= self._early_place and self.count > 0 and self.shared_order

    def is_early(self, sequence: int) -> bool:
        """Does a message that was not read yet stand before this sequence?"""
        return sequence >= self._base + self.reader.place

    def due_ms(self, found: PagedEntry) -> int:
        """When the message may be delivered, in epoch ms (0: now): its schedule, or the delay after a delivery that
        failed before a restart.
        """
        state = self._attempts.get(found.message.place)
        return found.due_ms if state is None else state[1]

    def attempts(self, message: PagedMessage) -> int:
        """The number of deliveries that failed before a restart."""
        return self._attempts.get(message.place, (0, 0))[0]

    def has(self, message: PagedMessage) -> bool:
        """Is a message of these pages still in its page, neither taken nor settled?"""
        taken = self._taken.get(message.page.number)
        return message.place >= self.reader.place and (taken is None or message.place not in taken)

    def sequence_at(self, place: int) -> int:
        """The order key of what is at this place."""
        return self._base + place

    def next(self) -> PagedEntry | None:
        """The next message that is not taken. None when none is in memory yet, or at all."""
        return self.next_for(self.reader)

    def next_for(self, reader: PageReader, looks_max: int = UNLIMITED) -> PagedEntry | None:
        """The next message that is not taken, for a reader of its own. It looks at ``looks_max`` messages at most."""
        while looks_max and (found := reader.next()) is not None:
            looks_max -= 1
            place = found.message.place
            if place >= self.reader.place or reader is self.reader:
                taken = self._taken.get(found.message.page.number) if self._taken else None
                if taken is None or place not in taken:
                    return found
            if reader.unseen is not None and place in self.in_memory:
                reader.unseen.add(place)
        return None

    def lead(self, reader: PageReader | None, consumer: Consumer | None, *, takes: bool) -> PageReader:
        """The reader of a consumer with a cursor (None: of an operator), moved up to the queue's own reader if it was
        behind. Without a shared order, the reader of a browser (not ``takes``) notes the messages that it skips.
        """
        start = 0 if reader is None else reader.place
        if reader is None:
            reader = self.reader.copy(consumer)
            if not (self.shared_order or takes):
                reader.unseen = set()
        elif start < self.reader.place:
            reader.follow(self.reader)
        unseen, in_memory = reader.unseen, self.in_memory
        if unseen is not None:
            if reader.place - start < len(in_memory):
                unseen.update(place for place in range(start, reader.place) if place in in_memory)
            elif start < reader.place:
                unseen.update(place for place in in_memory if start <= place < reader.place)
            if len(unseen) > 2 * len(in_memory) + _UNSEEN_MIN:
                unseen.intersection_update(in_memory)
        return reader

    def take(self, message: PagedMessage) -> None:
        """The queue has the message in memory now, or has settled it."""
        self.count -= 1
        self.size_bytes -= message.size_bytes
        if message.head.persistent:
            self.durable_count -= 1
            self.durable_size_bytes -= message.size_bytes
        self.in_memory[message.place] = message
        if self._attempts:
            self._attempts.pop(message.place, None)
        if message.place < self.reader.place:
            return
        page = message.page
        taken = self._taken.get(page.number)
        if taken is None:
            first = self.reader.page_number
            self._taken = {number: places for number, places in self._taken.items() if number >= first}
            taken = self._taken[page.number] = PlaceSet(page.first_place)
        taken.add(message.place)

    def drop_all(self) -> None:
        """Drop everything in pages."""
        self.count = self.size_bytes = self.durable_count = self.durable_size_bytes = 0
        self._attempts.clear()
        self.reader.skip_all()


# ---- expiry ----------------------------------------------------------------------------------------------------------
#
# Finds expired messages in pages without a consumer that reads them. A page knows when the first of its messages
# expires. Only pages for which that time has come are searched. The search notes when the next message of a page
# expires, so no page is read twice for the same messages. A queue with ``max-message-ttl`` or ``expiration`` must
# read each page once to know that time.


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

    def begin_again(self) -> None:
        """Search every page again: expiring a message that was found has failed."""
        self._known.clear()
        self._page = self._reader = None

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
