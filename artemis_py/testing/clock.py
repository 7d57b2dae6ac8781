"""The clock of a broker, which a test moves, and an event loop that goes by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from artemis_py.server.server import Server

_NS_PER_S: Final = 1_000_000_000


@final
class MovedTime:
    """The clocks of the machine, ``ahead_ns`` nanoseconds ahead. Only the thread of the loop changes that.

    They are taken from the machine when this module is imported, so a test that replaces ``time.time`` does not change
    them.
    """

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


_NS_PER_MS: Final = 1_000_000
_ROUNDS_MAX: Final = 200
"""How many rounds (expiry, deletion) a span of time gets at most: days have thousands of them."""
_DATES_MAX: Final = 20_000
"""What is due closer together than this share of the span is due at once."""


async def let_pass(server: Server, moved: MovedTime, span_ms: int, *, silent: bool) -> None:
    """Move the time on by ``span_ms``, from one date at which something is due to the next. Without ``silent``, the
    clients of the broker count as heard.
    """
    until_ns = moved.ahead_ns + span_ms * _NS_PER_MS
    await _settle(server)
    while moved.ahead_ns < until_ns and server.failure is None:
        left_ms = (until_ns - moved.ahead_ns) // _NS_PER_MS
        moved.ahead_ns += min(_next_ms(server, moved, span_ms), left_ms) * _NS_PER_MS
        if not silent:
            now_ms = server.turns.clock_ms()
            for connection in server.stats.connections:
                connection.session.heartbeat.note_alive(now_ms)
        server.turns.run()
        await _settle(server)


def _next_ms(server: Server, moved: MovedTime, span_ms: int) -> int:
    """How long until the next date, at least 1 ms."""
    broker, now_ms = server.broker, moved.wall_ns() // _NS_PER_MS
    dates = [max(span_ms, 1)]
    exact_ms = broker.timers.next_due_ms()
    if exact_ms is not None:
        dates.append(max(exact_ms - now_ms, span_ms // _DATES_MAX, 1))
    due_ms = broker.next_due_ms()
    if due_ms is not None:
        dates.append(max(due_ms - now_ms, span_ms // _ROUNDS_MAX, 1))
    return min(dates)


async def _settle(server: Server) -> None:
    """Let the loop, and turns, do what there is to do now."""
    await asyncio.sleep(0)
    while server.failure is None and server.broker.has_ready:
        server.turns.run()
        await asyncio.sleep(0)


@final
class Clock:
    """The broker's clock. It runs by itself, and ``advance`` moves it on.

    ``pass_time`` does so: it gets the ms, and whether clients were silent meanwhile.
    """

    def __init__(self, moved: MovedTime, pass_time: Callable[[int, bool], None]) -> None:
        self._moved = moved
        self._pass_time = pass_time

    @property
    def now(self) -> datetime:
        """The broker's date, in UTC."""
        return datetime.fromtimestamp(self._moved.wall_ns() / _NS_PER_S, UTC)

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
        self._pass_time(span_ms, silent)

    def __repr__(self) -> str:
        return f"<clock at {self.now.isoformat(timespec='milliseconds')}>"
