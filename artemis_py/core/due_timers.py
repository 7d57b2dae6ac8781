"""Runs timers that are due: scheduled messages become ready, gates open, leases end, and queues handle their alarms.

Of scheduled messages that are due together the earliest is first in line. So all of a queue are collected before the
first one moves (``DueMessages``). The queue then puts the latest at its head first, and each of the others before it. A
restart finds them in the same order: a message that the log mentions later stands further in front.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.clock import NOBODY, Alarms
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.scheduled import AGAIN_MS
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.tasks import Task

_RING_PARTS: Final = 2
"""One in this many of the units that are left goes to alarms that ring, the rest to what they ring for."""
_RING_UNITS: Final = 2
_TAKE_UNITS: Final = 2
GATE: Final = "gate"
ALARM: Final = "alarm"
LEASE: Final = "lease"


@final
class DueTimers:
    """Handles timers that are due. ``queues`` are all queues, by number."""

    def __init__(self, host: QueueHost, queues: dict[int, Queue]) -> None:
        self._host = host
        self._queues = queues
        self._messages = DueMessages(host, queues)

    def run(self, now_ms: int) -> bool:
        """Have the clock ring, and begin what is due at the date ``now_ms``. Returns False when scheduled messages take
        several turns; what is due later must wait for them.
        """
        host, timers, messages = self._host, self._host.timers, self._messages
        self._ring(now_ms)
        if messages.done and timers.has_scheduled:
            messages.done = messages.work(host.budget, now_ms)
            if messages.done:
                self._ring(now_ms)  # what is ready now may have expired
            else:
                host.agenda.add(messages)
        if not messages.done:
            return False
        self._handle(timers.gates, GATE, now_ms)
        self._handle(timers.alarms, ALARM, now_ms)
        self._handle(timers.leases, LEASE, now_ms)
        return True

    def _ring(self, now_ms: int) -> None:
        clock, budget = self._host.clock, self._host.budget
        count_max = max(budget.left // (_RING_PARTS * _RING_UNITS), 1)
        budget.spend(_RING_UNITS * clock.ring(clock.steady_ms(now_ms), count_max))

    def _handle(self, alarms: Alarms, step: str, now_ms: int) -> None:
        """Have queues do what they have waited for. What is left when the budget is spent follows in the next turn."""
        budget, steady_ms = self._host.budget, self._host.clock.steady_ms(now_ms)
        while alarms.due:
            budget.spend(1)
            queue = self._queues.get(alarms.take())
            if queue is not None:
                try:
                    self._do(queue, step, steady_ms, now_ms)
                except Exception as error:
                    queue.set_aside(step, error)
                    alarms.set_by(queue.id, (now_ms if alarms.by_date else steady_ms) + AGAIN_MS)
            if budget.is_spent:
                return

    def _do(self, queue: Queue, step: str, steady_ms: int, now_ms: int) -> None:
        if step == ALARM:
            queue.look_again(now_ms)
        elif step == LEASE:
            queue.end_leases(now_ms)
        elif queue.is_held:
            self._host.timers.gates.set(queue.id, steady_ms)
        else:
            queue.tick_gate(steady_ms)


@final
class DueMessages(Task):
    """Takes scheduled messages that are due, queue by queue, and hands them to their queues."""

    def __init__(self, host: QueueHost, queues: dict[int, Queue]) -> None:
        self.done = True
        self._host = host
        self._queues = queues
        self._queue_id = NOBODY
        """The queue whose messages are being collected, or nobody."""
        self._until_ms = 0
        """The date until which they are due."""
        self._shift_ms = 0
        self._entries: list[Entry] = []

    def work(self, budget: Budget, now_ms: int) -> bool:
        timers = self._host.timers
        while self._queue_id != NOBODY or timers.has_scheduled:
            if self._queue_id == NOBODY:
                budget.spend(1)
                self._queue_id = timers.take_scheduled()
                self._until_ms, self._shift_ms = now_ms, self._host.clock.shift_ms
            if self._collect(budget):
                self._hand_over(budget, now_ms)
            if budget.is_spent:
                break
        return self._queue_id == NOBODY and not timers.has_scheduled

    def _collect(self, budget: Budget) -> bool:
        """Take some due messages of a queue. Returns True when none is left."""
        timers = self._host.timers
        schedule = timers.schedules.get(self._queue_id)
        if schedule is None:
            return True
        count_max = budget.slice_of(_TAKE_UNITS)
        entries, count = schedule.pop_due(self._until_ms, self._shift_ms, count_max)
        budget.spend(_TAKE_UNITS * count)
        self._entries += entries
        if count == count_max:
            return False
        timers.wait_on(self._queue_id, schedule)
        return True

    def _hand_over(self, budget: Budget, now_ms: int) -> None:
        """All messages of a queue that are due are collected: it is the next one's turn."""
        queue, entries = self._queues.get(self._queue_id), self._entries
        self._queue_id, self._entries = NOBODY, []
        if queue is None or not entries:
            return
        try:
            queue.release_due(entries, now_ms, budget)
        except Exception as error:
            queue.set_aside("schedule", error)
            queue.contents.wait_again(entries, now_ms + AGAIN_MS)

    def break_off(self, now_ms: int) -> bool:
        return True
