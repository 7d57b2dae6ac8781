"""Messages of one queue that have their place and are not active yet: nobody is offered or shown them.

They stand in order of arrival, and become active from the first on: then they go to the places in the order that they
took when they came. A queue has such messages where it has barriers (AMPS) or
keeps to a number of active messages (AMPS' TargetQueueDepth).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.fifo import Lane
from artemis_py.message import Message
from artemis_py.selector import Selector


class Threshold(ABC):
    """Says whether the first message behind may become active. It holds no entry."""

    __slots__ = ()

    @property
    def makes_barriers(self) -> bool:
        """Is a message that may not become active a barrier, which goes to all consumers when it is its turn?"""
        return False

    def units_of(self, message: Message) -> int:
        """What it costs to ask about a message."""
        return 0

    @abstractmethod
    def lets_in(self, message: Message, active_count: int) -> bool:
        """May the first message behind become active, with so many active ones?"""


@final
class BarrierRule(Threshold):
    """``barrier-expression``: a message that matches is a barrier. That depends on the message alone."""

    __slots__ = ("_selector",)

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    @property
    def makes_barriers(self) -> bool:
        return True

    def units_of(self, message: Message) -> int:
        program = self._selector.program
        return program.units + (program.units_per_kb * message.head.size_bytes >> 10)

    def lets_in(self, message: Message, active_count: int) -> bool:
        return not self._selector.matches(message.lookup)


@final
class TargetDepth(Threshold):
    """``target-queue-depth``: so many messages are active."""

    __slots__ = ("target",)

    def __init__(self, target: int) -> None:
        self.target = target

    def lets_in(self, message: Message, active_count: int) -> bool:
        return active_count < self.target


@final
class PendingMessages:
    """The messages themselves. One that waits for its time stands here, too, until it would be active but for that."""

    __slots__ = ("_lane", "aside_count", "barrier", "threshold")

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold
        self._lane = Lane()
        self.aside_count = 0
        """How many of them wait for their time."""
        self.barrier: Entry | None = None
        """The first of them, if it is known to be a barrier."""

    @property
    def count(self) -> int:
        """Messages behind that do not wait for their time."""
        return self._lane.count - self.aside_count

    def add(self, entry: Entry) -> None:
        """Add an entry with its sequence."""
        self._lane.restore(entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out; it must be here."""
        self._lane.remove(entry.sequence)
        if entry is self.barrier:
            self.barrier = None

    def has(self, entry: Entry) -> bool:
        """Does this very entry stand here?"""
        return self._lane.at(entry.sequence) is entry

    def at(self, sequence: int) -> Entry | None:
        """The entry with this sequence; None when there is none."""
        return self._lane.at(sequence)

    def first(self) -> Entry | None:
        """The first entry, or None. Its ``sequence`` is filled in."""
        return self._lane.first()

    def next_from(self, sequence: int) -> Entry | None:
        """The first entry whose sequence is at least this, or None. Its ``sequence`` is filled in."""
        return self._lane.next_from(sequence)
