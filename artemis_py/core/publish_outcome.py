"""What has become of a message when it is published, for a publisher who wants to know."""

from __future__ import annotations

from typing import Final, final

from artemis_py.message import Message

NAMED_MAX: Final = 10
"""So many queues are named that took a message, and so many that dropped it."""

ADDRESS_FULL: Final = "address-full"
"""The address is full, and its policy is DROP."""
DUPLICATE: Final = "duplicate"
"""The address has had a message with this duplicate id."""
NO_QUEUE: Final = "no-queue"
"""The address has no queue, and no divert took the message."""
DIVERTED: Final = "diverted"
"""A divert took it, and nothing keeps the copy at the other address (``lost_at``)."""
GONE: Final = "gone"
"""The address was a temporary destination, and its client has gone."""
NOT_ACCEPTED: Final = "not-accepted"
"""None of the queues takes it: their filters, routing types or states are against it."""
DROPPED: Final = "dropped"
"""A queue dropped it at once: it keeps none, or others rank above it."""
AWAITED: Final = "awaited"
"""A queue that is being filled from the log will find it there."""


@final
class PublishOutcome:
    """Which queues have one message, or a copy of it that a divert made, and why others do not.

    Whoever publishes makes one, calls ``begin`` before the message comes to its address, and ``end`` when everything is
    on its queues. ``watched`` is ``QueueHost.outcomes``: by the numbers of messages, and by those of connections,
    negative. What nobody asks for costs a look at an empty dictionary for each batch.
    """

    __slots__ = (
        "_copies_count", "_ids", "_is_repeated", "_repeats_copy", "_watched", "copy_lost_because", "dropped_by",
        "dropped_count", "durable_count", "full_because", "has_targets", "is_awaited", "is_orphaned", "lost_at",
        "may_be_replaced", "message_id", "origin", "queue_count", "replaced", "taken_by", "unrouted_because",
    )  # fmt: skip

    def __init__(self, watched: dict[int, PublishOutcome]) -> None:
        self._watched = watched
        self._ids: list[int] = []
        self._copies_count = 0
        """How many copies for other addresses are on their way."""
        self.message_id = 0
        """Its number; 0 before it is published."""
        self.origin = 0
        """The connection of a publisher who wants to know, too, what became of its messages before; 0: nobody does."""
        self.replaced: dict[int, int] = {}
        """Which of these have left queues because this one came, by number, and how many queues."""
        self.may_be_replaced = False
        """Has a queue taken it that may drop it for a later one?"""
        self.queue_count = 0
        """How many queues took it. A consumer that waits for it counts as its queue."""
        self.taken_by: list[str] = []
        """The names of the first of these that keep it."""
        self.durable_count = 0
        """How many of those that keep it are durable."""
        self.dropped_count = 0
        """How many of them dropped it at once: rings, and queues that were deleted or had a newer value."""
        self.dropped_by: list[str] = []
        """The names of the first of these."""
        self.full_because = ""
        """Why a full address dropped it (policy DROP)."""
        self.unrouted_because = ""
        """Why no queue of its address took it; empty: one did, or it did not get so far."""
        self.is_orphaned = False
        """Was its address a temporary destination whose client has gone?"""
        self.has_targets = False
        """Has the address queues that take other messages?"""
        self._is_repeated = False
        self._repeats_copy = False
        self.is_awaited = False
        """Is it only in the log, where queues find it that are filled from there?"""
        self.lost_at = ""
        """The address where a copy of it got lost; empty: none did."""
        self.copy_lost_because = ""
        """Why that copy got lost."""

    @property
    def is_kept(self) -> bool:
        """Is the message, or a copy of it, anywhere, or on its way?"""
        return self.is_on_queue or self._copies_count > 0 or self.is_awaited

    @property
    def is_on_queue(self) -> bool:
        """Has it, or a copy of it, come to a queue that keeps it?"""
        return self.queue_count > self.dropped_count

    @property
    def is_duplicate(self) -> bool:
        """Had its address seen its duplicate id? Or is it nowhere but in a copy that another address has had?"""
        return self._is_repeated or (self._repeats_copy and not self.is_kept)

    @property
    def why_lost(self) -> str:
        """Why it is nowhere."""
        if self.full_because:
            return self.full_because
        if self.dropped_count:
            return (
                f"{_queues(self.dropped_by)} dropped it at once: no message is kept there, or others rank above it "
                "(ring-size, max-depth)"
            )
        if self.unrouted_because:
            return self.unrouted_because
        return f"a divert took it, and {self.copy_lost_because}" if self.lost_at else "no queue took it"

    @property
    def reason(self) -> str:
        """The same in one word, one of those above."""
        if self.is_duplicate:
            return DUPLICATE
        if self.is_awaited:
            return AWAITED
        if self.is_orphaned:
            return GONE
        if self.unrouted_because:
            return NOT_ACCEPTED if self.has_targets else NO_QUEUE
        if self.dropped_count:
            return DROPPED
        if self.lost_at:
            return DIVERTED
        return ADDRESS_FULL if self.full_because else NOT_ACCEPTED

    @property
    def ids(self) -> list[int]:
        """The numbers of the message and of its copies, in this order."""
        return self._ids

    def begin(self, message_id: int) -> None:
        """Follow this message from here on. With ``origin``, follow what gives way to it, too."""
        self.message_id = message_id
        self.watch(message_id)
        if self.origin:
            self._watched[-self.origin] = self

    def watch(self, message_id: int) -> None:
        """Follow a copy, too."""
        self._ids.append(message_id)
        self._watched[message_id] = self

    def end(self) -> None:
        """Follow it no more."""
        for message_id in self._ids:
            self._watched.pop(message_id, None)
        self._watched.pop(-self.origin, None)

    def take(self, queue_name: str, *, durable: bool, may_replace: bool) -> None:
        """A queue takes it. ``may_replace``: it may drop it for a later one."""
        self.queue_count += 1
        self.durable_count += durable
        self.may_be_replaced |= may_replace
        if len(self.taken_by) < NAMED_MAX:
            self.taken_by.append(queue_name)

    def drop(self, queue_name: str, *, durable: bool) -> None:
        """A queue that took it does not keep it."""
        self.dropped_count += 1
        self.durable_count -= durable
        if queue_name in self.taken_by:
            self.taken_by.remove(queue_name)
        if len(self.dropped_by) < NAMED_MAX:
            self.dropped_by.append(queue_name)

    def repeat(self, message_id: int) -> None:
        """An address leaves out the message, or a copy: it has seen the duplicate id."""
        if message_id == self.message_id:
            self._is_repeated = True
        else:
            self._repeats_copy = True

    def drop_at_address(self, message_id: int, address: str, because: str) -> None:
        """A full address drops the message, or a copy (policy DROP)."""
        self.full_because = because
        if message_id != self.message_id:
            self.lose_copy(address, because)

    def lose_copy(self, address: str, because: str) -> None:
        """A copy does not come to a queue of the address to which it goes."""
        if not self.lost_at:
            self.lost_at = address
            self.copy_lost_because = because

    def begin_copy(self) -> None:
        """A copy goes to another address."""
        self._copies_count += 1

    def publish_copy(self) -> None:
        """This copy is published now, or cannot be."""
        self._copies_count -= 1


def note_taken(
    outcomes: dict[int, PublishOutcome], messages: list[Message], queue_name: str, *, durable: bool, may_replace: bool
) -> None:
    """A queue takes messages, some of which may be watched."""
    for message in messages:
        outcome = outcomes.get(message.id)
        if outcome is not None:
            outcome.take(queue_name, durable=durable, may_replace=may_replace)


def note_dropped(
    outcomes: dict[int, PublishOutcome], messages: list[Message], queue_name: str, *, durable: bool
) -> None:
    """A queue drops messages that it had taken, some of which may be watched. Others make room for one that is."""
    for message in messages:
        outcome = outcomes.get(message.id)
        if outcome is not None:
            outcome.drop(queue_name, durable=durable)
        elif message.origin:
            newer = outcomes.get(-message.origin)
            if newer is not None:
                newer.replaced[message.id] = newer.replaced.get(message.id, 0) + 1


def _queues(names: list[str]) -> str:
    return f"queue {names[0]}" if len(names) == 1 else f"queues {', '.join(names)}"
