"""What the parts of a queue share, and what several of its verbs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import DELETED, Entry
from artemis_py.core.queue.barriers import PendingActivator
from artemis_py.core.queue.distribution import Distribution, WakeUps
from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.groups import Grouping
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.overflow import Flow, Overflow
from artemis_py.core.queue.redelivery import Redelivery
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import QueueReference
from artemis_py.paged_messages import PagedMessage


@final
class QueueState:
    """A queue's contents, limits, consumers and gate, with the host that it runs on. ``activation`` is None where every
    message is active when it comes.
    """

    __slots__ = (
        "activation", "contents", "distribution", "flow", "gate", "grouping", "host", "redelivery", "reference",
        "wake_ups",
    )  # fmt: skip

    def __init__(
        self,
        reference: QueueReference,
        host: QueueHost,
        contents: Contents,
        grouping: Grouping,
        *,
        overflow: Overflow,
        distribution: Distribution,
        gate: Gate,
        redelivery: Redelivery,
    ) -> None:
        self.reference = reference
        self.host = host
        self.contents = contents
        self.grouping = grouping
        self.distribution = distribution
        self.gate = gate
        self.redelivery = redelivery
        self.flow = Flow(reference, host, contents, overflow)
        self.wake_ups = WakeUps(distribution, host.budget)
        self.activation: PendingActivator | None = None
        if contents.pending is not None:
            self.activation = PendingActivator(
                reference,
                host,
                contents,
                contents.pending,
                distribution=distribution,
                gate=gate,
                wake_ups=self.wake_ups,
            )

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        if not self.wake_ups.wake(consumer):
            return
        is_awaited = self.activation is not None and self.activation.takes_note_of(consumer)
        if is_awaited or self.contents.has_more:
            self.host.note_ready(self.reference)

    def note_ready(self) -> None:
        """There may be something to dispatch."""
        self.host.note_ready(self.reference)

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer settled entries that it let go."""
        consumer.statistics.note_acknowledged(len(entries), self.host.turn_ms)
        if not consumer.destructive:
            self.contents.has_shown(len(entries))
            return
        if consumer.settles:
            self.confirm(len(entries))
            return
        messages = [entry.message for entry in entries]
        try:
            self.contents.acknowledge_held(messages, consumer.actor)
        except Exception:
            self.reclaim(entries)
            raise
        if self.grouping.groups is not None:
            self.grouping.settle(messages)

    def reclaim(self, entries: Sequence[Entry]) -> None:
        """Put back entries that a consumer has let go: settling them has failed."""
        self.contents.reclaim(entries)
        self.grouping.settle([entry.message for entry in entries])
        self.wake_ups.wake_dry()
        self.note_ready()

    def expire_held(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer had entries expire that it let go. Where nothing is taken away, or nothing comes back, it is an
        acknowledgement.
        """
        if not consumer.destructive or consumer.settles:
            self.acknowledge(consumer, entries)
            return
        messages = [entry.message for entry in entries]
        if self.reference.deleted:
            self.contents.kill_held(messages, DELETED)
            return
        try:
            self.contents.expire_held(messages, consumer.actor)
        except Exception:
            self.reclaim(entries)
            raise
        if self.grouping.groups is not None:
            self.grouping.settle(messages)

    def confirm(self, count: int) -> None:
        """A consumer acknowledged so many messages that left the queue when they were sent: there is room in the
        backlog again, and that is all.
        """
        self.gate.unconfirmed_count -= count
        if self.gate.counts or self.activation is not None:
            self.note_ready()

    def note_attempt(self, entry: Entry, due_ms: int, consumer: Consumer, cause: str) -> None:
        """Record what a restart must know of a failed delivery."""
        message, log, reference = entry.message, self.host.log, self.reference
        if reference.durable and message.head.persistent:
            if isinstance(message, PagedMessage):
                log.page_attempted(reference.id, message, entry.attempts, due_ms, consumer.actor, cause)
            else:
                log.attempted(reference.id, message, entry.attempts, due_ms, consumer.actor, cause)

    def record_left(self, consumer: Consumer, *, failed: bool) -> None:
        """Tell a retained log that a consumer left. What it held is back."""
        if consumer.actor is not None:
            self.host.log.audit.consumer_closed(consumer.actor, failed=failed)
