"""Everything that falls due: scheduled messages, redelivery delays, gates, leases, alarms."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from sys import maxsize
from typing import Any, Final, Generic, TypeVar, final

from artemis_py.core.clock import Clock
from artemis_py.core.order.entry import Entry

# ---- schedule --------------------------------------------------------------------------------------------------------
#
# Heaps of everything that falls due: scheduled messages, redelivery delays, gates, alarms.


Item = TypeVar("Item")

_LOOKS: Final = 2
"""How many old items each new one makes the heap check, so that void ones stay fewer than the others."""


class Schedule(Generic[Item]):
    """Items by due time. Of two items due at the same time, the one added first comes first. It never reads a clock.

    An item names what is due and does not hold it: clients choose the times, and what is gone must not stay in memory
    until then. ``is_void`` tells whether an item has nothing left to do. Void items are removed little by little.
    """

    __slots__ = ("_added", "_heap", "_is_void", "_looked_at")

    def __init__(self, is_void: Callable[[Item], bool]) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._added = 0
        self._is_void = is_void
        self._looked_at = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ms: int, item: Item) -> None:
        """Add an item that is due at ``due_ms``, in milliseconds of the caller's clock."""
        self._added += 1
        heappush(self._heap, (due_ms, self._added, item))
        self._looked_at = drop_void(self._heap, self._looked_at, _LOOKS, self._is_stale)

    def _is_stale(self, one: tuple[int, int, Item]) -> bool:
        return self._is_void(one[2])

    def next_due_ms(self) -> int | None:
        """When the first item is due, or None."""
        return self._heap[0][0] if self._heap else None

    def is_due(self, now_ms: int) -> bool:
        """Is something due at ``now_ms``?"""
        return len(self._heap) > 0 and self._heap[0][0] <= now_ms

    def pop_due(self, now_ms: int, count_max: int = maxsize) -> list[Item]:
        """Take the items due at ``now_ms``, or the first ``count_max`` of them, earliest first."""
        due: list[Item] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms and len(due) < count_max:
            due.append(heappop(heap)[2])
        return due

    def clear(self) -> None:
        """Forget every item."""
        self._heap.clear()


class Timetable(Generic[Item]):
    """Items that are due at a date, beside items that are due at a steady time. When somebody sets the wall clock, the
    first move and the second do not.

    ``shift_ms`` is ``Clock.shift_ms``; ``is_void`` is as in ``Schedule``.
    """

    __slots__ = ("_added", "_dates", "_dates_looked_at", "_is_void", "_spans", "_spans_looked_at")

    def __init__(self, is_void: Callable[[Item], bool]) -> None:
        self._dates: list[tuple[int, int, Item]] = []
        self._spans: list[tuple[int, int, Item]] = []
        self._added = 0
        self._is_void = is_void
        self._dates_looked_at = 0
        self._spans_looked_at = 0

    def __len__(self) -> int:
        return len(self._dates) + len(self._spans)

    def add_date(self, date_ms: int, item: Item) -> None:
        """Add an item that is due at a date, in epoch ms."""
        self._added += 1
        heappush(self._dates, (date_ms, self._added, item))
        self._dates_looked_at = drop_void(self._dates, self._dates_looked_at, _LOOKS, self._is_stale)

    def add_span(self, steady_ms: int, item: Item) -> None:
        """Add an item that is due at a steady time, in ms."""
        self._added += 1
        heappush(self._spans, (steady_ms, self._added, item))
        self._spans_looked_at = drop_void(self._spans, self._spans_looked_at, _LOOKS, self._is_stale)

    def _is_stale(self, one: tuple[int, int, Item]) -> bool:
        return self._is_void(one[2])

    def next_due_ms(self, shift_ms: int) -> int | None:
        """The date at which the first item is due, if nobody sets the clock until then; None without items."""
        if not self._spans:
            return self._dates[0][0] if self._dates else None
        span_ms = self._spans[0][0] + shift_ms
        return min(span_ms, self._dates[0][0]) if self._dates else span_ms

    def some(self, start: int, count: int, shift_ms: int) -> list[tuple[int, Item]]:
        """At most so many items from a place on, each with the date at which it is due, in no order; fewer: these are
        the last. Who asks again for those behind them may miss one that has moved meanwhile.
        """
        dates = self._dates[start : start + count]
        left = count - len(dates)
        begin = max(start - len(self._dates), 0)
        spans = self._spans[begin : begin + left] if left else []
        return [(due_ms, item) for due_ms, _, item in dates] + [(due_ms + shift_ms, item) for due_ms, _, item in spans]

    def is_due(self, now_ms: int, shift_ms: int) -> bool:
        """Is something due at the date ``now_ms``?"""
        due_ms = self.next_due_ms(shift_ms)
        return due_ms is not None and due_ms <= now_ms

    def pop_due(self, now_ms: int, shift_ms: int, count_max: int = maxsize) -> list[Item]:
        """Take the items due at the date ``now_ms``, or the first ``count_max`` of them, earliest first."""
        due: list[Item] = []
        dates, spans = self._dates, self._spans
        while len(due) < count_max:
            is_date = len(dates) > 0 and dates[0][0] <= now_ms
            is_span = len(spans) > 0 and spans[0][0] + shift_ms <= now_ms
            if is_date and is_span:
                is_date = (dates[0][0], dates[0][1]) < (spans[0][0] + shift_ms, spans[0][1])
            if is_date:
                due.append(heappop(dates)[2])
            elif is_span:
                due.append(heappop(spans)[2])
            else:
                break
        return due


def drop_void(heap: list[Any], start: int, looks: int, is_void: Callable[[Any], bool]) -> int:
    """Check ``looks`` items of a heap, from index ``start`` on, and remove void ones. Returns where the next check goes
    on; repeated checks meet every item.
    """
    place = start
    for _ in range(looks):
        if place >= len(heap):
            place = 0
        if not heap:
            break
        if is_void(heap[place]):
            _remove_at(heap, place)
        else:
            place += 1
    return place


def _remove_at(heap: list[Any], place: int) -> None:
    """Remove one item from a heap (as of heapq), in logarithmic time."""
    moved = heap.pop()
    if place == len(heap):
        return
    while place > 0 and moved < heap[(place - 1) >> 1]:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    size = len(heap)
    while (child := 2 * place + 1) < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < moved:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved


# ---- timers ----------------------------------------------------------------------------------------------------------
#
# What queues wait for: scheduled messages, gates that open after a delay, and alarms.


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
        clock.ask(self._next_steady_ms)

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

    def _next_steady_ms(self) -> int | None:
        shift_ms = self._clock.shift_ms
        date_ms = self.next_due_ms(shift_ms)
        return None if date_ms is None else date_ms - shift_ms

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
