"""Entries come back to their queue: from a consumer that leaves, or that refused them.

Each goes to its own place; then the queue gives up what is too much, and what has to wait for another attempt is put
aside, before anybody else gets anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import DEAD, DELETED, NACKED, Entry
from artemis_py.core.queue_work import SLICE_MAX, QueueWork
from artemis_py.paged import PagedMessage

if TYPE_CHECKING:
    from artemis_py.core.queue import Queue

EVERYTHING: Final = -1
"""In the place of a message id: all that the consumer holds."""
_BACK_UNITS: Final = 3
_GIVE_UP_UNITS: Final = 4
_COPY_UNITS: Final = 8


@final
class Return(QueueWork):
    """Entries that a consumer let go (``entries``), or, without these, those that it holds up to the message
    ``up_to``.

    ``failed`` counts a delivery attempt, after which an entry may be dead or delayed (a NACK, an aborted
    acknowledgement, a lost connection: the ``cause``); otherwise nothing is counted (UNSUBSCRIBE, DISCONNECT). What was
    not ``sent`` comes back as if it had not been picked. ``leaves``: the consumer is gone with it.
    """

    def __init__(
        self,
        queue: Queue,
        consumer: Consumer,
        entries: list[Entry] | None,
        *,
        failed: bool,
        cause: str = NACKED,
        up_to: int = EVERYTHING,
        sent: bool = True,
        leaves: bool = False,
    ) -> None:
        super().__init__(queue, holds=consumer.destructive)
        self._consumer = consumer
        self._entries = entries
        self._position = 0
        self._up_to = up_to
        self._failed = failed
        self._cause = cause
        self._sent = sent
        self._units_each = _BACK_UNITS + _COPY_UNITS if failed else _BACK_UNITS
        """What each may cost: nobody knows beforehand how many of them are dead."""
        self._leaves = leaves
        self._restored_count = 0
        self._delayed: list[tuple[Entry, int]] = []
        self._put_off_count = 0
        self._excess = -1
        """How many are still to be given up; -1 before all are back."""
        self._dropped_count = 0
        self._dead_count = 0

    def work(self, budget: Budget, now_ms: int) -> bool:
        while self._excess < 0:
            entries = self._next(min(max(budget.left // self._units_each, 1), SLICE_MAX))
            if not entries:
                self._all_are_back()
                break
            budget.spend(_BACK_UNITS * len(entries))
            self._dead_count = 0
            self._take_back(entries, now_ms)
            budget.spend(_COPY_UNITS * self._dead_count)
            if budget.is_spent:
                return False
        if not self._has_made_room(budget) or not self._has_put_off(budget):
            return False
        if self._leaves:
            self.queue.tell_left(self._consumer, failed=self._failed)
        return True

    def _next(self, count: int) -> list[Entry]:
        if self._entries is not None:
            start = self._position
            self._position = start + count
            return self._entries[start : start + count]
        consumer = self._consumer
        held = consumer.held
        if self._up_to == EVERYTHING and held:
            self._up_to = next(reversed(held))
        if self._up_to not in held:
            return []
        return consumer.let_go_up_to(self._up_to, count)

    def _take_back(self, entries: list[Entry], now_ms: int) -> None:
        queue = self.queue
        messages = [entry.message for entry in entries]
        if not self._consumer.destructive:
            queue.tally.read_count -= len(entries)
            return
        if queue.deleted:
            queue.tally.leave_delivery_run(messages)
            queue.kill(messages, DELETED)
            return
        for entry in entries:
            self._give_back(entry, now_ms)
        queue.settle_groups(messages)

    def _give_back(self, entry: Entry, now_ms: int) -> None:
        queue, consumer = self.queue, self._consumer
        queue.tally.leave_delivery(entry.message)
        if queue.is_outdated(entry):
            return
        if self._sent:
            entry.redelivered = True
        message = entry.message
        if self._failed:
            redelivery = queue.redelivery
            entry.attempts += 1
            if redelivery.is_exhausted(entry.attempts):
                queue.host.note_dead(queue, entry)
                if consumer.actor is not None:  # a restart does not need it, but who asks what the message died of
                    queue.note_attempt(entry, 0, consumer, self._cause)
                queue.kill([message], DEAD, consumer.actor)
                self._dead_count += 1
                return
            due_ms = 0
            if redelivery.delay_ms > 0:
                due_ms = now_ms + redelivery.delay_after(entry.attempts, message.id)
                self._delayed.append((entry, due_ms))
            queue.note_attempt(entry, due_ms, consumer, self._cause)
        queue.order.restore(entry)
        if isinstance(message, PagedMessage):
            queue.backlogs[message.page.stream].came_back(message)
        if queue.expires_ms(message):
            queue.watch_expiry(entry)
        self._restored_count += 1

    def _all_are_back(self) -> None:
        overflow = self.queue.overflow
        if not self._consumer.destructive or self.queue.deleted or not self._restored_count:
            self._excess = 0
        elif overflow.sheds:
            self._excess = self.queue.order.count
        else:
            self._excess = overflow.excess(self.queue.order.count, self._restored_count)

    def _has_made_room(self, budget: Budget) -> bool:
        """Give up what is too much; False when that is not done yet."""
        queue = self.queue
        order, overflow = queue.order, queue.overflow
        while self._excess > 0 and order.count and (not overflow.sheds or queue.is_too_deep()):
            queue.give_up(order.pop_least())
            self._excess -= 1
            self._dropped_count += 1
            budget.spend(_GIVE_UP_UNITS)
            if budget.is_spent:
                return False
        self._excess = 0
        queue.note_dropped(self._dropped_count)
        self._dropped_count = 0
        return True

    def _has_put_off(self, budget: Budget) -> bool:
        """Put aside what has to wait for its next attempt, and let the queue go on; False when that is not done yet."""
        queue, delayed = self.queue, self._delayed
        while self._put_off_count < len(delayed):
            entry, due_ms = delayed[self._put_off_count]
            self._put_off_count += 1
            if queue.order.remove(entry, entry.sequence):
                queue.put_aside(entry, due_ms)
            budget.spend(1)
            if budget.is_spent and self._put_off_count < len(delayed):
                return False
        if self._consumer.destructive and not queue.deleted:
            queue.wake_dry()
            queue.host.note_ready(queue)
        if self._consumer.parked:
            queue.wake(self._consumer)
        return True
