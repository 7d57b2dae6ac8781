"""How a consumer that chooses, or only looks, goes through its queue's pages.

It has a reader of its own and leaves messages that it does not want in their pages. So no consumer waits behind
messages it does not want, and those use no memory.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.pages.backlog import Backlog
from artemis_py.core.pages.stream import PageReader
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.holding import not_before_ms
from artemis_py.core.queue.intake import Intake
from artemis_py.core.queue.page_reading import READ_UNITS, PageReading
from artemis_py.core.queue.works import SLICE_MAX
from artemis_py.message import Message
from artemis_py.paged import PagedMessage
from artemis_py.records import PagedEntry


@final
class PageSearch:
    """The page readers of one queue's consumers with a cursor."""

    __slots__ = ("_basis", "_intake", "_readers", "_reading")

    def __init__(self, basis: QueueBasis, reading: PageReading, intake: Intake) -> None:
        self._basis = basis
        self._reading = reading
        self._intake = intake
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
        for backlog in self._basis.contents.paged.backlogs.values():
            if backlog.count:
                entry = self._search_in(backlog, consumer, now_ms)
                if entry is not None:
                    return entry
                if self._reading.reads_left <= 0 or consumer.asked_units >= SLICE_MAX:
                    self._basis.waking.rest(consumer)
                    self._basis.host.note_ready(self._basis.reference)
                    return None
        return None

    def reads_itself(self, consumer: Consumer) -> bool:
        """Does the consumer go through pages with a reader of its own?"""
        basis = self._basis
        return consumer.cursor is not None and basis.grouping.groups is None and basis.activation is None

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
            self._basis.contents.order.reserve(backlog.end_sequence)
        while reading.reads_left > 0 and consumer.asked_units < SLICE_MAX:
            looked = reader.looked
            found = backlog.next_for(reader, reading.reads_left)
            self._basis.host.budget.spend(READ_UNITS * (reader.looked - looked))
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
        contents, intake = self._basis.contents, self._intake
        message = found.message
        if 0 < contents.expires_ms(message) <= now_ms:
            contents.expire([intake.enter(backlog, found)])
            return None
        due_ms = backlog.due_ms(found)
        if due_ms > now_ms:
            contents.put_aside(intake.enter(backlog, found), due_ms)
            return None
        if contents.holds and not_before_ms(message, now_ms):
            held = intake.enter(backlog, found)
            if contents.enter_value_of_page(held):
                intake.hold_back(held, now_ms)
            return None
        if contents.deferred and contents.deferred.knows(message.lsn):
            intake.was_settled(intake.enter(backlog, found))
            return None
        if not consumer.wants(message):
            return None
        if consumer.destructive:
            entry = intake.enter(backlog, found)
            return entry if contents.enter_value_of_page(entry) else None
        return intake.entry_of(backlog, message)

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
