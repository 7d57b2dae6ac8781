"""A consumer has messages expire that it holds (AMPS: acknowledging with the option ``expire``)."""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.removal import EXPIRE_UNITS
from artemis_py.core.queue.works import SLICE_MAX, QueueWork


@final
class ForcedExpiry(QueueWork):
    """Has entries expire that a consumer let go (``entries``), or else those that it holds, up to the message
    ``up_to``.
    """

    def __init__(
        self, parts: QueueParts, consumer: Consumer, entries: list[Entry] | None = None, *, up_to: int = 0
    ) -> None:
        super().__init__(holds=False)
        self._parts = parts
        self._consumer = consumer
        self._entries = entries
        self._position = 0
        self._up_to = up_to

    def work(self, budget: Budget, now_ms: int) -> bool:
        parts, consumer = self._parts, self._consumer
        while entries := self._next(min(max(budget.left // EXPIRE_UNITS, 1), SLICE_MAX)):
            parts.expire_held(consumer, entries)
            budget.spend(EXPIRE_UNITS * len(entries))
            if consumer.parked:
                parts.wake(consumer)
            if budget.is_spent:
                return False
        return True

    def break_off(self, now_ms: int) -> None:
        """Of what the consumer let go the rest goes back."""
        if self._entries is not None and self._consumer.destructive and not self._consumer.settles:
            self._parts.reclaim(self._entries[self._position :])
            self._position = len(self._entries)

    def _next(self, count: int) -> list[Entry]:
        if self._entries is not None:
            start = self._position
            self._position = start + count
            return self._entries[start : start + count]
        if self._up_to not in self._consumer.held:
            return []
        return self._consumer.let_go_up_to(self._up_to, count)
