"""Groups lose their owner, because it leaves or all groups are handed out anew: some in each turn. A consumer may have
owned very many. The queue dispatches nothing meanwhile, so that it is as if all of them became free at once.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import Budget
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.works import SLICE_MAX, QueueWork


@final
class FreeGroups(QueueWork):
    """Frees what is to be freed of one queue's groups."""

    def __init__(self, parts: QueueParts) -> None:
        super().__init__(holds=True)
        self._parts = parts

    def work(self, budget: Budget, now_ms: int) -> bool:
        grouping = self._parts.grouping
        while grouping.is_freeing:
            budget.spend(grouping.free_some(SLICE_MAX))
            if budget.is_spent and grouping.is_freeing:
                return False
        offer_freed(self._parts)
        return True


def offer_freed(parts: QueueParts) -> None:
    """Groups may have become free: consumers that found nothing look again, and without consumers and messages there is
    nothing to remember.
    """
    if parts.grouping.takes_freed():
        parts.waking.wake_dry()
        parts.note_ready()
    if not parts.distribution.consumers and not parts.contents.message_count:
        parts.grouping.forget()
