"""One heap for everything that falls due: scheduled messages, redelivery delays, gates, deletions."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Schedule(Generic[Item]):
    """Items by due time; of two due at once the one that was added first comes first. It never looks at a clock."""

    __slots__ = ("_added", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Item]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ms: int, item: Item) -> None:
        """Note an item for ``due_ms`` (epoch milliseconds)."""
        self._added += 1
        heappush(self._heap, (due_ms, self._added, item))

    def next_due_ms(self) -> int | None:
        """When the first item is due, or None."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> list[Item]:
        """Every item due at ``now_ms``, earliest first."""
        due: list[Item] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            due.append(heappop(heap)[2])
        return due
