"""Copies on their way to other addresses: diverted, dead, expired and unrouted messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address, Divert, Plan
from artemis_py.core.addresses.batch import Batch, Diverted
from artemis_py.core.dead_letters import NO_ROUTE
from artemis_py.core.events import LOOPED, Events
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Head, HeaderName, LargeBody, Message

# ---- copy ------------------------------------------------------------------------------------------------------------
#
# Copies on their way to other addresses, and how often each has been forwarded: a loop must end. The count of hops
# stands in the message, so it survives pages and restarts. It counts only forwards that nobody asked for: diverts,
# expiry, and messages without a route. When a consumer fails for the last time, the count starts again, because that
# loop runs at the consumer's pace (RabbitMQ's rule for cycles of dead letters). So a retry queue, whose messages
# expire back to where they failed, works for as long as the consumer fails.


HOPS_MAX: Final = 16
"""How often one message may be forwarded. Beyond that it is taken for a loop and dropped."""
HOPS_HEADER: Final = "_ART_HOPS"
"""The header with the number of hops, where that is more than one. No client may set it."""

_HOPS: Final = HeaderName(HOPS_HEADER)
_ORIGIN: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_ROUTING_TYPE_CODES: Final = {MULTICAST: "0", ANYCAST: "1"}


@dataclass(slots=True)
class MessageCopy:
    """A copy on its way to another address. It is published later in the turn, so nothing recurses."""

    address: str
    head: Head
    body: bytes | LargeBody
    expires_ms: int
    hops: int
    due_ms: int = 0
    creates: bool = False
    """May the target address be created, as for a sender's message?"""
    as_it_is: bool = False
    """The head is unchanged, so a duplicate id in it is that of the original and means nothing here."""
    origin: int = 0
    """The connection that sent the original of a diverted copy; 0 for other copies. The original may be nowhere
    else.
    """
    passed: tuple[str, ...] = ()
    """The diverts that it has passed since it was sent or lay on a queue. A divert ignores copies that it has made
    itself: in a loop of diverts with several targets each, a few hops would make millions of copies.
    """
    source: tuple[QueueReference, Message] | None = None
    """The queue that a dead or expired message has left, and the message: where it goes if the copy fails."""
    diverted: Diverted | None = None
    """The original, if an exclusive divert took it."""
    outcome: PublishOutcome | None = None
    """Of the original, whose publisher waits to know."""
    queue: str | None = None
    """The queue of a fully qualified destination."""
    schedule: int = 0
    """The schedule that sends it; 0: it is no message of a schedule."""


def hops_of(head: Head) -> int:
    """How often the message was forwarded since a client sent it or a consumer failed."""
    text = head.first(_HOPS)
    if text is not None and text.isascii() and text.isdigit() and len(text) <= len(str(HOPS_MAX)):
        return int(text)
    return 0 if head.first(_ORIGIN) is None else 1


def copy_headers(message: Message, address: str, queue: str | None, hops: int) -> dict[str, str]:
    """The headers that say where a copy comes from (Artemis manual, "Message Expiry" and "Undelivered messages"). Those
    of the last hop win. ``hops`` above 1 adds their number.
    """
    changes = {"_AMQ_ORIG_ADDRESS": address, "_AMQ_ORIG_MESSAGE_ID": str(message.id)}
    if queue is not None:
        changes["_AMQ_ORIG_QUEUE"] = queue
    if message.head.routing_type is not None:
        changes["_AMQ_ORIG_ROUTING_TYPE"] = _ROUTING_TYPE_CODES[message.head.routing_type]
    if hops > 1:
        changes[HOPS_HEADER] = str(hops)
    return changes


# ---- copy maker ------------------------------------------------------------------------------------------------------
#
# Copies for other addresses: made of messages on their way, noted here, and published later in the turn.


_STRIPPED: Final = frozenset({"destination-type", HOPS_HEADER})
_FORWARDS_HOPS: Final = frozenset({HOPS_HEADER})
_OWN_TYPES: Final = (ANYCAST, MULTICAST)


