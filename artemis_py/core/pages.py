"""The pages of an address: messages that found no room in memory, in order, for all of its queues. And what one queue
has in them: how far it has read, what is left, and what has expired there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, final

from artemis_py.config.settings import AddressSettings
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import PAGES_NO_MORE, Events
from artemis_py.core.queue_reference import Lifetime, QueueReference
from artemis_py.message import Account, LargeBody, Message
from artemis_py.paged_messages import Page, PagedBody, PagedMessage, PageShare, PlaceSet, SettledPlaces
from artemis_py.record_log import Actor, Chunk, KeptStream, PagedEntry, PageLog, RecordLog

# ---- stream ----------------------------------------------------------------------------------------------------------
#
# An address' stream of pages: messages that found no room in memory, in order, for all of the address' queues. The
# stream knows which pages there are and what each queue still needs of them. It holds only messages that are being
# read, and does no I/O: it asks the ``PageLog``, whose answers come in a later turn.


UNWRITTEN_BYTES_MAX: Final = 8 << 20
"""Senders wait while more bytes than this are gathered for pages and not written (Artemis gathers one page)."""


@final
@dataclass(frozen=True, slots=True)
class RestoredShare:
    """What one queue has left in a page after a restart: ``left`` messages and encoded bytes, the places that are
    settled, and failed deliveries by place (how many, and when the next attempt is due in epoch ms).
    """

    queue_id: int
    page: Page
    left: tuple[int, int]
    settled: PlaceSet
    attempts: dict[int, tuple[int, int]]


class PageStream:
    """The pages of one address. It is ``active`` from the first message that finds no room until every queue has
    settled every page. Meanwhile all arrivals go to pages, which keeps the order (Artemis manual, "Paging").
    """

    def __init__(
        self,
        number: int,
        address: str,
        account: Account,
        log: RecordLog,
        events: Events,
        files: PageLog,
        page_bytes: int,
    ) -> None:
        self.number = number
        self.address = address
        self.account = account
        self.period = 0
        """How often paging has begun. What queues remember of an earlier time of paging is void."""
        self.pages: list[Page] = []
        self.message_count: dict[int, int] = {}
        """How many messages each queue has not settled, over all pages, by queue number."""
        self._log = log
        self._events = events
        self._files = files
        self.page_bytes = page_bytes
        """The size at which a page is full, in bytes."""
        self._next_page = 1
        self._next_place = 1
        self._awaiting: dict[tuple[int, int], list[PageReader]] = {}

    @property
    def active(self) -> bool:
        """Must arrivals go to pages?"""
        return bool(self.pages)

    @property
    def next_place(self) -> int:
        """The place that the next message takes."""
        return self._next_place

    @property
    def is_behind(self) -> bool:
        """Must senders wait for the disk, because too much is gathered?"""
        return self._files.backlog_bytes > UNWRITTEN_BYTES_MAX

    # ---- writing ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Send arrivals to pages from now on."""
        if not self.pages:
            self.period += 1
            self._add_page()

    def _add_page(self) -> Page:
        page = Page(self.number, self._next_page, self._next_place)
        self._next_page += 1
        self._log.page_opened(page, self.address)  # nothing may go to a page that a restart does not know
        page.size_bytes = self._files.open(page, self.address)
        self.pages.append(page)
        return page

    def _turn_page(self, full: Page) -> Page:
        """Add a page behind a full one. The full one goes if every queue has settled it already."""
        page = self._add_page()
        self._let_go(full)
        return page

    def append(self, messages: list[Message], queues: list[QueueReference], due_ms: int) -> None:
        """Append messages that all go to the same queues. ``due_ms`` (epoch ms, 0: none) schedules them. If it raises,
        those before ``next_place`` are in pages, and are counted.
        """
        queue_ids = [queue.id for queue in queues]
        keeping = [queue.id for queue in queues if queue.durable]
        page = self.pages[-1]
        run: list[Message] = []
        try:
            for message in messages:
                record = self._files.encode(message, self._next_place, queue_ids, due_ms)
                if page.count and page.size_bytes + len(record) > self.page_bytes:
                    whole, run = run, []
                    self._count(page, whole, queue_ids, keeping)
                    page = self._turn_page(page)
                self._files.append(page, record, durable=message.head.persistent and bool(keeping))
                if message.body.__class__ is LargeBody:
                    page.large[self._next_place] = PagedBody(message.body, queue_ids)
                    page.has_large = True
                page.size_bytes += len(record)
                page.count += 1
                self._next_place += 1
                if message.expires_ms and not 0 < page.expires_ms <= message.expires_ms:
                    page.expires_ms = message.expires_ms
                run.append(message)
        finally:
            self._count(page, run, queue_ids, keeping)

    def _count(self, page: Page, run: list[Message], queue_ids: list[int], keeping: list[int]) -> None:
        """Note what the queues have of a page. Tell the log if a restart will find any of it."""
        if not run:
            return
        for queue_id in queue_ids:
            page.left[queue_id] = page.left.get(queue_id, 0) + len(run)
            self.message_count[queue_id] = self.message_count.get(queue_id, 0) + len(run)
        durable = [message for message in run if message.head.persistent]
        if not durable or not keeping:
            return
        size_bytes = sum(message.size_bytes for message in durable)
        for queue_id in keeping:
            page.durable.setdefault(queue_id, PageShare()).add(len(durable), size_bytes)
        lsn = self._log.paged(page)
        if self._log.audit.is_enabled:
            return  # each has the lsn of its own record, in the same group
        for message in durable:
            message.lsn = lsn

    # ---- reading ---------------------------------------------------------------------------------

    def request(self, reader: PageReader, page: Page, offset: int) -> None:
        """Fetch a part of a page for a reader. Readers that want the same part share it."""
        waiting = self._awaiting.setdefault((page.number, offset), [])
        if not waiting:
            self._files.request(page, offset)
        waiting.append(reader)

    def arrived(self, chunk: Chunk) -> list[PageReader]:
        """A part has arrived. Returns the readers that waited for it, and now have it."""
        readers = self._awaiting.pop((chunk.page.number, chunk.offset), [])
        for reader in readers:
            reader.take(chunk)
        return readers

    # ---- settling --------------------------------------------------------------------------------

    def record_settled(
        self, queue: QueueReference, messages: list[PagedMessage], reason: str, by: Actor | None = None
    ) -> None:
        """Write down that a queue settles messages, for ``reason``. ``settle`` follows. ``by``: the consumer, for a
        retained log.
        """
        if queue.durable:
            for group in _by_page(messages).values():
                durable = [message for message in group if message.head.persistent]
                if durable:
                    self._log.page_settled(queue.id, durable, reason, by)

    def settle(self, queue: QueueReference, messages: list[PagedMessage]) -> None:
        """A queue has settled messages, and that is written down. Pages that nobody needs any more go."""
        for group in _by_page(messages).values():
            page = group[0].page
            if page.large:
                _let_bodies_go(page, queue.id, [message.place for message in group])
            self._reduce(queue.id, page, len(group))

    def _reduce(self, queue_id: int, page: Page, count: int) -> None:
        self.message_count[queue_id] -= count
        page.left[queue_id] -= count
        if not page.left[queue_id]:
            del page.left[queue_id]
            self._let_go(page)
            self._note_end()

    def record_purged(self, queue: QueueReference, held: list[PagedMessage], reason: str) -> None:
        """Write down that a queue settles everything but ``held``, the messages that it has in memory. ``purge``
        follows.
        """
        by_page = _by_page(held)
        for page in self.pages:
            self._record_purged(queue, page, by_page.get(page.number, []), reason)

    def purge(self, queue: QueueReference, held: list[PagedMessage]) -> None:
        """A queue has settled everything but ``held``, and that is written down."""
        by_page = _by_page(held)
        for page in list(self.pages):
            self._purge_page(queue, page, by_page.get(page.number, []))

    def purge_page(self, queue: QueueReference, page: Page, kept: list[PagedMessage], reason: str) -> int:
        """A queue has settled a page, but for ``kept``, the messages of it in memory. Returns how many messages
        went.
        """
        self._record_purged(queue, page, kept, reason)
        return self._purge_page(queue, page, kept)

    def _record_purged(self, queue: QueueReference, page: Page, kept: list[PagedMessage], reason: str) -> None:
        has_more = page.left.get(queue.id, 0) > len(kept)
        if has_more and queue.durable and queue.id in page.durable:
            durable = [message for message in kept if message.head.persistent]
            self._log.page_purged(queue.id, page, durable, reason)

    def _purge_page(self, queue: QueueReference, page: Page, kept: list[PagedMessage]) -> int:
        count = page.left.get(queue.id, 0) - len(kept)
        if count > 0:
            if page.large:
                _let_bodies_go(page, queue.id, page.large.keys() - {message.place for message in kept})
            self._reduce(queue.id, page, count)
        return count

    def forget(self, queue: QueueReference) -> None:
        """A queue was deleted."""
        self.message_count.pop(queue.id, None)
        for page in list(self.pages):
            if page.left.pop(queue.id, None):
                _let_bodies_go(page, queue.id, list(page.large))
                self._let_go(page)
                self._note_end()

    def _let_go(self, page: Page) -> None:
        """Remove a page that no queue needs. The last page stays while another one does, so that arrivals can
        follow.
        """
        pages = self.pages
        if page.left or page.gone:
            return
        if page is not pages[-1]:
            self._drop(page)
        if len(pages) == 1 and not pages[0].left:
            self._drop(pages[0])

    def _note_end(self) -> None:
        """Note for the operational log that no page is left, if that is so."""
        if not self.pages:
            account = self.account
            fields: dict[str, str | int] = {
                "address": self.address,
                "messages": account.message_count,
                "bytes": account.size_bytes,
            }
            self._events.note(PAGES_NO_MORE, "", fields, kind=self.address)

    def _drop(self, page: Page) -> None:
        page.gone = True
        page.large.clear()
        del self.pages[bisect_left(self.pages, page.number, key=_number)]
        self._log.page_dropped(page)
        self._files.drop(page)

    # ---- after a restart -------------------------------------------------------------------------

    def restore(self, kept: KeptStream, queue_ids: Container[int]) -> list[RestoredShare]:
        """Go on with the pages that a restart found. Returns what the queues in ``queue_ids`` have in them."""
        self.period = 1
        shares: list[RestoredShare] = []
        for page in kept.pages:
            page.restored = True
            for queue_id, share in page.durable.items():
                if queue_id in queue_ids:
                    restored = self._restored(kept, page, share, queue_id)
                    if restored is not None:
                        shares.append(restored)
            self._next_page = page.number + 1
            self._next_place = page.end_place
        self.pages = list(kept.pages)
        if self.pages:
            self._add_page()  # never append to a page that a restart found: its end may be torn
        for page in list(self.pages):
            self._let_go(page)
        return shares

    def _restored(self, kept: KeptStream, page: Page, share: PageShare, queue_id: int) -> RestoredShare | None:
        settled = kept.settled.get((queue_id, page.number)) or SettledPlaces(PlaceSet(page.first_place))
        count = share.count - settled.count
        if not count:
            return None
        page.left[queue_id] = count
        self.message_count[queue_id] = self.message_count.get(queue_id, 0) + count
        attempts: dict[int, tuple[int, int]] = {}
        if kept.attempts:
            for place in range(page.first_place, page.end_place):
                if (queue_id, place) in kept.attempts:
                    attempts[place] = kept.attempts[queue_id, place]
        left = count, share.size_bytes - settled.size_bytes
        return RestoredShare(queue_id, page, left, settled.places, attempts)


