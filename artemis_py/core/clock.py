"""The clock of the core: the date, which somebody may set, steady time, which nobody can, and all alarms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, final

NEVER_MS: Final = 1 << 62
"""A steady time that does not come."""
NOBODY: Final = -1
"""No number of anything."""
_LOOKS: Final = 2
"""How many old items each new one makes the clock check, so that void ones stay fewer than the others."""
_VOID_HEADS_MAX: Final = 64
"""So many void items before the next one that is not are removed at once, so that they have no turn run."""

Item = tuple[int, int, "Alarms", int]
"""When an alarm rings, in which order it was set, whose it is, and its number."""


@final
class Clock:
    """Turns dates into steady times and back, and is the one timetable of everything that happens later.

    ``now_ms`` is the date everywhere: epoch milliseconds of the wall clock. Expiry, scheduled dates and what the log
    keeps go by it. How long something takes (heart-beats, delays, gates, rounds) goes by ``steady_ms``. The two are
    equal until somebody sets the wall clock; steady time then goes on as if nobody had. So alarms stand in two heaps:
    when the wall clock is set, dates move and spans do not.

    Each part that waits for times asks once for its ``alarms``. ``due_ms`` is the steady time at which something is to
    be done next, and the one number that a turn compares. When it has come, ``ring`` hands what is due to the parts,
    and each of them works it off in its own step of the turn. ``due_ms`` may be too early, if an alarm was cleared or
    somebody has set the wall clock; it is never too late.
    """

    __slots__ = ("_added", "_date_place", "_dates", "_span_place", "_spans", "_was_set", "due_ms", "rung_count",
                 "shift_ms")  # fmt: skip

    def __init__(self) -> None:
        self.shift_ms = 0
        """How far the wall clock was set ahead since the start; below 0: back."""
        self.due_ms = NEVER_MS
        self._dates: list[Item] = []
        self._spans: list[Item] = []
        self._date_place = 0
        self._span_place = 0
        """Where the search for void items goes on."""
        self._added = 0
        self.rung_count = 0
        """How many alarms have rung that nobody has taken."""
        self._was_set = False
        """Was the wall clock set since alarms last rang?"""

    def __len__(self) -> int:
        """How many items the heaps have, void ones included."""
        return len(self._dates) + len(self._spans)

    def alarms(self, *, by_date: bool = False) -> Alarms:
        """The alarms of a part, set to steady times, or to dates."""
        return Alarms(self, by_date=by_date)

    def set_ahead(self, shift_ms: int) -> None:
        """The wall clock was set: it is so far ahead of the steady one now. Dates come at other steady times, and the
        next turn looks at them.
        """
        self.shift_ms = shift_ms
        self._was_set = True
        self.due_ms = -NEVER_MS

    def steady_ms(self, now_ms: int) -> int:
        """The steady time at a date, both in ms."""
        return now_ms - self.shift_ms

    def date_ms(self, steady_ms: int) -> int:
        """The date at a steady time, if nobody sets the wall clock until then."""
        return steady_ms + self.shift_ms

    # ---- the timetable ---------------------------------------------------------------------------

    def add(self, alarms: Alarms, number: int, due_ms: int) -> int:
        """An alarm is being set, and its items from before become void. Returns in which order it was set."""
        self._added += 1
        heappush(self._dates if alarms.by_date else self._spans, (due_ms, self._added, alarms, number))
        steady_ms = due_ms - self.shift_ms if alarms.by_date else due_ms
        if steady_ms < self.due_ms:
            self.due_ms = steady_ms
        return self._added

    def drop_void(self) -> None:
        """Remove void items, some at a time."""
        self._date_place = drop_void(self._dates, self._date_place, _LOOKS, _is_void)
        self._span_place = drop_void(self._spans, self._span_place, _LOOKS, _is_void)

    def ring(self, steady_ms: int, count_max: int) -> int:
        """Hand to the parts what is due at a steady time: the earliest first, of the same time what was set first, and
        no more than ``count_max``. Returns how many items were taken from the timetable.
        """
        dates, spans, shift_ms = self._dates, self._spans, self.shift_ms
        self._was_set = False
        count = 0
        while count < count_max:
            is_date = len(dates) > 0 and dates[0][0] - shift_ms <= steady_ms
            is_span = len(spans) > 0 and spans[0][0] <= steady_ms
            if is_date and is_span:
                is_date = (dates[0][0] - shift_ms, dates[0][1]) < (spans[0][0], spans[0][1])
            if not is_date and not is_span:
                break
            due_ms, order, alarms, number = heappop(dates if is_date else spans)
            count += 1
            if alarms.times.get(number) == (due_ms, order):
                alarms.due.append((due_ms, order, number))
                self.rung_count += 1
        if self.rung_count:
            self.due_ms = -NEVER_MS
        else:
            self.find_next()
        return count

    def find_next(self) -> None:
        """All that has rung is worked off: find out when something is to be done next."""
        dates, spans = self._dates, self._spans
        _drop_void_heads(dates)
        _drop_void_heads(spans)
        due_ms = min(spans[0][0], NEVER_MS) if spans else NEVER_MS
        if dates:
            due_ms = min(dates[0][0] - self.shift_ms, due_ms)
        self.due_ms = -NEVER_MS if self._was_set else due_ms


def _is_void(item: Item) -> bool:
    return item[2].times.get(item[3]) != (item[0], item[1])


def _drop_void_heads(heap: list[Item]) -> None:
    for _ in range(_VOID_HEADS_MAX):
        if not heap or not _is_void(heap[0]):
            return
        heappop(heap)


@final
class Alarms:
    """The alarms of one part: at most one for each number (of a queue, a connection, a replay).

    The clock has numbers, never the things themselves: clients choose the times, and what is gone must not stay in
    memory until then. Void items are removed from its heaps little by little.
    """

    __slots__ = ("_clock", "by_date", "due", "times")

    def __init__(self, clock: Clock, *, by_date: bool) -> None:
        self._clock = clock
        self.by_date = by_date
        """Are they set to dates, and not to steady times?"""
        self.times: dict[int, tuple[int, int]] = {}
        """By number, when the alarm rings (ms; a date, or a steady time), and in which order it was set."""
        self.due: deque[tuple[int, int, int]] = deque()
        """Alarms that have rung: when they were due, in which order they were set, and their numbers. What was cleared
        or set again is void. Whoever works them off takes one after the other (``take``), so that what fails leaves the
        others here.
        """

    def set(self, number: int, due_ms: int) -> None:
        """Ring at this time, and not at another one."""
        known = self.times.get(number)
        if known is None or known[0] != due_ms:
            order = self._clock.add(self, number, due_ms)  # first: what has a time is in the heap, whatever raises
            self.times[number] = (due_ms, order)
            self._clock.drop_void()

    def set_by(self, number: int, due_ms: int) -> None:
        """Ring at this time, or earlier if the alarm is set already."""
        known = self.times.get(number)
        if known is None or due_ms < known[0]:
            self.set(number, due_ms)

    def clear(self, number: int) -> None:
        """Do not ring."""
        self.times.pop(number, None)

    def take(self) -> int:
        """Take the first one of ``due``. Returns its number, whose alarm is not set any more; NOBODY if it is void."""
        if self._clock.rung_count == 1:
            self._clock.find_next()  # first: nothing is taken if it raises
        self._clock.rung_count -= 1
        due_ms, order, number = self.due.popleft()
        if self.times.get(number) != (due_ms, order):
            return NOBODY
        del self.times[number]
        return number

    def first_ms(self) -> int | None:
        """When the first one rings; None when none is set. It looks at all of them."""
        return min([due_ms for due_ms, _ in self.times.values()], default=None)


# ---- heaps -----------------------------------------------------------------------------------------------------------
#
# Heaps (as of heapq) whose items may become void before their time comes. Clients choose the times, so void items are
# removed early.


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
