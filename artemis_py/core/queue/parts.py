"""The parts of a queue, and what several of its verbs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import DELETED, Entry
from artemis_py.core.pages.backlog import ReadAhead
from artemis_py.core.queue.aftermath import Aftermath
from artemis_py.core.queue.alert_watch import AlertWatch
from artemis_py.core.queue.arrivals import Arrivals
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.delivery import Delivery
from artemis_py.core.queue.growth import Growth
from artemis_py.core.queue.hold_up import HoldUp
from artemis_py.core.queue.pages import QueuePages
from artemis_py.core.queue.redelivery import Redelivery
from artemis_py.core.queue.tasks import Tasks
from artemis_py.core.queue.works import QueueWorks
from artemis_py.paged import PagedMessage


@final
class QueueParts:
    """The parts of one queue. Each owns what it changes and knows only parts above it here."""

    __slots__ = (
        "activation", "aftermath", "alerts", "arrivals", "basis", "contents", "delivery", "distribution", "flow",
        "gate", "grouping", "growth", "hold_up", "host", "pages", "redelivery", "reference", "tasks", "waking",
        "works",
    )  # fmt: skip

    def __init__(self, basis: QueueBasis, *, redelivery: Redelivery, read_ahead: ReadAhead) -> None:
        self.basis = basis
        self.reference = basis.reference
        self.host = basis.host
        self.contents = basis.contents
        self.grouping = basis.grouping
        self.distribution = basis.distribution
        self.gate = basis.gate
        self.flow = basis.flow
        self.waking = basis.waking
        self.activation = basis.activation
        self.redelivery = redelivery
        alerts = basis.reference.rules.alerts
        self.alerts = None if alerts is None else AlertWatch(basis.reference, basis.host, basis.contents, alerts)
        self.pages = QueuePages(basis, self.alerts, read_ahead)
        self.works = QueueWorks()
        self.aftermath = Aftermath(basis, self.pages.reading)
        self.hold_up = HoldUp(basis) if basis.contents.deferred is not None else None
        """Watches backlogs; None on a queue where nobody asks for any."""
        self.delivery = Delivery(basis, self.pages, self.aftermath, self.hold_up)
        self.growth = Growth(basis, self.works, self.delivery, self.aftermath)
        self.tasks = Tasks(basis, self.works, self.growth, self.aftermath)
        self.arrivals = Arrivals(basis, self.pages, self.works, self.growth, self.aftermath, self.alerts)

    def note_ready(self) -> None:
        """There may be something to dispatch."""
        self.host.note_ready(self.reference)

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        self.basis.wake(consumer)

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer settled entries that it let go."""
        consumer.dealings.note_acknowledged(len(entries), self.host.turn_ms)
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
        """What was to become of entries that a consumer has let go has failed: they are on the queue again."""
        self.contents.reclaim(entries)
        self.grouping.settle([entry.message for entry in entries])
        self.waking.wake_dry()
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

    def tell_left(self, consumer: Consumer, *, failed: bool) -> None:
        """Tell a retained log that a consumer left. What it held is back."""
        if consumer.actor is not None:
            self.host.log.story.consumer_closed(consumer.actor, failed=failed)
