"""Scheduled messages fall due, however many of them together.

Of those that are due at one time the earliest is first in line. So all of them are collected before the first one
moves, and then the latest goes to the head first, each of the others before it. A restart finds them in the same
order: what the log hears of later stands further in front.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from artemis_py.core.agenda import Chore
from artemis_py.core.budget import Budget
from artemis_py.core.entry import Entry
from artemis_py.core.queue_work import SLICE_MAX, QueueWork
from artemis_py.paged import PagedMessage

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker
    from artemis_py.core.queue import Queue
    from artemis_py.core.timers import Timers

_TAKE_UNITS: Final = 2
_FALL_UNITS: Final = 3


@final
class Falling(Chore):
    """Takes what is due at ``until_ms`` from the schedule and hands it to the queues."""

    def __init__(self, timers: Timers, broker: Broker, until_ms: int) -> None:
        self._timers = timers
        self._broker = broker
        self._until_ms = until_ms
        self._shift_ms = broker.clock.shift_ms
        self._groups: dict[int, tuple[Queue, list[Entry]]] = {}
        self._ready: deque[tuple[Queue, list[Entry]]] | None = None
        self.is_done = False

    def work(self, budget: Budget, now_ms: int) -> bool:
        groups, ready = self._groups, self._ready
        while ready is None:
            count = min(max(budget.left // _TAKE_UNITS, 1), SLICE_MAX)
            due = self._timers.scheduled.pop_due(self._until_ms, self._shift_ms, count)
            budget.spend(_TAKE_UNITS * len(due))
            for queue_id, message_id in due:
                waited_on = self._timers.find(queue_id)
                entry = None if waited_on is None else waited_on.scheduled.get(message_id)
                if waited_on is not None and entry is not None:
                    groups.setdefault(queue_id, (waited_on, []))[1].append(entry)
            if len(due) < count:
                ready = self._ready = deque(groups.values())
            elif budget.is_spent:
                return False
        while ready:
            queue, entries = ready.popleft()
            try:
                queue.fall_due(entries, now_ms, budget)
            except Exception as error:
                self._broker.set_aside(queue, "schedule", error)
            if budget.is_spent and ready:
                return False
        self.is_done = True
        return True

    def recover(self) -> bool:
        self.is_done = not self._ready
        return not self.is_done


@final
class FallDue(QueueWork):
    """Scheduled entries of one queue, the earliest first, take their places: at the head, or, what waited for another
    attempt and has a group, where it stood; nothing of the group went by. On overflow the earliest goes.
    """

    def __init__(self, queue: Queue, entries: list[Entry]) -> None:
        super().__init__(queue, holds=True)
        self._entries = entries
        self._prepared = 0
        self._restored_count = 0

    def work(self, budget: Budget, now_ms: int) -> bool:
        queue, entries = self.queue, self._entries
        while self._prepared < len(entries) and not queue.deleted:
            count = min(max(budget.left, 1), SLICE_MAX)
            self._prepare(entries[self._prepared : self._prepared + count])
            self._prepared += count
            budget.spend(count)
            if budget.is_spent:
                return False
        while entries and not queue.deleted:
            count = min(max(budget.left // _FALL_UNITS, 1), SLICE_MAX)
            self._place(entries[-count:])
            del entries[-count:]
            budget.spend(_FALL_UNITS * count)
            if budget.is_spent and entries:
                return False
        if self._restored_count:
            queue.grow(self._restored_count, now_ms)
        return True

    def _prepare(self, entries: list[Entry]) -> None:
        """In the order of time: what is held back returns to its place, and the rest become values."""
        queue = self.queue
        waiting = [entry for entry in entries if queue.scheduled.get(entry.message.id) is entry]
        if queue.held_back:
            freed = [entry for entry in waiting if entry.message.id in queue.held_back]
            for entry in freed:
                queue.set_free(entry)
            self._restored_count += len(freed)
            waiting = [entry for entry in waiting if entry.message.id in queue.scheduled]
        if queue.last_values is not None:
            queue.enter_values_due(waiting)

    def _place(self, entries: list[Entry]) -> None:
        queue = self.queue
        waiting = [entry for entry in entries if queue.scheduled.get(entry.message.id) is entry]
        if queue.durable:
            heads = [one.message for one in waiting if one.message.head.persistent and not queue.keeps_place(one)]
            in_journal = [message for message in heads if message.__class__ is not PagedMessage]
            if in_journal:
                queue.host.log.fell_due(queue.id, in_journal)
        order = queue.order
        for entry in reversed(waiting):
            message = entry.message
            del queue.scheduled[message.id]
            queue.tally.leave_scheduled(message)
            if queue.keeps_place(entry):
                order.restore(entry)
            else:
                order.restore_at_head(entry, fresh=not entry.attempts)
            queue.left_aside(entry)
            if queue.expires_ms(message):
                queue.watch_expiry(entry)
        self._restored_count += len(waiting)
