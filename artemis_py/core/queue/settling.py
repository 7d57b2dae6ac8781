"""A cumulative ACK, however many messages it covers."""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.works import SLICE_MAX, QueueWork


@final
class Settling(QueueWork):
    """Settles one message and all that were sent to the consumer before it. The consumer holds entries that are not
    reached yet.
    """

    def __init__(self, parts: QueueParts, consumer: Consumer, message_id: int) -> None:
        super().__init__(holds=False)
        self._parts = parts
        self._consumer = consumer
        self._message_id = message_id

    def work(self, budget: Budget, now_ms: int) -> bool:
        consumer = self._consumer
        count = min(max(budget.left, 1), SLICE_MAX)
        while True:
            if self._message_id not in consumer.held:  # an ACK before this one has settled it
                return True
            entries = consumer.let_go_up_to(self._message_id, count)
            self._parts.acknowledge(consumer, entries)
            budget.spend(len(entries))
            if consumer.parked:
                self._parts.wake(consumer)
            if budget.is_spent and self._message_id in consumer.held:
                return False
