"""LIKE patterns: ``%`` stands for any text, ``_`` for any one character, line breaks included.

The ESCAPE character makes a following ``%``, ``_`` or escape character plain text; before anything else it is plain
text itself, or, when ``%`` or ``_`` was chosen as escape character, keeps its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final


def compile_like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a function that says whether a text matches all of ``pattern``.

    The pattern is a row of runs with ``%`` between them. The first and the last have fixed places; each other one is
    taken where it is first found, so the work never exceeds the product of both lengths.
    """
    runs = [_Run(characters) for characters in _runs(pattern, escape)]
    first = runs[0]
    if len(runs) == 1:
        return lambda text: len(text) == first.length and first.is_at(text, 0)
    last = runs[-1]
    between = runs[1:-1]

    def matches(text: str) -> bool:
        end = len(text) - last.length
        if end < first.length or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        start = first.length
        for run in between:
            place = run.find(text, start, end)
            if place < 0:
                return False
            start = place + run.length
        return True

    return matches


def _runs(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Cut at each ``%``; None stands for any one character."""
    runs: list[list[str | None]] = [[]]
    place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == escape and place < len(pattern) and pattern[place] in ("%", "_", escape):
            runs[-1].append(pattern[place])
            place += 1
        elif char == "%":
            runs.append([])
        else:
            runs[-1].append(None if char == "_" else char)
    return runs


@final
class _Run:
    """Characters one after another, some of which may be any."""

    __slots__ = ("length", "_plain", "_pattern")

    def __init__(self, characters: list[str | None]) -> None:
        self.length: Final = len(characters)
        self._plain: Final = "".join(char for char in characters if char is not None)
        self._pattern: re.Pattern[str] | None = None
        if None in characters:
            expression = "".join("." if char is None else re.escape(char) for char in characters)
            self._pattern = re.compile(expression, re.DOTALL)

    def is_at(self, text: str, place: int) -> bool:
        if self._pattern is None:
            return text.startswith(self._plain, place)
        return self._pattern.match(text, place) is not None

    def find(self, text: str, start: int, end: int) -> int:
        """Return the first place from ``start`` on where the run fits in before ``end``, or -1."""
        if self._pattern is None:
            return text.find(self._plain, start, end)
        match = self._pattern.search(text, start, end)
        return -1 if match is None else match.start()
