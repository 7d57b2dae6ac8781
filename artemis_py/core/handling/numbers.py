"""A set of the numbers of messages. Numbers that are close together take little memory."""

from __future__ import annotations

from typing import Final, final

_SHIFT: Final = 6
_MASK: Final = (1 << _SHIFT) - 1


@final
class Numbers:
    """Numbers from 0 on: a bit for each, in words of 64."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: dict[int, int] = {}

    def add(self, number: int) -> bool:
        """Add a number; False if it was there."""
        word, bit = number >> _SHIFT, 1 << (number & _MASK)
        bits = self._words.get(word, 0)
        if bits & bit:
            return False
        self._words[word] = bits | bit
        return True
