"""What a queue says of its messages' time and end, in one place: it goes from the recipe to the queue together."""

from __future__ import annotations

from typing import final

from artemis_py.core.queue.alerts import Alerts
from artemis_py.core.queue.lifetime import Lifetime


@final
class MessageRules:
    """Without any of them a message lives and ends as its address' settings say.

    ``lifetime``: bounds on how long messages live. ``holds``: they wait for the time in ``x-qpid-not-valid-before``.
    ``expiry_policy``: DELETE, ROUTE_TO_ALTERNATE, or None. ``dead_letter_address``: what the queue itself says; empty
    when it wants dead messages discarded, None when the address-setting counts. ``alerts``: who wants to know of depth,
    size and age.
    """

    __slots__ = ("alerts", "dead_letter_address", "expiry_policy", "holds", "lifetime")

    def __init__(
        self,
        *,
        lifetime: Lifetime | None = None,
        holds: bool = False,
        expiry_policy: str | None = None,
        dead_letter_address: str | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        self.lifetime = lifetime
        self.holds = holds
        self.expiry_policy = expiry_policy
        self.dead_letter_address = dead_letter_address
        self.alerts = alerts
