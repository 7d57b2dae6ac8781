"""A walk over all queues, or all addresses, that may last many turns while they come and go."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar, final

Item = TypeVar("Item")


@final
class Walk(Generic[Item]):
    """All items in a circle, each with a mark. A step shows the first one and puts it at the end, so a walk needs no
    copy of them, and a step costs the same however many there are. When somebody leaves during a walk, another may be
    seen twice in it.
    """

    __slots__ = ("_left", "_marks")

    def __init__(self) -> None:
        self._marks: OrderedDict[Item, int] = OrderedDict()
        self._left = 0

    def add(self, item: Item) -> None:
        """An item came; its mark is 0."""
        self._marks[item] = 0

    def discard(self, item: Item) -> None:
        """An item went."""
        self._marks.pop(item, None)

    def begin(self) -> None:
        """Walk once around, over all that are there now."""
        self._left = len(self._marks)

    def take(self) -> Item | None:
        """The next one; None when all were seen."""
        if self._left <= 0 or not self._marks:
            return None
        self._left -= 1
        item = next(iter(self._marks))
        self._marks.move_to_end(item)
        return item

    def mark_of(self, item: Item) -> int:
        """The number that was put on an item last."""
        return self._marks[item]

    def mark(self, item: Item, number: int) -> None:
        """Put a number on an item."""
        self._marks[item] = number
