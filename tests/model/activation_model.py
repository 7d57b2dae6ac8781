"""The model of a queue on which messages become active one after the other: barriers, and a target depth.

When the broker looks for what may be active is its own business. So the model says what may be active by now, and what
must be after a dispatch, and takes over what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.limits_model import LimitsModel
from tests.model.reader_model import Item, Reader
from tests.model.rules_model import is_over


class ActivationModel(LimitsModel):
    """A queue, and what of it is active."""

    def active(self) -> list[Item]:
        """What is ready and active, in order."""
        if not self.plan.activates_in_order:
            return self.ready()
        return [item for item in self.ready() if item.is_active]

    # ---- becoming active -------------------------------------------------------------------------

    def delayed(self) -> list[Item]:
        """What waits for another attempt."""
        return [item for item in self.aside() if not item.is_held_back]

    def may_be_active(self) -> Iterator[Item]:
        """What may become active now, in order."""
        if self.barrier_out is not None:
            return
        room = self.plan.active_max - len(self.held_items() + self.picked_items() + self.delayed())
        room -= sum(item.is_active for item in self.items)
        aside = [item for item in self.held_back() if not item.is_active]
        for item in sorted([item for item in self.items if not item.is_active] + aside, key=self.place):
            if self.is_barrier(item.letter) or (self.plan.active_max and room <= 0):
                return
            yield item
            room -= item in self.items

    def activate(self, ids: set[int]) -> None:
        """These are active, or would be if it were time: they must be a part of those that may be, the first ones."""
        may = list(self.may_be_active())
        fresh = [item for item in may if item.letter.id in ids]
        assert fresh == may[: len(fresh)], "a message became active before an earlier one"
        here = self.items + self.held_back()
        wrong = [item.letter.id for item in here if item.letter.id in ids and not item.is_active and item not in may]
        assert not wrong, f"messages {wrong} are active before their time"
        for item in fresh:
            item.is_active = True
            self.happened.add("became active")
        lost = [item.letter.id for item in here if item.is_active and item.letter.id not in ids]
        assert not lost, f"messages {lost} are not active any more"

    # ---- barriers --------------------------------------------------------------------------------

    def barrier_in_turn(self, now_ms: int) -> Item | None:
        if self.barrier_out is not None:
            return self.barrier_out
        here = sorted(self.items + self.held_back(), key=self.place)
        first = here[0] if here else None
        if first is None or first not in self.items or not self.is_barrier(first.letter):
            return None
        before = self.held_items() + self.picked_items() + self.delayed() + self.unconfirmed()
        return None if before or is_over(self.plan, first.letter, now_ms) else first

    def deliver_barrier(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        if self.barrier_out is not None and self.barrier_out.letter.id != letter_id:
            self.note_end_of_barrier()
        super().deliver_barrier(reader, letter_id, now_ms)
        assert self.barrier_out is not None
        self.remove(self.barrier_out)

    def barrier_is_over(self) -> bool:
        """Has everybody got the barrier that is out, or left?"""
        item = self.barrier_out
        if item is None:
            return False
        return not any(reader.has_barrier or self.lacks_barrier(reader, item) for reader in self.readers)

    def note_end_of_barrier(self) -> None:
        """Something is delivered that stood behind the barrier that was out: it has to be over."""
        if self.barrier_is_over():
            self.end_barrier()

    def end_barrier(self) -> None:
        item = self.barrier_out
        assert item is not None
        assert self.barrier_is_over(), "a barrier is done although somebody is still to get it"
        self.barrier_out = None
        if self.barrier_was_written:
            self.counts.acknowledged += 1
            self.shrank()
        else:
            self.items.append(item)
            self.happened.add("barrier came back")
        self.barrier_got, self.barrier_was_written = set(), False
