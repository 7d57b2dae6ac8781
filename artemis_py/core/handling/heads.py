"""The headers of copies that an operator has made. What says where a message comes from stays with it."""

from __future__ import annotations

from typing import Final

from artemis_py.core.handling.origin import RETRIED_HEADER, has_origin, retried_count, routing_type_of
from artemis_py.core.routing.forward import HOPS_HEADER, copy_headers
from artemis_py.message import Head, Message, encode_headers

_STRIPPED: Final = frozenset({"destination-type", HOPS_HEADER})
_ORIGINAL: Final = "_AMQ_ORIG_MESSAGE_ID"
_ENDED: Final = frozenset({"destination-type", HOPS_HEADER, "_AMQ_ACTUAL_EXPIRY"})


def moved(message: Message, address: str, source: str, queue: str) -> Head:
    """For a copy on another ``address``. The original was sent to the address ``source`` and lay on ``queue``. A dead
    letter goes on saying where it died.
    """
    changes = {} if has_origin(message.head) else copy_headers(message, source, queue, 1)
    return message.head.forwarded(address, changes, _STRIPPED)


def dead(message: Message, address: str, source: str, queue: str, reason: str) -> Head:
    """For a copy at the dead-letter ``address``, as one that died by itself has it."""
    changes = {**copy_headers(message, source, queue, 1), "reason": reason}
    return message.head.forwarded(address, changes, _STRIPPED)


def retried(message: Message, address: str) -> Head:
    """For a dead or expired message that goes back to where it came from. It is marked with how often it did."""
    changes = {RETRIED_HEADER: str(retried_count(message.head) + 1)}
    routing_type = routing_type_of(message.head)
    if routing_type is not None:
        changes["destination-type"] = routing_type
    head = message.head.forwarded(address, changes, _ENDED)
    head.routing_type = routing_type
    return head


def with_priority(message: Message, priority: int) -> Head:
    """The same with another priority. Readers of the log find the original by its number."""
    head = message.head
    headers = [(name, value) for name, value in head.headers() if name not in ("priority", _ORIGINAL)]
    return Head(
        encode_headers([*headers, ("priority", str(priority)), (_ORIGINAL, str(message.id))]), head.address,
        priority=priority, persistent=head.persistent, sized=head.sized, routing_type=head.routing_type,
        duplicate_id=head.duplicate_id,
    )  # fmt: skip
