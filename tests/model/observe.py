"""The broker under observation: what happens inside one call is written down in order, with two counters as a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from artemis_py.core.consumer import Consumer
from artemis_py.core.dead_letters import Copies
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Message


@dataclass(slots=True)
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
