"""Keeps Python's garbage collector from disturbing turns: each run does little, however many objects there are.

Connections, queues and messages leave no cycles, so old objects are not searched for them again. A broker with few
objects is searched completely now and then, so that a cycle left by a library does not stay for ever.
"""

from __future__ import annotations

import gc
from asyncio import AbstractEventLoop
from typing import Final, final

from artemis_py.core.budget import TURN_UNITS

_YOUNG_MAX: Final = 5_000
"""When there are this many objects more, the new ones are searched once and then count as old. That takes half a
millisecond, or more than one where the processor's caches are shared. Objects that come and go below this number are
never searched.
"""
WORK_MAX: Final = 2 * TURN_UNITS
"""Python counts an old object that goes against a new one that comes. So where as many messages leave as arrive, it
would search nothing, and all of them at once when that changes: 80 ms with 300,000. After this much work (in units of a
turn's budget) the new objects are searched in any case.
"""
_MESSAGES_MIN: Final = 2_000
"""With fewer messages than this there are not many objects to search."""
_NEVER: Final = 1_000_000
_CHECK_EVERY_S: Final = 60.0
_CHECK_SELDOM_S: Final = 3600.0
_OBJECTS_MAX: Final = 100_000
"""With more old objects than this there is no complete search: with the young ones it would take longer than a turn."""
_MESSAGES_MAX: Final = 20_000
"""With more messages than this there are certainly more objects. Python counts them by going through them: 60 ms with a
million messages.
"""


@final
class GarbageCollector:
    """Starts when the broker is ready. Before that nothing is collected: a recovery only creates objects that stay, and
    searching them again and again would cost half of its time.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._is_resting = True
        self.work = 0
        """What turns have done since the new objects were searched, in units. Each turn adds to it."""
        self.message_count = 0
        """How many messages the broker has in memory, as the last turn says."""
        self._wait_s = _CHECK_EVERY_S
        gc.disable()

    def begin(self) -> None:
        """All current objects count as old."""
        if _collected not in gc.callbacks:
            gc.callbacks.append(_collected)
            self._loop.call_later(_CHECK_EVERY_S, self._check)
        gc.set_threshold(_YOUNG_MAX, _NEVER, _NEVER)
        gc.freeze()
        gc.enable()
        self._is_resting = False

    def search_young(self) -> None:
        """``WORK_MAX`` is reached: search the new objects, if there can be many."""
        self.work = 0
        if self.message_count >= _MESSAGES_MIN and not self._is_resting:
            gc.collect(0)

    def stop(self) -> None:
        """The broker has ended, and another one may start in this process: what it leaves is collected now."""
        self._is_resting = True
        gc.disable()
        gc.unfreeze()
        gc.collect()

    def _check(self) -> None:
        if not self._is_resting and self.message_count <= _MESSAGES_MAX:
            if gc.get_freeze_count() <= _OBJECTS_MAX:
                self._wait_s = _CHECK_EVERY_S
                gc.unfreeze()
                gc.collect()  # what is left counts as old again: see _collected
            else:
                self._wait_s = min(2 * self._wait_s, _CHECK_SELDOM_S)  # to count takes its time, too
        self._loop.call_later(self._wait_s, self._check)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()
