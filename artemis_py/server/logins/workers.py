"""A few threads that do work with a lower priority than the broker's turns."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, final

_NICENESS: Final = 10
"""The threads are nicer than the process by this much: hashing takes the processor time that the turns leave."""
_NICENESS_MAX: Final = 19


@final
class Workers:
    """At most ``threads_max`` threads, each started when it is first needed. A directory that never answers does not
    keep the process from ending.
    """

    __slots__ = ("_threads", "_work", "threads_max")

    def __init__(self, threads_max: int) -> None:
        self.threads_max = threads_max
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self, work: Callable[[], None]) -> None:
        """Do the work in a thread. It must not raise, and no more than ``threads_max`` may be given at a time."""
        if len(self._threads) < self.threads_max:
            thread = threading.Thread(target=self._run, name=f"login {len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put(work)

    def stop(self) -> None:
        """End the threads that wait for work. Others end with the process."""
        for _ in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # without Linux all threads have one priority
            thread = threading.get_native_id()
            niceness = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
            os.setpriority(os.PRIO_PROCESS, thread, min(niceness, _NICENESS_MAX))
        while (work := self._work.get()) is not None:
            work()
