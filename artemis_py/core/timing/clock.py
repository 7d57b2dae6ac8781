"""The two times of the core: the date, which somebody may set, and steady time, which nobody can."""

from __future__ import annotations

from typing import final


@final
class Clock:
    """Turns dates into steady times and back.

    ``now_ms`` is the date everywhere: epoch milliseconds of the wall clock. Expiry, scheduled dates and what the log
    keeps go by it. How long something takes (heart-beats, delays, gates, rounds) goes by ``steady_ms``. The two are
    equal until somebody sets the wall clock; steady time then goes on as if nobody had.

    ``shift_ms`` is how far the wall clock was set ahead since the start; below 0: back. Whoever reads the clocks writes
    it, between turns.
    """

    __slots__ = ("shift_ms",)

    def __init__(self) -> None:
        self.shift_ms = 0

    def steady_ms(self, now_ms: int) -> int:
        """The steady time at a date, both in ms."""
        return now_ms - self.shift_ms

    def date_ms(self, steady_ms: int) -> int:
        """The date at a steady time, if nobody sets the wall clock until then."""
        return steady_ms + self.shift_ms
