"""A destination, resolved."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.security.rights import Decider


@final
class Route:
    """An address, or one queue of it. ``losses`` and ``anycast_losses`` count queues that were deleted, of the
    address and on wildcard addresses, up to when the route was made. When they have grown, it is out of date.
    """

    __slots__ = ("address", "anycast_losses", "decider", "losses", "queue", "routing_type")

    def __init__(
        self, address: Address, queue: Queue | None, routing_type: str | None, anycast_losses: int = 0
    ) -> None:
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.losses = address.losses
        self.anycast_losses = anycast_losses
        self.decider: Decider | None = None
        """Which security-setting decides about sending here; None until somebody with permissions has sent."""
