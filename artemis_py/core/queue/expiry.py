"""Tasks that remove entries: a purge, the deletion of a queue, expiry, and expiry that a consumer demands."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import LOWEST, Cursor
from artemis_py.core.queue.messages import EXPIRE_UNITS, Contents, ScheduledCursor
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task

# ---- removal ---------------------------------------------------------------------------------------------------------
#
# Tasks that remove many entries: a purge, the deletion of a queue, and expiry.


_KILL_UNITS: Final = 2
_ALARMS_PER_UNIT: Final = 16


@final
class Removal(Task):
    """Removes every ready or scheduled entry whose message id is at most ``last_id``, for ``reason``. Later messages
    stay, and so do those that consumers hold.
    """

    holds = True

    def __init__(self, contents: Contents, reason: str, last_id: int) -> None:
        self._contents = contents
        self._reason = reason
        self._last_id = last_id
        self._cursor: Cursor | None = None
        self._aside: ScheduledCursor | None = None
        self._behind_from = LOWEST
        """From which sequence on entries are left that are not active."""

    def work(self, budget: Budget, now_ms: int) -> bool:
        if self._cursor is None:
            self._cursor = self._contents.order.open_cursor()
            self._aside = self._contents.scheduled_dates.open_cursor()
        while self._remove_ready(self._cursor, budget):
            if budget.is_spent:
                return False
        while self._remove_pending(budget):
            if budget.is_spent:
                return False
        while self._aside is not None and self._remove_aside(self._aside, budget):
            if budget.is_spent:
                return False
        return self._has_forgotten_alarms(budget)

    def break_off(self, now_ms: int) -> bool:
        """A step has failed: what is left stays on the queue."""
        if self._cursor is not None:
            self._contents.order.close_cursor(self._cursor)
        return False

    def _remove_ready(self, cursor: Cursor, budget: Budget) -> bool:
        """Remove some ready entries. Returns False when none is left."""
        order = self._contents.order
        removed: list[Entry] = []
        looks = budget.slice_of(_KILL_UNITS)
        found = cursor.advance()
        while found is not None:
            looks -= 1
            budget.spend(_KILL_UNITS)
            if found.message.id <= self._last_id:
                order.remove(found, found.sequence)
                removed.append(found)
            if looks <= 0:
                break
            found = cursor.advance()
        self._kill(removed)
        if found is None:
            order.close_cursor(cursor)
        return found is not None

    def _kill(self, removed: list[Entry]) -> None:
        """Remove entries that are out of the order; if that fails, they are in it again."""
        try:
            self._contents.kill([entry.message for entry in removed], self._reason)
        except Exception:
            for entry in removed:
                self._contents.put_back(entry)
            raise

    def _remove_pending(self, budget: Budget) -> bool:
        """Remove some entries that are not active and do not wait for their time. Returns False when none is left."""
        contents = self._contents
        pending = contents.pending
        if pending is None:
            return False
        removed: list[Entry] = []
        looks = budget.slice_of(_KILL_UNITS)
        found = pending.next_from(self._behind_from)
        while found is not None:
            looks -= 1
            budget.spend(_KILL_UNITS)
            self._behind_from = found.sequence + 1
            if found.message.id <= self._last_id and not contents.is_aside(found):
                removed.append(found)
            if looks <= 0:
                break
            found = pending.next_from(self._behind_from)
        contents.kill([entry.message for entry in removed], self._reason)
        for entry in removed:
            contents.take_from_pending(entry)
        return found is not None

    def _remove_aside(self, aside: ScheduledCursor, budget: Budget) -> bool:
        """Remove some scheduled entries. Returns False when none is left."""
        contents = self._contents
        ids = aside.take(budget.slice_of(_KILL_UNITS))
        budget.spend(_KILL_UNITS * len(ids))
        found = [contents.scheduled.get(message_id) for message_id in ids if message_id <= self._last_id]
        removed = [entry for entry in found if entry is not None]
        contents.kill([entry.message for entry in removed], self._reason)
        for entry in removed:
            contents.end_waiting(entry)
        return bool(ids)

    def _has_forgotten_alarms(self, budget: Budget) -> bool:
        """With nothing left, forget all watched expiry times; an entry that comes back is watched again. Returns False
        while some are left.
        """
        contents = self._contents
        if contents.ready_count or contents.scheduled:
            return True
        while contents.expiry.next_ms:
            count = budget.slice_of(1) * _ALARMS_PER_UNIT
            budget.spend(1 + contents.unwatch(count) // _ALARMS_PER_UNIT)
            if budget.is_spent and contents.expiry.next_ms:
                return False
        return True


@final
class ExpiryScan(Task):
    """Removes expired entries, ready or held back. Those in delivery or scheduled stay. Consumers are served meanwhile,
    since a dispatch checks expiry itself.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def work(self, budget: Budget, now_ms: int) -> bool:
        contents = self._contents
        while not contents.is_deleted:
            looks = budget.slice_of(EXPIRE_UNITS)
            expired, looked = contents.pop_expired(now_ms, looks)
            try:
                contents.expire(expired)
            except Exception:
                for entry in expired:
                    contents.put_back(entry)
                raise
            budget.spend(looked + (EXPIRE_UNITS - 1) * len(expired))
            if looked < looks:
                contents.expiry.set_alarm()
                return True
            if budget.is_spent:
                return False
        return True


# ---- forced expiry ---------------------------------------------------------------------------------------------------
#
# A consumer has messages expire that it holds (AMPS: acknowledging with the option ``expire``).


@final
class ForcedExpiry(Task):
    """Has entries expire that a consumer let go (``entries``), or else those that it holds, up to the message
    ``up_to``.
    """

    def __init__(
        self, state: QueueState, consumer: Consumer, entries: list[Entry] | None = None, *, up_to: int = 0
    ) -> None:
        self._state = state
        self._consumer = consumer
        self._entries = entries
        self._position = 0
        self._up_to = up_to

    def work(self, budget: Budget, now_ms: int) -> bool:
        state, consumer = self._state, self._consumer
        while entries := self._next(budget.slice_of(EXPIRE_UNITS)):
            state.expire_held(consumer, entries)
            budget.spend(EXPIRE_UNITS * len(entries))
            if consumer.parked:
                state.wake(consumer)
            if budget.is_spent:
                return False
        return True

    def break_off(self, now_ms: int) -> bool:
        """Of what the consumer let go the rest goes back."""
        if self._entries is not None and self._consumer.destructive and not self._consumer.settles:
            self._state.reclaim(self._entries[self._position :])
            self._position = len(self._entries)
        return False

    def _next(self, count: int) -> list[Entry]:
        if self._entries is not None:
            start = self._position
            self._position = start + count
            return self._entries[start : start + count]
        if self._up_to not in self._consumer.held:
            return []
        return self._consumer.let_go_up_to(self._up_to, count)