@final
class CopyMaker:
    """Makes the copies that diverts ask for, and those of messages that are dead, expired, or had no route. It
    publishes none (``CopyPublisher`` does), so nothing recurses.
    """

    __slots__ = ("_events", "_outcomes", "looped_message_count", "waiting")

    def __init__(self, events: Events, outcomes: dict[int, PublishOutcome]) -> None:
        self._events = events
        self._outcomes = outcomes
        self.waiting: list[MessageCopy] = []
        """In the order in which they are to be published."""
        self.looped_message_count = 0
        """How many copies were dropped because they went in a circle."""

    def take(self) -> list[MessageCopy]:
        """What waits; it is forgotten here."""
        waiting, self.waiting = self.waiting, []
        return waiting

    # ---- diverts ---------------------------------------------------------------------------------

    def divert(self, plan: Plan, batch: Batch) -> set[int]:
        """Make the copies that diverts ask for; what an exclusive divert took leaves the batch. A message to one queue
        meets exclusive diverts only: the others are for all queues of the address, as is what keeps messages for
        queues of later. Returns the ids of the messages that some divert took.
        """
        address, to_all = batch.route.address, batch.route.queue is None
        kept: list[Message] = []
        diverted: set[int] = set()
        for message in batch.messages:
            filter_results = batch.filter_results_of(message)
            matched = [divert for divert in plan.exclusive_diverts if filter_results.of(divert.selector)]
            gone = Diverted(address, batch.diverted) if matched else None
            if not matched:
                kept.append(message)
                if to_all:
                    if plan.retention is not None:
                        self._retain(plan.retention, message, batch)
                    matched = [divert for divert in plan.diverts if filter_results.of(divert.selector)]
            if matched:
                diverted.add(message.id)
            for divert in matched:
                self._divert(address, divert, message, batch, gone)
            if gone is not None:
                gone.end_copy(is_there=False)
        address.routed_message_count += len(batch.messages) - len(kept)
        batch.narrow(kept)
        return diverted

    def _retain(self, retention: Divert, message: Message, batch: Batch) -> None:
        """Copy a message as it is to where it is kept for queues of later."""
        target = retention.forwarding_addresses[0]
        copy = MessageCopy(
            target, message.head, message.body, message.expires_ms, batch.hops + 1, batch.due_ms, as_it_is=True
        )
        self._add(copy, batch.route.address, message)

    def _divert(self, address: Address, divert: Divert, message: Message, batch: Batch, gone: Diverted | None) -> None:
        hops = max(batch.hops, hops_of(message.head)) + 1
        changes = copy_headers(message, address.name, divert.routing_name, hops)
        drop = _FORWARDS_HOPS if divert.routing_type == "PASS" else _STRIPPED
        routing_type = divert.routing_type if divert.routing_type in _OWN_TYPES else None
        if routing_type is not None:
            changes["destination-type"] = routing_type
        passed = (*batch.passed, divert.name)
        for target in divert.forwarding_addresses:
            if divert.name in batch.passed:
                self._drop_looping(address, target, message)
                continue
            head = message.head.forwarded(target, changes, drop)
            if routing_type is not None:
                head.routing_type = routing_type
            copy = MessageCopy(
                target,
                head,
                message.body,
                message.expires_ms,
                hops,
                batch.due_ms,
                creates=True,
                origin=message.origin,
                passed=passed,
                diverted=gone,
            )
            self._add(copy, address, message)

    # ---- dead, expired, without a route ----------------------------------------------------------

    def add_dead(self, target: str, source: Address, queue: QueueReference, message: Message, reason: str) -> None:
        """Copy a message whose last delivery attempt has failed to the dead-letter address."""
        changes = copy_headers(message, source.name, queue.name, 1)
        changes["reason"] = reason
        self._add_changed(target, source, message, changes, 1, queue)

    def add_expired(
        self, target: str, source: Address, queue: QueueReference, message: Message, reason: str, now_ms: int
    ) -> None:
        """Copy an expired message to the expiry address."""
        hops = hops_of(message.head) + 1
        changes = copy_headers(message, source.name, queue.name, hops)
        changes["_AMQ_ACTUAL_EXPIRY"] = str(now_ms)
        changes["reason"] = reason
        self._add_changed(target, source, message, changes, hops, queue)

    def add_unrouted(self, target: str, source: Address, message: Message, hops_before: int) -> None:
        """Copy a message that no queue took to the dead-letter address (``send-to-dla-on-no-route``)."""
        hops = max(hops_before, hops_of(message.head)) + 1
        changes = copy_headers(message, source.name, None, hops)
        changes["reason"] = NO_ROUTE
        self._add_changed(target, source, message, changes, hops)

    def _add_changed(
        self,
        target: str,
        source: Address,
        message: Message,
        changes: dict[str, str],
        hops: int,
        queue: QueueReference | None = None,
    ) -> None:
        head = message.head.forwarded(target, changes, _STRIPPED)
        left = None if queue is None else (queue, message)
        self._add(MessageCopy(target, head, message.body, 0, hops, source=left), source, message)

    def _add(self, copy: MessageCopy, source: Address, message: Message) -> None:
        if copy.hops > HOPS_MAX:
            self._drop_looping(source, copy.address, message)
            return
        self.waiting.append(copy)
        if copy.diverted is not None:
            copy.diverted.begin_copy()
        if self._outcomes:
            copy.outcome = self._outcomes.get(message.id)
            if copy.outcome is not None:
                copy.outcome.begin_copy()

    def _drop_looping(self, source: Address, target: str, message: Message) -> None:
        self.looped_message_count += 1
        outcome = self._outcomes.get(message.id)
        if outcome is not None:
            outcome.lose_copy(target, "its copies went in a circle")
        self._events.note(LOOPED, source.name, {"target": target})
