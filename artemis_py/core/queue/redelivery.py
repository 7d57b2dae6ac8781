"""What follows a failed delivery: another attempt, at once or after a delay, or the dead-letter address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.units import DELAY_MAX_MS

_SPREAD: Final = 2654435761
"""Knuth's multiplicative constant: spreads message ids over the collision-avoidance range without a random source."""

_GROWTHS_MAX: Final = 100
"""After this many multiplications any delay is at its maximum."""


@dataclass(frozen=True, slots=True)
class Redelivery:
    """``redelivery-delay`` and related settings (Artemis manual, "Message Redelivery and Undelivered Messages"). Times
    in ms.
    """

    delay_ms: int = 0
    multiplier: float = 1.0
    delay_ms_max: int = 0
    collision_factor: float = 0.0
    attempts_max: int = 10

    def is_exhausted(self, attempts: int) -> bool:
        """Has the message failed as often as it may? A limit of 0 or below means never."""
        return 0 < self.attempts_max <= attempts

    def delay_after(self, attempts: int, message_id: int) -> int:
        """The delay in ms after the ``attempts``-th failure, from 0 to ``DELAY_MAX_MS``. The message id spreads it over
        the collision-avoidance range. Raises nothing, whatever is configured.
        """
        if self.delay_ms <= 0:
            return 0
        try:
            delay: float = self.delay_ms * self.multiplier ** min(attempts - 1, _GROWTHS_MAX)
        except OverflowError:  # a negative multiplier makes no delay at all
            delay = float(DELAY_MAX_MS) if self.multiplier > 0 else 0.0
        delay = min(max(delay, 0.0), float(DELAY_MAX_MS))
        if self.collision_factor:
            spread = (message_id * _SPREAD % 2**32) / 2**31 - 1
            delay += delay * self.collision_factor * spread
        if self.delay_ms_max > 0:
            delay = min(delay, self.delay_ms_max)
        return int(min(delay, DELAY_MAX_MS))