def _by_page(messages: Iterable[PagedMessage]) -> dict[int, list[PagedMessage]]:
    """The messages by the number of their page."""
    by_page: dict[int, list[PagedMessage]] = {}
    for message in messages:
        by_page.setdefault(message.page.number, []).append(message)
    return by_page


def _let_bodies_go(page: Page, queue_id: int, places: Iterable[int]) -> None:
    """A queue no longer needs the large bodies at these places."""
    for place in places:
        held = page.large.get(place)
        if held is not None:
            held.queue_ids.discard(queue_id)
            if not held.queue_ids:
                del page.large[place]


class PageReader:
    """One reader's place in a stream, for a queue or one of its consumers. It finds each message of the queue once, in
    order.

    ``next`` returns None both at the end and while it waits for the disk; ``waits`` says which. When the part that it
    waits for arrives, the queue is woken.
    """

    __slots__ = (
        "_chunk",
        "_found",
        "_offset",
        "_page",
        "_place",
        "_stream",
        "consumer",
        "looked",
        "queue",
        "spoilt",
        "unseen",
        "waits",
    )

    def __init__(self, stream: PageStream, queue: QueueReference, consumer: Consumer | None, place: int) -> None:
        self.queue = queue
        self.consumer = consumer
        """The consumer that it reads for; None: for the queue itself."""
        self.waits = False
        self.looked = 0
        """How many messages it has found."""
        self.spoilt: list[Page] = []
        """Damaged pages that it has read to their end."""
        self.unseen: set[int] | None = None
        """Places that it went past while their messages were in memory; None: it does not note them."""
        self._stream = stream
        self._place = place
        self._page: Page | None = None
        self._offset = 0
        self._chunk: Chunk | None = None
        self._found: Iterator[PagedEntry] = iter(())

    @property
    def place(self) -> int:
        """Every message before this place was found."""
        return self._place

    @property
    def is_at_end(self) -> bool:
        """Has it found all that the queue has in pages?"""
        page = self._page
        if self.waits or self._chunk is not None:
            return False
        is_read = page is None or self._offset >= page.size_bytes or self.queue.id not in page.left
        return is_read and self._next_page() is None

    @property
    def page_number(self) -> int:
        """The number of the page that it reads; 0 before the first."""
        return 0 if self._page is None else self._page.number

    def copy(self, consumer: Consumer | None) -> PageReader:
        """Another reader at the same place."""
        other = PageReader(self._stream, self.queue, consumer, self._place)
        other.follow(self)
        return other

    def at(self, page: Page) -> PageReader:
        """Another reader, at the beginning of a page."""
        return PageReader(self._stream, self.queue, None, page.first_place)

    def follow(self, other: PageReader) -> None:
        """Go on from where another reader is, unless it waits for the disk."""
        if self.waits:
            return
        self._place, self._page, self._offset = other._place, other._page, other._offset
        self._chunk = None
        self._found = iter(())

    @property
    def point(self) -> tuple[int, int, int]:
        """Where it stands: the number of its page, the offset there in bytes, and the place."""
        return self.page_number, self._offset, self._place

    def go_to(self, point: tuple[int, int, int]) -> None:
        """Go where another reader stood. If that page is gone, what it had is settled or in memory."""
        number, offset, self._place = point
        pages = self._stream.pages
        index = bisect_left(pages, number, key=_number)
        if index < len(pages) and pages[index].number == number:
            self._page, self._offset = pages[index], offset
        else:
            self._page, self._offset = None, 0
        self._chunk = None
        self._found = iter(())

    def next(self) -> PagedEntry | None:
        """The queue's next message, or None."""
        if self.waits:
            return None
        found = next(self._found, None)
        if found is not None:
            self.looked += 1
            self._place = found.message.place + 1
            self._offset = found.end
            return found
        self._fetch()
        return None

    def step_back(self, found: PagedEntry) -> None:
        """Return the last message of ``next`` once more: the step that took it has failed."""
        self._found = chain((found,), self._found)
        self._place = found.message.place
        if self._chunk is not None:
            self._offset = self._chunk.offset  # another reader that follows this one finds it, too

    def _fetch(self) -> None:
        """Ask for the next part, if there is one."""
        if self._chunk is not None:
            self._offset = self._chunk.end
            self._chunk = None
        page = self._page
        if page is not None and page.damaged and self._offset >= page.size_bytes:
            self.spoilt.append(page)
        if page is None or self._offset >= page.size_bytes or self.queue.id not in page.left:
            page = self._next_page()
            if page is None:
                return
            self._page, self._offset = page, 0
            self._place = max(self._place, page.first_place)
        self._stream.request(self, page, self._offset)
        self.waits = True

    def _next_page(self) -> Page | None:
        """The next page in which the queue has something."""
        pages = self._stream.pages
        queue_id = self.queue.id
        behind = bisect_right(pages, self.page_number, key=_number)
        for index in range(max(behind, bisect_right(pages, self._place, key=_first_place) - 1), len(pages)):
            page = pages[index]
            if page.end_place > self._place and queue_id in page.left:
                return page
        return None

    def skip_all(self) -> None:
        """Skip everything that is in pages now."""
        self._page = self._stream.pages[-1]
        self._offset = self._page.size_bytes
        self._place = self._stream.next_place
        self._chunk = None
        self._found = iter(())

    def take(self, chunk: Chunk) -> None:
        """Take the part that it waited for."""
        self.waits = False
        if chunk.page is not self._page or chunk.offset != self._offset:
            return
        self._chunk = chunk
        self._found = chunk.read(self.queue.id, chunk.page.resident, self._stream.account)


