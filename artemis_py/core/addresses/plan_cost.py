"""What one message to a destination costs, in units of the budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from artemis_py.message import Message
from artemis_py.selector import Expression, Program, Selector

_PLACES_PER_UNIT: Final = 8
"""How many places cost a unit for each message but the first of a batch. The first costs a unit for each queue, which
is found and asked for it. The others only join its list.
"""
_HEADERS_UNITS_PER_KB: Final = 2
"""The cost of decoding headers for the first selector, in units for each 1,024 bytes."""


@final
class PlanCost:
    """The cost of a plan: a unit for each queue and divert, for each different selector what it costs, and for each
    queue what it evaluates to find the place of a message.
    """

    __slots__ = ("_asked", "_placing_units", "place_count", "programs", "units", "units_per_kb", "units_saved")

    def __init__(self) -> None:
        self.place_count = 0
        """Queues and diverts together."""
        self._asked: set[Program] = set()
        self._placing_units = 0
        """Units, of those of a message, that no selector and no look for queues costs."""
        self.programs: list[Program] = []
        """The programs of all selectors, each once. It grows at its end."""
        self.units = 1
        """Units for a message without headers. 1: the plan is a single queue without a selector."""
        self.units_per_kb = 0
        """Units for each 1,024 bytes of headers and body."""
        self.units_saved = 0
        """Units that each message but the first saves when several are published together."""

    def add(self, selector: Selector | None, expression: Expression | None = None) -> None:
        """Add a queue or divert, with its selector if it has one, and with the expression that orders it."""
        self.place_count += 1
        if self.place_count > 1:
            self.units += 1
            self.units_saved = self.place_count - 1 - (self.place_count - 1) // _PLACES_PER_UNIT
        if expression is not None:
            self._placing_units += expression.units
            self.units += expression.units
            self.units_per_kb += expression.units_per_kb
        if selector is None or selector.program in self._asked:
            return
        if not self._asked:
            self.units_per_kb += _HEADERS_UNITS_PER_KB
        program = selector.program
        self._asked.add(program)
        self.programs.append(program)
        self.units += program.units
        self.units_per_kb += program.units_per_kb

    def of(self, size_bytes: int) -> int:
        """Units for one message of this encoded size."""
        return self.units + (self.units_per_kb * size_bytes >> 10)

    def places_of(self, count: int) -> int:
        """Units for ``count`` messages published together, when all selectors have been asked before. A queue with a
        selector only looks up the verdict on each message.
        """
        placing = self._placing_units * count
        if self.programs:
            return self.place_count * count + placing
        return self.place_count + self.place_count * (count - 1) // _PLACES_PER_UNIT + placing

    def of_all(self, messages: list[Message]) -> int:
        """Units for several messages published together."""
        count = len(messages)
        saved = self.units_saved * (count - 1)
        if not self.units_per_kb:
            return self.units * count - saved
        return sum([self.of(message.head.size_bytes) for message in messages]) - saved

    def affordable(self, units: int, sizes_bytes: Iterator[int], count: int) -> int:
        """How many of ``count`` messages, published together, ``units`` are enough for. ``sizes_bytes`` is read only
        where sizes matter.
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
"""The cost of one queue without a selector."""
