"""The machine's clocks, read together: the wall clock, which may be set, and the steady clock, which only advances.

Setting the wall clock (by hand, by a time server, after sleep) changes dates and nothing else: heart-beats, delays and
rounds continue unaffected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from artemis_py.core.clock import Clock
from artemis_py.log_codes import CLOCK
from artemis_py.terminal_output import warn

STEP_MS: Final = 1000
"""A change of the wall clock by this much is logged and counted."""
_FOLLOWED_NS: Final = 100_000
"""How much two consecutive readings may differ without the clock having been set."""
_READINGS_MAX: Final = 3
_PAUSE_NS_MAX: Final = 10_000_000
"""After a longer pause between two readings, which says more about the machine than about its clocks, they are read
again.
"""
NS_PER_MS: Final = 1_000_000


def _tell(line: str) -> None:
    warn(line, CLOCK)


def wall_clock_ms() -> int:
    """The date in epoch milliseconds."""
    return time.time_ns() // NS_PER_MS


def steady_clock_ms() -> int:
    """Milliseconds of the steady clock, from an arbitrary start: only for differences."""
    return time.monotonic_ns() // NS_PER_MS


class WallClock:
    """Tells ``clock`` how far the wall clock was set. ``steps`` counts the changes, ``forward`` and ``back``."""

    def __init__(
        self,
        clock: Clock,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
        tell: Callable[[str], None] = _tell,
    ) -> None:
        self.steps = {"forward": 0, "back": 0}
        self._clock = clock
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._tell = tell
        self._ahead_ns = self._first_ns = self._read_ahead_ns()
        self._told_ns = self._ahead_ns
        self._seen_ms = clock.shift_ms
        """How far the wall clock was set ahead at the last check."""

    def date_ms(self) -> int:
        """The current date of the wall clock in epoch milliseconds."""
        wall_ns = self._wall_ns()
        ahead_ns = wall_ns - self._steady_ns()
        if not -_FOLLOWED_NS < ahead_ns - self._ahead_ns < _FOLLOWED_NS:
            wall_ns = self._follow(ahead_ns) + self._steady_ns()
        return wall_ns // NS_PER_MS

    def check(self) -> bool:
        """Read the clocks without a request for the time; True if the wall clock was set since the last check, whoever
        has noticed it.
        """
        self.date_ms()
        before_ms, self._seen_ms = self._seen_ms, self._clock.shift_ms
        return abs(self._seen_ms - before_ms) >= STEP_MS

    def _read_ahead_ns(self) -> int:
        """How far the wall clock is ahead of the steady one."""
        for _ in range(_READINGS_MAX):
            before_ns = self._steady_ns()
            wall_ns = self._wall_ns()
            after_ns = self._steady_ns()
            if after_ns - before_ns <= _PAUSE_NS_MAX:
                break
        return wall_ns - after_ns

    def _follow(self, ahead_ns: int) -> int:
        """The wall clock was set; returns how far it is ahead of the steady one."""
        if abs(ahead_ns - self._told_ns) >= STEP_MS * NS_PER_MS:
            ahead_ns = self._read_ahead_ns()
        step_ms = (ahead_ns - self._told_ns) // NS_PER_MS
        if abs(step_ms) >= STEP_MS:
            self._told_ns = ahead_ns
            self.steps["forward" if step_ms > 0 else "back"] += 1
            step = f"{abs(step_ms) / 1000:.3f} s"
            how = f"forward by {step} (or the machine was asleep)" if step_ms > 0 else f"back by {step}"
            self._tell(
                f"warning: the wall clock was set {how}: expires, AMQ_SCHEDULED_TIME and timestamps follow it; "
                "heart-beats and delays do not"
            )
        self._ahead_ns = ahead_ns
        self._clock.set_ahead((ahead_ns - self._first_ns) // NS_PER_MS)
        return ahead_ns
