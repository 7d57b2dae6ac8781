"""The broker: one deterministic state machine. Requests and the time go in; entries in consumers' outboxes come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.addresses.enqueue import Enqueuer
from artemis_py.core.addresses.routing_table import Bindings, Route
from artemis_py.core.budget import Budget
from artemis_py.core.clock import NEVER_MS
from artemis_py.core.consumer import Consumer
from artemis_py.core.destinations.amend import AddressChanges, QueueChanges, QueueOperations, SettingsChanges
from artemis_py.core.destinations.auto_create import Resolver
from artemis_py.core.destinations.diverts import Diverts
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.due_timers import DueTimers
from artemis_py.core.events import SUBSCRIBED, UNSUBSCRIBED
from artemis_py.core.memory import Memory
from artemis_py.core.notification_fields import tell_consumer
from artemis_py.core.notifications import CONSUMER_CLOSED, CONSUMER_CREATED
from artemis_py.core.operations.import_messages import Importing
from artemis_py.core.operations.messages import MessageOperations
from artemis_py.core.pages import Streams
from artemis_py.core.publish.copies import CopyMaker
from artemis_py.core.publish.duplicates import Commits, Duplicates
from artemis_py.core.publish.publish import CopyPublisher, Publisher, Router
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.reaper import Reaper
from artemis_py.core.recovery import Deployment, restore_ids, restore_messages, restore_streams, what_goes
from artemis_py.core.reload import Redeployment
from artemis_py.core.sampler import Sampler
from artemis_py.core.slow_consumers import SlowConsumers
from artemis_py.core.tasks import Task
from artemis_py.errors import Problem
from artemis_py.message import Head, LargeBody, Message
from artemis_py.record_log import Depth, PageLog, RecordLog, RecoveredState

_TICK_PARTS: Final = 4
"""One in this many of a turn's units is kept for unfinished work and for what is due, however much was read."""
_DISPATCH_PARTS: Final = 2
"""One in this many of a turn's units is kept for dispatch."""


