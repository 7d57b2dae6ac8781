"""A histogram in plain ints, which a scrape reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, final

Example: TypeAlias = tuple[int, int, int]
"""One measured value: the id of the message that it belongs to, the value in the histogram's unit, and when it was
measured (epoch milliseconds). No class: a turn makes one, and a tuple is made without a call.
"""


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
        bounds, index = self.bounds, 0
        while index < len(bounds) and bounds[index] < value:  # most values are small: bisect costs more
            index += 1
        self.counts[index] += 1
        self.sum += value
        return index

    def note_message(self, value: int, message_id: int, at_ms: int) -> None:
        """Count a value of a message, which serves as an example."""
        self.examples[self.note(value)] = (message_id, value, at_ms)
