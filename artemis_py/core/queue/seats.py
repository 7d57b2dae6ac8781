"""How consumers attach to a queue and leave it."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import LOST, Entry
from artemis_py.core.queue.exclusivity import Exclusivity
from artemis_py.core.queue.freeing import FreeGroups, offer_freed
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.returning import Return
from artemis_py.core.queue.shared_cursors import SharedCursors
from artemis_py.core.queue.works import QueueWork
from artemis_py.errors import LimitError
from artemis_py.selector import Selector


@final
class Seats:
    """Decides which consumers a queue admits, and takes back what a leaving consumer has."""

    __slots__ = ("_parts", "_shared_cursors", "consumers_max", "exclusivity", "idle_since_ms", "shows_returns")

    def __init__(self, parts: QueueParts, exclusivity: Exclusivity, *, consumers_max: int, shows_returns: bool) -> None:
        self._parts = parts
        self._shared_cursors: SharedCursors | None = None
        """Cursors of consumers that choose or only look; None before the first of them attaches."""
        self.exclusivity = exclusivity
        self.consumers_max = consumers_max
        self.shows_returns = shows_returns
        """Are browsing consumers shown entries that come back to a place they have passed?"""
        self.idle_since_ms = 0

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer attaches. Raises LimitError when the queue has its maximum of consumers, or does not admit this
        one.
        """
        parts = self._parts
        contents, distribution, gate = parts.contents, parts.distribution, parts.gate
        name = parts.reference.name
        if 0 <= self.consumers_max <= distribution.taker_count and not consumer.browses:
            raise LimitError(f"Queue {name} has reached its maximum of {self.consumers_max} consumers")
        self.exclusivity.admit(name, consumer, distribution.consumers)
        self._open_cursor(consumer)
        try:
            consumer.dealings.begun_ms = now_ms
            distribution.add(consumer)
            if parts.grouping.attach(consumer, held=contents.has_held):
                gate.close_again()
            if parts.grouping.is_freeing:
                parts.tasks.begin(FreeGroups(parts), now_ms)
            if not consumer.browses:
                gate.consumer_joined(distribution.taker_count, parts.host.clock.steady_ms(now_ms))
            parts.wake(consumer)
            if contents.has_more and (gate.is_open or consumer.browses):
                parts.note_ready()
            parts.aftermath.run()
        except Exception:  # nobody may be left that is served, or waited for, and does not exist
            self.detach(consumer, failed=False, now_ms=now_ms)
            raise

    def _open_cursor(self, consumer: Consumer) -> None:
        if consumer.chooses or not consumer.destructive:
            if self._shared_cursors is None:
                self._shared_cursors = SharedCursors()
            consumer.cursor = self._shared_cursors.open(consumer, self._parts.contents.order)
            consumer.cursor.sees_returns = consumer.destructive or self.shows_returns

    def _close_cursor(self, consumer: Consumer) -> None:
        if consumer.cursor is not None and self._shared_cursors is not None:
            self._shared_cursors.close(consumer, consumer.cursor, self._parts.contents.order)
            self._parts.pages.search.forget_consumer(consumer.id)

    def replace(
        self, consumer: Consumer, selector: Selector | None, no_local: int, backlog_max: int, now_ms: int
    ) -> QueueWork | None:
        """A consumer that takes messages away wants others from now on, or another number of them (row A-67,
        tests/queues/rows.py). It keeps what it holds. What it was not sent yet goes back, but for a barrier. Returns
        the unfinished work, if any.
        """
        parts = self._parts
        unfinished: QueueWork | None = None
        if consumer.outbox and not consumer.settles and consumer.barrier is None:
            waiting = [consumer.let_go(entry.message.id) for entry in consumer.outbox]
            consumer.outbox.clear()
            work = Return(parts, consumer, waiting, failed=False, sent=False)
            unfinished = parts.tasks.begin(work, now_ms)
        parts.distribution.rest(consumer)
        if not _chooses_alike(consumer, selector, no_local):
            parts.grouping.take_out(consumer)
            self._close_cursor(consumer)
            consumer.cursor = None
            consumer.choose(selector, no_local)
            if parts.activation is not None:
                parts.activation.note_changed(consumer)
            self._open_cursor(consumer)
            parts.grouping.put_in(consumer)
        consumer.backlog_max = backlog_max
        parts.wake(consumer)
        return unfinished

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> QueueWork | None:
        """A consumer leaves. What it holds comes back (see ``Return``); what was never sent comes back as if it had not
        been picked. Returns the unfinished work, if any.
        """
        parts = self._parts
        consumer.closed = True
        if parts.activation is not None:
            parts.activation.leave(consumer)
        if consumer.settles and consumer.destructive:
            self._take_back_unsent(consumer)
            parts.confirm(len(consumer.let_go_all()))
        waiting = [entry for entry in consumer.outbox if consumer.held.pop(entry.message.id, None) is not None]
        consumer.outbox.clear()
        unfinished: QueueWork | None = None
        try:
            if waiting:
                parts.tasks.begin(Return(parts, consumer, waiting, failed=False, sent=False), now_ms)
            if not consumer.held:
                parts.tell_left(consumer, failed=failed)
        finally:  # whatever fails, nothing stays with a consumer that is gone
            try:
                if consumer.held:
                    work = Return(parts, consumer, None, failed=failed, cause=LOST, leaves=True)
                    unfinished = parts.tasks.begin(work, now_ms)
            finally:
                self._remove(consumer, now_ms)
        if parts.activation is not None:
            parts.activation.note_left()
        parts.aftermath.run()
        return unfinished

    def _remove(self, consumer: Consumer, now_ms: int) -> None:
        """Forget a consumer that has nothing left."""
        parts = self._parts
        contents, distribution = parts.contents, parts.distribution
        distribution.remove(consumer)
        parts.grouping.detach(consumer)
        if parts.grouping.is_freeing:
            parts.tasks.begin(FreeGroups(parts), now_ms)
        else:
            offer_freed(parts)
        self._close_cursor(consumer)
        parts.gate.consumer_left(distribution.taker_count)
        contents.was_used = True
        if not distribution.consumers:
            self.idle_since_ms = parts.host.clock.steady_ms(now_ms)
        else:
            parts.waking.has_lost_one = True  # with an exclusive queue the next consumer takes over
            parts.note_ready()

    def _take_back_unsent(self, consumer: Consumer) -> None:
        """Put back what was picked for, or handed to, a consumer that settles on send, and was not written."""
        parts = self._parts
        contents, values = parts.contents, parts.contents.last_values
        contents.unpick(consumer.outbox)
        outdated: list[Entry] = []
        for entry in consumer.outbox:
            if values is not None and values.is_outdated(entry):
                outdated.append(entry)
            else:
                contents.put_back(entry)
        for entry in outdated:  # after the others are back: the rest decides whether senders go on
            contents.give_up(entry)
        parts.aftermath.run()
        for entry in reversed(consumer.handed):
            contents.take_back_handed(entry.message)
        parts.growth.fit_again(len(consumer.handed) + len(consumer.outbox) - len(outdated))
        parts.grouping.settle([entry.message for entry in consumer.outbox])
        consumer.outbox.clear()
        consumer.handed.clear()


def _chooses_alike(consumer: Consumer, selector: Selector | None, no_local: int) -> bool:
    """Does the consumer want the same messages as before? Then it reads on where it is."""
    before = consumer.selector
    texts = None if before is None else before.text, None if selector is None else selector.text
    return texts[0] == texts[1] and no_local == consumer.no_local
