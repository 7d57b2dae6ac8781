"""Where a message went, for a sender who asks: on which queues it is, or why it is on none."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.placing.recording import Share
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message

ADDRESS_FULL: Final = "address-full"
"""The address is full, and its policy is DROP."""
DUPLICATE: Final = "duplicate"
"""The address has had a message with this duplicate id."""
NO_QUEUE: Final = "no-queue"
"""The address has no queue, and no divert took the message to one."""
NOT_ACCEPTED: Final = "not-accepted"
"""None of the queues takes it: their filters, routing types or states are against it."""
DROPPED: Final = "dropped"
"""A queue dropped it at once: it keeps none, or others rank above it."""
AWAITED: Final = "awaited"
"""A queue that is being filled from the log will find it there."""


@final
class Whereabouts:
    """What became of one message that is published to an address. ``note`` hears of everything that is put on queues
    meanwhile: of the message, and of the copies that diverts and dead-letter settings make of it.
    """

    __slots__ = ("_address", "_dropped", "_duplicates", "_has_queues", "_is_awaited", "_placed")

    def __init__(self, address: Address, *, has_queues: bool, is_awaited: bool) -> None:
        self._address = address
        self._has_queues = has_queues
        self._is_awaited = is_awaited
        self._dropped = address.dropped_message_count
        self._duplicates = address.duplicate_message_count
        self._placed: list[tuple[Queue, Message, int, int]] = []
        """With how many messages the queue had lost before, and how many consumers had acknowledged."""

    def note(self, shares: list[Share]) -> None:
        """These queues get these messages now, or when the turn has room for it."""
        for queue, messages in shares:
            for message in messages:
                self._placed.append((queue, message, _lost_by(queue), queue.contents.tally.acknowledged))

    @property
    def queues(self) -> list[str]:
        """The names of the queues that have it, or had it for a consumer that took it at once."""
        return [queue.name for queue, message, lost, _ in self._placed if self._has(queue, message, lost)]

    def _has(self, queue: Queue, message: Message, lost: int) -> bool:
        """Is the message there? A queue that lost something may have lost this one: that is so if fewer need it than
        got it.
        """
        if queue.flow.overflow.keeps_none:
            return False
        if _lost_by(queue) == lost or queue.contents.paged.count:
            return True
        waiting = [
            queue
            for queue, other, _, acknowledged in self._placed
            if other is message and queue.contents.tally.acknowledged == acknowledged
        ]
        return message.refs >= len(waiting)

    @property
    def reason(self) -> str:
        """Why it is on no queue."""
        address = self._address
        if address.dropped_message_count != self._dropped:
            return ADDRESS_FULL
        if address.duplicate_message_count != self._duplicates:
            return DUPLICATE
        if self._placed:
            return DROPPED
        if self._is_awaited:
            return AWAITED
        return NOT_ACCEPTED if self._has_queues else NO_QUEUE


def _lost_by(queue: Queue) -> int:
    tally = queue.contents.tally
    return tally.replaced + tally.killed
