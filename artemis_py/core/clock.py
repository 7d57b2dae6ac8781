"""The two times of the core: the date, which somebody may set, and steady time, which nobody can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

NEVER_MS: Final = 1 << 62
"""A steady time that does not come."""


@final
class Clock:
    """Turns dates into steady times and back.

    ``now_ms`` is the date everywhere: epoch milliseconds of the wall clock. Expiry, scheduled dates and what the log
    keeps go by it. How long something takes (heart-beats, delays, gates, rounds) goes by ``steady_ms``. The two are
    equal until somebody sets the wall clock; steady time then goes on as if nobody had.

    ``due_ms`` is the steady time at which something is to be done next. Every part that waits for times makes itself
    known once (``ask``), and says with ``wait_until`` when it waits for a new one. So a turn compares this one number
    instead of asking all parts. It may be too early, never too late: when it has come, the parts do what is due, and
    all of them are asked again (``renew``). Who is asked is decided nowhere else, so no time can be forgotten.
    """

    __slots__ = ("_parts", "due_ms", "shift_ms")

    def __init__(self) -> None:
        self.shift_ms = 0
        """How far the wall clock was set ahead since the start; below 0: back."""
        self.due_ms = NEVER_MS
        self._parts: list[Callable[[], int | None]] = []

    def ask(self, next_due_ms: Callable[[], int | None]) -> None:
        """Make a part known: ``next_due_ms`` returns the first steady time that it waits for, or None."""
        self._parts.append(next_due_ms)

    def next_due_ms(self) -> int | None:
        """The first steady time that a part waits for, or None."""
        return min([due_ms for part in self._parts if (due_ms := part()) is not None], default=None)

    def renew(self) -> None:
        """What was due is done: wait for the next time of all parts."""
        due_ms = self.next_due_ms()
        self.due_ms = NEVER_MS if due_ms is None else due_ms

    def set_ahead(self, shift_ms: int) -> None:
        """The wall clock was set: it is so far ahead of the steady one now. Dates come at other steady times, so every
        part is asked again.
        """
        self.shift_ms = shift_ms
        self.due_ms = -NEVER_MS

    def wait_until(self, steady_ms: int) -> None:
        """Something is to be done at a steady time."""
        if steady_ms < self.due_ms:
            self.due_ms = steady_ms

    def steady_ms(self, now_ms: int) -> int:
        """The steady time at a date, both in ms."""
        return now_ms - self.shift_ms

    def date_ms(self, steady_ms: int) -> int:
        """The date at a steady time, if nobody sets the wall clock until then."""
        return steady_ms + self.shift_ms
