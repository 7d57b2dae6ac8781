"""A walk over all queues, or all addresses, that may last many turns while some are added and removed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar, final

Item = TypeVar("Item")


@final
class Walk(Generic[Item]):
    """All items in a circle, each with a mark. A step shows the first item and moves it to the end. So a walk needs no
    copy, and a step costs the same however many items there are. When an item is removed during a walk, the walk may
    show another one twice.
    """

    __slots__ = ("_left", "_marks")

    def __init__(self) -> None:
        self._marks: OrderedDict[Item, int] = OrderedDict()
        self._left = 0

    def add(self, item: Item) -> None:
        """Add an item; its mark is 0."""
        self._marks[item] = 0

    def discard(self, item: Item) -> None:
        """Remove an item."""
        self._marks.pop(item, None)

    def begin(self) -> None:
        """Begin a walk over all present items."""
        self._left = len(self._marks)

    def take(self) -> Item | None:
        """The next item; None when all were shown."""
        if self._left <= 0 or not self._marks:
            return None
        self._left -= 1
        item = next(iter(self._marks))
        self._marks.move_to_end(item)
        return item

    def mark_of(self, item: Item) -> int:
        """The mark of an item."""
        return self._marks[item]

    def mark(self, item: Item, number: int) -> None:
        """Set the mark of an item."""
        self._marks[item] = number
