"""How often messages were delivered in vain, where a queue limits or tells that (AMPS' MaxDeliveries, MaxCancels)."""

from __future__ import annotations

from typing import Final, final

from artemis_py.message import Message

MAX_DELIVERIES: Final = "max_deliveries"
MAX_CANCELS: Final = "max_cancels"
"""Why a message is dead, in the words of AMPS (row A-28, tests/queues/rows.py)."""


@final
class Tries:
    """Counts, for each message that came back, its deliveries and how often a consumer has refused it. 0 is no limit.
    With a limit of N the Nth removes it (rows A-20 and A-21).

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
        """How many deliveries of a message came to nothing."""
        return self._counts.get(message_id, (0, 0))[0]

    def forget(self, messages: list[Message]) -> None:
        """These messages have left the queue."""
        if self._counts:
            for message in messages:
                self._counts.pop(message.id, None)
