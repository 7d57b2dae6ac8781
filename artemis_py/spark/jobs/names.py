"""The names of events in the table ``events``, and what they mean to whoever lost a message."""

from __future__ import annotations

from typing import Final

PUBLISHED: Final = "published"
ROUTED: Final = "routed"
SCHEDULED: Final = "scheduled"
DUE: Final = "due"
DELIVERED: Final = "delivered"
ATTEMPTED: Final = "attempted"
ACKED: Final = "acked"
REPLACED: Final = "replaced"
SUPERSEDED: Final = "superseded"
EXPIRED: Final = "expired"
DEAD: Final = "dead"
PURGED: Final = "purged"
DELETED: Final = "deleted"
REFUSED: Final = "refused"

ARRIVALS: Final = (ROUTED, SCHEDULED)
"""A message came to a queue."""
LOSSES: Final = {
    REPLACED: "a ring was full: the oldest message gave way",
    SUPERSEDED: "a newer value with the same key took its place",
    EXPIRED: "its time to live ended before anybody took it",
    DEAD: "delivered as often as allowed, and never acknowledged",
    PURGED: "an operator emptied the queue",
    DELETED: "the queue was deleted with messages in it",
    REFUSED: "the address was full: what came was not taken",
}
"""Events by which a message is gone from a queue without having been consumed, and why that happens."""
ENDS: Final = (ACKED, REPLACED, SUPERSEDED, EXPIRED, DEAD, PURGED, DELETED)
"""A queue was done with a message."""
