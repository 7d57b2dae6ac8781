"""Time that a test can move: the broker's clocks, and an event loop that goes by them.

The clocks run as those of the machine do, only ahead of them. They are taken from the machine when this module is
imported, so a test that replaces ``time.time`` does not change them.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, final

_NS_PER_S: Final = 1_000_000_000


@final
class MovedTime:
    """The clocks of the machine, ``ahead_ns`` nanoseconds ahead. Only the thread of the loop changes that."""

    _wall_ns: Final = staticmethod(time.time_ns)
    _steady_ns: Final = staticmethod(time.monotonic_ns)

    def __init__(self) -> None:
        self.ahead_ns = 0

    def wall_ns(self) -> int:
        """The date, in nanoseconds since 1970."""
        return self._wall_ns() + self.ahead_ns

    def steady_ns(self) -> int:
        """The steady time, in nanoseconds from an arbitrary start."""
        return self._steady_ns() + self.ahead_ns


@final
class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by a moved time."""

    def __init__(self, moved: MovedTime) -> None:
        self._moved = moved
        super().__init__()

    def time(self) -> float:
        """The loop's own clock, in s."""
        return self._moved.steady_ns() / _NS_PER_S
