"""The model of a full queue: what a ring gives up, what is refused, and whether senders wait."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.items_model import ItemsModel
from tests.model.plans import FLOW_CONTROL, REJECT, RING, SORTED
from tests.model.reader_model import Letter


class LimitsModel(ItemsModel):
    """A queue and its limits. The depth is everything that stands on it, in whatever state."""

    @property
    def keeps_none(self) -> bool:
        """Does no arrival stay, whoever waits for it?"""
        plan = self.plan
        return self.ring_size == 0 or (plan.policy == RING and 0 in (plan.depth_messages, plan.depth_bytes))

    # ---- senders ---------------------------------------------------------------------------------

    def lets_in(self, letters: list[Letter]) -> bool:
        """May letters that come at once all come in?"""
        limits = self.plan.policy in (REJECT, FLOW_CONTROL)
        return not limits or (not self.senders_wait and self.is_within(letters))

    def admits(self, letter: Letter) -> bool:
        """May the letter come now?"""
        if self.plan.policy == REJECT:
            return self.is_within([letter])
        return not self.senders_wait

    def grew(self) -> None:
        """Something came, and consumers had their chance: beyond the limit senders wait from now on."""
        if self.plan.policy == FLOW_CONTROL and not self.is_within([]):
            self.senders_wait = True
            self.happened.add("senders wait")

    def shrank(self, coming: Sequence[Letter] = ()) -> None:
        """Something left: when it was enough, senders go on. What takes its place, ``coming``, counts already."""
        if self.senders_wait and self.is_within(list(coming), self.plan.resume_percent):
            self.senders_wait = False
            self.happened.add("senders go on")

    # ---- rings -----------------------------------------------------------------------------------

    def trim(self, grown: int, *, offered: bool) -> int:
        """Fit the ring: where it counts what is ready, at most one item goes for each one added; where it counts the
        depth, as many as need be, but for the last one when it has just come (``offered``: and consumers had their
        chance). Returns how many went.
        """
        gone = 0
        if self.plan.policy == RING and grown:
            while len(self.items) > (1 if offered else 0) and not self.is_within([]):
                self._give_up()
                gone += 1
        if self.ring_size >= 0:
            for _ in range(min(len(self.items) - self.ring_size, grown)):
                self._give_up()
                gone += 1
        return gone

    def _give_up(self) -> None:
        """The oldest of the lowest priority goes; where priority does not count, the oldest."""
        by_age = self.plan.kind == SORTED
        self.items.remove(min(self.items, key=lambda item: (0 if by_age else -self.worth(item)[0], item.number)))
        self.counts.replaced += 1
        self.happened.add("ring")
