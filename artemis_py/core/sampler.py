"""Takes a sample of the counters of all queues every ten seconds, some in each turn (``core/counter_history.py``)."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.budget import Budget
from artemis_py.core.counter_history import PERIOD_MS
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.tasks import Task

_LOOK_UNITS: Final = 2


@final
class Sampler(Task):
    """A round lasts as many turns as it takes. One that is due meanwhile is left out. None begins before ``begin``: a
    broker that nobody can ask needs none.
    """

    def __init__(self, host: QueueHost, bindings: Bindings) -> None:
        self._host = host
        self._rounds = host.rounds
        self._bindings = bindings
        self._alarms = host.clock.alarms()
        self.done = True
        self._left: list[Queue] = []
        """What the round has still to look at."""
        self._added = self._acknowledged = self._count = self._scheduled_count = 0

    def begin(self, now_ms: int) -> None:
        """The first round begins in ten seconds."""
        self._alarms.set(0, self._host.clock.steady_ms(now_ms) + PERIOD_MS)

    def run(self, now_ms: int) -> None:
        """Begin a round if one is due."""
        if not self._alarms.due:
            return
        steady_ms = self._host.clock.steady_ms(now_ms)
        while self._alarms.due:
            self._alarms.take()
        self._alarms.set(0, steady_ms + PERIOD_MS)
        if self.done:
            self._rounds.begin(steady_ms)
            self._left = list(self._bindings.by_id.values())
            self._added, self._acknowledged = self._bindings.departed.added, self._bindings.departed.acknowledged
            self._count = self._scheduled_count = 0
            self._host.agenda.add(self)

    def work(self, budget: Budget, now_ms: int) -> bool:
        left = self._left
        while left:
            self._look(left.pop())
            budget.spend(_LOOK_UNITS)
            if budget.is_spent:
                break
        if left:
            return False
        self._rounds.whole.note(self._added, self._acknowledged, self._count, self._scheduled_count)
        self._rounds.end()
        return True

    def _look(self, queue: Queue) -> None:
        if queue.deleted:
            return
        contents = queue.contents
        counters, count, scheduled_count = contents.counters, contents.message_count, len(contents.scheduled)
        self._rounds.note(queue.id, counters.added, counters.acknowledged, count, scheduled_count)
        self._added += counters.added
        self._acknowledged += counters.acknowledged
        self._count += count
        self._scheduled_count += scheduled_count
