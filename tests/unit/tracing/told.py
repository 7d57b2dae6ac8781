"""Events of a log, as the tests of tracing write them down."""

from __future__ import annotations

from collections.abc import Sequence

from artemis_py.message import SENT, Account, Head, Message, encode_headers
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.records import FLAG_PAGED


def at(lsn: int) -> tuple[int, int, int]:
    """Where an event is in the log, and when it was."""
    return lsn, 1000 + lsn, 0


def published(
    lsn: int, number: int, queues: Sequence[int] = (1,), place: int = 0, provenance: int = SENT, **headers: str
) -> Published:
    """A message of the session 50, in pages if it has a place."""
    head = Head(encode_headers([("destination", "a"), *headers.items()]), "a", persistent=True)
    head.provenance = provenance
    kept = Kept(Message(head, b"body", number, 1000 + lsn, 0, Account(), 0), lsn, [*queues], FLAG_PAGED if place else 0)
    for queue in queues if place else ():
        kept.detail(queue).order = place
    return Published(*at(lsn), kept, 50)
