"""Steady times at which replays want to be looked at again."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from artemis_py.core.replay.replay import Replay
from artemis_py.core.timing.clock import Clock

_SLACK: Final = 64
"""This many void entries are not worth a clean-up."""


@final
class Alarms:
    """Each replay has one alarm at most, its latest."""

    __slots__ = ("_clock", "_heap", "_wishes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int]] = []
        """Time and number of a replay; void if that has another alarm, or none."""
        self._wishes: dict[int, tuple[int, Replay]] = {}

    def set(self, replay: Replay, due_ms: int) -> None:
        """Ring at ``due_ms`` for a replay, and not at another time."""
        known = self._wishes.get(replay.id)
        self._wishes[replay.id] = (due_ms, replay)
        if known is None or known[0] != due_ms:
            heappush(self._heap, (due_ms, replay.id))
            self._clock.wait_until(due_ms)
            if len(self._heap) > 2 * len(self._wishes) + _SLACK:
                self._heap = [(wish_ms, number) for number, (wish_ms, _) in self._wishes.items()]
                heapify(self._heap)

    def clear(self, replay: Replay) -> None:
        """Ring no more for a replay."""
        self._wishes.pop(replay.id, None)

    def next_due_ms(self) -> int | None:
        """When the first rings; None if there are none. It may be void."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, steady_ms: int) -> list[Replay]:
        """The replays whose time has come. Each has no alarm from now on."""
        due: list[Replay] = []
        heap = self._heap
        while heap and heap[0][0] <= steady_ms:
            due_ms, number = heappop(heap)
            known = self._wishes.get(number)
            if known is not None and known[0] == due_ms:
                del self._wishes[number]
                due.append(known[1])
        return due
