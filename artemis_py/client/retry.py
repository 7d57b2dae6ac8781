"""Pauses between attempts."""

from __future__ import annotations

from typing import final


@final
class Pauses:
    """Each is ``multiplier`` times as long as the one before, up to a limit; after a success they begin anew
    (``reset``).
    """

    def __init__(self, first_s: float, max_s: float, multiplier: float = 2.0) -> None:
        self._first_s = self._next_s = min(first_s, max_s)
        self._max_s = max_s
        self._multiplier = multiplier

    def next_s(self) -> float:
        """How long to wait before the next attempt."""
        pause_s = self._next_s
        self._next_s = min(self._multiplier * pause_s, self._max_s)
        return pause_s

    def reset(self) -> None:
        """An attempt has succeeded."""
        self._next_s = self._first_s
