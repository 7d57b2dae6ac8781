"""When the next turn runs: as soon as possible, or when something is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

from artemis_py.core.timing.clock import NEVER_MS


@final
class Wakeup:
    """Has the event loop call ``run``: once for everything that is ready together, and when its one timer is due."""

    __slots__ = ("_loop", "_run", "_timer", "due_ms", "has_ended", "is_due")

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Callable[[], None]) -> None:
        self.is_due = False
        """Will the loop call ``run`` in this round or the next one? ``run`` itself sets this back."""
        self.has_ended = False
        """No more turns at all."""
        self._loop = loop
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        self.due_ms = NEVER_MS
        """The steady time for which the timer is set."""

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

    def wake_at(self, due_ms: int, steady_ms: int) -> None:
        """Run a turn at the steady time ``due_ms``; it is ``steady_ms`` now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.due_ms = due_ms
        if due_ms != NEVER_MS:
            self._timer = self._loop.call_later(max(due_ms - steady_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.due_ms = NEVER_MS
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
