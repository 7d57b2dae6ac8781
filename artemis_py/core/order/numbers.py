"""Numbers of messages in ascending order. Those that are close together take little memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final, final

_SHIFT: Final = 10
_MASK: Final = (1 << _SHIFT) - 1


@final
class SortedNumbers:
    """Numbers from 0 on: a bit for each, in words of 1,024. Each verb costs the same, however many there are."""

    __slots__ = ("_order", "_words")

    def __init__(self) -> None:
        self._words: dict[int, int] = {}
        self._order: list[int] = []

    def add(self, number: int) -> None:
        """Add a number."""
        word = number >> _SHIFT
        bits = self._words.get(word)
        if bits is None:
            bits = 0
            if self._order and word < self._order[-1]:
                insort(self._order, word)
            else:
                self._order.append(word)
        self._words[word] = bits | 1 << (number & _MASK)

    def remove(self, number: int) -> None:
        """Remove a number, which must be in."""
        word = number >> _SHIFT
        bits = self._words[word] & ~(1 << (number & _MASK))
        if bits:
            self._words[word] = bits
        else:
            del self._words[word]
            del self._order[bisect_left(self._order, word)]

    def next_from(self, number: int) -> int | None:
        """The lowest number that is at least this; None when there is none."""
        word = number >> _SHIFT
        bits = self._words.get(word, 0) >> (number & _MASK)
        if bits:
            return number + (bits & -bits).bit_length() - 1
        index = bisect_left(self._order, word + 1)
        if index == len(self._order):
            return None
        word = self._order[index]
        bits = self._words[word]
        return (word << _SHIFT) + (bits & -bits).bit_length() - 1
