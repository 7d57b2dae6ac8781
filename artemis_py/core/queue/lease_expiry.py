"""Leases that run out: what consumers have held for too long goes back to the queue (AMPS' leases)."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import LEASES_ENDED
from artemis_py.core.order.entry import LEASE_EXPIRED, Entry
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.release import Release
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task

_LOOK_UNITS: Final = 8
"""What it may cost to end a lease, besides returning its message."""


@final
class LeaseExpiry(Task):
    """Ends all leases that are over at the steady time ``until_ms``. A lease that ends counts as a failed delivery, not
    as a cancel. Its holder is then last in line, so that another consumer is asked before it.
    """

    holds = True

    def __init__(self, state: QueueState, leases: Leases, until_ms: int) -> None:
        self._state = state
        self._leases = leases
        self._until_ms = until_ms
        self._release: Release | None = None
        """What is on its way back."""

    def work(self, budget: Budget, now_ms: int) -> bool:
        while self._release is None or self._release.give_back(budget, now_ms):
            if budget.is_spent:
                return False
            count_max = budget.slice_of(_LOOK_UNITS)
            over = self._leases.pop_over(self._until_ms, count_max)
            budget.spend(len(over))
            if not over:
                return self._is_done(budget)
            self._take(over)
        return False

    def _is_done(self, budget: Budget) -> bool:
        if self._release is not None and not self._release.finish(budget):
            return False
        self._release = None  # the queue keeps this work, which must not keep messages and consumers that are gone
        self._leases.set_timer()
        return True

    def _take(self, over: list[tuple[int, Consumer]]) -> None:
        """Take the messages from their holders. One that is not held any more waits for the end of a transaction."""
        entries: list[Entry] = []
        holders: list[Consumer] = []
        for message_id, consumer in over:
            if message_id in consumer.held:
                entries.append(consumer.let_go(message_id))
                holders.append(consumer)
        if not entries:
            return
        if self._release is None:
            self._release = Release(self._state, holders[0], [], failed=True, cause=LEASE_EXPIRED)
        self._release.add(entries, holders)
        self._tell(holders)
        self._state.distribution.put_last([holder for holder in dict.fromkeys(holders) if not holder.closed])

    def break_off(self, now_ms: int) -> bool:
        """What was taken goes back, and other leases end in their time."""
        if self._release is not None:
            self._release.break_off(now_ms)
            self._release = None
        self._leases.set_timer()
        return False

    def _tell(self, holders: list[Consumer]) -> None:
        """Count the leases that ended, and log them; of several holders the event names the last."""
        self._leases.ended_count += len(holders)
        last = holders[-1]
        reader = last.reader
        fields = {"consumer": last.id, "connection": reader.connection, **reader.who}
        state = self._state
        state.host.note_event(LEASES_ENDED, state.reference, fields, count=len(holders))
