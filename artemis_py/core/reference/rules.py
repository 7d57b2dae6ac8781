"""A queue's own rules about how long its messages live and how they end."""

from __future__ import annotations

from typing import final

from artemis_py.core.reference.alerts import Alerts
from artemis_py.core.reference.lifetime import Lifetime


@final
class MessageRules:
    """A queue's own rules. Without them the address-settings count.

    ``lifetime``: bounds on how long messages live. ``holds``: messages wait for the time in
    ``x-qpid-not-valid-before``. ``expiry_policy``: DELETE, ROUTE_TO_ALTERNATE, or None. ``dead_letter_address``: empty
    to discard dead messages, None for that of the address-setting. ``alerts``: thresholds of depth, size and age.
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
