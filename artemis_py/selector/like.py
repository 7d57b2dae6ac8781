"""LIKE patterns: ``%`` stands for any text, ``_`` for any one character, line breaks included.

The ESCAPE character makes a following ``%``, ``_`` or escape character plain text; before anything else it is itself
plain text or, if ``%`` or ``_`` is the escape character, keeps its meaning.
"""

from __future__ import annotations

from typing import Final, final

_TRIES_MAX: Final = 64
"""Parts of a run that are compared at one place after the other, before all places are followed at once."""


@final
class Like:
    """A compiled pattern: a row of runs with ``%`` between them.

    The first and the last run have fixed places; each other run matches at its first place. So each character of a text
    is visited once, and a match costs at most ``units`` plus ``units_per_kb`` for each 1,024 characters of the text (in
    units of about a microsecond).
    """

    __slots__ = ("_between", "_first", "_is_fixed", "_last", "units", "units_per_kb")

    def __init__(self, pattern: str, escape: str | None) -> None:
        runs = _runs(pattern, escape)
        self._is_fixed: Final = len(runs) == 1
        self._first: Final = _Run(runs[0])
        self._last: Final = _Run(runs[-1])
        between = [_plain_or_run(run) for run in runs[1:-1] if run]
        self._between: Final = between
        """Most are plain texts, and there may be thousands."""
        steps = len(between) + self._first.part_count + self._last.part_count
        self.units: Final = steps // 8 + sum([0 if isinstance(one, str) else one.units for one in between])
        self.units_per_kb: Final = 1 + max(
            [_repeats(one) if isinstance(one, str) else one.units_per_kb for one in between] or [0]
        )

    def fits(self, text: str) -> bool:
        """Does all of the text match?"""
        first, last = self._first, self._last
        if self._is_fixed:
            return len(text) == first.length and first.is_at(text, 0)
        end = len(text) - last.length
        if end < first.length or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        start = first.length
        for run in self._between:
            if isinstance(run, str):
                place = text.find(run, start, end)
                length = len(run)
            else:
                place = run.find(text, start, end)
                length = run.length
            if place < 0:
                return False
            start = place + length
        return True


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


def _repeats(text: str) -> int:
    """How often the beginning of a text repeats itself at most; ``find`` may compare this many characters at each place
    (its length by the period: Knuth, Morris and Pratt's table of borders).
    """
    most = border = 0
    borders = [0] * len(text)
    for place in range(1, len(text)):
        while border and text[place] != text[border]:
            border = borders[border - 1]
        if text[place] == text[border]:
            border += 1
        borders[place] = border
        most = max(most, (place + 1) // (place + 1 - border))
    return most if most > 2 else 0


def _plain_or_run(characters: list[str | None]) -> str | _Run:
    plain = "".join(char for char in characters if char is not None)
    return plain if len(plain) == len(characters) else _Run(characters)


@final
class _Run:
    """Characters one after another, some of which may be any."""

    __slots__ = ("_anchor", "_characters", "_parts", "length", "part_count", "units", "units_per_kb")

    def __init__(self, characters: list[str | None]) -> None:
        self.length: Final = len(characters)
        parts: list[tuple[int, str]] = []
        begins = True
        for place, char in enumerate(characters):
            if char is None:
                begins = True
                continue
            if begins:
                parts.append((place, char))
                begins = False
            else:
                offset, text = parts[-1]
                parts[-1] = offset, text + char
        self._parts: Final = parts
        """The plain texts between characters that may be any, each with its place."""
        self.part_count: Final = len(parts)
        self._anchor: Final = max(parts, key=_length, default=(0, ""))
        self._characters: Final = characters if len(parts) > 1 else []
        distinct = len({char for char in characters if char is not None}) if len(parts) > 1 else 0
        self.units: Final = 2 + distinct
        self.units_per_kb: Final = _repeats(self._anchor[1]) + (
            60 + self.length // 16 + distinct // 4 if len(parts) > 1 else 0
        )

    def is_at(self, text: str, place: int) -> bool:
        """Is the run at this place of the text? The text is long enough."""
        return all(text.startswith(part, place + offset) for offset, part in self._parts)

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from ``start`` on where the run fits in before ``end``, or -1."""
        last = end - self.length
        if last < start:
            return -1
        offset, anchor = self._anchor
        tries = _TRIES_MAX
        place = start + offset - 1
        while (place := text.find(anchor, place + 1, last + offset + len(anchor))) >= 0:
            if tries <= 0 and self._characters:
                return self._find_in_bits(text, place - offset, end)
            if self.is_at(text, place - offset):
                return place - offset
            tries -= self.part_count
        return -1

    def _find_in_bits(self, text: str, start: int, end: int) -> int:
        """Follow all places at which the run may have begun at once, as bits of one number (Baeza-Yates and Gonnet, "A
        New Approach to Text Searching", shift-and).
        """
        wanted = {char for _, part in self._parts for char in part}
        if any(text.find(char, start, end) < 0 for char in wanted):
            return -1
        masks = self._masks(wanted)
        anything = masks.pop("")
        accepts = 1 << (self.length - 1)
        state = 0
        for place in range(start, end):
            state = (state << 1 | 1) & masks.get(text[place], anything)
            if state & accepts:
                return place - self.length + 1
        return -1

    def _masks(self, wanted: set[str]) -> dict[str, int]:
        """For each character the places of the run where it may stand, as bits; under "" those for any other."""
        size_bytes = self.length // 8 + 1
        bits = {char: bytearray(size_bytes) for char in wanted}
        anything = bits[""] = bytearray(size_bytes)
        for place, char in enumerate(self._characters):
            one = anything if char is None else bits[char]
            one[place >> 3] |= 1 << (place & 7)
        others = int.from_bytes(anything, "little")
        return {char: int.from_bytes(one, "little") | others for char, one in bits.items()}


def _length(part: tuple[int, str]) -> int:
    return len(part[1])
