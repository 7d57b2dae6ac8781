"""The broker under observation: what happens inside one call is written down in order, with two counters as a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.dead_letters import Copies
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Message
from artemis_py.record_log import Actor, MemoryLog


@dataclass(frozen=True, slots=True)
class Event:
    """A delivery (``consumer_id``) or an expiry (None). ``added`` and ``replaced`` are the queue's counts at that time:
    they tell which arrival came before, and whether the ring had trimmed yet. ``senders_wait``: flow control had begun.
    ``outdated``: the values that must not come back, when a message expired.
    """

    queue_name: str
    message_id: int
    consumer_id: int | None
    added: int
    replaced: int
    senders_wait: bool
    is_barrier: bool = False
    outdated: frozenset[int] = frozenset()


def note(events: list[Event], queue: Queue, message: Message, consumer_id: int | None = None, **more: Any) -> None:
    """Write down that a consumer takes a message, or that it expires."""
    counters, waits = queue.contents.counters, queue.flow.stopped
    events.append(Event(queue.name, message.id, consumer_id, counters.added, counters.replaced, waits, **more))


class WatchedConsumer(Consumer):
    """Tells of each entry that it takes."""

    tell: Callable[..., None]

    def take(self, entry: Entry) -> None:
        self.tell(entry, is_barrier=False)
        super().take(entry)

    def take_barrier(self, entry: Entry) -> None:
        self.tell(entry, is_barrier=True)
        super().take_barrier(entry)


class ObservedCopies(Copies):
    """Notes each message that expires, in ``events``."""

    queues: dict[int, Queue]
    events: list[Event]

    def note_expired(self, queue: QueueReference, message: Message) -> None:
        """Note, and go on."""
        observed = self.queues[queue.id]
        last_values = observed.contents.last_values
        outdated = frozenset() if last_values is None else frozenset(last_values._outdated)
        note(self.events, observed, message, outdated=outdated)
        super().note_expired(queue, message)


def observe(broker: Broker, events: list[Event]) -> None:
    """Note each message that expires from now on."""
    copies = ObservedCopies(broker.log)
    copies.queues, copies.events = broker.by_id, events
    broker.host.copies = copies


class LiveLog(MemoryLog):
    """A log that knows which durable messages a recovery would find, and in which queues (by number)."""

    def __init__(self) -> None:
        super().__init__()
        self.live: set[tuple[int, int]] = set()
        self.reasons: dict[str, int] = {}

    def _count(self) -> int:
        self.last_lsn += 1
        self.durable_lsn = self.last_lsn
        return self.last_lsn

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        """Remember; nobody may publish a message to a queue twice."""
        for queue_id in queue_ids:
            assert (message.id, queue_id) not in self.live, f"message {message.id} was published to {queue_id} twice"
            self.live.add((message.id, queue_id))
        return self._count()

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        """Forget; nobody may settle what is not there."""
        for message in messages:
            assert (message.id, queue_id) in self.live, f"message {message.id} was settled in {queue_id} twice"
            self.live.remove((message.id, queue_id))
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self._count()
