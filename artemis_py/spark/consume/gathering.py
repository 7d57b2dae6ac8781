"""Gathers the messages of the next batch: opens the backlog, waits until there are enough or no more come, and closes
it again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, final

from artemis_py.spark.consume.link import Link
from artemis_py.spark.consume.unsettled import Arrival, Unsettled

_FIRST_GOAL: Final = 100
"""With a limit in bytes nobody knows how many messages that will be: how many are asked for at first."""
_FEW_S: Final = 0.05
"""A batch that has messages waits so long for another one."""
_NONE_S: Final = 0.2
"""A batch that has none waits so long for the first one."""
_PATIENT_S: Final = 1.0
"""The same where the run ends when nothing comes: pages may have to be read first."""
_LONG_S: Final = 5.0
_SHORT_S: Final = 0.3
"""A batch waits at most so long for more, and longer where the next trigger is far away."""
_STEP_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Wish:
    """What a batch is to have."""

    count_max: int
    bytes_max: int | None
    top: int | None
    """Nothing with a higher bookmark; None: no bound."""
    is_patient: bool
    """Does the run end when there is nothing?"""
    pause_s: float
    """How long ago the batch before was asked for."""


@final
class Gathering:
    """How a stream gets its messages from the broker."""

    def __init__(self, link: Link, pool: Unsettled) -> None:
        self._link = link
        self._pool = pool
        self._goal = _FIRST_GOAL

    def gather(self, wish: Wish, now_ms: float) -> list[Arrival]:
        """The messages of the next batch, which are planned now; none if there are none. ``now_ms`` is the broker's
        date. Raises PipelineError.
        """
        link, pool = self._link, self._pool
        goal = wish.count_max if wish.bytes_max is None else min(wish.count_max, self._goal)
        late = self._late_count(wish)
        if late > wish.count_max:  # they come before the rest of what was there when the run began
            return []
        was_open = link.talk.backlog >= goal + late
        link.want(goal + late)
        if was_open and not wish.is_patient and not pool.waiting:
            link.refresh()
            return []
        self._await(wish, goal)
        with link.changed:
            taken = pool.plan(wish.count_max, wish.bytes_max, wish.top, now_ms)
            if taken:
                self._goal = max(_FIRST_GOAL, len(taken))
                link.want(pool.held_count)
        return taken

    def _late_count(self, wish: Wish) -> int:
        with self._link.changed:
            return len(self._pool.waiting) - self._pool.count_up_to(wish.top)

    def _await(self, wish: Wish, goal: int) -> None:
        link, pool = self._link, self._pool
        begin_s = changed_s = time.monotonic()
        long_s = _LONG_S if wish.is_patient else min(_LONG_S, max(_SHORT_S, wish.pause_s))
        count = 0
        while True:
            link.await_open()
            again, filled, known, is_dry = self._looked(wish)
            now_s = time.monotonic()
            if again or known != count:
                count, changed_s = known, now_s
            if again:
                kept = link.acknowledge(again)
                with link.changed:
                    pool.settled(again, kept)
            is_full = wish.bytes_max is not None and filled >= wish.bytes_max
            if count >= goal and goal < wish.count_max and not is_full:
                goal = min(2 * goal, wish.count_max)
                link.want(goal + self._late_count(wish))
            elif count >= goal or is_full or (is_dry and not again):
                return
            if now_s - changed_s > self._patience_s(wish, count) or (count and now_s - begin_s > long_s):
                return
            link.wait(_STEP_S, asks=True)

    def _looked(self, wish: Wish) -> tuple[list[int], int, int, bool]:
        """What has come again, the bytes and the number of what waits, and whether that is all."""
        pool = self._pool
        with self._link.changed:
            filled = 0 if wish.bytes_max is None else sum(one.size_bytes for one in pool.waiting.values())
            return sorted(pool.came_again), filled, pool.count_up_to(wish.top), self._link.talk.is_dry

    def _patience_s(self, wish: Wish, count: int) -> float:
        if count:
            return _FEW_S
        return _PATIENT_S if wish.is_patient else _NONE_S
