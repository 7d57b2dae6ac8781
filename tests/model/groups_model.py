"""The model of groups: which group an item is in, and who may have it."""

from __future__ import annotations

from tests.model.limits_model import LimitsModel
from tests.model.plans import PAUSE, SHARED, STAY, STICKY, AddressPlan, QueuePlan
from tests.model.reader_model import Item, Letter, Reader
from tests.model.rules_model import group_of


class GroupsModel(LimitsModel):
    """A queue and its groups."""

    def __init__(self, plan: QueuePlan, address: AddressPlan) -> None:
        super().__init__(plan, address)
        self.pins: dict[str, Reader] = {}
        """With sticky groups: whose each group is."""
        self.knows_groups = False
        """Did anything come that is in a group? Until then nobody asks for them."""
        self.waits_for_settling = False
        """Groups were handed out anew: what is out has to be settled first."""

    def group_of(self, item: Item) -> str | None:
        """The group of an item, None when it is in none."""
        return group_of(self.plan, item.letter)

    def look_for_groups(self, letters: list[Letter]) -> None:
        """Letters came."""
        self.knows_groups = self.knows_groups or any(group_of(self.plan, letter) for letter in letters)

    def may_have(self, reader: Reader, item: Item) -> bool:
        """Do groups let this reader have the item? Looking is free."""
        group = self.group_of(item)
        if group is None or reader.reads:
            return True
        if any(other.attempts and self.group_of(other) == group for _, _, other in self.scheduled):
            return False
        if self.plan.groups == STICKY:
            return self.pins.get(group, reader) is reader
        out = [(one, held) for one in self.readers for held in one.held + one.picked] + self.pending
        return all(one is reader for one, held in out if not one.reads and self.group_of(held) == group)

    def take_group(self, reader: Reader, item: Item) -> None:
        """A reader gets an item, and its group with it; with the last item of a group it loses the group."""
        group = self.group_of(item)
        if group is None or reader.reads or self.plan.groups == SHARED:
            return
        if item.letter.closes:
            self.happened.add("group closed" if group in self.pins else "lone end of a group")
            self.pins.pop(group, None)
        elif group not in self.pins:
            self.pins[group] = reader
            if self.plan.marks_first:
                reader.firsts.add(item.letter.id)
                self.happened.add("first of a group")

    @property
    def must_settle(self) -> bool:
        """Must something be settled before anything else is delivered?"""
        return self.waits_for_settling and self._has_held()

    def _has_held(self) -> bool:
        """Is anything out? A barrier is held by nobody."""
        return any(item is not self.barrier_out for item in self.held_items())

    def join_groups(self, reader: Reader) -> bool:
        """A reader comes: where groups are rebalanced they are with nobody now. True: and nothing goes out until
        everything that is out is settled.
        """
        if not self.knows_groups or reader.reads or self.plan.groups == SHARED or self.plan.rebalances == STAY:
            return False
        self.pins = {}
        self.happened.add("rebalanced")
        self.waits_for_settling = self.plan.rebalances == PAUSE and self._has_held()
        if self.waits_for_settling:
            self.happened.add("paused to rebalance")
        return self.waits_for_settling

    def leave_groups(self, reader: Reader) -> None:
        """A reader is gone: its groups are with nobody."""
        self.pins = {group: owner for group, owner in self.pins.items() if owner is not reader}
        if not self.readers and not self.standing():
            self.knows_groups = self.waits_for_settling = False
