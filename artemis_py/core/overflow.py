"""What a full queue does."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Overflow(ABC):
    """The axis "overflow": how many of the least entries must go."""

    keeps_none = False
    """True when no arrival stays, not even for a consumer that waits for one."""

    @abstractmethod
    def excess(self, ready_count: int, added_count: int) -> int:
        """How many ready entries to give up after ``added_count`` entries were put on the queue, ``ready_count`` now
        ready.
        """

    @abstractmethod
    def has_space(self, ready_count: int) -> bool:
        """May one more come from a page without an entry being given up for it?"""


class Unbounded(Overflow):
    """Keeps everything."""

    def excess(self, ready_count: int, added_count: int) -> int:
        return 0

    def has_space(self, ready_count: int) -> bool:
        return True


class Ring(Overflow):
    """Gives up at most one entry for each one added (seed: a ring made smaller does not purge, it only stops growing).

    Only ready entries count: what is in delivery or scheduled is neither counted nor given up.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.keeps_none = size == 0

    def excess(self, ready_count: int, added_count: int) -> int:
        over = ready_count - self.size
        if over <= 0:
            return 0
        return min(over, added_count)

    def has_space(self, ready_count: int) -> bool:
        return ready_count < max(self.size, 1)  # what is in pages was taken in, so it has to come out
