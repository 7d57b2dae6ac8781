"""A queue and its address' pages: what comes to stand there, and how it comes back.

A consumer that takes any message is fed in order: the queue reads ahead, as much as ``ReadAhead`` allows. A consumer
that wants only some, or only looks, has a reader of its own, which goes through the pages and leaves what it does not
want where it is. So no consumer waits behind messages it does not want, and those use no memory.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from artemis_py.core.backlog import Backlog
from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import DAMAGED, REPLACED, Entry
from artemis_py.core.paging import PageReader, PageStream
from artemis_py.core.queue_times import QueueTimes, not_before_ms
from artemis_py.core.queue_work import SLICE_MAX
from artemis_py.message import Message
from artemis_py.paged import Page, PagedMessage, PlaceSet
from artemis_py.records import Found

READY_MIN: Final = 1024
"""With fewer ready entries than this a queue reads from its pages, if a consumer is there that takes any message."""
_READS_PER_TURN: Final = 1024
"""How many messages from pages a queue looks at in one turn."""
_READ_UNITS: Final = 3


class QueuePages(QueueTimes):
    """The part of a queue that deals with pages."""

    @abstractmethod
    def look_for_groups(self, messages: list[Message]) -> None:
        """New messages come: one that names a group makes this a queue with groups."""

    @abstractmethod
    def _begin_groups(self) -> None:
        """Look at groups from now on, where the queue has any."""

    # ---- into pages ------------------------------------------------------------------------------

    def arrive_paged(self, stream: PageStream, messages: list[Message], size_bytes: int, now_ms: int) -> None:
        """New messages were put into pages; the queue's reader has to have been made before (``prepare_paged``)."""
        tally = self.tally
        tally.added += len(messages)
        tally.size_bytes += size_bytes
        durable_sizes = [message.size_bytes for message in messages if message.head.persistent]
        durable_bytes = sum(durable_sizes)
        tally.durable_count += len(durable_sizes)
        tally.durable_size_bytes += durable_bytes
        self.backlogs[stream.number].add(len(messages), size_bytes, len(durable_sizes), durable_bytes)
        self.stop_flow()
        self._note_paged_ages(messages)
        if self.alerts is not None:
            self.watch(messages, now_ms)
        self.look_for_groups(messages)
        self.wake_dry()
        self._note_ready()

    def refuse(self, messages: list[Message]) -> None:
        """New messages for a ring that keeps none, while others stand in pages: they are gone as they come."""
        self.tally.added += len(messages)
        self.tally.replaced += len(messages)
        durable = [message for message in messages if message.head.persistent]
        if durable and self.durable:
            self.host.log.settled(self.id, durable, REPLACED)

    def miss(self, messages: list[Message], reason: str) -> None:
        """New messages that were to come here; meanwhile the queue takes none, for one of the reasons in
        ``core/entry.py``.
        """
        self.tally.added += len(messages)
        self.tally.killed += len(messages)
        durable = [message for message in messages if message.head.persistent]
        if durable and self.durable:
            self.host.log.settled(self.id, durable, reason)

    def prepare_paged(self, stream: PageStream) -> Backlog:
        """What the queue has in a stream, which begins now if the queue has nothing there of this time of paging."""
        backlog = self.backlogs.get(stream.number)
        if backlog is not None and backlog.period == stream.period:
            return backlog
        if backlog is not None:
            self._forget_backlog(stream.number)
        return self._begin_backlog(stream, stream.next_place)

    def _begin_backlog(self, stream: PageStream, place: int) -> Backlog:
        """What the queue has in a stream from a place on. Only the pages of its own address tell the order of all that
        it gets, and not even those when it is bound to a wildcard.
        """
        base = self.order.tail_max() - place
        reader = PageReader(stream, self._own, None, place)
        shared_order = stream.address == self.address.name and not self.address.is_wildcard
        backlog = self.backlogs[stream.number] = Backlog(stream, reader, base, shared_order=shared_order)
        return backlog

    def _forget_backlog(self, number: int) -> None:
        """Paging is over in a stream."""
        del self.backlogs[number]
        for consumer in self.distribution.consumers:
            consumer.page_readers.pop(number, None)

    def restore_paged(
        self,
        stream: PageStream,
        page: Page,
        left: tuple[int, int],
        settled: PlaceSet,
        attempts: dict[int, tuple[int, int]],
    ) -> None:
        """After a restart: a page has ``left`` (messages, encoded bytes) for the queue."""
        backlog = self.backlogs.get(stream.number)
        if backlog is None:
            backlog = self._begin_backlog(stream, page.first_place)
        self._begin_groups()  # what names a group is seen only when the page is read
        backlog.add(*left, *left)
        backlog.restore(page, settled, attempts)
        tally = self.tally
        tally.added += left[0]
        tally.size_bytes += left[1]
        tally.durable_count += left[0]
        tally.durable_size_bytes += left[1]

    def page_arrived(self, consumer: Consumer | None) -> None:
        """What the queue, or one of its consumers, waited for has come from the disk."""
        if consumer is None:
            self.wake_dry()
        elif consumer.has_room and not consumer.closed:
            self.distribution.wake(consumer)
        self._note_ready()

    # ---- for consumers that take anything --------------------------------------------------------

    def _begin_reading(self, now_ms: int) -> None:
        """A dispatch begins: so much may be looked at in it; who had to stop last time goes on. Paging that is over is
        forgotten: a queue on a wildcard address may have seen that of very many addresses.
        """
        if self._reads_left <= 0:
            self.wake_dry()  # nobody knows yet whether there was nothing for them
        self._reads_left = min(_READS_PER_TURN, max(self.host.budget.left // _READ_UNITS, 1))
        for number, backlog in list(self.backlogs.items()):
            if not backlog.stream.active:
                self._forget_backlog(number)
            elif backlog.expiry.is_under_way:
                self._expire_in(backlog, now_ms)

    def _takers_are_here(self) -> bool:
        """Is there a consumer whom reading ahead serves?"""
        consumers = self.distribution.consumers
        if self.groups is not None:  # then those that choose do not read pages themselves
            return any(consumer.destructive for consumer in consumers)
        return any(consumer.cursor is None for consumer in consumers)

    def _read_before(self, now_ms: int) -> bool:
        """With the next entry standing behind messages that were not read yet, bring one of those in, whatever the
        limits; False when it has to be waited for. True, too, when there is no such entry.
        """
        for backlog in self.backlogs.values():
            while backlog.has_early and backlog.is_early(self.order.peek().sequence):
                found = backlog.next()
                if found is None:
                    return not backlog.reader.waits
                self._bring_in(backlog, found, now_ms)
        return True

    def _read_ahead(self, now_ms: int) -> bool:
        """Bring messages from pages into memory; True when that made one ready."""
        before = self.order.count
        progress = True
        while progress:
            progress = False
            for backlog in list(self.backlogs.values()):
                if backlog.count and self._reads_left > 0:
                    if not self._has_space():
                        self._cramped = True
                        break
                    found = backlog.next()
                    if found is not None:
                        self._reads_left -= 1
                        self.host.budget.spend(_READ_UNITS)
                        self._bring_in(backlog, found, now_ms)
                        progress = True
        if self._reads_left <= 0:
            self._note_ready()
        for backlog in self.backlogs.values():
            if backlog.reader.spoilt:
                self._write_off(backlog)
        return self.order.count > before

    def _write_off(self, backlog: Backlog) -> None:
        """Damaged pages that were read to their end have given what they have: the rest of them is lost (and was told
        when it was found), and must not be waited for.
        """
        pages, backlog.reader.spoilt = backlog.reader.spoilt, []
        for page in pages:
            there = [message for message in backlog.in_memory.values() if message.page is page]
            lost = backlog.stream.purge_page(self._own, page, there, DAMAGED)
            if lost > 0:
                self.tally.killed += lost
                backlog.count -= lost
        self._forget_sizes(backlog)
        self._forget_paged_ages()

    def _forget_sizes(self, backlog: Backlog) -> None:
        """With nothing left in pages, what still counts there are the sizes of messages that were lost: nobody knows
        how large each of them was.
        """
        if not backlog.count:
            tally = self.tally
            tally.size_bytes -= backlog.size_bytes
            tally.durable_count -= backlog.durable_count
            tally.durable_size_bytes -= backlog.durable_size_bytes
            backlog.size_bytes = backlog.durable_count = backlog.durable_size_bytes = 0

    def _has_space(self) -> bool:
        """Do the limits on reading ahead, and the ring, leave room for one more? What nobody holds can always have
        one.
        """
        tally = self.tally
        count = self.order.count
        if count - self._parked_count() >= READY_MIN:
            return False
        if self.overflow.depth is None and not self.overflow.has_space(count, 0, 0):
            return False
        if self.overflow.depth is not None and not self.overflow.has_space(count, self.memory_count, self.memory_bytes):
            return False
        ready_bytes = tally.size_bytes - tally.held_size_bytes - tally.scheduled_size_bytes - self.paged_size_bytes
        return self.read_ahead.has_room(count, ready_bytes, tally.held_count, tally.held_size_bytes)

    def _parked_count(self) -> int:
        """How much of what is ready waits for its group, at most."""
        return 0 if self.groups is None else min(self.groups.parked_count, self.order.count)

    def _bring_in(self, backlog: Backlog, found: Found, now_ms: int) -> None:
        """A message from a page takes its place on the queue."""
        due_ms = backlog.due_ms(found)
        entry = self._enter(backlog, found)
        message = entry.message
        if due_ms > now_ms:
            self.put_aside(entry, due_ms)
        elif 0 < self.expires_ms(message) <= now_ms:
            self.expire([entry])
        elif self._enter_value_of_page(entry) and not self._hold_of_page(entry, now_ms):
            self.order.place(entry)
            if self.expires_ms(message):
                self.watch_expiry(entry)

    def _hold_of_page(self, entry: Entry, now_ms: int) -> bool:
        """Is a message out of a page to be held back? Then it is put aside, with the place that its page gives it."""
        due_ms = not_before_ms(entry.message, now_ms) if self.holds else 0
        if due_ms:
            self._hold(entry, due_ms)
        return due_ms > 0

    def set_free(self, entry: Entry) -> None:
        super().set_free(entry)
        if isinstance(entry.message, PagedMessage):
            self.backlogs[entry.message.page.stream].came_back(entry.message)

    def _enter(self, backlog: Backlog, found: Found) -> Entry:
        """The entry of a message that the queue takes out of a page; from now on it is in memory."""
        message = found.message
        entry = self._entry(backlog, message)
        if not backlog.shared_order:
            entry.sequence = self.order.take_sequence(message)
        backlog.take(message)
        self._forget_sizes(backlog)
        if self._ages is not None:
            self._note_age_in_memory(message)
        message.refs += 1
        if message.refs == 1:
            message.page.resident[message.place] = message
            message.account.charge(1, message.memory_bytes)
        return entry

    def _entry(self, backlog: Backlog, message: PagedMessage) -> Entry:
        """A message in its place on the queue, with what befell it before a restart."""
        entry = Entry(message)
        if backlog.shared_order:
            entry.sequence = backlog.sequence(message)
        entry.attempts = backlog.attempts(message)
        entry.redelivered = entry.attempts > 0
        return entry

    # ---- for consumers that choose or only look --------------------------------------------------

    def _search(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next message in pages that a consumer with a cursor wants. It must have seen all that is in memory."""
        for backlog in self.backlogs.values():
            if backlog.count:
                entry = self._search_in(backlog, consumer, now_ms)
                if entry is not None:
                    return entry
                if self._reads_left <= 0 or consumer.asked_units >= SLICE_MAX:
                    self._tired.append(consumer)
                    self._note_ready()
                    return None
        return None

    def _search_in(self, backlog: Backlog, consumer: Consumer, now_ms: int) -> Entry | None:
        cursor = consumer.cursor
        assert cursor is not None
        reader = consumer.page_readers.get(backlog.stream.number)
        if reader is None:
            reader = consumer.page_readers[backlog.stream.number] = backlog.reader.copy(consumer)
        elif reader.place < backlog.reader.place:
            reader.follow(backlog.reader)
        if backlog.shared_order:
            self.order.reserve(backlog.end_sequence)
        while self._reads_left > 0 and consumer.asked_units < SLICE_MAX:
            looked = reader.looked
            found = backlog.next_for(reader, self._reads_left)
            self.host.budget.spend(_READ_UNITS * (reader.looked - looked))
            self._reads_left -= reader.looked - looked  # also at what others have taken, which is work, too
            if found is None:
                return None
            if backlog.shared_order:
                cursor.skip_to(backlog.sequence(found.message) + 1)
            entry = self._choose(consumer, backlog, found, now_ms)
            if entry is not None:
                return entry
        return None

    def _was_shown(self, consumer: Consumer, message: Message) -> bool:
        """Has a consumer that only looks seen a message in its page already? Where places tell the order, the cursor
        has passed it there.
        """
        if consumer.destructive or not isinstance(message, PagedMessage):
            return False
        reader = consumer.page_readers.get(message.page.stream)
        shared_order = self.backlogs[message.page.stream].shared_order
        return not shared_order and reader is not None and message.place < reader.place

    def _choose(self, consumer: Consumer, backlog: Backlog, found: Found, now_ms: int) -> Entry | None:
        """The entry to deliver, or None when the message stays where it is, or has expired."""
        message = found.message
        if 0 < self.expires_ms(message) <= now_ms:
            self.expire([self._enter(backlog, found)])
            return None
        due_ms = backlog.due_ms(found)
        if due_ms > now_ms:
            self.put_aside(self._enter(backlog, found), due_ms)
            return None
        if self.holds and not_before_ms(message, now_ms):
            held = self._enter(backlog, found)
            if self._enter_value_of_page(held):
                self._hold_of_page(held, now_ms)
            return None
        if not consumer.wants(message):
            return None
        if consumer.destructive:
            entry = self._enter(backlog, found)
            return entry if self._enter_value_of_page(entry) else None
        return self._entry(backlog, message)

    # ---- expiry and removal ----------------------------------------------------------------------

    def expire_paged(self, now_ms: int) -> None:
        """Look for expired messages in pages; what has to be fetched for that is dealt with in later turns."""
        for backlog in list(self.backlogs.values()):
            if backlog.count:
                self._expire_in(backlog, now_ms)

    def _expire_in(self, backlog: Backlog, now_ms: int) -> None:
        reads_max = min(_READS_PER_TURN, max(self.host.budget.left // _READ_UNITS, 1))
        self.host.budget.spend(_READ_UNITS)
        for found in backlog.expiry.search(now_ms, reads_max):
            self.expire([self._enter(backlog, found)])
        if backlog.expiry.is_under_way and not backlog.expiry.waits:
            self._note_ready()

    def remove_paged(self, reason: str) -> int:
        """Kill everything that is in pages and not in memory; returns how many went."""
        removed = 0
        for backlog in self.backlogs.values():
            if not backlog.count:
                continue
            removed += backlog.count
            tally = self.tally
            tally.killed += backlog.count
            tally.size_bytes -= backlog.size_bytes
            tally.durable_count -= backlog.durable_count
            tally.durable_size_bytes -= backlog.durable_size_bytes
            backlog.drop_all()
            backlog.stream.purge(self._own, list(backlog.in_memory.values()), reason)
        self._forget_paged_ages()
        return removed

    def forget_pages(self) -> None:
        """The queue is deleted: it needs no page any more, whatever its consumers still hold."""
        for backlog in self.backlogs.values():
            backlog.stream.forget(self._own)
