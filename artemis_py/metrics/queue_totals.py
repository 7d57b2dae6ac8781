"""The sums over all queues, also of those whose address shows no metrics. Sums of what happened only grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker

_QUEUES_PER_STEP: Final = 2_000


class Totals(NamedTuple):
    """Messages of all queues: those there now, and those added and acknowledged since the start."""

    pending: int
    added: int
    acknowledged: int


class QueueTotals:
    """Counts in steps, so that a scrape of many queues need not do it in one go."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counted: Totals | None = None

    def count(self) -> Iterator[None]:
        """Count everything, a step at a time. A queue deleted meanwhile still counts once: what queues that are gone
        had is read first, together with the list of the others.
        """
        departed = self._broker.bindings.departed
        pending, added, acknowledged = 0, departed.added, departed.acknowledged
        queues = list(self._broker.queues.values())
        for start in range(0, len(queues), _QUEUES_PER_STEP):
            for queue in queues[start : start + _QUEUES_PER_STEP]:
                counters = queue.contents.counters
                pending += queue.message_count
                added += counters.added
                acknowledged += counters.acknowledged
            yield
        self._counted = Totals(pending, added, acknowledged)

    def take(self) -> Totals:
        """What was counted last, once; counts now if nothing was."""
        if self._counted is None:
            for _ in self.count():
                pass
        counted, self._counted = self._counted, None
        assert counted is not None
        return counted
