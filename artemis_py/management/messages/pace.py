"""How many messages may go in each moment, so that no more than so many go in a second."""

from __future__ import annotations

from typing import Final, final

_WHOLE: Final = 1000
INTERVAL_MS: Final = 20
"""How often a job goes on."""
_BURST_MS: Final = 250
"""What was not used of so much time may go at once."""


@final
class Pace:
    """Gives ``rate`` messages a second, from the steady time ``now_ms`` on. The first may go at once."""

    def __init__(self, rate: int, now_ms: int) -> None:
        self._rate = rate
        self._at_ms = now_ms
        self._thousandths = _WHOLE
        """What may go now, in thousandths of a message."""

    @property
    def interval_ms(self) -> int:
        """After how long it is worth looking again, in ms."""
        return max(INTERVAL_MS, (_WHOLE - self._thousandths) // self._rate)

    def pass_time(self, now_ms: int) -> None:
        """It is this steady time now."""
        most = max(self._rate * _BURST_MS, _WHOLE)
        self._thousandths = min(self._thousandths + self._rate * max(now_ms - self._at_ms, 0), most)
        self._at_ms = now_ms

    def take(self) -> int:
        """Take all that may go now, in whole messages."""
        count, self._thousandths = divmod(self._thousandths, _WHOLE)
        return count

    def give_back(self, count: int) -> None:
        """So many of them did not go."""
        self._thousandths += _WHOLE * count
