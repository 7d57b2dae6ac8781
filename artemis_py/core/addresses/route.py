"""A destination, resolved."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, Message
from artemis_py.security.rights import Decider


@final
class Route:
    """An address, or one queue of it. ``losses`` and ``distant_losses`` count queues that were deleted, of the
    address and elsewhere (``Bindings.distant_losses``), up to when the route was made. When they have grown, it is out
    of date.
    """

    __slots__ = ("address", "decider", "distant_losses", "in_full", "losses", "queue", "routing_type", "view")

    def __init__(
        self, address: Address, queue: Queue | None, routing_type: str | None, distant_losses: int = 0
    ) -> None:
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.losses = address.losses
        self.distant_losses = distant_losses
        self.decider: Decider | None = None
        """Which security-setting decides about sending here; None until somebody with permissions has sent."""
        self.view: Queue | None = None
        """The view that the sender named; the address is the one on which its messages are published."""
        self.in_full = False
        """Did the sender name the view in full, as ``address::queue``?"""

    @property
    def asked_address(self) -> str:
        """The address that the sender named."""
        return self.address.name if self.view is None else self.view.address.name

    @property
    def asked_queue(self) -> str | None:
        """The queue that the sender named; None if it named only an address."""
        if self.view is not None:
            return self.view.name if self.in_full else None
        return None if self.queue is None else self.queue.name

    def head_of(self, head: Head) -> Head:
        """The head of a message on this route. What was sent to a view belongs to the address on which it is published,
        in memory, in the log, and for selectors; its destination stays as the sender wrote it.
        """
        return head if self.view is None else head.at(self.address.name)

    def take_over(self, messages: list[Message]) -> None:
        """Give messages that were sent to a view the head that they have on the address (``head_of``)."""
        before = after = messages[0].head
        for place, message in enumerate(messages):
            if not place or message.head is not before:
                before = message.head
                after = self.head_of(before)
            message.head = after
