"""Is the broker busy? Then work that can wait and that takes the same processors should wait."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from artemis_py.server.stats import ServerStats

BUSY_SHARE: Final = 0.7
"""The broker is busy when its turns take this share of the time: there is little left that others could take."""
WINDOW_NS: Final = 100_000_000
"""Looked at over at least this time, or since the last question when that is longer ago."""


class Load:
    """May be asked by any thread: two that ask at once may look at a shorter window, which does no harm."""

    def __init__(self, stats: ServerStats, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._stats = stats
        self._clock_ns = clock_ns
        self._seen_ns = clock_ns()
        self._turns_ns = stats.turn_ns_sum
        self._is_busy = False

    def is_busy(self) -> bool:
        """Were turns what most of the time went into, lately?"""
        took_ns = self._clock_ns() - self._seen_ns
        if took_ns >= WINDOW_NS:
            turns_ns = self._stats.turn_ns_sum
            self._is_busy = turns_ns - self._turns_ns >= BUSY_SHARE * took_ns
            self._seen_ns += took_ns
            self._turns_ns = turns_ns
        return self._is_busy
