"""SIGTERM and SIGINT: the first asks for an orderly stop, the next one for one without delay. SIGHUP has the broker
read its configuration again.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final, final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@final
class StopSignals:
    """``stopping`` is set when the broker is to stop, also by others; ``hurry`` when it is to wait for nobody."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopping = asyncio.Event()
        self.hurry = asyncio.Event()
        self.has_come = False
        """Has a signal come?"""
        for number in SIGNALS:
            loop.add_signal_handler(number, self._come)
        self.on_hangup: Callable[[], None] | None = None
        """What SIGHUP asks for; None while there is nothing to read again."""
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        if self.on_hangup is not None:
            self.on_hangup()

    def _come(self) -> None:
        if self.has_come:
            self.hurry.set()
        self.has_come = True
        self.stopping.set()
