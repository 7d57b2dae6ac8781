"""Messages that go to more queues than a turn has units for: decided and logged at once, then put on their queues in
slices.

The record of a message names all of its queues, so a crash keeps all of its places or none. Only the moment differs at
which each queue gets it. Publications to one address keep their order: those that arrive while one is being carried out
wait behind it.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.memory import keep, release
from artemis_py.core.order.entry import ABANDONED, DELETED, Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.message import Message

PLACE_UNITS: Final = 2
"""What it costs to put one message on one queue, in units."""


def put(queue: Queue, messages: list[Message], due_ms: int, now_ms: int, size_bytes: int) -> None:
    """Put new messages, of ``size_bytes`` together, on a queue. With ``due_ms`` above 0 (epoch ms) they are
    scheduled. If that raises, what did not come to the queue is written off there, too: no restart may find what its
    sender was told to have failed.
    """
    added = queue.contents.counters.added
    try:
        if due_ms:
            for message in messages:
                queue.arrivals.schedule(Entry(message), due_ms, now_ms)
        else:
            queue.arrivals.arrive([Entry(message) for message in messages], size_bytes, now_ms)
    except Exception:
        lost = messages[queue.contents.counters.added - added :]
        queue.arrivals.miss(lost, ABANDONED)
        for message in lost:
            if not message.refs:  # charged, and nobody needs it
                message.account.credit(1, message.memory_bytes)
        raise


@final
class FanOut(Task):
    """One batch on its way to its queues."""

    def __init__(
        self, messages: list[Message], shares: list[tuple[Queue, list[Message]]], due_ms: int, *, plain: bool
    ) -> None:
        self._messages = messages
        self._shares = shares
        self._due_ms = due_ms
        self._plain = plain
        self._place = 0
        self._start = 0
        """How many messages of the current share were put on its queue."""
        for message in messages:  # a reference until every queue has its messages
            keep(message)

    def work(self, budget: Budget, now_ms: int) -> bool:
        shares = self._shares
        while self._place < len(shares):
            queue, taken = shares[self._place]
            part = taken
            if len(taken) > SLICE_MAX:
                part = taken[self._start : self._start + SLICE_MAX]
            self._start += len(part)
            if self._start >= len(taken):  # before the attempt: what raises is not tried again
                self._place += 1
                self._start = 0
            budget.spend(PLACE_UNITS + len(part) - 1)
            self._put(queue, part, now_ms)
            if budget.is_spent:
                break
        if self._place < len(shares):
            return False
        self._shares = []
        messages, self._messages = self._messages, []
        release(messages)
        return True

    def break_off(self, now_ms: int) -> bool:
        """The other queues get what they were to get."""
        return True

    def _put(self, queue: Queue, messages: list[Message], now_ms: int) -> None:
        if queue.deleted:
            queue.arrivals.miss(messages, DELETED)
            return
        if queue.purge_on_no_consumers and not queue.taker_count:
            queue.arrivals.miss(messages, ABANDONED)
            return
        size_bytes = sum([message.size_bytes for message in messages])
        if self._plain and not self._due_ms:
            consumer = queue.arrivals.direct_consumer(messages)
            if consumer is not None:
                queue.arrivals.hand_over(consumer, [Entry(message) for message in messages], size_bytes)
                return
        put(queue, messages, self._due_ms, now_ms, size_bytes)

    def add_to(self, coming: dict[int, list[int]]) -> None:
        """Add up the persistent messages that durable queues have still to get: count, bytes and how many are
        scheduled, by queue number.
        """
        start = self._start
        for queue, taken in self._shares[self._place :]:
            durable = [message for message in taken[start:] if message.head.persistent] if queue.durable else []
            start = 0
            if durable and not queue.deleted:
                counts = coming.setdefault(queue.id, [0, 0, 0])
                counts[0] += len(durable)
                counts[1] += sum([message.size_bytes for message in durable])
                counts[2] += len(durable) if self._due_ms else 0
