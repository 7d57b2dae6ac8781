"""What queues wait for: scheduled messages, gates that open after a delay, and times to look at something again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from artemis_py.core.falling import Falling
from artemis_py.core.queue_work import SLICE_MAX
from artemis_py.core.schedule import Schedule, Timetable

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker
    from artemis_py.core.queue import Queue

_STEP_MS: Final = 1000
"""When the clock was set by this much, every alarm rings: what queues wait for may be elsewhere now."""


@final
class Timers:
    """Holds numbers of queues and messages, never the things themselves: clients choose the times, and what is gone
    must not stay until then.
    """

    def __init__(self) -> None:
        self._queues: dict[int, Queue] = {}
        """Queues for which something was due once, by number."""
        self.scheduled: Timetable[tuple[int, int]] = Timetable(self._waits_no_more)
        """Numbers of queues and ids of messages."""
        self._gates: Schedule[tuple[int, int]] = Schedule(self._opens_no_more)
        """Numbers of queues and the steady times at which their gates open."""
        self._gate_ms: dict[int, int] = {}
        """When the gate of each queue opens, by number."""
        self._alarms: Schedule[tuple[int, int]] = Schedule(self._rings_no_more)
        """Numbers of queues and dates."""
        self._alarm_ms: dict[int, int] = {}
        """The date of the one alarm that each queue has set, by number: whoever looks then sets the next."""
        self._rung_at_shift_ms = 0
        self._falling: Falling | None = None
        """Scheduled messages that are due, while they are taken out of the schedule."""

    def __len__(self) -> int:
        """How many queues something was due for."""
        return len(self._queues)

    @property
    def alarm_count(self) -> int:
        """Alarms that are set."""
        return len(self._alarms)

    # ---- noting ----------------------------------------------------------------------------------

    def note_date(self, date_ms: int, queue: Queue, message_id: int) -> None:
        """A message waits for a date."""
        self._queues[queue.id] = queue
        self.scheduled.add_date(date_ms, (queue.id, message_id))

    def note_span(self, steady_ms: int, queue: Queue, message_id: int) -> None:
        """A message waits for a steady time."""
        self._queues[queue.id] = queue
        self.scheduled.add_span(steady_ms, (queue.id, message_id))

    def note_gate(self, steady_ms: int, queue: Queue) -> None:
        """A gate opens at a steady time."""
        if self._gate_ms.get(queue.id) == steady_ms:
            return
        self._queues[queue.id] = queue
        self._gate_ms[queue.id] = steady_ms
        self._gates.add(steady_ms, (queue.id, steady_ms))

    def note_alarm(self, date_ms: int, queue: Queue) -> None:
        """A queue looks at something again at a date, at the latest."""
        set_ms = self._alarm_ms.get(queue.id)
        if set_ms is not None and set_ms <= date_ms:
            return
        self._queues[queue.id] = queue
        self._alarm_ms[queue.id] = date_ms
        self._alarms.add(date_ms, (queue.id, date_ms))

    def forget(self, queue: Queue) -> None:
        """The queue is gone; so is all that it waited for."""
        self._queues.pop(queue.id, None)
        self._alarm_ms.pop(queue.id, None)
        self._gate_ms.pop(queue.id, None)

    def find(self, queue_id: int) -> Queue | None:
        """A queue that waits for something, None for one that is gone."""
        return self._queues.get(queue_id)

    def _waits_no_more(self, item: tuple[int, int]) -> bool:
        queue = self._queues.get(item[0])
        return queue is None or item[1] not in queue.scheduled

    def _opens_no_more(self, item: tuple[int, int]) -> bool:
        return self._gate_ms.get(item[0]) != item[1]

    def _rings_no_more(self, item: tuple[int, int]) -> bool:
        return self._alarm_ms.get(item[0]) != item[1]

    # ---- what is due -----------------------------------------------------------------------------

    def next_due_ms(self, shift_ms: int) -> int | None:
        """The date at which something is due if nobody sets the clock until then, or None."""
        gate_ms = self._gates.next_due_ms()
        first_ms = None if gate_ms is None else gate_ms + shift_ms
        for due_ms in (self.scheduled.next_due_ms(shift_ms), self._alarms.next_due_ms()):
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms

    def is_behind(self, broker: Broker) -> bool:
        """Is something due that the turn's budget did not reach?"""
        now_ms = broker.log.now_ms
        return self._alarms.is_due(now_ms) or self._gates.is_due(broker.clock.steady_ms(now_ms))

    def look_at_clock(self, shift_ms: int, now_ms: int) -> None:
        """When the clock was set, every alarm is due."""
        if abs(shift_ms - self._rung_at_shift_ms) >= _STEP_MS:
            self._rung_at_shift_ms = shift_ms
            self._alarms.clear()
            for queue_id in self._alarm_ms:
                self._alarm_ms[queue_id] = now_ms
                self._alarms.add(now_ms, (queue_id, now_ms))

    def run(self, broker: Broker, now_ms: int) -> bool:
        """Begin what is due; False when that will go on for some turns, and what is due later comes after it."""
        shift_ms = broker.clock.shift_ms
        if self.scheduled.is_due(now_ms, shift_ms) and (self._falling is None or self._falling.is_done):
            falling = self._falling = Falling(self, broker, now_ms)
            if not falling.work(broker.budget, now_ms):
                broker.agenda.add(falling)
        if self._falling is not None and not self._falling.is_done:
            return False
        steady_ms = broker.clock.steady_ms(now_ms)
        for item in self._gates.pop_due(steady_ms):
            queue = None if self._opens_no_more(item) else self._queues.get(item[0])
            if queue is None:
                continue
            if queue.is_held:
                self._gates.add(steady_ms, item)
            else:
                del self._gate_ms[item[0]]
                queue.tick_gate(steady_ms)
        self._ring(broker, now_ms)
        return True

    def _ring(self, broker: Broker, now_ms: int) -> None:
        """Have queues look at what they set alarms for. What is left of them when the budget is spent is due in the
        next turn, too.
        """
        budget = broker.budget
        is_more = True
        while is_more:
            count = min(max(budget.left, 1), SLICE_MAX)
            due = self._alarms.pop_due(now_ms, count)
            budget.spend(len(due))
            for item in due:
                queue = None if self._rings_no_more(item) else self._queues.get(item[0])
                if queue is not None:
                    del self._alarm_ms[item[0]]
                    try:
                        queue.ring(now_ms)
                    except Exception as error:
                        broker.set_aside(queue, "alarm", error)
            is_more = len(due) == count and not budget.is_spent
