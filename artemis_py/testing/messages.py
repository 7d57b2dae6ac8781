"""Messages as a test sees them on a queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.message import LargeBody
from artemis_py.storage.format.names import body_name

if TYPE_CHECKING:
    from artemis_py.core.order.entry import Entry
    from artemis_py.core.queue.queue import Queue
    from artemis_py.server.store import Store

READY: Final = "ready"
DELIVERING: Final = "in delivery"
SCHEDULED: Final = "scheduled"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """One message on a queue. ``headers`` are those of its sender; ``state`` says what it waits for: ``ready``,
    ``in delivery`` or ``scheduled``.
    """

    id: int
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(hash=False)
    state: str = READY
    attempts: int = 0
    """Failed deliveries."""
    persistent: bool = False

    @property
    def text(self) -> str:
        """The body as UTF-8 text. Raises UnicodeDecodeError."""
        return self.body.decode()

    def __repr__(self) -> str:
        return (
            f"<message {self.id} {self.state}: {self.body[:40]!r}{'…' if len(self.body) > 40 else ''} {self.headers}>"
        )


def messages_of(queue: Queue, store: Store) -> list[StoredMessage]:
    """Every message of a queue that is in memory: the ready ones in their order, then those in delivery, then the
    scheduled ones, each in the order of arrival. Only in the thread of the broker.
    """
    holders = [consumer for consumer in queue.distribution.consumers if not consumer.settles]
    held = [entry for consumer in holders for entry in consumer.held.values()]
    shown = [_shown(entry, READY, store) for entry in queue.contents.order]
    known = {message.id for message in shown}  # a queue that keeps what it delivers has both
    for entries, state in ((held, DELIVERING), (list(queue.contents.scheduled.values()), SCHEDULED)):
        entries.sort(key=lambda entry: entry.message.id)
        for entry in entries:
            if entry.message.id not in known:
                known.add(entry.message.id)
                shown.append(_shown(entry, state, store))
    return shown


def _shown(entry: Entry, state: str, store: Store) -> StoredMessage:
    message = entry.message
    body = message.body
    if isinstance(body, LargeBody):
        body = _read(body, store.directories())
    return StoredMessage(
        id=message.id,
        body=body,
        headers=message.head.properties,
        state=state,
        attempts=entry.attempts,
        persistent=message.head.persistent,
    )


def _read(body: LargeBody, directories: Iterable[str]) -> bytes:
    """A body in a file of its own. Raises OSError, FileNotFoundError if it is nowhere."""
    names = [body_name(body.number, durable=durable) for durable in (True, False)]
    places = [Path(directory) / name for directory in directories for name in names]
    found = next((place for place in places if place.is_file()), places[0])
    return found.read_bytes()[: body.size_bytes]
