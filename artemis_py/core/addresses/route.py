"""A destination, resolved."""

from __future__ import annotations

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue


class Route:
    """A destination, resolved: an address, or one queue of it. ``losses`` and ``anycast_losses`` tell whether a queue
    went since that matters: one of the address, or an anycast one of a wildcard address.
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
