"""A copy on its way to another address, and how often it went on by itself: what goes in a circle must end.

The count stands in the message, so it survives pages and restarts. It counts only hops that nobody asked for: diverts,
expiry, and messages without a route. When a consumer has failed for the last time the count begins again, because what
goes round then does so at the consumer's pace (RabbitMQ's rule for cycles of dead letters). So a queue of messages that
wait for another attempt, and expire back to where they failed, works for as long as somebody fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.core.address import ANYCAST, MULTICAST
from artemis_py.message import Head, HeaderName, LargeBody, Message

HOPS_MAX: Final = 16
"""How often one message may be forwarded before it is taken for a loop and dropped."""
HOPS_HEADER: Final = "_ART_HOPS"
"""How often a copy was forwarded, where that is more than once. No client may set it."""

_HOPS: Final = HeaderName(HOPS_HEADER)
_ORIGIN: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_ROUTING_TYPE_CODES: Final = {MULTICAST: "0", ANYCAST: "1"}


@dataclass(slots=True)
class Forward:
    """A copy on its way to another address, published later in the turn (so that nothing recurses)."""

    address: str
    head: Head
    body: bytes | LargeBody
    expires_ms: int
    hops: int
    due_ms: int = 0
    creates: bool = False
    """May the target address be created, as for a sender's message?"""
    as_it_is: bool = False
    """Nothing of the head was changed, so a duplicate id in it is that of the original and says nothing here."""
    origin: int = 0
    """The connection that sent the original of a diverted copy, which may be nowhere else; 0 for other copies."""
    passed: tuple[str, ...] = ()
    """The diverts that it came through since it was sent or lay on a queue. None takes what it has made: where each of
    a circle gives to several addresses, a few hops would make millions of copies.
    """


def hops_of(head: Head) -> int:
    """How often the message was forwarded since a client or consumer had to do with it."""
    text = head.first(_HOPS)
    if text is not None and text.isascii() and text.isdigit() and len(text) <= len(str(HOPS_MAX)):
        return int(text)
    return 0 if head.first(_ORIGIN) is None else 1


def copy_headers(message: Message, address: str, queue: str | None, hops: int) -> dict[str, str]:
    """The headers that say where a copy came from (Artemis manual, "Message Expiry" and "Undelivered messages"); the
    last hop wins. One that was forwarded more than once says how often.
    """
    changes = {"_AMQ_ORIG_ADDRESS": address, "_AMQ_ORIG_MESSAGE_ID": str(message.id)}
    if queue is not None:
        changes["_AMQ_ORIG_QUEUE"] = queue
    if message.head.routing_type is not None:
        changes["_AMQ_ORIG_ROUTING_TYPE"] = _ROUTING_TYPE_CODES[message.head.routing_type]
    if hops > 1:
        changes[HOPS_HEADER] = str(hops)
    return changes