def _number(page: Page) -> int:
    return page.number


def _first_place(page: Page) -> int:
    return page.first_place


# ---- streams ---------------------------------------------------------------------------------------------------------
#
# The page streams of all addresses, by number.


@final
class Streams:
    """Opens and forgets the streams in which addresses keep messages that find no room in memory. ``files`` is None for
    a broker without page files: then nothing is paged.
    """

    __slots__ = ("_events", "_log", "by_number", "files", "number_max")

    def __init__(self, log: RecordLog, events: Events, files: PageLog | None) -> None:
        self._log = log
        self._events = events
        self.files = files
        self.by_number: dict[int, PageStream] = {}
        self.number_max = 0
        """The highest number that a stream has had; a number is never used again."""

    @property
    def are_possible(self) -> bool:
        """Are there files for pages?"""
        return self.files is not None

    def open(self, address: str, account: Account, page_bytes: int, number: int | None = None) -> PageStream:
        """A stream for an address that has none; ``number`` is for one that a restart brings back."""
        assert self.files is not None, "an address pages only where there are files for it"
        if number is None:
            number = self.number_max + 1
        self.number_max = max(self.number_max, number)
        stream = PageStream(number, address, account, self._log, self._events, self.files, page_bytes)
        self.by_number[number] = stream
        return stream

    def forget(self, stream: PageStream) -> None:
        """The address of the stream is gone. Queues on wildcard addresses may still read one that is active."""
        if not stream.active:
            del self.by_number[stream.number]


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
