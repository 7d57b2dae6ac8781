"""What a client sent and its session has not carried out yet."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.stomp.wire.frames import AnyFrame
from artemis_py.stomp.wire.parser import Parser

FRAMES_AT_ONCE: Final = 1024
"""The most frames that are read before they are carried out."""
BYTES_PER_UNIT: Final = 1024
"""Received bytes cost one unit of the turn's budget for each so many, whatever they are."""
NO_FRAMES: Final[list[tuple[AnyFrame, bytes]]] = []
"""In the place of an empty list of its own for each connection that is idle. Nobody adds to it."""


@final
class Input:
    """Bytes that were not parsed, and frames that wait."""

    __slots__ = ("_budget", "frames", "parser")

    def __init__(self, parser: Parser, budget: Budget) -> None:
        self.parser = parser
        self._budget = budget
        self.frames = NO_FRAMES
        """Frames to be carried out next, each with its body."""

    @property
    def held_bytes(self) -> int:
        """What is held in memory."""
        held_bytes = self.parser.waiting_bytes
        if self.frames:
            held_bytes += sum([frame.size_bytes + len(body) for frame, body in self.frames])
        return held_bytes

    def add(self, data: bytes, stop_at: int, *, waits: bool) -> None:
        """Take in bytes from the client, and read the frames that the budget has units for down to ``stop_at``; none
        if the session ``waits`` or has frames already.
        """
        budget, parser = self._budget, self.parser
        budget.left -= len(data) // BYTES_PER_UNIT
        frames_max = 0
        if not waits and not self.frames:  # no frame costs less than a unit
            frames_max = min(max(budget.left - stop_at, 1), FRAMES_AT_ONCE)
        found = parser.feed(data, frames_max)
        budget.left -= parser.read_units
        parser.read_units = 0
        if self.frames:
            self.frames.extend(found)
        elif found:
            self.frames = found

    def read_on(self, stop_at: int) -> None:
        """Read the next frames, when those before are carried out and the parser has more."""
        budget, parser = self._budget, self.parser
        self.frames = parser.more(min(max(budget.left - stop_at, 1), FRAMES_AT_ONCE))
        budget.left -= parser.read_units
        parser.read_units = 0
