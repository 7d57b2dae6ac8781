"""Where a copy comes from, as its headers say: the queue on which its original died or expired, and why."""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.message import Head, HeaderName

RETRIED_HEADER: Final = "_ART_RETRIED"
"""How often an operator has sent the message back to where it came from. No client may set it."""
_ADDRESS: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_ROUTING_TYPE: Final = HeaderName("_AMQ_ORIG_ROUTING_TYPE")
_CAUSE: Final = HeaderName("reason")
_RETRIED: Final = HeaderName(RETRIED_HEADER)
_ROUTING_TYPES: Final = {"0": MULTICAST, "1": ANYCAST}
_NUMBER: Final = HeaderName("_AMQ_ORIG_MESSAGE_ID")
_COUNT_DIGITS_MAX: Final = 9
_NUMBER_DIGITS_MAX: Final = 20


class Origin(NamedTuple):
    """``address`` and ``queue`` are where the original was, ``cause`` why it is there no more. None: not known."""

    address: str | None
    queue: str | None
    cause: str | None


def origin_of(head: Head) -> Origin:
    """Where a message comes from; all None for one that a client sent."""
    return Origin(head.first(_ADDRESS), head.first(_QUEUE), cause_of(head))


def cause_of(head: Head) -> str | None:
    """Why the original left its queue; None for a message that a client sent."""
    return head.first(_CAUSE) if has_origin(head) else None


def has_origin(head: Head) -> bool:
    """Is the message a copy of one that was elsewhere?"""
    return head.first(_ADDRESS) is not None


def comes_from(head: Head, name: str) -> bool:
    """Is this the queue or the address from which the message comes?"""
    return name in {head.first(_QUEUE), head.first(_ADDRESS)}


def routing_type_of(head: Head) -> str | None:
    """The routing type with which the original was sent; None: it named none."""
    return _ROUTING_TYPES.get(head.first(_ROUTING_TYPE) or "")


def retried_count(head: Head) -> int:
    """How often the message was sent back to where it came from."""
    return _number(head, _RETRIED, _COUNT_DIGITS_MAX)


def original_number(head: Head) -> int:
    """The number of the message of which this is a copy; 0: it is none, or the header says nothing sensible."""
    return _number(head, _NUMBER, _NUMBER_DIGITS_MAX)


def _number(head: Head, name: HeaderName, digits_max: int) -> int:
    text = head.first(name) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits_max else 0
