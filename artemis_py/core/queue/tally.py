"""A queue's counters: plain ints that the queue changes and a scrape reads."""

from __future__ import annotations

from artemis_py.message import Message


class Tally:
    """Counts and encoded sizes of one queue. Sizes are header block plus body, in bytes. ``durable_*`` count only
    persistent messages.

    ``held`` is in delivery and out of the order. ``read`` is in delivery on a non-destructive queue, where the message
    also stays. ``added`` counts every arrival, even one that a ring drops at once; ``acknowledged``, ``expired``,
    ``killed`` and ``replaced`` count the ways to leave.
    """

    __slots__ = (
        "acknowledged", "added", "durable_count", "durable_size_bytes", "expired", "held_count", "held_durable_count",
        "held_durable_size_bytes", "held_size_bytes", "killed", "killed_by", "read_count", "replaced", "returned",
        "scheduled_durable_count", "scheduled_durable_size_bytes", "scheduled_size_bytes", "size_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.added = 0
        self.acknowledged = 0
        self.expired = 0
        self.killed = 0
        self.killed_by: dict[str, int] | None = None
        """The same by reason; None before the first: most queues never kill a message."""
        self.replaced = 0
        self.returned = 0
        """How often a message came back to the queue, or to its place: somebody who looks may have passed that."""
        self.size_bytes = 0
        self.durable_count = 0
        self.durable_size_bytes = 0
        self.held_count = 0
        self.held_size_bytes = 0
        self.held_durable_count = 0
        self.held_durable_size_bytes = 0
        self.read_count = 0
        self.scheduled_size_bytes = 0
        self.scheduled_durable_count = 0
        self.scheduled_durable_size_bytes = 0

    def lose(self, count: int, reason: str, *, replaced: bool) -> None:
        """New messages were dropped on arrival: others replaced them, or they went for this reason."""
        self.added += count
        if replaced:
            self.replaced += count
        else:
            self.kill(count, reason)

    def kill(self, count: int, reason: str) -> None:
        """So many messages were removed for this reason (``core/order/entry.py``)."""
        self.killed += count
        if self.killed_by is None:
            self.killed_by = {}
        self.killed_by[reason] = self.killed_by.get(reason, 0) + count

    def enter_delivery(self, message: Message) -> None:
        """A message went to a consumer that will settle it."""
        size = message.size_bytes
        self.held_count += 1
        self.held_size_bytes += size
        if message.head.persistent:
            self.held_durable_count += 1
            self.held_durable_size_bytes += size

    def enter_delivery_run(self, messages: list[Message]) -> None:
        """Messages went together to a consumer that will settle them."""
        count, size_bytes, durable_count, durable_size_bytes = _measured(messages)
        self.held_count += count
        self.held_size_bytes += size_bytes
        self.held_durable_count += durable_count
        self.held_durable_size_bytes += durable_size_bytes

    def leave_delivery_run(self, messages: list[Message]) -> None:
        """Messages were settled together."""
        count, size_bytes, durable_count, durable_size_bytes = _measured(messages)
        self.held_count -= count
        self.held_size_bytes -= size_bytes
        self.held_durable_count -= durable_count
        self.held_durable_size_bytes -= durable_size_bytes

    def leave_delivery(self, message: Message) -> None:
        """A message came back from the consumer that was to settle it."""
        self.returned += 1
        size = message.size_bytes
        self.held_count -= 1
        self.held_size_bytes -= size
        if message.head.persistent:
            self.held_durable_count -= 1
            self.held_durable_size_bytes -= size

    def enter_scheduled(self, message: Message) -> None:
        """A message was put aside until it is due."""
        size = message.size_bytes
        self.scheduled_size_bytes += size
        if message.head.persistent:
            self.scheduled_durable_count += 1
            self.scheduled_durable_size_bytes += size

    def leave_scheduled(self, message: Message) -> None:
        """A scheduled message is due, or went."""
        size = message.size_bytes
        self.scheduled_size_bytes -= size
        if message.head.persistent:
            self.scheduled_durable_count -= 1
            self.scheduled_durable_size_bytes -= size


class Departed:
    """What queues that are gone had counted, so that the sums of all queues only grow."""

    __slots__ = ("acknowledged", "added")

    def __init__(self) -> None:
        self.added = 0
        self.acknowledged = 0

    def add(self, tally: Tally) -> None:
        """A queue with these counts goes."""
        self.added += tally.added
        self.acknowledged += tally.acknowledged


def _measured(messages: list[Message]) -> tuple[int, int, int, int]:
    """Count and bytes of messages, then of the persistent ones among them. It avoids a call for each message: this is
    the hot path of a consumer that acknowledges.
    """
    size_bytes = durable_count = durable_size_bytes = 0
    for message in messages:
        head = message.head
        size = head.size_bytes + len(message.body)
        size_bytes += size
        if head.persistent:
            durable_count += 1
            durable_size_bytes += size
    return len(messages), size_bytes, durable_count, durable_size_bytes
