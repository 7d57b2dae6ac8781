"""Redelivery: how often a message is tried, after which delay, and when it is dead instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.message import Message
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


# ---- delivery attempts -----------------------------------------------------------------------------------------------
#
# How often messages were delivered and came back, where a queue limits or tells that (AMPS' MaxDeliveries, MaxCancels).


MAX_DELIVERIES: Final = "max_deliveries"
MAX_CANCELS: Final = "max_cancels"
"""Why a message is dead, in the words of AMPS."""


@final
class DeliveryAttempts:
    """Counts, for each message that came back, its deliveries and how often a consumer has refused it. 0 is no limit.
    With a limit of N the Nth removes it.

    The counts do not survive a restart (AMPS' do not either); ``max-delivery-attempts`` counts what does.
    """

    __slots__ = ("_counts", "cancels_max", "deliveries_max")

    def __init__(self, deliveries_max: int, cancels_max: int) -> None:
        self.deliveries_max = deliveries_max
        self.cancels_max = cancels_max
        self._counts: dict[int, tuple[int, int]] = {}
        """Deliveries and refusals by message id."""

    def note(self, message_id: int, *, refused: bool) -> str:
        """A message comes back. Returns the reason why it must not, or the empty text."""
        deliveries, cancels = self._counts.get(message_id, (0, 0))
        deliveries, cancels = deliveries + 1, cancels + refused
        self._counts[message_id] = deliveries, cancels
        if 0 < self.cancels_max <= cancels:
            return MAX_CANCELS
        return MAX_DELIVERIES if 0 < self.deliveries_max <= deliveries else ""

    def count_of(self, message_id: int) -> int:
        """How often a message was delivered and came back."""
        return self._counts.get(message_id, (0, 0))[0]

    def forget(self, messages: list[Message]) -> None:
        """These messages have left the queue."""
        if self._counts:
            for message in messages:
                self._counts.pop(message.id, None)
