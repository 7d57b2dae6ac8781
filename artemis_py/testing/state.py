"""What a broker holds at one moment: numbers and messages of a queue, and why it delivers nothing, or is not idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.core.queue.why import messages
from artemis_py.core.tasks import WAIT
from artemis_py.management.why.not_delivered import about_no_queue, not_delivered
from artemis_py.management.why.question import Question
from artemis_py.message import LargeBody
from artemis_py.storage.format.names import body_name

if TYPE_CHECKING:
    from artemis_py.core.order.entry import Entry
    from artemis_py.core.queue.queue import Queue
    from artemis_py.server.server import Server
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


# ---- what a broker does now, in words --------------------------------------------------------------------------------


def why_not_delivered(server: Server, name: str) -> list[str]:
    """Sentences about the queue of this name; empty if it has nothing to deliver. Only in the broker's thread."""
    queue = server.broker.queues.get(name)
    if server.failure is not None:
        return [f"the broker has failed: {server.failure}"]
    if queue is None:
        return about_no_queue(server.broker, name)
    question = Question(server.managed, queue=queue)
    for step in not_delivered(question, queue):
        if step is WAIT:  # another turn can only come when this one has ended
            break
    return [finding.text for finding in question.findings]


def why_not_idle(server: Server) -> list[str]:
    """What the broker still has to do by itself, or waits for a client to do; empty if it is idle. Only in the thread
    of the broker.
    """
    broker, turns = server.broker, server.turns
    if server.failure is not None:
        return [f"it has failed: {server.failure}"]
    found: list[str] = []
    if turns.input.scheduler.count or broker.has_ready or broker.copy_maker.waiting:
        found.append("a turn is due")
    for connection in server.stats.connections:
        if connection.session.out or connection.socket.waiting_bytes or connection.is_dirty:
            found.append(f"frames wait for the client {connection.peer}")
        if connection.state == "blocked":
            found.append(f"the client {connection.peer} waits for room")
    for queue in broker.queues.values():
        if queue.contents.delivering_count:
            found.append(f"queue {queue.name}: {messages(queue.contents.delivering_count)} in delivery")
    return found


def story_of(server: Server) -> str:
    """A paragraph for each queue that has, had or could have messages. Only in the thread of the broker."""
    lines = [f"{len(server.stats.connections)} connections, {len(server.broker.queues)} queues"]
    for name in sorted(server.broker.queues):
        queue = server.broker.queues[name]
        state = state_of(queue)
        if state.added or state.consumers:
            lines.append(f"queue {name}: {state}; {state.consumers} consumers")
            lines += [f"  {line}" for line in why_not_delivered(server, name)]
    return "\n".join(lines)


def why_blocked(server: Server, address: str) -> str:
    """Why an address takes no message now."""
    name = address.rpartition("/")[2]
    found = server.broker.addresses.get(name)
    if found is not None and found.disk_full:
        return f"the disk is full, and the disk-full-policy of {name} is {found.full_policy}"
    if found is not None and not found.may_go_on:
        held = f"it holds {found.account.message_count} messages, {found.size_bytes} bytes"
        return f"the address {name} is full, and its address-full-policy is {found.full_policy}: {held}"
    full = [queue.name for queue in server.broker.queues.values() if not queue.may_go_on]
    return f"these queues are full: {', '.join(full)}" if full else "it has not answered"
