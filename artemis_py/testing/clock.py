"""The clock of a broker, for the test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final

from artemis_py.testing.engine import Engine

_NS_PER_S: Final = 1_000_000_000


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
