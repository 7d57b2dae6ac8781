"""Pauses between attempts."""

from __future__ import annotations

from typing import final


@final
class Pauses:
    """Each is twice as long as the one before, up to a limit; after a success they begin anew (``reset``)."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._max_s = max_s

    def next_s(self) -> float:
        """How long to wait before the next attempt."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, self._max_s)
        return pause_s

    def reset(self) -> None:
        """An attempt has succeeded."""
        self._next_s = self._first_s
