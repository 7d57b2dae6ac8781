"""When the next turn runs: as soon as possible, or when something is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

from artemis_py.core.timing.clock import Clock


@final
class Wakeup:
    """Has the event loop call ``run``: once for everything that is ready together, and when its one timer is due."""

    __slots__ = ("_clock", "_loop", "_run", "_timer", "_timer_due_ms", "has_ended", "is_due")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, run: Callable[[], None]) -> None:
        self.is_due = False
        """Will the loop call ``run`` in this round or the next one? ``run`` itself sets this back."""
        self.has_ended = False
        """No more turns at all."""
        self._loop = loop
        self._clock = clock
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0

    def schedule(self) -> None:
        """Run a turn as soon as the loop has collected everything that is ready."""
        if not self.is_due and not self.has_ended:
            self.is_due = True
            self._loop.call_soon(self._run)

    def schedule_behind(self) -> None:
        """Run a turn after the input that arrived meanwhile."""
        if not self.is_due:
            self.is_due = True
            self._loop.call_soon(self._loop.call_soon, self._run)

    def set_timer(self, due_ms: int | None, watch_ms: int | None, now_ms: int) -> None:
        """Run a turn at the date ``due_ms`` or the steady time ``watch_ms``, whichever comes first."""
        if watch_ms is not None:
            watched_ms = self._clock.date_ms(watch_ms)
            due_ms = watched_ms if due_ms is None else min(due_ms, watched_ms)
        if due_ms is None:
            return
        steady_due_ms = self._clock.steady_ms(due_ms)
        if self._timer is not None:
            if self._timer_due_ms == steady_due_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = steady_due_ms
        self._timer = self._loop.call_later(max(due_ms - now_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.schedule()

    def stop(self) -> None:
        """Run no more timed turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Run no more turns."""
        self.stop()
        self.has_ended = True
