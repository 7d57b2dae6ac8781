"""Which consumers of a queue are to look again, and when."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.queue.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution

WOKEN_AT_ONCE: Final = 512
"""How many consumers are looked at before the budget is asked again."""
_WOKEN_PER_UNIT: Final = 8


@final
class Waking:
    """Consumers that found nothing look again when something comes; where there are very many of them, some in each
    dispatch.
    """

    __slots__ = ("_budget", "_distribution", "_place", "_tired", "dry", "has_lost_one", "left")

    def __init__(self, distribution: Distribution, budget: Budget) -> None:
        self._distribution = distribution
        self._budget = budget
        self.dry = False
        """Some consumer was parked because nothing matched; arrivals wake it."""
        self.left = 0
        """How many of very many consumers are still to be woken."""
        self._place = 0
        """From which on."""
        self.has_lost_one = False
        """A consumer left since the last dispatch: the next one may have to take over."""
        self._tired: list[Consumer] = []
        """Consumers that looked at as many messages in pages as one turn allows."""

    def wake(self, consumer: Consumer) -> bool:
        """A consumer has room or credit again; False when it has not."""
        if consumer.has_room and not consumer.closed:
            self._distribution.wake(consumer)
            return True
        return False

    def wake_dry(self) -> None:
        """Something new stands on the queue: consumers that found nothing they want look again."""
        if self.dry:
            self.dry = False
            self._wake_others()

    def _wake_others(self) -> None:
        """Whoever has room looks again: at once, or, where there are very many, some in each dispatch."""
        count = len(self._distribution.consumers)
        if count <= WOKEN_AT_ONCE:
            self.left = 0
            self._distribution.wake_all()
        else:
            self.left = count

    def wake_some(self) -> None:
        """Wake the next of those who are to look again."""
        count = len(self._distribution.consumers)
        start = self._place if self._place < count else 0
        end = min(start + min(self.left, WOKEN_AT_ONCE), count)
        self.left = 0 if end <= start else self.left - (end - start)
        self._place = end
        self._budget.spend(1 + (end - start) // _WOKEN_PER_UNIT)
        self._distribution.wake_all(start, end)

    def rest(self, consumer: Consumer) -> None:
        """A consumer has looked at as much as one turn allows: it goes on with the next dispatch."""
        self._tired.append(consumer)

    @property
    def is_due(self) -> bool:
        """Is there somebody to wake when a dispatch begins?"""
        return len(self._tired) > 0 or self.has_lost_one or self.left > 0

    def begin(self) -> None:
        """A dispatch begins: who looked at as much as one turn allows goes on, and who may have to take over from one
        that left.
        """
        if self.has_lost_one:
            self.has_lost_one = False
            self.dry = False
            self._wake_others()
        tired, self._tired = self._tired, []
        for consumer in tired:
            consumer.passed_over = 0  # behind those who have not had their turn
            self.wake(consumer)
        if self.left:
            self.wake_some()
