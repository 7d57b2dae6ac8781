"""Entries that leave a queue together: purged, or because the queue is deleted; and those of which the time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.entry import Entry
from artemis_py.core.order.order import Cursor
from artemis_py.core.queue_work import SLICE_MAX, QueueWork
from artemis_py.message import Message

if TYPE_CHECKING:
    from artemis_py.core.queue import Queue

_KILL_UNITS: Final = 2
EXPIRE_UNITS: Final = 12
"""With the copy for another address, which is made in the same turn: no crash comes between them."""
_ALARMS_PER_UNIT: Final = 16


@final
class Removal(QueueWork):
    """Everything on the queue that is ready or scheduled and came before the message ``last_id`` goes, for a
    ``reason``; what came later stays, and so does what consumers have.
    """

    def __init__(self, queue: Queue, reason: str, last_id: int) -> None:
        super().__init__(queue, holds=True)
        self._reason = reason
        self._last_id = last_id
        self._cursor: Cursor | None = None
        self._aside: list[Entry] = []

    def work(self, budget: Budget, now_ms: int) -> bool:
        queue = self.queue
        if self._cursor is None:
            self._cursor = queue.order.open_cursor()
            self._aside = list(queue.scheduled.values())
        while self._remove_ready(self._cursor, budget):
            if budget.is_spent:
                return False
        while self._aside:
            self._remove_aside(budget)
            if budget.is_spent:
                return False
        return self._has_forgotten_alarms(budget)

    def _remove_ready(self, cursor: Cursor, budget: Budget) -> bool:
        """Remove some of what is ready; False when nothing of it is left."""
        queue = self.queue
        order = queue.order
        removed: list[Message] = []
        looks = min(max(budget.left // _KILL_UNITS, 1), SLICE_MAX)
        found = cursor.advance()
        while found is not None:
            looks -= 1
            budget.spend(_KILL_UNITS)
            if found.message.id <= self._last_id:
                order.remove(found, found.sequence)
                removed.append(found.message)
            if looks <= 0:
                break
            found = cursor.advance()
        queue.kill(removed, self._reason)
        if found is None:
            order.close_cursor(cursor)
        return found is not None

    def _remove_aside(self, budget: Budget) -> None:
        """Remove some of what is scheduled."""
        queue = self.queue
        count = min(max(budget.left // _KILL_UNITS, 1), SLICE_MAX)
        entries = self._aside[-count:]
        del self._aside[-count:]
        budget.spend(_KILL_UNITS * len(entries))
        removed: list[Message] = []
        for entry in entries:
            message = entry.message
            if message.id <= self._last_id and queue.scheduled.get(message.id) is entry:
                del queue.scheduled[message.id]
                queue.held_back.discard(message.id)
                queue.tally.leave_scheduled(message)
                queue.left_aside(entry)
                removed.append(message)
        queue.kill(removed, self._reason)

    def _has_forgotten_alarms(self, budget: Budget) -> bool:
        """With nothing left, forget when to look for what expires; False when that is not done yet. Whatever comes back
        is watched again.
        """
        queue = self.queue
        if queue.order.count or queue.scheduled:
            return True
        expiring = queue.expiring
        while expiring:
            count = min(max(budget.left, 1), SLICE_MAX) * _ALARMS_PER_UNIT
            budget.spend(1 + min(count, len(expiring)) // _ALARMS_PER_UNIT)
            del expiring[-count:]  # what is left of a heap is a heap
            if budget.is_spent and expiring:
                return False
        return True


@final
class Expiring(QueueWork):
    """What has expired goes, ready or held back; what is in delivery or scheduled is left alone. Consumers are served
    meanwhile: a dispatch looks at the time itself.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue, holds=False)

    def work(self, budget: Budget, now_ms: int) -> bool:
        queue = self.queue
        while not queue.deleted:
            looks = min(max(budget.left // EXPIRE_UNITS, 1), SLICE_MAX)
            expired, looked = queue.pop_expired(now_ms, looks)
            queue.expire(expired)
            budget.spend(looked + (EXPIRE_UNITS - 1) * len(expired))
            if looked < looks:
                queue.set_alarm()
                return True
            if budget.is_spent:
                return False
        return True
