"""What is open while the log is read: messages that still are in queues, and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field

from artemis_py.tracing.parent import Parent
from artemis_py.tracing.span import Happening


class Traced:
    """A message with a trace, shared by its queues."""

    __slots__ = (
        "address", "body_bytes", "correlation_id", "id", "lsn", "original", "parent", "recalled_lsn", "sender",
        "timestamp_ms",
    )  # fmt: skip

    def __init__(self, message_id: int, lsn: int, timestamp_ms: int, address: str, parent: Parent) -> None:
        self.id = message_id
        self.lsn = lsn
        self.timestamp_ms = timestamp_ms
        self.address = address
        self.parent = parent
        self.body_bytes = 0
        self.correlation_id = ""
        self.recalled_lsn = 0
        """Where in the log it came to these queues from the past; 0: it was published to them."""
        self.sender = ""
        """The client's host and port; empty if unknown or the broker."""
        self.original: tuple[int, str] | None = None
        """Of a copy: the number of its original, and the queue in which that ended ("": none, as for a divert)."""


@dataclass(slots=True)
class Delivery:
    """A message is with a consumer."""

    lsn: int
    start_ms: int
    consumer: int


class Stay:
    """A message in one queue."""

    __slots__ = ("attempts", "delivery", "happenings", "message", "more", "place", "queue_id")

    def __init__(self, message: Traced, queue_id: int, place: int) -> None:
        self.message = message
        self.queue_id = queue_id
        self.place = place
        """In the pages of its address; 0: in memory."""
        self.attempts = 0
        self.delivery: Delivery | None = None
        self.happenings: tuple[Happening, ...] = ()
        self.more = 0
        """How many more happened than are kept."""


@dataclass(slots=True)
class OpenQueue:
    """A queue, and the traced messages in it by number."""

    name: str
    stays: dict[int, Stay] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    """The numbers of messages in pages, by place."""

    def remove(self, message_id: int) -> Stay | None:
        """The queue is done with a message."""
        stay = self.stays.pop(message_id, None)
        if stay is not None and stay.place:
            self.places.pop(stay.place, None)
        return stay


@dataclass(frozen=True, slots=True)
class Who:
    """The other end of a consumer, as far as known."""

    client: str = ""
    client_id: str = ""
    subscription: str = ""
