"""A histogram in plain ints, which a scrape reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, final


class Example(NamedTuple):
    """One measured value: the message that it belongs to, the value in the histogram's unit, and when it was measured
    (epoch milliseconds).
    """

    message_id: int
    value: int
    at_ms: int


@final
class Histogram:
    """Counts values by upper bound; ``unit`` is how many of their unit make a second."""

    __slots__ = ("bounds", "counts", "examples", "sum", "unit")

    def __init__(self, bounds: Sequence[int], unit: int) -> None:
        self.bounds = list(bounds)
        self.unit = unit
        self.counts = [0] * (len(self.bounds) + 1)
        """One count per bound, and one for higher values."""
        self.examples: dict[int, Example] = {}
        """The last value of each count that has a message, by index."""
        self.sum = 0

    def note(self, value: int) -> int:
        """Count a value. Returns the index of its count."""
        index = bisect_left(self.bounds, value)
        self.counts[index] += 1
        self.sum += value
        return index

    def note_message(self, value: int, message_id: int, at_ms: int) -> None:
        """Count a value of a message, which serves as an example."""
        self.examples[self.note(value)] = Example(message_id, value, at_ms)
