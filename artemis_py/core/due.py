"""Carries out what is due: scheduled messages become ready, gates open, and queues answer their alarms.

Of scheduled messages that are due together the earliest is first in line. So all of them are collected before the first
one moves (``DueMessages``). Each queue then puts the latest at its head first, and each of the others before it. A
restart finds them in the same order: a message that the log mentions later stands further in front.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.faults import set_aside
from artemis_py.core.host import Host
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task

_TAKE_UNITS: Final = 2


@final
class Due:
    """Begins what is due. ``queues`` are all queues, by number."""

    def __init__(self, host: Host, queues: dict[int, Queue]) -> None:
        self._host = host
        self._queues = queues
        self._messages: DueMessages | None = None
        """Scheduled messages that are due, while they are taken from the schedule; None before the first."""

    def run(self, now_ms: int) -> bool:
        """Begin what is due at the date ``now_ms``. Returns False when that takes several turns; what is due later must
        wait for it.
        """
        host = self._host
        is_done = self._messages is None or self._messages.done
        if is_done and host.timers.scheduled.is_due(now_ms, host.clock.shift_ms):
            messages = self._messages = DueMessages(host, self._queues, now_ms)
            is_done = messages.done = messages.work(host.budget, now_ms)
            if not is_done:
                host.agenda.add(messages)
        if not is_done:
            return False
        self._open_gates(host.clock.steady_ms(now_ms))
        self._ring(now_ms)
        self._end_leases(now_ms)
        return True

    def _open_gates(self, steady_ms: int) -> None:
        timers = self._host.timers
        for queue_id in timers.pop_gates(steady_ms):
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            if queue.is_held:
                timers.note_gate(steady_ms, queue_id)
            else:
                queue.tick_gate(steady_ms)

    def _ring(self, now_ms: int) -> None:
        """Have queues answer their alarms. Alarms that are left when the budget is spent are due in the next turn,
        too.
        """
        budget = self._host.budget
        is_more = True
        while is_more:
            count_max = budget.slice_of(1)
            ringing, count = self._host.timers.pop_alarms(now_ms, count_max)
            budget.spend(count)
            for queue_id in ringing:
                queue = self._queues.get(queue_id)
                if queue is None:
                    continue
                try:
                    queue.look_again(now_ms)
                except Exception as error:
                    set_aside(self._host, queue, "alarm", error)
            is_more = count == count_max and not budget.is_spent

    def _end_leases(self, now_ms: int) -> None:
        """Have queues take back what consumers held for too long. What is left when the budget is spent follows in the
        next turn.
        """
        host = self._host
        budget, steady_ms = host.budget, host.clock.steady_ms(now_ms)
        is_more = True
        while is_more:
            count_max = budget.slice_of(1)
            ending, count = host.timers.pop_leases(steady_ms, count_max)
            budget.spend(count)
            for queue_id in ending:
                queue = self._queues.get(queue_id)
                if queue is None:
                    continue
                try:
                    queue.end_leases(now_ms)
                except Exception as error:
                    set_aside(host, queue, "lease", error)
            is_more = count == count_max and not budget.is_spent


@final
class DueMessages(Task):
    """Takes everything due at the date ``until_ms`` from the schedule and hands it to the queues."""

    def __init__(self, host: Host, queues: dict[int, Queue], until_ms: int) -> None:
        self._host = host
        self._queues = queues
        self._until_ms = until_ms
        self._shift_ms = host.clock.shift_ms
        self._groups: dict[int, list[Entry]] = {}
        self._ready: deque[tuple[int, list[Entry]]] | None = None

    def work(self, budget: Budget, now_ms: int) -> bool:
        ready = self._ready
        while ready is None:
            if self._collect(budget):
                ready = self._ready = deque(self._groups.items())
                # ``Due`` keeps this work until the next one, which must not keep messages that are gone.
                self._groups = {}
            elif budget.is_spent:
                return False
        while ready:
            queue_id, entries = ready.popleft()
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            try:
                queue.fall_due(entries, now_ms, budget)
            except Exception as error:
                set_aside(self._host, queue, "schedule", error)
            if budget.is_spent and ready:
                return False
        return True

    def _collect(self, budget: Budget) -> bool:
        """Take some due items from the schedule. Returns True when none is left."""
        timers = self._host.timers
        count = budget.slice_of(_TAKE_UNITS)
        due = timers.scheduled.pop_due(self._until_ms, self._shift_ms, count)
        budget.spend(_TAKE_UNITS * len(due))
        for item in due:
            entry = timers.entry_of(item)
            if entry is not None:
                self._groups.setdefault(item[0], []).append(entry)
        return len(due) < count

    def break_off(self, now_ms: int) -> bool:
        return bool(self._ready)
