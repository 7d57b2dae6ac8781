"""SIGTERM and SIGINT: the first asks for an orderly stop, the next one for one without delay."""

from __future__ import annotations

import asyncio
import signal
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

    def _come(self) -> None:
        if self.has_come:
            self.hurry.set()
        self.has_come = True
        self.stopping.set()
