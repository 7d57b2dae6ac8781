"""The state of a queue at one moment: its numbers, and its messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.core.queue.why import messages
from artemis_py.message import LargeBody
from artemis_py.storage.format.names import body_name

if TYPE_CHECKING:
    from artemis_py.core.order.entry import Entry
    from artemis_py.core.queue.queue import Queue
    from artemis_py.server.store import Store


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """All of it was true in the same turn. A queue that does not exist has 0 of everything."""

    exists: bool = False
    count: int = 0
    """Messages that are ready, in delivery, scheduled or in pages."""
    ready: int = 0
    delivering: int = 0
    """Sent to a consumer, and not settled."""
    scheduled: int = 0
    """Not before their time: scheduled messages, and redeliveries that are delayed."""
    paged: int = 0
    """In pages, and not in memory."""
    consumers: int = 0
    """Without browsers."""
    added: int = 0
    """All that ever came. This and the next four count since the queue was created, or the broker started."""
    acknowledged: int = 0
    expired: int = 0
    killed: int = 0
    """Dead letters, and what was purged or dropped."""
    replaced: int = 0
    """Given up for a newer value of the same key."""

    def differences(self, wanted: dict[str, int]) -> list[str]:
        """What is not as wanted, in words. Raises TypeError for a name that is no field."""
        unknown = wanted.keys() - {field.name for field in fields(self)}
        if unknown:
            names = ", ".join(field.name for field in fields(self))
            raise TypeError(f"a queue has no {', '.join(sorted(unknown))}; it has {names}")
        return [
            f"{name} is {getattr(self, name)}, not {value}"
            for name, value in wanted.items()
            if getattr(self, name) != value
        ]

    def __str__(self) -> str:
        if not self.exists:
            return "does not exist"
        now = [(self.ready, "ready"), (self.delivering, "in delivery"), (self.scheduled, "scheduled")]
        now += [(self.paged, "in pages")]
        before = [(self.acknowledged, "acknowledged"), (self.expired, "expired"), (self.killed, "killed")]
        before += [(self.replaced, "replaced")]
        held = messages(self.count)
        shown = ", ".join(f"{count} {what}" for count, what in now if count)
        gone = ", ".join(f"{count} {what}" for count, what in before if count)
        parts = [f"{held} ({shown})" if shown else held]
        if self.added != self.count or gone:
            parts.append(f"{self.added} came" + (f", {gone}" if gone else ""))
        return "; ".join(parts)


def state_of(queue: Queue | None) -> QueueState:
    """Look at a queue; only in the thread of the broker."""
    if queue is None:
        return QueueState()
    contents, counters = queue.contents, queue.contents.counters
    return QueueState(
        exists=True,
        count=contents.message_count,
        ready=contents.order.count,
        delivering=contents.delivering_count,
        scheduled=len(contents.scheduled),
        paged=contents.paged.count,
        consumers=queue.taker_count,
        added=counters.added,
        acknowledged=counters.acknowledged,
        expired=counters.expired,
        killed=counters.killed,
        replaced=counters.replaced,
    )


# ---- messages --------------------------------------------------------------------------------------------------------


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
