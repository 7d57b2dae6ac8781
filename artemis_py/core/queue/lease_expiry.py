"""Leases end: what consumers have held for too long goes back to the queue."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import LEASES_ENDED
from artemis_py.core.order.entry import LEASE_EXPIRED, Entry
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.returning import Return
from artemis_py.core.tasks import Task

_LOOK_UNITS: Final = 8
"""What it may cost to end a lease, besides returning its message."""


@final
class LeaseExpiry(Task):
    """Ends all leases that are over at the steady time ``until_ms``. A lease that ends counts as a failed delivery, not
    as a cancel. Its holder is then last in line, so that another consumer is asked before it.
    """

    holds = True

    def __init__(self, parts: QueueParts, leases: Leases, until_ms: int) -> None:
        self._parts = parts
        self._leases = leases
        self._until_ms = until_ms
        self._return: Return | None = None
        """What is on its way back."""

    def work(self, budget: Budget, now_ms: int) -> bool:
        while self._return is None or self._return.give_back(budget, now_ms):
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
        if self._return is not None and not self._return.finish(budget):
            return False
        self._return = None  # the queue keeps this work, which must not keep messages and consumers that are gone
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
        if self._return is None:
            self._return = Return(self._parts, holders[0], [], failed=True, cause=LEASE_EXPIRED)
        self._return.add(entries, holders)
        self._tell(holders)
        self._parts.distribution.put_last([holder for holder in dict.fromkeys(holders) if not holder.closed])

    def break_off(self, now_ms: int) -> bool:
        """What was taken goes back, and other leases end in their time."""
        if self._return is not None:
            self._return.break_off(now_ms)
            self._return = None
        self._leases.set_timer()
        return False

    def _tell(self, holders: list[Consumer]) -> None:
        """Count the leases that ended, and tell the operational log; of several holders it names the last."""
        self._leases.ended_count += len(holders)
        last = holders[-1]
        reader = last.reader
        fields = {"consumer": last.id, "connection": reader.connection, **reader.who}
        parts = self._parts
        parts.host.note_event(LEASES_ENDED, parts.reference, fields, count=len(holders))


def take_late(
    parts: QueueParts, consumer: Consumer, message_id: int, *, refuses: bool
) -> tuple[Consumer, Entry] | None:
    """A consumer settles a message that it does not hold. Under ``leasing="sublet"`` it may settle what another one
    holds; what nobody holds it may settle in any case, unless it ``refuses`` it.

    Returns whose message it is now, the holder's or else the consumer's, and its entry, which is in delivery and out of
    everybody's hands; None when nothing may be done.
    """
    contents = parts.contents
    leases = contents.leases
    if leases is None:
        return None
    holder = leases.holder_of(message_id)
    if holder is not None:
        if leases.is_strict or message_id not in holder.held:
            return None
        return holder, holder.let_go(message_id)
    entry = None if refuses else leases.returned(message_id)
    if entry is None:
        return None
    if not contents.order.remove(entry, entry.sequence):
        if not contents.is_aside(entry):
            return None
        contents.take_from_aside(entry)
    contents.deliver(entry.message)
    return consumer, entry
