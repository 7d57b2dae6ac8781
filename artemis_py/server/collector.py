"""Python's collector of garbage cycles, kept off the turns: what it does at once is little, however much there is.

Connections, queues and messages leave no cycles, so what has lived for a while is not walked again to look for some. A
broker that holds little is looked through whole now and then: a cycle that a library left does not stay for ever.
"""

from __future__ import annotations

import gc
from asyncio import AbstractEventLoop
from typing import Final

_YOUNG_MAX: Final = 20_000
"""When there are so many more objects than before, these are looked through, once, and count as old then: one or two
milliseconds where the processor's caches are not shared, and four where they are. What comes and goes with fewer is
never looked through."""
_NEVER: Final = 1_000_000
_LOOK_EVERY_S: Final = 60.0
_OBJECTS_MAX: Final = 100_000
"""A broker of more objects that are old is not looked through: with the young ones that would take more than a turn."""


class Collector:
    """Begins when the broker is ready. Until then nothing is collected: a recovery only makes objects that stay, and
    walking them again and again costs half of its time.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        gc.disable()

    def begin(self) -> None:
        """What is there now is old."""
        gc.callbacks.append(_collected)
        gc.set_threshold(_YOUNG_MAX, _NEVER, _NEVER)
        gc.freeze()
        gc.enable()
        self._loop.call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        if gc.get_freeze_count() <= _OBJECTS_MAX:
            gc.unfreeze()
            gc.collect()  # what is left is old again: see _collected
        self._loop.call_later(_LOOK_EVERY_S, self._look)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
