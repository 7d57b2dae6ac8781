"""A queue's messages in pages: arrivals, reading ahead, and reading by choice."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import OVERDRAFT_UNITS, SLICE_MAX
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.pages import Backlog, PageExpiry, PageReader, PageStream, ReadAhead, RestoredShare
from artemis_py.core.queue.alerts import AlertWatch
from artemis_py.core.queue.messages import EXPIRE, Contents, not_before_ms
from artemis_py.core.queue.state import QueueState
from artemis_py.message import Message
from artemis_py.paged_messages import PagedMessage
from artemis_py.record_log import PagedEntry

# ---- depage ----------------------------------------------------------------------------------------------------------
#
# Brings messages of a queue's pages into memory, one at a time.


@final
class Depager:
    """Makes entries of messages that were found in pages."""

    __slots__ = ("_alerts", "_contents")

    def __init__(self, contents: Contents, alerts: AlertWatch | None) -> None:
        self._contents = contents
        self._alerts = alerts

    def bring_in(self, backlog: Backlog, found: PagedEntry, now_ms: int) -> None:
        """Put a message that was found in a page in its place on the queue. It may be scheduled, expired or outdated
        instead.
        """
        contents = self._contents
        entry: Entry | None = None
        try:
            due_ms = backlog.due_ms(found)
            entry = self.enter(backlog, found)
            if self.was_settled(entry):
                return
            if due_ms > now_ms and contents.pending is not None:
                contents.hold_back(entry, due_ms)
            elif due_ms > now_ms:
                contents.put_aside(entry, due_ms)
            elif 0 < contents.expires_ms(entry.message) <= now_ms:
                contents.expire([entry])
            elif contents.enter_value_of_page(entry) and not self.hold_back(entry, now_ms):
                contents.place(entry)
        except Exception:
            self.give_back(backlog.reader, found, entry)
            raise

    def give_back(self, reader: PageReader, found: PagedEntry, entry: Entry | None) -> None:
        """A step has failed. A message without an ``entry`` is read again; an entry goes to its place, unless it is
        settled or put aside already.
        """
        if entry is None:
            reader.step_back(found)
            return
        contents, message = self._contents, found.message
        is_here = message.place in contents.paged.backlogs[message.page.stream].in_memory
        if is_here and not contents.is_aside(entry):
            contents.held_back.discard(message.id)
            if not contents.stands(entry) and not (contents.pending is not None and contents.pending.has(entry)):
                contents.place(entry)

    def was_settled(self, entry: Entry) -> bool:
        """Has a client settled a message before it was read? Then it goes now."""
        contents, message = self._contents, entry.message
        outcome = None if contents.deferred_acks is None else contents.deferred_acks.take(message.lsn)
        if outcome is None:
            return False
        contents.deliver(message)
        try:
            if outcome == EXPIRE:
                contents.expire_held([message], None)
            else:
                contents.acknowledge_held([message], None)
        except Exception:
            contents.come_back(message)
            raise
        return True

    def hold_back(self, entry: Entry, now_ms: int) -> bool:
        """Put a message aside, with the place that its page gives it, if ``hold-on-publish`` holds it back. Returns
        whether it does.
        """
        due_ms = not_before_ms(entry.message, now_ms) if self._contents.holds else 0
        if due_ms:
            self._contents.hold_back(entry, due_ms)
        return due_ms > 0

    def enter(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """The entry of a message that the queue takes from a page. From now on the message is in memory."""
        message = found.message
        entry = self.entry_of(backlog, message)
        if not backlog.shared_order:
            entry.sequence = self._contents.order.take_sequence(message)
        if self._alerts is not None:
            self._alerts.note_fetched(message)
        self._contents.paged.fetch(backlog, message)
        return entry

    def entry_of(self, backlog: Backlog, message: PagedMessage) -> Entry:
        """The entry of a message, with its place and with the failed deliveries from before a restart."""
        entry = Entry(message)
        if backlog.shared_order:
            entry.sequence = backlog.sequence(message)
        entry.attempts = entry.returned = backlog.attempts(message)
        return entry


# ---- page reading ----------------------------------------------------------------------------------------------------
#
# How a queue reads ahead in its pages, in order, for consumers that take any message.


READY_MIN: Final = 1024
"""A queue with fewer ready entries than this reads from its pages, if it has a consumer that takes any message."""
READS_PER_TURN: Final = 1024
"""How many messages of pages a queue looks at in one turn."""
READ_UNITS: Final = 3


@final
class PageReading:
    """Brings messages from pages into memory, within the limits on reading ahead and the ring."""

    __slots__ = ("_alerts", "_state", "_depager", "cramped", "limits", "reads_left")

    def __init__(self, state: QueueState, depager: Depager, alerts: AlertWatch | None, limits: ReadAhead) -> None:
        self._state = state
        self._alerts = alerts
        self._depager = depager
        self.limits = limits
        """How much may be in memory."""
        self.reads_left = 0
        """How many more paged messages this dispatch may look at."""
        self.cramped = False
        """Has a limit on memory stopped reading? Whatever leaves makes room."""

    def begin(self) -> None:
        """A dispatch begins: set how many messages it may look at."""
        self.reads_left = min(READS_PER_TURN, max(self._state.host.budget.left // READ_UNITS, 1))

    def read_before(self, now_ms: int) -> bool:
        """Bring in a paged message that stands before the next ready entry, whatever the limits.

        Returns False while that message must be waited for, True when there is none.
        """
        contents = self._state.contents
        for backlog in contents.paged.backlogs.values():
            while backlog.has_early and backlog.is_early(contents.order.peek().sequence):
                found = backlog.next()
                if found is None:
                    return not backlog.reader.waits
                self._depager.bring_in(backlog, found, now_ms)
        return True

    @property
    def has_early(self) -> bool:
        """Has a consumer fetched a message from far back and returned it? Then the next message may be in pages."""
        return any(backlog.has_early for backlog in self._state.contents.paged.backlogs.values())

    def read_ahead(self, now_ms: int) -> bool:
        """Bring messages from pages into memory. Returns True when one of them is ready."""
        contents = self._state.contents
        before = contents.order.count
        progress = True
        while progress:
            progress = False
            for backlog in list(contents.paged.backlogs.values()):
                if backlog.count and self.reads_left > 0:
                    if not self.has_space():
                        self.cramped = True
                        break
                    found = backlog.next()
                    if found is not None:
                        self.reads_left -= 1
                        self._depager.bring_in(backlog, found, now_ms)
                        self._state.host.budget.spend(READ_UNITS + self._order_units(found))
                        progress = True
        if self.reads_left <= 0:
            self._state.host.note_ready(self._state.reference)
        for backlog in contents.paged.backlogs.values():
            if backlog.reader.spoilt:
                self._write_off(backlog)
        activation = self._state.activation
        if activation is not None and activation.advance(now_ms, -OVERDRAFT_UNITS):
            self._state.host.note_ready(self._state.reference)
        return contents.order.count > before

    def _order_units(self, found: PagedEntry) -> int:
        """What it costs to find the place of a message."""
        expression = self._state.contents.order.expression
        if expression is None:
            return 0
        return expression.units + (expression.units_per_kb * found.message.head.size_bytes >> 10)

    def _write_off(self, backlog: Backlog) -> None:
        """Write off the rest of damaged pages that were read to their end: it is lost, and must not be waited for. The
        damage was reported when it was found.
        """
        pages, backlog.reader.spoilt = backlog.reader.spoilt, []
        self._state.contents.paged.write_off(backlog, pages)
        if self._alerts is not None:
            self._alerts.forget_paged()

    def has_space(self) -> bool:
        """Do the limits on reading ahead, and the ring, leave room for one more? A queue with nothing in memory always
        has room for one.
        """
        return not (self.has_enough or not self._state.flow.has_space() or self.limit_reached())

    @property
    def has_enough(self) -> bool:
        """Are so many messages ready that no more is read ahead?"""
        contents = self._state.contents
        return contents.pending is None and contents.ready_count - self._state.grouping.parked_count >= READY_MIN

    def limit_reached(self) -> str:
        """The setting whose limit on reading ahead leaves no room for one more; empty: none."""
        contents = self._state.contents
        counters = contents.counters
        ready_bytes = (
            counters.size_bytes - counters.held_size_bytes - counters.scheduled_size_bytes - contents.paged.size_bytes
        )
        return self.limits.reached(contents.ready_count, ready_bytes, counters.held_count, counters.held_size_bytes)


# ---- page search -----------------------------------------------------------------------------------------------------
#
# How a consumer that chooses, or only looks, goes through its queue's pages. It has a reader of its own and leaves
# messages that it does not want in their pages. So no consumer waits behind messages it does not want, and those use
# no memory.


@final
class PageSearch:
    """The page readers of one queue's consumers with a cursor."""

    __slots__ = ("_state", "_depager", "_readers", "_reading")

    def __init__(self, state: QueueState, reading: PageReading, depager: Depager) -> None:
        self._state = state
        self._reading = reading
        self._depager = depager
        self._readers: dict[int, dict[int, PageReader]] | None = None
        """By consumer id and stream number; None before the first of them."""

    def forget_consumer(self, consumer_id: int) -> None:
        """A consumer left."""
        if self._readers is not None:
            self._readers.pop(consumer_id, None)

    def forget_stream(self, number: int) -> None:
        """Paging has ended in a stream."""
        if self._readers is not None:
            for readers in self._readers.values():
                readers.pop(number, None)

    def search(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next paged message that a consumer with a cursor wants. It must have seen everything in memory."""
        for backlog in self._state.contents.paged.backlogs.values():
            if backlog.count:
                entry = self._search_in(backlog, consumer, now_ms)
                if entry is not None:
                    return entry
                if self._reading.reads_left <= 0 or consumer.asked_units >= SLICE_MAX:
                    self._state.wake_ups.park_served(consumer)
                    self._state.host.note_ready(self._state.reference)
                    return None
        return None

    def reads_itself(self, consumer: Consumer) -> bool:
        """Does the consumer go through pages with a reader of its own?"""
        state = self._state
        return consumer.cursor is not None and state.grouping.groups is None and state.activation is None

    def reader_of(self, consumer: Consumer, backlog: Backlog) -> PageReader | None:
        """The reader of a consumer with a cursor; None before it has begun."""
        readers = None if self._readers is None else self._readers.get(consumer.id)
        return None if readers is None else readers.get(backlog.stream.number)

    def _reader_of(self, consumer: Consumer, backlog: Backlog) -> PageReader:
        if self._readers is None:
            self._readers = {}
        readers = self._readers.setdefault(consumer.id, {})
        number = backlog.stream.number
        reader = readers[number] = backlog.lead(readers.get(number), consumer, takes=consumer.destructive)
        return reader

    def _search_in(self, backlog: Backlog, consumer: Consumer, now_ms: int) -> Entry | None:
        cursor = consumer.cursor
        assert cursor is not None
        reading = self._reading
        reader = self._reader_of(consumer, backlog)
        if backlog.shared_order:
            self._state.contents.order.reserve(backlog.end_sequence)
        while reading.reads_left > 0 and consumer.asked_units < SLICE_MAX:
            looked = reader.looked
            found = backlog.next_for(reader, reading.reads_left)
            self._state.host.budget.spend(READ_UNITS * (reader.looked - looked))
            reading.reads_left -= reader.looked - looked  # looking at what others have taken is work, too
            if found is None:
                return None
            if backlog.shared_order:
                cursor.skip_to(backlog.sequence(found.message) + 1)
            entry = self._choose(consumer, backlog, found, now_ms)
            if entry is not None:
                return entry
            if reader.unseen is not None and found.message.place in backlog.in_memory:
                reader.unseen.add(found.message.place)
        return None

    def _choose(self, consumer: Consumer, backlog: Backlog, found: PagedEntry, now_ms: int) -> Entry | None:
        """The entry to deliver. None when the message stays in its page, is put aside, or has expired."""
        contents, depager = self._state.contents, self._depager
        message = found.message
        entry: Entry | None = None
        try:
            if 0 < contents.expires_ms(message) <= now_ms:
                entry = depager.enter(backlog, found)
                contents.expire([entry])
                return None
            due_ms = backlog.due_ms(found)
            if due_ms > now_ms:
                entry = depager.enter(backlog, found)
                contents.put_aside(entry, due_ms)
                return None
            if contents.holds and not_before_ms(message, now_ms):
                entry = depager.enter(backlog, found)
                if contents.enter_value_of_page(entry):
                    depager.hold_back(entry, now_ms)
                return None
            if contents.deferred_acks and contents.deferred_acks.knows(message.lsn):
                entry = depager.enter(backlog, found)
                depager.was_settled(entry)
                return None
            if not consumer.wants(message):
                return None
            if consumer.destructive:
                entry = depager.enter(backlog, found)
                return entry if contents.enter_value_of_page(entry) else None
            return depager.entry_of(backlog, message)
        except Exception:
            depager.give_back(self._reader_of(consumer, backlog), found, entry)
            raise

    def was_shown(self, consumer: Consumer, message: Message) -> bool:
        """Has a browsing consumer seen this message in its page already? Where places tell the order, its cursor has
        passed the message there.
        """
        if self._readers is None or not isinstance(message, PagedMessage):
            return False
        reader = self._readers.get(consumer.id, {}).get(message.page.stream)
        if reader is None or reader.unseen is None:
            return False
        return message.place < reader.place and message.place not in reader.unseen


# ---- pages -----------------------------------------------------------------------------------------------------------
#
# What one queue has in its address' pages: arrivals, expiry and removal. ``PageReading`` reads messages back in order,
# for consumers that take any message; ``PageSearch`` does so for consumers that choose or only look.


@final
class QueuePages:
    """One queue's messages in pages, by stream (``Contents.paged``)."""

    __slots__ = ("_alerts", "_state", "_expiries", "_depager", "reading", "search")

    def __init__(self, state: QueueState, alerts: AlertWatch | None, limits: ReadAhead) -> None:
        self._state = state
        self._alerts = alerts
        self._depager = Depager(state.contents, alerts)
        self._expiries: dict[int, PageExpiry] | None = None
        """By stream number; None before the first search."""
        self.reading = PageReading(state, self._depager, alerts, limits)
        self.search = PageSearch(state, self.reading, self._depager)

    # ---- into pages ------------------------------------------------------------------------------

    def arrive(self, stream: PageStream, messages: list[Message], size_bytes: int, now_ms: int) -> None:
        """Count new messages that were paged. ``prepare`` must come first, so that the queue's reader sees them."""
        self._state.contents.paged.arrive(stream.number, messages, size_bytes)
        self._state.flow.stop()
        if self._alerts is not None:
            self._alerts.note_paged(messages)
            self._alerts.check_new(messages, now_ms)
        self._state.grouping.look_for(messages)
        self.may_have_news()

    def may_have_news(self) -> None:
        """There may be something in pages for consumers that found nothing."""
        self._state.wake_ups.wake_dry()
        self._state.host.note_ready(self._state.reference)

    def prepare(self, stream: PageStream) -> Backlog:
        """The queue's backlog in a stream; a new one if the queue has none from this time of paging."""
        backlog = self._state.contents.paged.backlogs.get(stream.number)
        if backlog is not None and backlog.period == stream.period:
            return backlog
        if backlog is not None:
            self._forget(stream.number)
        return self._begin(stream, stream.next_place)

    def _begin(self, stream: PageStream, place: int) -> Backlog:
        """A new backlog from a place on. Only the pages of the queue's own address give the order of everything that it
        gets, and not even those when it gets messages of other addresses.
        """
        reference = self._state.reference
        base = self._state.contents.order.tail_max() - place
        reader = PageReader(stream, reference, None, place)
        shared_order = stream.address == reference.address.name and not reference.is_distant
        backlog = Backlog(stream, reader, base, shared_order=shared_order)
        self._state.contents.paged.begin(backlog)
        return backlog

    def _forget(self, number: int) -> None:
        """Paging has ended in a stream."""
        self._state.contents.paged.end(number)
        if self._expiries is not None:
            self._expiries.pop(number, None)
        self.search.forget_stream(number)

    def restore(self, stream: PageStream, share: RestoredShare) -> None:
        """After a restart: take over the queue's share of a page."""
        backlog = self._state.contents.paged.backlogs.get(stream.number)
        if backlog is None:
            backlog = self._begin(stream, share.page.first_place)
        self._state.grouping.begin()  # whether a message names a group shows only when the page is read
        self._state.contents.paged.restore(backlog, share)

    def begin_dispatch(self, now_ms: int) -> None:
        """A dispatch begins. Consumers that had to stop last time go on. Streams in which paging has ended are
        forgotten: a queue on a wildcard address may have seen very many of them.
        """
        if self.reading.reads_left <= 0:
            self._state.wake_ups.wake_dry()  # they may have found nothing only because reading stopped
        self.reading.begin()
        for number, backlog in list(self._state.contents.paged.backlogs.items()):
            if not backlog.stream.active:
                self._forget(number)
            else:
                expiry = None if self._expiries is None else self._expiries.get(number)
                if expiry is not None and expiry.is_under_way:
                    self._expire_in(expiry, backlog, now_ms)

    # ---- one message -----------------------------------------------------------------------------

    def entry_of(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """The entry of a message that somebody looks at. The message stays in its page."""
        return self._depager.entry_of(backlog, found.message)

    def enter(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """Take a message out of its page. It is in memory then; its place, or its end, follows."""
        return self._depager.enter(backlog, found)

    # ---- expiry and removal ----------------------------------------------------------------------

    def expire(self, now_ms: int) -> None:
        """Look for expired messages in pages. Those that must be read from the disk first follow in later turns."""
        for number, backlog in list(self._state.contents.paged.backlogs.items()):
            if backlog.count:
                self._expire_in(self._expiry_of(number, backlog), backlog, now_ms)

    def _expiry_of(self, number: int, backlog: Backlog) -> PageExpiry:
        if self._expiries is None:
            self._expiries = {}
        expiry = self._expiries.get(number)
        if expiry is None:
            expiry = self._expiries[number] = PageExpiry(backlog, self._state.contents.expiry.lifetime)
        return expiry

    def _expire_in(self, expiry: PageExpiry, backlog: Backlog, now_ms: int) -> None:
        budget = self._state.host.budget
        reads_max = min(READS_PER_TURN, max(budget.left // READ_UNITS, 1))
        budget.spend(READ_UNITS)
        try:
            for found in expiry.search(now_ms, reads_max):
                entry = self._depager.enter(backlog, found)
                try:
                    self._state.contents.expire([entry])
                except Exception:
                    self._depager.give_back(backlog.reader, found, entry)
                    raise
        except Exception:
            expiry.begin_again()
            raise
        if expiry.is_under_way and not expiry.waits:
            self._state.host.note_ready(self._state.reference)

    def remove_all(self, reason: str) -> None:
        """Kill every message in pages that is not in memory, for ``reason``."""
        paged = self._state.contents.paged
        for backlog in paged.backlogs.values():
            if backlog.count:
                paged.kill(backlog, reason)
        if self._alerts is not None:
            self._alerts.forget_paged()

    def forget_all(self) -> None:
        """The queue is deleted: it needs no page any more, whatever its consumers still hold."""
        for backlog in self._state.contents.paged.backlogs.values():
            backlog.stream.forget(self._state.reference)
