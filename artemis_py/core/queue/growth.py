"""What follows when something was added to a queue: it keeps to its limits."""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import OVERDRAFT_UNITS
from artemis_py.core.queue.aftermath import Aftermath
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.delivery import Delivery
from artemis_py.core.queue.works import QueueWorks


@final
class Growth:
    """Serves consumers first, then trims the queue or makes senders wait.

    It trims in one go. Only entries that come back may be more than one turn can trim (see ``Return``).
    """

    __slots__ = (
        "_activates", "_aftermath", "_contents", "_delivery", "_distribution", "_flow", "_host", "_reference",
        "_waking", "_works",
    )  # fmt: skip

    def __init__(self, basis: QueueBasis, works: QueueWorks, delivery: Delivery, aftermath: Aftermath) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._contents = basis.contents
        self._flow = basis.flow
        self._waking = basis.waking
        self._distribution = basis.distribution
        self._activates = basis.activation is not None
        """Does dispatch do something without a consumer, too: make messages active?"""
        self._works = works
        self._delivery = delivery
        self._aftermath = aftermath

    def run(self, added: int, now_ms: int) -> None:
        """``added`` entries were added. Consumers with room are served first, then the queue is trimmed to its
        limit.
        """
        self._waking.wake_dry()
        if self._works.holds:
            self._works.late_count += added
            self._flow.stop()
            return
        overflow = self._flow.overflow
        if overflow.excess(self._contents.order.count, added):
            if not overflow.keeps_none:
                self.offer_first(now_ms)
            self._trim(added)
        elif overflow.depth is not None:
            self.keep_to_depth(now_ms)
        if self._distribution.consumers or self._activates or self._contents.paged.backlogs:
            self._host.note_ready(self._reference)

    def offer_first(self, now_ms: int) -> None:
        """Offer ready entries to consumers before anything is refused or dropped, even when the budget is spent."""
        if not self._works.holds:
            self._delivery.run(now_ms, -OVERDRAFT_UNITS)
            self._aftermath.run()

    def keep_to_depth(self, now_ms: int) -> None:
        """Something arrived. If the queue is too deep and consumers do not take it, drop entries or make senders
        wait.
        """
        flow = self._flow
        if flow.overflow.depth is None or not flow.is_too_deep:
            return
        if not flow.overflow.keeps_none:
            self.offer_first(now_ms)
        if flow.overflow.sheds:
            self._shed(arriving=True)
        else:
            flow.stop()

    def fit_again(self, restored: int) -> None:
        """Trim to the limit after entries are put back."""
        if not self._flow.overflow.sheds:
            self._trim(restored)
        elif restored:
            self._shed(arriving=False)

    def _trim(self, added: int) -> None:
        """Drop the least entries of a ring that has too many."""
        contents = self._contents
        excess = self._flow.excess(added)
        for _ in range(excess):
            contents.give_up_least()
        self._flow.note_dropped(excess)

    def _shed(self, *, arriving: bool) -> None:
        """Drop the least ready entries until the depth fits.

        Messages in delivery count and stay, so every ready entry may have to go. But the last one stays when it has
        just arrived (Qpid does not drop the newcomer).
        """
        contents, flow = self._contents, self._flow
        last = 1 if arriving and not flow.overflow.keeps_none else 0
        dropped = 0
        while contents.order.count > last and flow.is_too_deep:
            contents.give_up_least()
            dropped += 1
        flow.note_dropped(dropped)
