"""What a consumer was given and has settled since it attached, as an operator is told."""

from __future__ import annotations

from typing import final


@final
class Dealings:
    """Counts of messages, and dates in epoch ms (0: never). They move once for messages that go together."""

    __slots__ = (
        "acknowledged_count",
        "acknowledged_ms",
        "begun_ms",
        "delivered_count",
        "delivered_ms",
        "settled_before",
    )

    def __init__(self) -> None:
        self.begun_ms = 0
        """When the consumer attached."""
        self.delivered_count = 0
        self.delivered_ms = 0
        self.acknowledged_count = 0
        self.acknowledged_ms = 0
        self.settled_before = -1
        """How many it had settled when somebody last looked whether it is slow; -1: nobody has."""

    def note_delivered(self, count: int, now_ms: int, *, settles: bool) -> None:
        """So many messages were written for it; ``settles``: nobody acknowledges them, so that settles them."""
        self.delivered_count += count
        self.delivered_ms = now_ms
        if settles:
            self.note_acknowledged(count, now_ms)

    def note_acknowledged(self, count: int, now_ms: int) -> None:
        """It has settled so many messages."""
        self.acknowledged_count += count
        self.acknowledged_ms = now_ms
