"""Which consumers of a queue must look again, and when."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution

WOKEN_AT_ONCE: Final = 512
"""How many consumers are woken before the budget is checked again."""
_WOKEN_PER_UNIT: Final = 8


@final
class WakeUps:
    """Wakes consumers that found nothing when something arrives. If there are very many, each dispatch wakes some."""

    __slots__ = ("_budget", "_distribution", "_place", "_tired", "dry", "has_lost_one", "left")

    def __init__(self, distribution: Distribution, budget: Budget) -> None:
        self._distribution = distribution
        self._budget = budget
        self.dry = False
        """Was a consumer parked because nothing matched? Arrivals wake it."""
        self.left = 0
        """How many of very many consumers must still be woken."""
        self._place = 0
        """The position in the list of consumers from which waking goes on."""
        self.has_lost_one = False
        """Has a consumer left since the last dispatch? The next one may have to take over."""
        self._tired: list[Consumer] = []
        """Consumers that have looked at as many paged messages as one turn allows."""

    def wake(self, consumer: Consumer) -> bool:
        """Wake a consumer that may have room or credit again. Returns False when it has none."""
        if consumer.has_room and not consumer.closed:
            self._distribution.wake(consumer)
            return True
        return False

    def wake_dry(self) -> None:
        """Something new is ready: wake consumers that found nothing."""
        if self.dry:
            self.dry = False
            self._wake_others()

    def _wake_others(self) -> None:
        """Wake every consumer that has room: at once or, if there are very many, some in each dispatch."""
        count = len(self._distribution.consumers)
        if count <= WOKEN_AT_ONCE:
            self.left = 0
            self._distribution.wake_all()
        else:
            self.left = count

    def wake_some(self) -> None:
        """Wake the next consumers of very many."""
        count = len(self._distribution.consumers)
        start = self._place if self._place < count else 0
        end = min(start + min(self.left, WOKEN_AT_ONCE), count)
        self.left = 0 if end <= start else self.left - (end - start)
        self._place = end
        self._budget.spend(1 + (end - start) // _WOKEN_PER_UNIT)
        self._distribution.wake_all(start, end)

    def rest(self, consumer: Consumer) -> None:
        """Let a consumer go on with the next dispatch: it has looked at as much as one turn allows."""
        self._tired.append(consumer)

    @property
    def is_due(self) -> bool:
        """Must a consumer be woken when a dispatch begins?"""
        return len(self._tired) > 0 or self.has_lost_one or self.left > 0

    def begin(self) -> None:
        """A dispatch begins. Wake consumers that have looked at as much as one turn allows, and those that may take
        over from one that left.
        """
        if self.has_lost_one:
            self.has_lost_one = False
            self.dry = False
            self._wake_others()
        tired, self._tired = self._tired, []
        for consumer in tired:
            consumer.passed_over = 0  # behind consumers that have not had their turn
            self.wake(consumer)
        if self.left:
            self.wake_some()
