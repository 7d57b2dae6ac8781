"""A ranking: places in sorted order, each once.

A place is a rank (a text) and a sequence; no two have the same sequence. The places stand in blocks of at most 512,
found by the last place of each, so that putting in and taking out cost two searches by halves and the moving of a few
kilobytes, whatever the number of places.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Final

Place = tuple[str, int]

_SIZE_MAX: Final = 512


class Ranking:
    """Sorted places. It does not know what stands at them."""

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[list[Place]] = []
        self._lasts: list[Place] = []
        """The last place of each block."""

    def add(self, place: Place) -> None:
        """Put a place in."""
        lasts = self._lasts
        index = bisect_left(lasts, place)
        if index == len(lasts):
            if not lasts or len(self._blocks[-1]) >= _SIZE_MAX:
                self._blocks.append([place])
                lasts.append(place)
                return
            index -= 1
            self._blocks[index].append(place)
            lasts[index] = place
            return
        block = self._blocks[index]
        insort(block, place)
        if len(block) > _SIZE_MAX:
            half = len(block) // 2
            self._blocks.insert(index + 1, block[half:])
            del block[half:]
            lasts.insert(index, block[-1])

    def remove(self, place: Place) -> None:
        """Take out a place that is known to be in."""
        index = bisect_left(self._lasts, place)
        block = self._blocks[index]
        del block[bisect_left(block, place)]
        self._tidy(index)

    def first(self) -> Place:
        """The first place; it stays. Raises IndexError when there is none."""
        return self._blocks[0][0]

    def pop(self) -> Place:
        """Take the first place out. Raises IndexError when there is none."""
        place = self._blocks[0].pop(0)
        self._tidy(0)
        return place

    def after(self, place: Place) -> Place | None:
        """The first place behind this one, which need not be in."""
        index = bisect_right(self._lasts, place)
        if index == len(self._lasts):
            return None
        block = self._blocks[index]
        return block[bisect_right(block, place)]

    def _tidy(self, index: int) -> None:
        """A place left this block."""
        block = self._blocks[index]
        if block:
            self._lasts[index] = block[-1]
        else:
            del self._blocks[index]
            del self._lasts[index]

    def __iter__(self) -> Iterator[Place]:
        for block in list(self._blocks):
            yield from list(block)
