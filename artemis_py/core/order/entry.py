"""An entry: one message in one queue."""

from __future__ import annotations

from typing import Final

from artemis_py.message import Message

ACKED: Final = "acked"
REPLACED: Final = "replaced"
SUPERSEDED: Final = "superseded"
EXPIRED: Final = "expired"
DEAD: Final = "dead"
PURGED: Final = "purged"
DELETED: Final = "deleted"
ABANDONED: Final = "abandoned"
DAMAGED: Final = "damaged"
MOVED: Final = "moved"
CANCELLED: Final = "cancelled"
"""Why a message left a queue. All from DEAD on count as killed. ``storage/format/codec.py`` says what each means."""
NACKED: Final = "nacked"
ABORTED: Final = "aborted"
LOST: Final = "lost"
LEASE_EXPIRED: Final = "lapsed"
"""Why a delivery failed."""


class Entry:
    """A message's place in one queue.

    ``sequence`` is its order key inside its priority. It is valid while the entry is out of the order (in delivery);
    inside the order the place itself is the sequence. ``attempts`` counts failed deliveries, ``returned`` all that
    came back; after a restart only the failed ones are known.
    """

    __slots__ = ("attempts", "message", "returned", "sequence")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.sequence = 0
        self.attempts = 0
        self.returned = 0

    @property
    def redelivered(self) -> bool:
        """Was it sent to a consumer before?"""
        return self.returned > 0
