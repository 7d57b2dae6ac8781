"""A queue: entries on their way from an address to consumers.

It is composed of parts, which own what they change and share its state (:mod:`artemis_py.core.queue.state`). ``Queue``
is the list of verbs that others may use; ``arrivals`` has those by which messages get on it. It does not route and does
not know sessions or frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from artemis_py.config.tables.declarations import Origin
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.config.tables.views import View
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer, ConsumerDefaults
from artemis_py.core.events import SET_ASIDE, described
from artemis_py.core.order.entry import ABANDONED, NACKED, Entry
from artemis_py.core.pages import ReadAhead
from artemis_py.core.queue.acknowledge import (
    AcknowledgeByFilter,
    AcknowledgeUpTo,
    SelectedMessages,
    still_there,
    take_late,
    take_leased,
)
from artemis_py.core.queue.alerts import AlertWatch
from artemis_py.core.queue.arrivals import AfterEnqueue, Arrivals, QueueTasks
from artemis_py.core.queue.consumers import ConsumerRegistry, Exclusivity
from artemis_py.core.queue.delivery import AfterRemoval, Delivery, StallDetection
from artemis_py.core.queue.depaging import QueuePages
from artemis_py.core.queue.expiry import ExpiryScan, ForcedExpiry, Removal
from artemis_py.core.queue.lease_expiry import LeaseExpiry
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.messages import DeferredAcks
from artemis_py.core.queue.recovery_point import Recovery
from artemis_py.core.queue.release import Release
from artemis_py.core.queue.scheduled import DueEntries
from artemis_py.core.queue.state import QueueState
from artemis_py.core.queue_reference import AutoDelete
from artemis_py.core.tasks import Task
from artemis_py.message import Message
from artemis_py.record_log import Actor, Depth
from artemis_py.selector import Selector

_NO_ATTRIBUTES: Final[Mapping[str, object]] = {}


@final
class Queue:
    """One queue. A verb that may take longer than a turn returns its unfinished work, or None when it is done."""

    __slots__ = (
        "__weakref__", "_expiry", "_lease_expiry", "activation", "address", "after_enqueue", "after_removal", "alerts",
        "arrivals", "attributes", "auto_created", "auto_delete", "configured", "consumer_defaults",
        "consumer_registry", "contents", "delivery", "distribution", "durable", "enabled", "filling", "flow", "gate",
        "grouping", "host", "id", "name", "no_local", "non_destructive", "origin", "own", "pages",
        "purge_on_no_consumers", "recovery", "reference", "ring_size_changed", "routing_type", "selector",
        "stall_detection", "state", "tasks", "tells_bookmarks", "temporary", "view", "wake_ups",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - the recipe names each attribute
        self,
        state: QueueState,
        read_ahead: ReadAhead,
        *,
        routing_type: str,
        own: QueueSettings,
        selector: Selector | None = None,
        non_destructive: bool = False,
        consumers_max: int = -1,
        purge_on_no_consumers: bool = False,
        enabled: bool = True,
        auto_created: bool = False,
        temporary: bool = False,
        exclusivity: Exclusivity | None = None,
        consumer_defaults: ConsumerDefaults | None = None,
        attributes: Mapping[str, object] | None = None,
        view: View | None = None,
        recovery: Recovery | None = None,
        tells_bookmarks: bool = False,
    ) -> None:
        reference, host = state.reference, state.host
        self.state = state
        self.host = host
        self.reference = reference
        self.id = reference.id
        self.name = reference.name
        self.address = reference.address
        self.durable = reference.durable
        self.contents = state.contents
        self.flow = state.flow
        self.grouping = state.grouping
        self.distribution = state.distribution
        self.gate = state.gate
        self.wake_ups, self.activation = state.wake_ups, state.activation
        alerts = reference.rules.alerts
        self.alerts = None if alerts is None else AlertWatch(reference, host, state.contents, alerts)
        self.pages = QueuePages(state, self.alerts, read_ahead)
        self.after_removal = AfterRemoval(state, self.pages.reading)
        self.stall_detection = StallDetection(state) if state.contents.deferred_acks is not None else None
        """Watches backlogs; None on a queue where nobody asks for any."""
        self.delivery = Delivery(state, self.pages, self.after_removal, self.stall_detection)
        self.after_enqueue = AfterEnqueue(state, self.delivery, self.after_removal)
        self.tasks = QueueTasks(state, self.after_enqueue, self.after_removal)
        self.arrivals = Arrivals(state, self.pages, self.after_enqueue, self.after_removal, self.alerts)
        self.consumer_registry = ConsumerRegistry(
            state, exclusivity or Exclusivity(), self.pages, self.after_enqueue, self.after_removal, self.tasks,
            consumers_max=consumers_max, shows_returns=non_destructive,
        )  # fmt: skip
        self.routing_type = routing_type
        self.selector = selector
        self.non_destructive = non_destructive
        self.purge_on_no_consumers = purge_on_no_consumers
        self.enabled = enabled
        self.own = own
        """What it is composed from, and was changed to since; None: composed by hand."""
        self.auto_created = auto_created
        self.configured = False
        """Did broker.xml declare it?"""
        self.temporary = temporary
        self.consumer_defaults = consumer_defaults or ConsumerDefaults()
        self.attributes: Mapping[str, object] = attributes or _NO_ATTRIBUTES
        """Attributes written on the queue itself. A restart needs them when broker.xml no longer declares the queue."""
        self.auto_delete: AutoDelete | None = None
        """What the queue says itself of its end; None: the address-settings say it."""
        self.origin: Origin | None = None
        """Where the file declares it; None: nowhere."""
        self.view = view
        """What the queue reads beside its own address; None: nothing."""
        self.recovery = recovery
        """From where in the log it began; None: from nowhere, and nobody will ask."""
        self.filling: Recovery | None = None
        """The same while it is being filled from there."""
        self.no_local = 0
        """The connection whose messages do not enter; 0 for none."""
        self.tells_bookmarks = tells_bookmarks
        """Do all consumers get the bookmarks of messages? So it is on queues with an attribute of AMPS; on others a
        consumer has to ask for them.
        """
        self.ring_size_changed: int | None = None
        """The ring-size set while the broker runs; None while the configured one holds."""
        self._expiry: Task | None = None
        """The task that removes expired entries, if one is unfinished."""
        self._lease_expiry: Task | None = None
        """The task that ends leases, if one is unfinished."""

    # ---- what others ask -------------------------------------------------------------------------

    @property
    def deleted(self) -> bool:
        """Is the queue deleted?"""
        return self.reference.deleted

    @property
    def message_count(self) -> int:
        """Messages that are ready, in delivery, scheduled or in pages."""
        return self.contents.message_count

    @property
    def unheld_count(self) -> int:
        """Messages that no consumer has: ready, scheduled or in pages."""
        contents = self.contents
        return contents.ready_count + len(contents.scheduled) + contents.paged.count

    @property
    def consumer_count(self) -> int:
        """Attached consumers."""
        return len(self.distribution.consumers)

    @property
    def taker_count(self) -> int:
        """Attached consumers without browsers. Limits and counts of consumers mean these."""
        return self.distribution.taker_count

    @property
    def keeps_messages(self) -> bool:
        """Do its messages wait for nobody? So it is with rings, and where reading takes nothing away."""
        overflow = self.flow.overflow
        return overflow.is_ring or overflow.sheds or self.non_destructive

    @property
    def may_go_on(self) -> bool:
        """May a sender that was made to wait go on?"""
        return self.flow.may_go_on

    @property
    def passes_on(self) -> bool:
        """Does what is sent to the queue's own address go to another one?"""
        return self.view is not None and self.view.target != self.address.name

    @property
    def is_held(self) -> bool:
        """Is dispatch held back because entries are being moved?"""
        return self.gate.is_held

    @property
    def accepts_all(self) -> bool:
        """Does the queue take every message routed to it? It does if it is enabled and has no filter, no no-local and
        no ``purge-on-no-consumers``, and if it is not being filled from the log.
        """
        if self.selector is not None or self.filling is not None:
            return False
        return self.enabled and not (self.purge_on_no_consumers or self.no_local)

    def accepts(self, message: Message) -> bool:
        """Does this message enter the queue?"""
        return self.is_open_to(message) and (self.selector is None or self.selector.matches(message.lookup))

    def is_open_to(self, message: Message) -> bool:
        """Does this message enter the queue, whatever its filter says?"""
        if not self.enabled or (self.purge_on_no_consumers and not self.taker_count):
            return False
        if self.filling is not None and message.head.persistent:
            self.filling.note(message)  # it comes from the log
            return False
        return not self.no_local or message.origin != self.no_local

    def depth(self) -> Depth | None:
        """How many persistent messages a durable queue holds; None when it holds none or is not durable."""
        counters = self.contents.counters
        if not self.durable or self.temporary or not counters.durable_count:
            return None
        scheduled_count = counters.scheduled_durable_count
        return Depth(
            self.id, counters.durable_count, counters.durable_size_bytes, counters.held_durable_count, scheduled_count
        )

    # ---- dispatch --------------------------------------------------------------------------------

    def dispatch(self, now_ms: int) -> None:
        """Offer ready entries to consumers until the turn's budget is spent."""
        if not self.gate.is_held:
            self.delivery.run(now_ms, 0)
            if self.contents.has_left or self.grouping.groups is not None:
                self.after_removal.run()

    def offer_first(self, now_ms: int) -> None:
        """Offer ready entries to consumers before anything is refused or dropped, even when the budget is spent."""
        self.after_enqueue.offer_first(now_ms)

    def sent(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The entries of a consumer's outbox were written. For a consumer that settles on send they are settled."""
        consumer.statistics.note_delivered(len(entries), self.host.turn_ms, settles=not consumer.acks)
        if consumer.actor is not None:
            durable = [entry.message for entry in entries if entry.message.head.persistent]
            if durable:
                self.host.log.audit.delivered(self.id, durable, consumer.actor)
        contents = self.contents
        if self.stall_detection is not None and consumer.destructive:
            self.stall_detection.note_sent()
        if consumer.barrier is not None:
            self._sent_barrier(consumer)
        elif not consumer.settles:
            if contents.leases is not None and consumer.destructive:
                contents.leases.begin(entries, consumer)
        elif consumer.destructive:
            messages = [entry.message for entry in entries]
            contents.unpick(entries)
            try:
                contents.acknowledge(messages, consumer.actor)
            except Exception:
                for entry in entries:
                    contents.put_back(entry)
                raise
            finally:
                self.grouping.settle(messages)
            self.after_removal.run()

    def _sent_barrier(self, consumer: Consumer) -> None:
        activation = self.activation
        assert activation is not None
        activation.note_written(consumer)
        self.after_removal.run()

    # ---- settling and returning ------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer settled entries that it let go."""
        self.state.acknowledge(consumer, entries)
        self.after_removal.run()

    def acknowledge_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> Task | None:
        """The consumer settled a held message and all that were sent to it before. Returns the unfinished work, if
        any.
        """
        budget = self.host.budget
        if self.tasks.may_go_on and len(consumer.held) <= budget.left:
            entries = consumer.let_go_up_to(message_id)
            budget.spend(len(entries))
            self.acknowledge(consumer, entries)
            return None
        return self.tasks.begin(AcknowledgeUpTo(self.state, consumer, message_id), now_ms)

    def refuse_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> Task | None:
        """The consumer refuses a held message and all that were sent to it before. Returns the unfinished work, if
        any. What was sent at most once does not come back.
        """
        if consumer.settles:
            return self.acknowledge_up_to(consumer, message_id, now_ms)
        return self.tasks.begin(Release(self.state, consumer, None, failed=True, up_to=message_id), now_ms)

    def expire_held(self, consumer: Consumer, entries: list[Entry], now_ms: int) -> Task | None:
        """The consumer has entries expire that it let go, whatever their date. Returns the unfinished work, if any."""
        return self.tasks.begin(ForcedExpiry(self.state, consumer, entries), now_ms)

    def expire_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> Task | None:
        """The consumer has a held message expire, and all that were sent to it before. Returns the unfinished work, if
        any.
        """
        return self.tasks.begin(ForcedExpiry(self.state, consumer, up_to=message_id), now_ms)

    def release(
        self,
        consumer: Consumer,
        entries: list[Entry],
        *,
        failed: bool,
        now_ms: int,
        cause: str = NACKED,
        sent: bool = True,
        dead: str = "",
    ) -> Task | None:
        """Take back entries that the consumer let go; see ``Release``. Returns the unfinished work, if any. What was
        sent at most once does not come back.
        """
        if consumer.settles:
            self.acknowledge(consumer, entries)
            return None
        work = Release(self.state, consumer, entries, failed=failed, cause=cause, sent=sent, dead=dead)
        return self.tasks.begin(work, now_ms)

    def know_holders(self) -> None:
        """Know from now on who holds which message, because a client settles by bookmarks; queues with an attribute of
        AMPS always do. What others hold it has to leave alone, as they know nothing of leases.
        """
        contents = self.contents
        if contents.deferred_acks is not None:
            return
        contents.deferred_acks = DeferredAcks(self.address.memory.holdings)
        contents.leases = Leases(self.id, self.host, 0, is_strict=True)
        for consumer in self.distribution.consumers:
            if consumer.destructive and not consumer.settles:
                self.host.budget.spend(len(consumer.held))
                contents.leases.begin(list(consumer.held.values()), consumer)

    def take_leased(self, bookmarks: Sequence[int], connection: int) -> tuple[list[tuple[Consumer, Entry]], list[int]]:
        """A client settles the messages with these bookmarks; see ``acknowledge.take_leased``."""
        return take_leased(self.state, bookmarks, connection)

    def still_there(self, bookmarks: Sequence[int]) -> list[int]:
        """Which of these bookmarks are on the queue after a client settled them; see ``acknowledge.still_there``."""
        return still_there(self.state, bookmarks)

    def acknowledge_by_filter(
        self, chosen: SelectedMessages, outcome: str, now_ms: int, *, connection: int, actor: Actor | None = None
    ) -> Task | None:
        """A client settles the messages that it has selected; see ``AcknowledgeByFilter``. Returns the unfinished work,
        if any.
        """
        return self.tasks.begin(AcknowledgeByFilter(self.state, chosen, outcome, connection, actor), now_ms)

    def take_late(self, consumer: Consumer, message_id: int, *, refuses: bool) -> tuple[Consumer, Entry] | None:
        """A consumer settles a message that it does not hold; see ``acknowledge.take_late``."""
        return take_late(self.state, consumer, message_id, refuses=refuses)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer attaches. Raises LimitError when the queue has its maximum of consumers, or does not admit this
        one.
        """
        self.consumer_registry.attach(consumer, now_ms)

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> Task | None:
        """A consumer leaves, and what it holds comes back. Returns unfinished work, if any."""
        unfinished = self.consumer_registry.detach(consumer, failed=failed, now_ms=now_ms)
        if self.purge_on_no_consumers and not self.taker_count and not consumer.browses:
            unfinished = self.purge(ABANDONED, now_ms) or unfinished
        return unfinished

    def replace(
        self, consumer: Consumer, selector: Selector | None, no_local: int, backlog_max: int, now_ms: int
    ) -> Task | None:
        """A consumer wants other messages from now on. Returns unfinished work, if any."""
        return self.consumer_registry.replace(consumer, selector, no_local, backlog_max, now_ms)

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        self.state.wake(consumer)

    # ---- time ------------------------------------------------------------------------------------

    def release_due(self, entries: list[Entry], now_ms: int, budget: Budget) -> None:
        """Scheduled entries are due, given with the earliest first: they become ready."""
        self.tasks.begin(DueEntries(self.state, entries), now_ms, budget)

    def look_again(self, now_ms: int) -> None:
        """An alarm that the queue has set is due."""
        self.expire_due(now_ms)
        if self.alerts is not None:
            self.alerts.on_alarm(now_ms)
        if self.stall_detection is not None:
            self.stall_detection.on_alarm(now_ms)

    def tick_gate(self, steady_ms: int) -> None:
        """Open the gate if ``delay-before-dispatch`` has ended."""
        if self.gate.tick(steady_ms):
            self.state.note_ready()

    def end_leases(self, now_ms: int) -> None:
        """Take back what consumers have held for too long."""
        leases = self.contents.leases
        if leases is None or (self._lease_expiry is not None and not self._lease_expiry.done):
            return
        steady_ms = self.host.clock.steady_ms(now_ms)
        if leases.is_over(steady_ms):
            self._lease_expiry = self.tasks.begin(LeaseExpiry(self.state, leases, steady_ms), now_ms)
        else:
            leases.set_timer()

    def expire_due(self, now_ms: int) -> None:
        """Remove expired entries, ready or held back. Those in delivery or scheduled stay."""
        first_ms = self.contents.expiry.next_ms
        if first_ms > now_ms:
            self.contents.expiry.set_alarm()
        elif first_ms and (self._expiry is None or self._expiry.done):
            self._expiry = self.tasks.begin(ExpiryScan(self.contents), now_ms)

    def expire_paged(self, now_ms: int) -> None:
        """Remove expired messages in pages. Those that must be read from the disk first follow in later turns."""
        if self.contents.paged.backlogs:
            self.pages.expire(now_ms)
            self.after_removal.run()

    def page_arrived(self, consumer: Consumer | None) -> None:
        """The disk has delivered what the queue, or one of its consumers, waited for."""
        if consumer is None:
            self.wake_ups.wake_dry()
        else:
            self.wake_ups.wake(consumer)
        self.state.note_ready()

    # ---- management ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop dispatch. Arrivals go on."""
        self.gate.paused = True

    def set_aside(self, step: str, error: Exception) -> None:
        """Pause, because a step of the queue raised ``error``, until somebody resumes it or the broker starts again.
        All other queues go on. Raises the error again when the disk failed, which is no queue's fault.
        """
        fields = described(step, error)
        self.pause()
        self.gate.failed_step = step
        self.host.note_event(SET_ASIDE, self.reference, fields, kind=step)

    def resume(self) -> None:
        """Resume dispatch."""
        self.gate.paused = False
        self.gate.failed_step = ""
        self.state.note_ready()

    def purge(self, reason: str, now_ms: int) -> Task | None:
        """Kill every message that is ready, scheduled or in pages (``unheld_count``), for ``reason``. Those in delivery
        stay with their consumers. Returns the unfinished work, if any.
        """
        self.pages.remove_all(reason)
        unfinished = self.tasks.begin(Removal(self.contents, reason, self.host.message_id), now_ms)
        if self.flow.stopped:
            self.flow.resume()
        return unfinished
