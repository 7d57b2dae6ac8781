"""Time that a test can move: the broker's clocks, and an event loop that goes by them.

The clocks run as those of the machine do, only ahead of them. They are taken from the machine when this module is
imported, so a test that replaces ``time.time`` does not change them.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from artemis_py.testing.engine import Engine

_NS_PER_MS: Final = 1_000_000
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


@final
class Clock:
    """The broker's clock. It runs by itself, and ``advance`` moves it on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def now(self) -> datetime:
        """The broker's date, in UTC."""
        return datetime.fromtimestamp(self._engine.time.wall_ns() / _NS_PER_S, UTC)

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        silent: bool = False,
    ) -> None:
        """Let time pass. What falls due meanwhile happens in its order, and when this returns it has happened:
        schedules, redelivery delays, expiry, gates, the rounds that delete what nobody uses.

        Clients are taken to have sent their heart-beats. With ``silent`` they have not, and those that promised some
        lose their connections. A broker that is down only finds the later time when it starts again. Raises ValueError
        for a time that goes back.
        """
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        span_ms = span // timedelta(milliseconds=1)
        if span_ms < 0:
            raise ValueError(f"time does not go back: advance was asked for {span}")
        self._engine.pass_time(span_ms, silent=silent)

    def __repr__(self) -> str:
        return f"<clock at {self.now.isoformat(timespec='milliseconds')}>"
