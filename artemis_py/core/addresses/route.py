"""A destination, resolved."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue


@final
class Route:
    """An address, or one queue of it. ``losses`` and ``anycast_losses`` count queues that were deleted, of the
    address and on wildcard addresses, up to when the route was made. When they have grown, it is out of date.
    """

    __slots__ = ("address", "anycast_losses", "losses", "queue", "routing_type")

    def __init__(
        self, address: Address, queue: Queue | None, routing_type: str | None, anycast_losses: int = 0
    ) -> None:
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.losses = address.losses
        self.anycast_losses = anycast_losses
