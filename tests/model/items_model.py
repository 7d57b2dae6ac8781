"""The model of what stands on a queue: one list of items, sorted when looked at, and when each of them is over."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.plans import AddressPlan, QueuePlan
from tests.model.reader_model import Item, Letter
from tests.model.readers_model import ReadersModel
from tests.model.rules_model import is_over, valid_ms


@dataclass(slots=True)
class Counts:
    """What came and how it left."""

    added: int = 0
    acknowledged: int = 0
    killed: int = 0
    expired: int = 0
    replaced: int = 0


class ItemsModel(ReadersModel):
    """One queue's items. ``items`` are ready, ``scheduled`` wait for their time (or for that of another attempt)."""

    def __init__(self, plan: QueuePlan, address: AddressPlan) -> None:
        super().__init__(plan, address)
        self.items: list[Item] = []
        self.scheduled: list[tuple[int, int, Item]] = []
        self.counts = Counts()
        self.senders_wait = False
        self._last_number = 0
        self._head_number = 0
        self._scheduled_ever = 0

    # ---- looking ---------------------------------------------------------------------------------

    def ready(self) -> list[Item]:
        """What is ready, in order."""
        return sorted(self.items, key=self.place)

    def place(self, item: Item) -> tuple[tuple[int, str], int]:
        """What decides which item is next."""
        return self.worth(item), item.number

    def standing(self) -> list[Item]:
        return self.items + self.held_items() + self.aside()

    def unheld(self) -> list[Item]:
        return self.items + self.aside()

    def aside(self) -> list[Item]:
        return [item for _, _, item in self.scheduled]

    # ---- time ------------------------------------------------------------------------------------

    def schedule(self, item: Item, due_ms: int) -> None:
        """Put an item aside until it is due, and valid."""
        self._scheduled_ever += 1
        due_ms = max(due_ms, valid_ms(self.plan, item.letter, due_ms))
        self.scheduled.append((due_ms, self._scheduled_ever, item))

    def new_item(self, letter: Letter) -> Item:
        """An item that has no place yet; where messages become active in order, it has."""
        if not self.plan.activates_in_order:
            return Item(letter, 0)
        self._last_number += 1
        return Item(letter, self._last_number, is_held_back=True)

    def due_items(self, now_ms: int) -> list[Item]:
        """What waits and is due, the earliest first."""
        return [item for _, _, item in sorted(one for one in self.scheduled if one[0] <= now_ms)]

    def overdue(self, now_ms: int) -> list[Item]:
        """What is over and still stands where time takes it away: ready, or held back."""
        return [item for item in self.items + self.held_back() if is_over(self.plan, item.letter, now_ms)]

    def held_back(self) -> list[Item]:
        """What has its place, and waits until it is valid."""
        return [item for item in self.aside() if item.is_held_back]

    def overdue_or_due(self, now_ms: int) -> list[Item]:
        """As ``overdue``, with what falls due now."""
        due = [item for item in self.due_items(now_ms) if not item.is_held_back]
        return self.overdue(now_ms) + [item for item in due if is_over(self.plan, item.letter, now_ms)]

    def remove(self, item: Item) -> None:
        """Take an item away from where it stands or waits."""
        self.items = [one for one in self.items if one is not item]
        self.scheduled = [one for one in self.scheduled if one[2] is not item]
