"""Says whether the broker is busy, so that deferrable work on the same processors can wait."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from artemis_py.server.stats import ServerStats

BUSY_SHARE: Final = 0.7
"""The broker is busy when its turns take this share of the time, which leaves little for others."""
WINDOW_NS: Final = 100_000_000
"""The minimum time to measure over; longer if the last question was longer ago."""


class Load:
    """Measures the share of time that turns take. For any thread; two at once may measure a shorter window, which is
    harmless.
    """

    def __init__(self, stats: ServerStats, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._stats = stats
        self._clock_ns = clock_ns
        self._seen_ns = clock_ns()
        self._turns_ns = stats.turn_ns_sum
        self._is_busy = False

    def is_busy(self) -> bool:
        """Did turns take most of the recent time?"""
        took_ns = self._clock_ns() - self._seen_ns
        if took_ns >= WINDOW_NS:
            turns_ns = self._stats.turn_ns_sum
            self._is_busy = turns_ns - self._turns_ns >= BUSY_SHARE * took_ns
            self._seen_ns += took_ns
            self._turns_ns = turns_ns
        return self._is_busy
