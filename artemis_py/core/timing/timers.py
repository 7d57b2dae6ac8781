"""What queues wait for: scheduled messages, gates that open after a delay, and alarms."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.order.entry import Entry
from artemis_py.core.timing.clock import Clock
from artemis_py.core.timing.schedule import Schedule, Timetable

_STEP_MS: Final = 1000
"""When the clock is set by this many ms, every alarm is due: what queues wait for may be at another time now."""


@final
class Timers:
    """Times at which queues must do something. It holds numbers of queues and messages, never the things themselves:
    clients choose the times, and what is gone must not stay in memory until then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._aside: dict[int, dict[int, Entry]] = {}
        """The scheduled entries of each queue, by queue number. An item that is not in it waits no more."""
        self.scheduled: Timetable[tuple[int, int]] = Timetable(self._waits_no_more)
        """Queue numbers and message ids."""
        self._gates: Schedule[tuple[int, int]] = Schedule(self._opens_no_more)
        """Queue numbers, and the steady times at which their gates open."""
        self._gate_ms: dict[int, int] = {}
        """When the gate of each queue opens (steady ms), by queue number."""
        self._alarms: Schedule[tuple[int, int]] = Schedule(self._rings_no_more)
        """Queue numbers and dates."""
        self._alarm_ms: dict[int, int] = {}
        """The date of the one alarm that each queue has set, by queue number. Whoever answers it sets the next."""
        self._leases: Schedule[tuple[int, int]] = Schedule(self._ends_no_more)
        """Queue numbers, and the steady times at which their first leases end."""
        self._lease_ms: dict[int, int] = {}
        """The steady time that each queue with leases waits for, by queue number. Whoever answers it sets the next."""
        self._rung_at_shift_ms = 0

    def __len__(self) -> int:
        """How many queues have ever scheduled a message."""
        return len(self._aside)

    # ---- noting ----------------------------------------------------------------------------------

    def note_date(self, date_ms: int, queue_id: int, aside: dict[int, Entry], message_id: int) -> None:
        """A message waits for a date. ``aside`` is what its queue has scheduled."""
        self._aside[queue_id] = aside
        self.scheduled.add_date(date_ms, (queue_id, message_id))
        self._clock.wait_until(date_ms - self._clock.shift_ms)

    def note_span(self, steady_ms: int, queue_id: int, aside: dict[int, Entry], message_id: int) -> None:
        """A message waits for a steady time. ``aside`` is what its queue has scheduled."""
        self._aside[queue_id] = aside
        self.scheduled.add_span(steady_ms, (queue_id, message_id))
        self._clock.wait_until(steady_ms)

    def note_gate(self, steady_ms: int, queue_id: int) -> None:
        """A queue's gate opens at a steady time."""
        if self._gate_ms.get(queue_id) == steady_ms:
            return
        self._gate_ms[queue_id] = steady_ms
        self._gates.add(steady_ms, (queue_id, steady_ms))
        self._clock.wait_until(steady_ms)

    def note_alarm(self, date_ms: int, queue_id: int) -> None:
        """Set a queue's alarm for a date. A queue has one alarm, and the earliest date counts. It is due earlier when
        somebody sets the clock.
        """
        set_ms = self._alarm_ms.get(queue_id)
        if set_ms is not None and set_ms <= date_ms:
            return
        self._alarm_ms[queue_id] = date_ms
        self._alarms.add(date_ms, (queue_id, date_ms))
        self._clock.wait_until(date_ms - self._clock.shift_ms)

    def note_lease(self, steady_ms: int, queue_id: int) -> None:
        """A queue's first lease ends at a steady time. The earliest time counts."""
        set_ms = self._lease_ms.get(queue_id)
        if set_ms is not None and set_ms <= steady_ms:
            return
        self._lease_ms[queue_id] = steady_ms
        self._leases.add(steady_ms, (queue_id, steady_ms))
        self._clock.wait_until(steady_ms)

    def forget(self, queue_id: int) -> None:
        """Forget a queue that was deleted, and everything that it waited for."""
        self._aside.pop(queue_id, None)
        self._alarm_ms.pop(queue_id, None)
        self._gate_ms.pop(queue_id, None)
        self._lease_ms.pop(queue_id, None)

    def _waits_no_more(self, item: tuple[int, int]) -> bool:
        aside = self._aside.get(item[0])
        return aside is None or item[1] not in aside

    def _opens_no_more(self, item: tuple[int, int]) -> bool:
        return self._gate_ms.get(item[0]) != item[1]

    def _ends_no_more(self, item: tuple[int, int]) -> bool:
        return self._lease_ms.get(item[0]) != item[1]

    def _rings_no_more(self, item: tuple[int, int]) -> bool:
        return self._alarm_ms.get(item[0]) != item[1]

    # ---- what is due -----------------------------------------------------------------------------

    def next_due_ms(self, shift_ms: int) -> int | None:
        """The date at which something is due, if nobody sets the clock until then; None when nothing waits."""
        gate_ms = self._gates.next_due_ms()
        first_ms = None if gate_ms is None else gate_ms + shift_ms
        if self._lease_ms:
            lease_ms = self._leases.next_due_ms()
            if lease_ms is not None and (first_ms is None or lease_ms + shift_ms < first_ms):
                first_ms = lease_ms + shift_ms
        for due_ms in (self.scheduled.next_due_ms(shift_ms), self._alarms.next_due_ms()):
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms

    def look_at_clock(self, shift_ms: int, now_ms: int) -> None:
        """Make every alarm due if the clock was set."""
        if abs(shift_ms - self._rung_at_shift_ms) >= _STEP_MS:
            self._rung_at_shift_ms = shift_ms
            self._alarms.clear()
            for queue_id in self._alarm_ms:
                self._alarm_ms[queue_id] = now_ms
                self._alarms.add(now_ms, (queue_id, now_ms))

    def entry_of(self, item: tuple[int, int]) -> Entry | None:
        """The scheduled entry that an item of ``scheduled`` names; None when it waits no more."""
        aside = self._aside.get(item[0])
        return None if aside is None else aside.get(item[1])

    def pop_gates(self, steady_ms: int) -> list[int]:
        """Take the queues whose gates open by a steady time; returns their numbers. A gate that cannot open yet is
        noted again by the caller.
        """
        opening: list[int] = []
        for item in self._gates.pop_due(steady_ms):
            if not self._opens_no_more(item):
                del self._gate_ms[item[0]]
                opening.append(item[0])
        return opening

    def pop_leases(self, steady_ms: int, count_max: int) -> tuple[list[int], int]:
        """Take at most ``count_max`` queues whose first leases end by a steady time. Returns their numbers, and how
        many times were taken.
        """
        due = self._leases.pop_due(steady_ms, count_max)
        ending: list[int] = []
        for item in due:
            if not self._ends_no_more(item):
                del self._lease_ms[item[0]]
                ending.append(item[0])
        return ending, len(due)

    def pop_alarms(self, now_ms: int, count_max: int) -> tuple[list[int], int]:
        """Take at most ``count_max`` alarms that are due. Returns the numbers of their queues, and how many alarms were
        taken.
        """
        due = self._alarms.pop_due(now_ms, count_max)
        ringing: list[int] = []
        for item in due:
            if not self._rings_no_more(item):
                del self._alarm_ms[item[0]]
                ringing.append(item[0])
        return ringing, len(due)
