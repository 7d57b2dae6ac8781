"""Keeps Python's cycle collector from disturbing turns: each run does little, however many objects there are.

Connections, queues and messages leave no cycles, so old objects are not searched for them again. A broker with few
objects is searched completely now and then, so that a cycle left by a library does not stay for ever.
"""

from __future__ import annotations

import gc
from asyncio import AbstractEventLoop
from typing import Final

_YOUNG_MAX: Final = 20_000
"""When there are this many new objects, they are searched once and then count as old. That takes one or two
milliseconds, or four where the processor's caches are shared. Objects that come and go below this number are never
searched.
"""
_NEVER: Final = 1_000_000
_LOOK_EVERY_S: Final = 60.0
_OBJECTS_MAX: Final = 100_000
"""With more old objects than this there is no complete search: with the young ones it would take longer than a turn."""


class Collector:
    """Starts when the broker is ready. Before that nothing is collected: a recovery only creates objects that stay, and
    searching them again and again would cost half of its time.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._is_resting = True
        gc.disable()

    def begin(self) -> None:
        """All current objects count as old."""
        if _collected not in gc.callbacks:
            gc.callbacks.append(_collected)
            self._loop.call_later(_LOOK_EVERY_S, self._look)
        gc.set_threshold(_YOUNG_MAX, _NEVER, _NEVER)
        gc.freeze()
        gc.enable()
        self._is_resting = False

    def rest(self) -> None:
        """The broker has ended, and another one may start in this process: what it leaves is collected now."""
        self._is_resting = True
        gc.disable()
        gc.unfreeze()
        gc.collect()

    def _look(self) -> None:
        if not self._is_resting and gc.get_freeze_count() <= _OBJECTS_MAX:
            gc.unfreeze()
            gc.collect()  # what is left counts as old again: see _collected
        self._loop.call_later(_LOOK_EVERY_S, self._look)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
