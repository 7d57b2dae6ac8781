"""The names of events in the table ``events``, and their meaning for losses."""

from __future__ import annotations

from typing import Final

PUBLISHED: Final = "published"
ROUTED: Final = "routed"
RECALLED: Final = "recalled"
SCHEDULED: Final = "scheduled"
DUE: Final = "due"
DELIVERED: Final = "delivered"
ATTEMPTED: Final = "attempted"
ACKED: Final = "acked"
REPLACED: Final = "replaced"
REFUSED: Final = "refused"

ARRIVALS: Final = (ROUTED, SCHEDULED, RECALLED)
"""A message arrived in a queue."""
LOSSES: Final = {
    REPLACED: "a full ring dropped its oldest message",
    "superseded": "a newer value with the same key replaced it",
    "expired": "it expired before a consumer took it",
    "dead": "it reached the limit of delivery attempts without an ACK",
    "cancelled": "an operator sent it to the dead letters, or discarded it",
    "purged": "an operator emptied the queue",
    "deleted": "the queue was deleted with messages in it",
    "abandoned": "the last consumer left a queue with purge-on-no-consumers",
    "damaged": "its record cannot be read",
    "killed": "dead, purged or deleted; an older log does not distinguish these",
    REFUSED: "the address was full and refused new messages",
}
"""Events in which a message is lost without being consumed, and why (the reasons of the journal's SETTLED records,
docs/journal-format.md, and REFUSED).
"""
MOVED: Final = "moved"
"""An operator moved a message, and a copy of it stands elsewhere."""
ENDS: Final = (ACKED, MOVED, *(name for name in LOSSES if name != REFUSED))
"""A queue was done with a message."""