@final
class Broker:
    """Holds the parts, and runs the steps of a turn. It does no I/O; the server drives it once a turn (see
    ``server/turns.py``).

    ``kept`` is what the files say of the time before a restart. ``global_max_bytes`` overrides ``global-max-size``.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log: RecordLog,
        now_ms: int,
        kept: RecoveredState | None = None,
        pages: PageLog | None = None,
        global_max_bytes: int | None = None,
    ) -> None:
        self.name = config.name
        self.started = False
        """True until ``finish``."""
        self.log = log
        host = self.host = QueueHost(log)
        kept = kept or RecoveredState()
        self.settings_changes = SettingsChanges(host, config, kept.configured)
        config = self.config = self.settings_changes.config
        """In force: that of the files, with the address-settings of operators."""
        host.dead_letter_addresses.use(config.address_settings)
        self.clock, self.budget, self.agenda = host.clock, host.budget, host.agenda
        self.timers, self.events, self.notifications = host.timers, host.events, host.notifications
        limit_bytes = config.global_max_size if global_max_bytes is None else global_max_bytes
        self.memory = Memory(limit_bytes, config.global_max_messages)
        self.holdings = self.memory.holdings
        """What clients make the broker hold in memory."""
        bindings = self.bindings = Bindings(config.wildcards)
        self.addresses, self.queues, self.by_id = bindings.addresses, bindings.queues, bindings.by_id
        self.streams = Streams(log, host.events, pages)
        self.enqueuer = Enqueuer(host, self.streams)
        self.registry = Registry(config, host, bindings, self.streams, self.memory, self.enqueuer)
        self.diverts = Diverts(host, self.registry, kept.configured)
        self.quota = self.registry.quota
        self.resolver = Resolver(config, self.registry)
        self.duplicates = Duplicates(log, host.outcomes, config.id_cache_size, keeps=config.persist_id_cache)
        self.commits = Commits(config.id_cache_size, self.holdings, keeps=config.persist_id_cache)
        self.copy_maker = CopyMaker(host.events, host.outcomes)
        router = Router(host, bindings, self.resolver, self.duplicates, self.copy_maker, self.enqueuer)
        self.publisher = Publisher(host, bindings, self.duplicates, router)
        self.copy_publisher = CopyPublisher(
            host, bindings, self.resolver, self.copy_maker, self.publisher, self.enqueuer, self.duplicates
        )
        self.queue_operations = QueueOperations(host, self.registry)
        self.queue_changes = QueueChanges(host, self.registry)
        self.address_changes = AddressChanges(host, self.registry)
        self.message_operations = MessageOperations(host, bindings, self.resolver, self.enqueuer, self.publisher)
        self.importing = Importing(host, bindings, self.enqueuer, self.duplicates)
        self._due_timers = DueTimers(host, bindings.by_id)
        self._reaper = Reaper(host, self.registry, config, now_ms)
        self.sampler = Sampler(host, bindings)
        self.slow_consumers = SlowConsumers(host, bindings.by_id)
        self._consumer_id = 0
        self.kept_back: dict[str, Problem] = {}
        """What the file says of queues, by name, and the start did not do, because they have messages."""
        self.lost: list[Problem] = []
        """Queues that do not keep all that the start has recovered: there is no room, or it is too old."""
        self._start(kept, now_ms)

    def _start(self, kept: RecoveredState, now_ms: int) -> None:
        """Create what is declared or was there, and put back what survived a restart."""
        self.host.turn_ms = now_ms
        self.host.message_id = kept.message_id
        self.registry.queue_id = kept.queue_id
        deployment = Deployment(self.config, self.registry, self.diverts, kept)
        deployment.run()
        self.kept_back = deployment.kept_back
        restore_ids(kept, self.bindings, self.duplicates, self.commits)
        lost = restore_messages(kept, self.bindings, now_ms)
        restore_streams(kept.streams, kept.stream, self.registry, self.streams)
        self.lost = [*lost, *what_goes(self.queues.values(), now_ms)]
        self.log.now_ms = now_ms
        self._reaper.delete_unused_at_start(now_ms)
        self.registry.give_retained()
        self.started = True

    def redeploy(
        self, config: BrokerConfig, now_ms: Callable[[], int], disconnect: Callable[[int, str], None]
    ) -> Redeployment:
        """Another configuration counts for what is created from now on. Its steps bring it into force for what is
        there; ``disconnect`` ends the connections of this number.
        """
        self.settings_changes.declared = config
        return self.settle(now_ms, disconnect)

    def settle(self, now_ms: Callable[[], int], disconnect: Callable[[int, str], None]) -> Redeployment:
        """The same with the files as they are in force, where operators have changed address-settings."""
        config = self.config = self.registry.config = self.settings_changes.config
        self.resolver.use(config)
        self.host.dead_letter_addresses.use(config.address_settings)
        return Redeployment(
            self.host, self.registry, self.diverts, self.duplicates, self.slow_consumers, config, now_ms, disconnect
        )

    @property
    def memory_bytes(self) -> int:
        """What the messages of all addresses hold in memory."""
        return self.memory.account.size_bytes

    # ---- clients ---------------------------------------------------------------------------------

    def message(
        self, route: Route, head: Head, body: bytes | LargeBody, now_ms: int, expires_ms: int = 0, origin: int = 0
    ) -> Message:
        """A new message for a route."""
        number, account = self.host.next_message_id(), route.address.account
        return Message(route.head_of(head), body, number, now_ms, expires_ms, account, origin)

    def next_consumer_id(self) -> int:
        """A number that no consumer has had."""
        self._consumer_id += 1
        return self._consumer_id

    def note_event(self, code: str, queue: Queue, fields: dict[str, str | int], *, kind: str = "") -> None:
        """Something happened to a queue that belongs in the operational log."""
        self.host.note_event(code, queue.reference, fields, kind=kind)

    def attach(self, queue: Queue, consumer: Consumer, now_ms: int) -> None:
        """Connect a consumer to a queue. Raises LimitError at ``max-consumers``, and where the queue belongs to
        others.
        """
        exclusivity = queue.consumer_registry.exclusivity
        owner = exclusivity.owner
        kind = "browser" if consumer.browses else "consumer"
        selector = "" if consumer.selector is None else consumer.selector.text
        fields = {"consumer": consumer.id, "kind": kind, "selector": selector, **consumer.reader.who}
        queue.attach(consumer, now_ms)
        try:
            self.note_event(SUBSCRIBED, queue, fields, kind=str(consumer.id))
            if self.notifications.is_heard:
                tell_consumer(self.notifications, CONSUMER_CREATED, queue, consumer)
            is_first = not consumer.browses and self.registry.begin_use(queue)
            if is_first or (exclusivity.outlives_consumers and owner is None):
                self.registry.note_queue(queue)
            self.slow_consumers.note_consumer(queue, consumer, now_ms)
            if queue.gate.opens_at_ms:
                self.timers.gates.set(queue.id, queue.gate.opens_at_ms)
        except Exception:  # a consumer that no session knows would be waited for
            self.detach(queue, consumer, failed=False, now_ms=now_ms)
            raise

    def detach(self, queue: Queue, consumer: Consumer, *, failed: bool, now_ms: int) -> Task | None:
        """Disconnect a consumer; a temporary queue goes with its last one. Returns the work that is left, None when all
        is done.
        """
        if queue.deleted:
            queue.state.record_left(consumer, failed=failed)
            return None
        unfinished: Task | None = None
        try:
            unfinished = queue.detach(consumer, failed=failed, now_ms=now_ms)
        except Exception as error:
            queue.set_aside("detach", error)
        who = {"consumer": consumer.id, **consumer.reader.who}
        self.note_event(UNSUBSCRIBED, queue, who, kind=str(consumer.id))
        if self.notifications.is_heard:
            tell_consumer(self.notifications, CONSUMER_CLOSED, queue, consumer)
        if queue.temporary and not queue.consumer_count:
            unfinished = self.registry.delete_queue(queue, now_ms) or unfinished
        return unfinished

    def take_outgoing(self) -> list[Consumer]:
        """Consumers whose outbox is to be written out; they are forgotten here."""
        outgoing = self.host.outgoing
        if outgoing:
            self.host.outgoing = []
        return outgoing

    # ---- the steps of a turn ---------------------------------------------------------------------

    def begin_turn(self, units: int, now_ms: int) -> None:
        """A turn begins, with a budget of so many units."""
        budget = self.budget
        budget.left = budget.turn_units = units
        self.host.turn_ms = now_ms

    def take_fetched_pages(self) -> None:
        """Give page readers the parts that were fetched."""
        if self.streams.files is None:
            return
        for chunk in self.streams.files.arrivals():
            stream = self.streams.by_number.get(chunk.page.stream)
            for reader in () if stream is None else stream.arrived(chunk):
                queue = self.by_id.get(reader.queue.id)
                if queue is None:
                    continue
                try:
                    queue.page_arrived(reader.consumer)
                except Exception as error:
                    queue.set_aside("page", error)

    def tick(self, now_ms: int) -> None:
        """Do what is due at ``now_ms``: schedules, redelivery delays, gates, expiry scans, deletions."""
        self.log.now_ms = now_ms
        is_due = self.clock.due_ms <= now_ms - self.clock.shift_ms
        if not is_due and not self.agenda.tasks:
            return
        self.budget.allow(_TICK_PARTS)
        if is_due:
            self.timers.look_at_clock(now_ms)
            if self._due_timers.run(now_ms):
                self._reaper.run(now_ms)
                self.sampler.run(now_ms)
                self.slow_consumers.run(now_ms)
        if self.agenda.tasks:
            share = self.budget.lend()
            self._work_off(share, now_ms)
            self.budget.take_back(share)

    def _work_off(self, budget: Budget, now_ms: int) -> None:
        """Go on with the tasks on the agenda."""
        self.agenda.run(budget, now_ms)
        while self.agenda.broken:
            broken = self.agenda.broken.pop()
            self.step_broke_off(now_ms)
            self.host.give_up(broken.queue_name, broken.title, broken.error)

    def dispatch(self, now_ms: int) -> None:
        """Offer what is ready to consumers, and publish the copies that this and the turn so far brought forth."""
        budget = self.budget
        if budget.left < budget.turn_units // _DISPATCH_PARTS:
            budget.allow(_DISPATCH_PARTS)
        ready = self.host.ready
        for _ in range(len(ready)):
            reference = ready.popleft()
            reference.noted_ready = False
            queue = self.by_id.get(reference.id)
            if queue is not None:
                try:
                    queue.dispatch(now_ms)
                except Exception as error:
                    queue.set_aside("dispatch", error)
            if budget.left <= 0:
                break
        copies = self.host.copies
        if copies.is_open or copies.dead or copies.expired or copies.due or self.copy_maker.waiting:
            self.copy_publisher.flush(now_ms)
        self.log.message_id = self.host.message_id
        self.log.queue_id = self.registry.queue_id

    def step_broke_off(self, now_ms: int) -> None:
        """Somebody's request broke off half done. What it has done so far stands, in the log too, and what others do is
        no part of it.
        """
        self.copy_publisher.flush(now_ms)
        self.log.close_groups()

    def end_turn(self) -> None:
        """The turn is over: write into a retained log what its readers cannot work out from its other records."""
        if self.enqueuer.begun:
            self.enqueuer.take_begun()  # copies for which nobody waits
        audit = self.log.audit
        if audit.is_enabled and audit.end_turn():
            audit.depths(depths_of(self.queues.values(), self.enqueuer.coming()))

    def finish(self, now_ms: int) -> None:
        """The broker stops: carry out to its end what was decided."""
        self.message_operations.stop()
        unlimited = Budget()
        while self.agenda.tasks:
            self._work_off(unlimited, now_ms)
        self.copy_publisher.flush(now_ms)
        self.started = False

    @property
    def has_ready(self) -> bool:
        """Is there something left to do in another turn?"""
        now_ms = self.log.now_ms
        return bool(self.host.ready or self.agenda.tasks) or self.clock.due_ms <= now_ms - self.clock.shift_ms

    def next_due_ms(self) -> int | None:
        """The date at which something is to be done next if nobody sets the clock until then, or None."""
        clock = self.clock
        return None if clock.due_ms == NEVER_MS else clock.date_ms(clock.due_ms)


# ---- depths ----------------------------------------------------------------------------------------------------------
#
# How many messages each queue holds, for a retained log.


def depths_of(queues: Iterable[Queue], coming: dict[int, list[int]]) -> list[Depth]:
    """The depths of durable queues that hold persistent messages. ``coming`` counts messages that are logged for a
    queue and not on it yet (``FanOut.add_to``): for a reader of the log the queue has them.
    """
    if not coming:
        return [depth for queue in queues if (depth := queue.depth()) is not None]
    depths: list[Depth] = []
    for queue in queues:
        depth = queue.depth()
        more = coming.get(queue.id)
        if more is not None and not queue.temporary:
            count, size_bytes, scheduled_count = more
            here = depth or Depth(queue.id, 0, 0, 0, 0)
            depth = Depth(
                queue.id,
                here.count + count,
                here.size_bytes + size_bytes,
                here.delivering_count,
                here.scheduled_count + scheduled_count,
            )
        if depth is not None:
            depths.append(depth)
    return depths
