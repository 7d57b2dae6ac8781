"""What queues wait for: scheduled messages, gates that open after a delay, and times to look at something again."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.queue.entry import Entry
from artemis_py.core.schedule import Schedule, Timetable

_STEP_MS: Final = 1000
"""When the clock was set by this much, every alarm rings: what queues wait for may be elsewhere now."""


@final
class Timers:
    """Holds numbers of queues and messages, never the things themselves: clients choose the times, and what is gone
    must not stay until then.
    """

    def __init__(self) -> None:
        self._aside: dict[int, dict[int, Entry]] = {}
        """By queue number, what is scheduled there: whoever is not in it waits no more."""
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

    def __len__(self) -> int:
        """How many queues had something scheduled once."""
        return len(self._aside)

    @property
    def alarm_count(self) -> int:
        """Alarms that are set."""
        return len(self._alarms)

    # ---- noting ----------------------------------------------------------------------------------

    def note_date(self, date_ms: int, queue_id: int, aside: dict[int, Entry], message_id: int) -> None:
        """A message of ``aside``, what its queue has scheduled, waits for a date."""
        self._aside[queue_id] = aside
        self.scheduled.add_date(date_ms, (queue_id, message_id))

    def note_span(self, steady_ms: int, queue_id: int, aside: dict[int, Entry], message_id: int) -> None:
        """The same, for a steady time."""
        self._aside[queue_id] = aside
        self.scheduled.add_span(steady_ms, (queue_id, message_id))

    def note_gate(self, steady_ms: int, queue_id: int) -> None:
        """A gate opens at a steady time."""
        if self._gate_ms.get(queue_id) == steady_ms:
            return
        self._gate_ms[queue_id] = steady_ms
        self._gates.add(steady_ms, (queue_id, steady_ms))

    def note_alarm(self, date_ms: int, queue_id: int) -> None:
        """A queue looks at something again at a date at the latest; earlier when somebody has set the clock."""
        set_ms = self._alarm_ms.get(queue_id)
        if set_ms is not None and set_ms <= date_ms:
            return
        self._alarm_ms[queue_id] = date_ms
        self._alarms.add(date_ms, (queue_id, date_ms))

    def forget(self, queue_id: int) -> None:
        """The queue is gone; so is all that it waited for."""
        self._aside.pop(queue_id, None)
        self._alarm_ms.pop(queue_id, None)
        self._gate_ms.pop(queue_id, None)

    def _waits_no_more(self, item: tuple[int, int]) -> bool:
        aside = self._aside.get(item[0])
        return aside is None or item[1] not in aside

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

    def is_behind(self, now_ms: int, steady_ms: int) -> bool:
        """Is something due that the turn's budget did not reach?"""
        return self._alarms.is_due(now_ms) or self._gates.is_due(steady_ms)

    def look_at_clock(self, shift_ms: int, now_ms: int) -> None:
        """When the clock was set, every alarm is due."""
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
        """Numbers of queues of which the gate opens by a steady time. A gate that cannot open yet is noted again."""
        opening: list[int] = []
        for item in self._gates.pop_due(steady_ms):
            if not self._opens_no_more(item):
                del self._gate_ms[item[0]]
                opening.append(item[0])
        return opening

    def pop_alarms(self, now_ms: int, count_max: int) -> tuple[list[int], int]:
        """Numbers of queues that are to look again, and how many alarms were taken out for that, ``count_max`` at the
        most.
        """
        due = self._alarms.pop_due(now_ms, count_max)
        ringing: list[int] = []
        for item in due:
            if not self._rings_no_more(item):
                del self._alarm_ms[item[0]]
                ringing.append(item[0])
        return ringing, len(due)
