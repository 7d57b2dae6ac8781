"""Copies on their way to other addresses, and how often each has been forwarded: a loop must end.

The count of hops stands in the message, so it survives pages and restarts. It counts only forwards that nobody asked
for: diverts, expiry, and messages without a route. When a consumer fails for the last time, the count starts again,
because that loop runs at the consumer's pace (RabbitMQ's rule for cycles of dead letters). So a retry queue, whose
messages expire back to where they failed, works for as long as the consumer fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.reference.reference import QueueReference
from artemis_py.message import Head, HeaderName, LargeBody, Message

HOPS_MAX: Final = 16
"""How often one message may be forwarded. Beyond that it is taken for a loop and dropped."""
HOPS_HEADER: Final = "_ART_HOPS"
"""The header with the number of hops, where that is more than one. No client may set it."""

_HOPS: Final = HeaderName(HOPS_HEADER)
_ORIGIN: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_ROUTING_TYPE_CODES: Final = {MULTICAST: "0", ANYCAST: "1"}


@dataclass(slots=True)
class Forward:
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
    outcome: PublishOutcome | None = None
    """Of the original, whose publisher waits to know."""


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
