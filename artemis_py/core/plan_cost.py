"""What one message to a destination costs, in units of the budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from artemis_py.message import Message
from artemis_py.selector import Program, Selector

_PLACES_PER_UNIT: Final = 8
"""Of messages published together the first costs a unit for each queue, which is found and asked for it; the others
only stand in its list.
"""
_HEADERS_UNITS_PER_KB: Final = 2
"""What it costs to decode headers for the first selector."""


@final
class PlanCost:
    """One unit for each queue and divert, and for each selector, asked once, what that costs."""

    __slots__ = ("_asked", "place_count", "programs", "units", "units_per_kb", "units_saved")

    def __init__(self) -> None:
        self.place_count = 0
        """Queues and diverts."""
        self._asked: set[Program] = set()
        self.programs: list[Program] = []
        """What all selectors ask, each once. Grows at its end."""
        self.units = 1
        """For a message without headers; 1: there is nothing but one queue without a selector."""
        self.units_per_kb = 0
        """For each 1,024 bytes of headers and body."""
        self.units_saved = 0
        """What each message but the first costs less when several are published together."""

    def add(self, selector: Selector | None) -> None:
        """One more queue or divert gets messages, or those that its selector wants."""
        self.place_count += 1
        if self.place_count > 1:
            self.units += 1
            self.units_saved = self.place_count - 1 - (self.place_count - 1) // _PLACES_PER_UNIT
        if selector is None or selector.program in self._asked:
            return
        if not self._asked:
            self.units_per_kb = _HEADERS_UNITS_PER_KB
        program = selector.program
        self._asked.add(program)
        self.programs.append(program)
        self.units += program.units
        self.units_per_kb += program.units_per_kb

    def of(self, size_bytes: int) -> int:
        """Units for one message of this encoded size."""
        return self.units + (self.units_per_kb * size_bytes >> 10)

    def places_of(self, count: int) -> int:
        """Units for ``count`` messages, published together, about which all selectors were asked before: each queue
        with a selector looks up what it said of each message.
        """
        if self.programs:
            return self.place_count * count
        return self.place_count + self.place_count * (count - 1) // _PLACES_PER_UNIT

    def of_all(self, messages: list[Message]) -> int:
        """Units for several messages, published together."""
        count = len(messages)
        saved = self.units_saved * (count - 1)
        if not self.units_per_kb:
            return self.units * count - saved
        return sum([self.of(message.head.size_bytes) for message in messages]) - saved

    def affordable(self, units: int, sizes_bytes: Iterator[int], count: int) -> int:
        """How many of ``count`` messages, published together, so many units are enough for. ``sizes_bytes`` is asked
        only where sizes matter.
        """
        each = self.units - self.units_saved
        units -= self.units_saved
        if not self.units_per_kb:
            return min(max(units // each, 0), count)
        for affordable, size_bytes in enumerate(sizes_bytes):
            units -= each + (self.units_per_kb * size_bytes >> 10)
            if units < 0:
                return affordable
        return count


PLAIN: Final = PlanCost()
"""Of one queue without a selector."""
