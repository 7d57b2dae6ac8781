"""Heaps (as of heapq) whose items may become void: clients choose the times, and what is gone does not stay so long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def drop_void(heap: list[Any], start: int, looks: int, is_void: Callable[[Any], bool]) -> int:
    """Check ``looks`` items of a heap, from index ``start`` on, and remove void ones. Returns where the next check goes
    on; repeated checks meet every item.
    """
    place = start
    for _ in range(looks):
        if place >= len(heap):
            place = 0
        if not heap:
            break
        if is_void(heap[place]):
            _remove_at(heap, place)
        else:
            place += 1
    return place


def _remove_at(heap: list[Any], place: int) -> None:
    """Remove one item from a heap (as of heapq), in logarithmic time."""
    moved = heap.pop()
    if place == len(heap):
        return
    while place > 0 and moved < heap[(place - 1) >> 1]:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    size = len(heap)
    while (child := 2 * place + 1) < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < moved:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved
