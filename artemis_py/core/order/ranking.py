"""A ranking: places in sorted order, each once.

A place is a rank (a text) and a sequence, and no two places have the same sequence. The places stand in blocks of at
most 256, found by the last place of each. So inserting and removing cost two binary searches and the moving of a few
kilobytes, whatever the number of places.

A search compares the first bytes of ranks, which stand side by side as numbers. It looks at the texts only where those
are equal. With a million places it is not comparisons that cost, but fetching each text from memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from artemis_py.core.order.order import LOWEST

SortedPlace = tuple[str, int]
"""A ``Place`` in a sorted order: the text that it is sorted by, and the sequence."""

_SIZE_MAX: Final = 256
_START_BYTES: Final = 8


def start_of(rank: str) -> int:
    """The first bytes of a rank as a number. The lower of two ranks has the lower number, or the same."""
    beginning = rank[:_START_BYTES].encode("utf-8", "surrogatepass")
    return int.from_bytes(beginning[:_START_BYTES].ljust(_START_BYTES, b"\0"))


class _Sorted:
    """Sorted places, beside the starts of their ranks."""

    __slots__ = ("places", "starts")

    def __init__(self, starts: array[int], places: list[SortedPlace]) -> None:
        self.starts = starts
        self.places = places

    def find(self, start: int, place: SortedPlace) -> int:
        """The index of the first place that is not before this one."""
        starts = self.starts
        index = bisect_left(starts, start)
        if index == len(starts) or starts[index] != start:
            return index
        return bisect_left(self.places, place, index, bisect_right(starts, start, index))

    def insert(self, index: int, start: int, place: SortedPlace) -> None:
        """Insert a place."""
        self.starts.insert(index, start)
        self.places.insert(index, place)

    def replace(self, index: int, start: int, place: SortedPlace) -> None:
        """Replace a place."""
        self.starts[index] = start
        self.places[index] = place

    def delete(self, index: int) -> None:
        """Remove a place."""
        del self.starts[index]
        del self.places[index]


class Ranking:
    """Sorted places. It does not know what stands at them."""

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[_Sorted] = []
        self._lasts = _Sorted(array("Q"), [])
        """The last place of each block."""

    def add(self, place: SortedPlace) -> None:
        """Insert a place."""
        start = start_of(place[0])
        blocks, lasts = self._blocks, self._lasts
        index = lasts.find(start, place)
        if index == len(blocks):
            if not blocks or len(blocks[-1].places) >= _SIZE_MAX:
                blocks.append(_Sorted(array("Q", [start]), [place]))
                lasts.insert(index, start, place)
                return
            index -= 1
            lasts.replace(index, start, place)
        block = blocks[index]
        block.insert(block.find(start, place), start, place)
        if len(block.places) > _SIZE_MAX:
            half = len(block.places) // 2
            blocks.insert(index + 1, _Sorted(block.starts[half:], block.places[half:]))
            del block.starts[half:], block.places[half:]
            lasts.insert(index, block.starts[-1], block.places[-1])

    def remove(self, place: SortedPlace) -> None:
        """Remove a place, which must be in."""
        start = start_of(place[0])
        index = self._lasts.find(start, place)
        self._take_out(index, self._blocks[index].find(start, place))

    def first(self) -> SortedPlace:
        """The first place; it stays. Raises IndexError when there is none."""
        return self._blocks[0].places[0]

    def first_of_last_rank(self) -> SortedPlace:
        """Of the places with the last rank, the first; it stays. Raises IndexError when there is none."""
        last = self._blocks[-1].places[-1]
        found = self.after((last[0], LOWEST))
        return last if found is None else found

    def pop(self) -> SortedPlace:
        """Take the first place out. Raises IndexError when there is none."""
        place = self._blocks[0].places[0]
        self._take_out(0, 0)
        return place

    def after(self, place: SortedPlace) -> SortedPlace | None:
        """The first place behind this one, or None. This one need not be in."""
        start, behind = start_of(place[0]), (place[0], place[1] + 1)
        index = self._lasts.find(start, behind)
        if index == len(self._blocks):
            return None
        block = self._blocks[index]
        return block.places[block.find(start, behind)]

    def _take_out(self, index: int, position: int) -> None:
        block = self._blocks[index]
        block.delete(position)
        if not block.places:
            del self._blocks[index]
            self._lasts.delete(index)
        elif position == len(block.places):
            self._lasts.replace(index, block.starts[-1], block.places[-1])

    def __iter__(self) -> Iterator[SortedPlace]:
        for block in list(self._blocks):
            yield from list(block.places)
