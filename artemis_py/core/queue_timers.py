"""What queues wait for: scheduled messages, gates, leases, alarms."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.clock import Clock, drop_void
from artemis_py.core.order.entry import Entry

_LOOKS: Final = 2
"""How many old items each new one makes the heap check, so that void ones stay fewer than the others."""
_STEP_MS: Final = 1000
"""When the clock is set by this many ms, every alarm is due: what queues wait for may be at another time now."""

Item = tuple[int, int, int]
"""When a message is due, in which order it was scheduled, and its id."""


@final
class Schedule:
    """The scheduled messages of one queue. It has an alarm for the first of them: clients may have a million messages
    due at once, and what others wait for must not stand behind these.

    It has ids of messages, not messages. Some are due at a date, and some at a steady time.
    """

    __slots__ = ("_added", "_aside", "_date_place", "_dates", "_span_place", "_spans")

    def __init__(self, aside: dict[int, Entry]) -> None:
        self._aside = aside
        """The queue's scheduled entries. An item that is not in it is void."""
        self._dates: list[Item] = []
        self._spans: list[Item] = []
        self._date_place = 0
        self._span_place = 0
        self._added = 0

    def __len__(self) -> int:
        return len(self._dates) + len(self._spans)

    def add(self, message_id: int, due_ms: int, *, is_date: bool) -> None:
        """A message is due at a date, or at a steady time."""
        self._added += 1
        if is_date:
            heappush(self._dates, (due_ms, self._added, message_id))
            self._date_place = drop_void(self._dates, self._date_place, _LOOKS, self._is_void)
        else:
            heappush(self._spans, (due_ms, self._added, message_id))
            self._span_place = drop_void(self._spans, self._span_place, _LOOKS, self._is_void)

    def _is_void(self, item: Item) -> bool:
        return item[2] not in self._aside

    @property
    def first_date_ms(self) -> int | None:
        """The first date at which a message is due, or None."""
        return self._dates[0][0] if self._dates else None

    @property
    def first_span_ms(self) -> int | None:
        """The first steady time at which a message is due, or None."""
        return self._spans[0][0] if self._spans else None

    def some(self, start: int, count: int, shift_ms: int) -> list[tuple[int, int]]:
        """At most so many items from a place on, in no order: the date at which each is due, and a message's id. Fewer:
        these are the last. Who asks again for those behind them may miss one that has moved meanwhile.
        """
        dates = self._dates[start : start + count]
        left = count - len(dates)
        begin = max(start - len(self._dates), 0)
        spans = self._spans[begin : begin + left] if left else []
        return [(due_ms, id) for due_ms, _, id in dates] + [(due_ms + shift_ms, id) for due_ms, _, id in spans]

    def pop_due(self, now_ms: int, shift_ms: int, count_max: int) -> tuple[list[Entry], int]:
        """Take what is due at the date ``now_ms``, or the first ``count_max`` items of it: the entries that still wait,
        the earliest first, and how many items were taken.
        """
        due: list[Entry] = []
        dates, spans = self._dates, self._spans
        count = 0
        while count < count_max:
            is_date = len(dates) > 0 and dates[0][0] <= now_ms
            is_span = len(spans) > 0 and spans[0][0] + shift_ms <= now_ms
            if is_date and is_span:
                is_date = (dates[0][0], dates[0][1]) < (spans[0][0] + shift_ms, spans[0][1])
            if not is_date and not is_span:
                break
            entry = self._aside.get(heappop(dates if is_date else spans)[2])
            count += 1
            if entry is not None:
                due.append(entry)
        return due, count


@final
class Timers:
    """The alarms of queues, all of them by the numbers of queues."""

    __slots__ = ("_clock", "_rung_at_shift_ms", "alarms", "dates", "gates", "leases", "schedules", "spans")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.gates = clock.alarms()
        """When a queue's gate opens."""
        self.leases = clock.alarms()
        """When the first lease of a queue ends. Whoever answers sets the next."""
        self.alarms = clock.alarms(by_date=True)
        """When a queue wants to be asked again. Whoever answers sets the next. All ring when the clock is set."""
        self.dates = clock.alarms(by_date=True)
        """When the first scheduled message of a queue is due that waits for a date."""
        self.spans = clock.alarms()
        """When the first one is due that waits for a steady time."""
        self.schedules: dict[int, Schedule] = {}
        """What each queue has scheduled, by its number."""
        self._rung_at_shift_ms = 0

    def schedule(self, queue_id: int, aside: dict[int, Entry], message_id: int, due_ms: int, *, is_date: bool) -> None:
        """A message waits for a date, or for a steady time. ``aside`` is all that its queue has scheduled."""
        schedule = self.schedules.get(queue_id)
        if schedule is None:
            schedule = self.schedules[queue_id] = Schedule(aside)
        schedule.add(message_id, due_ms, is_date=is_date)
        (self.dates if is_date else self.spans).set_by(queue_id, due_ms)

    @property
    def has_scheduled(self) -> bool:
        """Are scheduled messages due?"""
        return len(self.dates.due) > 0 or len(self.spans.due) > 0

    def take_scheduled(self) -> int:
        """Take the first queue whose scheduled messages are due. Returns its number; NOBODY if it does not wait any
        more. Whoever has taken what is due calls ``wait_on``.
        """
        dates, spans = self.dates.due, self.spans.due
        is_date = len(dates) > 0
        if is_date and spans:
            is_date = dates[0][0] - self._clock.shift_ms <= spans[0][0]
        return (self.dates if is_date else self.spans).take()

    def wait_on(self, queue_id: int, schedule: Schedule) -> None:
        """Wait for the next scheduled messages of a queue."""
        date_ms, span_ms = schedule.first_date_ms, schedule.first_span_ms
        if date_ms is not None:
            self.dates.set_by(queue_id, date_ms)
        if span_ms is not None:
            self.spans.set_by(queue_id, span_ms)

    def forget(self, queue_id: int) -> None:
        """Forget a queue that was deleted, and everything that it waited for."""
        self.schedules.pop(queue_id, None)
        for alarms in (self.gates, self.leases, self.alarms, self.dates, self.spans):
            alarms.clear(queue_id)

    def look_at_clock(self, now_ms: int) -> None:
        """Make every alarm due if the clock was set."""
        shift_ms = self._clock.shift_ms
        if abs(shift_ms - self._rung_at_shift_ms) >= _STEP_MS:
            self._rung_at_shift_ms = shift_ms
            for queue_id in list(self.alarms.times):
                self.alarms.set(queue_id, now_ms)

    def next_due_ms(self) -> int | None:
        """The date at which the first queue waits for something, if nobody sets the clock until then; None when none
        does. It looks at all queues.
        """
        by_date = (self.alarms.first_ms(), self.dates.first_ms())
        steady = (self.gates.first_ms(), self.leases.first_ms(), self.spans.first_ms())
        dates = [due_ms for due_ms in by_date if due_ms is not None]
        dates += [self._clock.date_ms(due_ms) for due_ms in steady if due_ms is not None]
        return min(dates, default=None)
