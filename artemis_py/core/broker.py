"""The broker: one deterministic state machine. Requests and the time go in; entries in consumers' outboxes come out."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.config.settings import BrokerConfig, QueueConfig
from artemis_py.core.address import MULTICAST, Address
from artemis_py.core.commits import NO_ADDRESS
from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import Entry
from artemis_py.core.events import DEAD, DISCARDED, NOT_ROUTED, OPERATION, SUBSCRIBED, UNSUBSCRIBED, Events
from artemis_py.core.queue import Queue
from artemis_py.core.recipe import overflow_for
from artemis_py.core.registry import Registry
from artemis_py.core.router import Batch, Forward, Route, Router
from artemis_py.core.schedule import Schedule
from artemis_py.core.sweep import Sweep
from artemis_py.core.transaction import Publisher
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.message import Head, LargeBody, Message
from artemis_py.records import Keepsake, PageLog, RecordLog

_FORWARD_ROUNDS_MAX: Final = 32


@mypyc_attr(allow_interpreted_subclasses=True)
class Broker(Registry, Publisher):
    """Addresses, queues, routing, dispatch and time. It does no I/O; the server drives it once a turn (see
    ``server/turns.py``).
    """

    def __init__(
        self,
        config: BrokerConfig,
        log: RecordLog,
        now_ms: int,
        kept: Keepsake | None = None,
        pages: PageLog | None = None,
        global_max_bytes: int | None = None,
    ) -> None:
        limit = config.global_max_size if global_max_bytes is None else global_max_bytes
        super().__init__(config, pages, limit)
        self.name = config.name
        self.log = log
        self.started = False
        self.happenings = Events()
        """What the operational log is to tell."""
        self.router = Router(self, config.id_cache_size, keeps_ids=config.persist_id_cache)
        self.outgoing: list[Consumer] = []
        """Consumers whose outbox is to be written out in this turn."""
        self._ready: list[Queue] = []
        self._scheduled: Schedule[tuple[Queue, Entry]] = Schedule()
        self._gates: Schedule[Queue] = Schedule()
        self._alarms: Schedule[Queue] = Schedule()
        self._dead: list[tuple[Queue, Entry]] = []
        self._expired: list[tuple[Queue, Entry]] = []
        self._copying = False
        self._sweep = Sweep(config.address_queue_scan_period, config.message_expiry_scan_period, now_ms)
        self._message_id = 0
        self._consumer_id = 0
        self._temporary_id = 0
        kept = kept or Keepsake()
        self._message_id = kept.message_id
        self.queue_id = kept.queue_id
        self.deploy(kept.queues, kept.addresses)
        self._bindings_changed()
        self._take_back(kept, now_ms)
        log.now_ms = now_ms
        self.give_retained()
        self.started = True

    def _take_back(self, kept: Keepsake, now_ms: int) -> None:
        """Put what survived a restart on its queues again."""
        by_id = {queue.id: queue for queue in self.queues.values()}
        for address_name, seen in kept.duplicate_ids.items():
            if address_name == NO_ADDRESS:
                self.router.commits.take_back(seen)
            address = self.addresses.get(address_name)
            if address is not None:
                self.router.remember_duplicates(address, seen)
        for queue_id, survivors in kept.messages.items():
            queue = by_id.get(queue_id)
            if queue is None:
                continue
            entries: list[tuple[Entry, int]] = []
            for survivor in survivors:
                message = survivor.message
                if not message.refs:
                    message.account = self._address_of(message, queue).account
                    message.account.charge(1, message.memory_bytes)
                entry = Entry(message)
                entry.attempts = survivor.attempts
                entry.redelivered = survivor.attempts > 0
                entries.append((entry, survivor.due_ms))
            queue.take_back(entries, now_ms)
        self.restore_streams(kept.streams)

    # ---- numbers ---------------------------------------------------------------------------------

    def next_message_id(self) -> int:
        self._message_id += 1
        return self._message_id

    @property
    def last_message_id(self) -> int:
        """The highest id that a message has."""
        return self._message_id

    def take_message_ids(self, count: int) -> int:
        """Reserve ``count`` ids; returns the first."""
        first = self._message_id + 1
        self._message_id += count
        return first

    def next_temporary_name(self) -> str:
        """A name for something that lives as long as a connection."""
        self._temporary_id += 1
        return f"temporary-{self._temporary_id}"

    @property
    def memory_bytes(self) -> int:
        """What all addresses hold in memory."""
        return self.memory.account.size_bytes

    # ---- sending ---------------------------------------------------------------------------------

    def current(self, route: Route) -> bool:
        """Is a route still what resolving its destination would give?"""
        return route.generation == self.generation

    def renewed(self, route: Route) -> Route:
        if route.generation == self.generation:
            return route
        return self.route(route.address.name, None if route.queue is None else route.queue.name, route.routing_type)

    def message(
        self, route: Route, head: Head, body: bytes | LargeBody, now_ms: int, expires_ms: int = 0, origin: int = 0
    ) -> Message:
        """A new message for a route."""
        return Message(head, body, self.next_message_id(), now_ms, expires_ms, route.address.account, origin)

    # ---- consuming -------------------------------------------------------------------------------

    def next_consumer_id(self) -> int:
        """A number that no consumer has had."""
        self._consumer_id += 1
        return self._consumer_id

    def attach(self, queue: Queue, consumer: Consumer, now_ms: int) -> None:
        """Connect a consumer to a queue. Raises LimitError at ``max-consumers``, and where the queue belongs to
        others.
        """
        owner = queue.exclusivity.owner
        queue.attach(consumer, now_ms)
        kind = "browser" if consumer.browses else "consumer"
        selector = "" if consumer.selector is None else consumer.selector.text
        self.note_event(
            SUBSCRIBED, queue, {"consumer": consumer.id, "kind": kind, "selector": selector}, kind=str(consumer.id)
        )
        if queue.exclusivity.outlives_consumers and owner is None:
            self.note_queue(queue)
        if queue.gate.opens_at_ms:
            self._gates.add(queue.gate.opens_at_ms, queue)

    def detach(self, queue: Queue, consumer: Consumer, *, failed: bool, now_ms: int) -> None:
        """Disconnect a consumer; a temporary queue goes with its last one."""
        if queue.deleted:
            return
        queue.detach(consumer, failed=failed, now_ms=now_ms)
        self.note_event(UNSUBSCRIBED, queue, {"consumer": consumer.id}, kind=str(consumer.id))
        if queue.temporary and not queue.consumer_count:
            self.delete_queue(queue, now_ms)

    def set_ring_size(self, queue_name: str, ring_size: int) -> None:
        """Change a ring while it runs; -1 makes it no ring. A smaller ring purges nothing: it stops growing (seed).

        0 keeps nothing. Raises NotFoundError for an unknown queue, BrokerError for a size below -1 and for a queue with
        an overflow-policy.
        """
        queue = self._queue(queue_name)
        if queue.overflow.depth is not None:
            raise BrokerError(f"Queue {queue_name} has an overflow-policy, which a ring-size would take the place of")
        if ring_size < -1:
            raise BrokerError(f"ring-size must be -1 (no ring), 0 (keeps nothing) or more, not {ring_size}")
        queue.overflow = overflow_for(ring_size)
        queue.ring_size_changed = ring_size
        queue.use_room()
        self.note_queue(queue)
        self.note_event(OPERATION, queue, {"operation": f"set ring-size to {ring_size}"}, kind="ring-size")

    def pause(self, queue_name: str) -> None:
        """Stop a queue's dispatch; arrivals go on. Survives a restart. Raises NotFoundError."""
        self._queue(queue_name).pause()
        self.note_queue(self._queue(queue_name))
        self.note_event(OPERATION, self._queue(queue_name), {"operation": "pause"}, kind="pause")

    def resume(self, queue_name: str) -> None:
        """Let a paused queue dispatch again. Raises NotFoundError."""
        self._queue(queue_name).resume()
        self.note_queue(self._queue(queue_name))
        self.note_event(OPERATION, self._queue(queue_name), {"operation": "resume"}, kind="resume")

    def _queue(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            raise NotFoundError(f"Queue {name} does not exist")
        return queue

    # ---- host of queues --------------------------------------------------------------------------

    def note_ready(self, queue: Queue) -> None:
        if not queue.noted_ready:
            queue.noted_ready = True
            self._ready.append(queue)

    def note_output(self, consumer: Consumer) -> None:
        if not consumer.listed:
            consumer.listed = True
            self.outgoing.append(consumer)

    def note_due(self, due_ms: int, queue: Queue, entry: Entry) -> None:
        self._scheduled.add(due_ms, (queue, entry))

    def note_alarm(self, due_ms: int, queue: Queue) -> None:
        self._alarms.add(due_ms, queue)

    def note_event(
        self, code: str, queue: Queue, fields: dict[str, str | int], *, kind: str = "", count: int = 1
    ) -> None:
        self.happenings.note(code, queue.name, fields, kind=kind, count=count)

    def note_dead(self, queue: Queue, entry: Entry) -> None:
        self._begin_copying()
        self._dead.append((queue, entry))

    def note_expired(self, queue: Queue, entry: Entry) -> None:
        self._begin_copying()
        self._expired.append((queue, entry))

    def _begin_copying(self) -> None:
        """From here to ``flush_forwards`` the log is one group: the end of the original and its copy survive
        together.
        """
        if not self._copying:
            self._copying = True
            self.log.begin_group()

    # ---- turn ------------------------------------------------------------------------------------

    def take_in(self) -> None:
        """Hand out what has arrived from pages."""
        if self.pages is None:
            return
        for chunk in self.pages.arrivals():
            stream = self.streams.get(chunk.page.stream)
            for reader in () if stream is None else stream.arrived(chunk):
                if not reader.queue.deleted:
                    reader.queue.page_arrived(reader.consumer)

    def tick(self, now_ms: int) -> None:
        """Whatever is due at ``now_ms``: schedules, redelivery delays, gates, expiry scans, deletions."""
        self.log.now_ms = now_ms
        due_ms = self.next_due_ms()
        if due_ms is None or due_ms > now_ms:
            return
        groups: dict[str, tuple[Queue, list[Entry]]] = {}
        for queue, entry in self._scheduled.pop_due(now_ms):
            if not queue.deleted:
                groups.setdefault(queue.name, (queue, []))[1].append(entry)
        for queue, entries in groups.values():
            queue.fall_due(entries, now_ms)
        for queue in self._gates.pop_due(now_ms):
            queue.tick_gate(now_ms)
        for queue in dict.fromkeys(self._alarms.pop_due(now_ms)):
            if not queue.deleted:
                queue.ring(now_ms)
        self._sweep.run(self, now_ms)

    def dispatch(self, now_ms: int) -> None:
        """Offer what is ready to consumers, and publish the copies that this and the turn so far brought forth."""
        ready = self._ready
        self._ready = []
        for queue in ready:
            queue.noted_ready = False
            if not queue.deleted:
                queue.dispatch(now_ms)
        if self._dead or self._expired or self.router.forwards:
            self.flush_forwards(now_ms)
        self.log.message_id = self._message_id
        self.log.queue_id = self.queue_id

    def end_turn(self) -> None:
        """Everything of the turn has happened: tell a log that is retained what its readers cannot add up."""
        refusals = self.router.refusals
        if refusals:
            self.router.refusals = {}
            for refusal in refusals.values():
                self.log.refused(refusal)
        if self.log.wants_depths:
            self.log.depths([depth for queue in self.queues.values() if (depth := queue.depth()) is not None])

    @property
    def has_ready(self) -> bool:
        """Is there something left to dispatch in another turn?"""
        return bool(self._ready)

    def next_due_ms(self) -> int | None:
        """When ``tick`` has something to do next, or None."""
        first_ms = self._sweep.next_due_ms()
        for due_ms in (self._scheduled.next_due_ms(), self._gates.next_due_ms(), self._alarms.next_due_ms()):
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms

    # ---- copies to other addresses ---------------------------------------------------------------

    def flush_forwards(self, now_ms: int) -> None:
        """Publish diverted, dead and expired copies. Bounded: what a loop of addresses still wants after that waits for
        the next turn.
        """
        for _ in range(_FORWARD_ROUNDS_MAX):
            self._make_copies(now_ms)
            forwards = self.router.forwards
            if not forwards:
                break
            self.router.forwards = []
            for forward in forwards:
                self._publish_forward(forward, now_ms)
        if self._copying:
            self._copying = False
            self.log.end_group()

    def _make_copies(self, now_ms: int) -> None:
        dead, self._dead = self._dead, []
        for queue, entry in dead:
            source = self._address_of(entry.message, queue)
            target = _dead_letter_address(queue, source)
            if target:
                self.obtain_resources(source, target, dead=True)
                self.router.forward_dead(target, source, queue, entry.message, "max_deliveries")
            self._tell_dead(queue, entry.message, target)
        expired, self._expired = self._expired, []
        for queue, entry in expired:
            source = self._address_of(entry.message, queue)
            target = _expiry_address(queue, source)
            if target and not (target == source.name and "_AMQ_ACTUAL_EXPIRY" in entry.message.head.properties):
                self.obtain_resources(source, target, dead=False)
                self.router.forward_expired(target, source, queue, entry.message, now_ms)

    def _tell_dead(self, queue: Queue, message: Message, target: str | None) -> None:
        """What became of a message after its last attempt, for the operational log."""
        fields: dict[str, str | int] = {"message": message.id}
        if target:
            fields["dead_letter_address"] = target
        address = self.addresses.get(target) if target else None
        reached = address is not None and (self.queues_for(address) or address.diverts)
        self.note_event(DEAD if reached else NOT_ROUTED if target else DISCARDED, queue, fields)

    def _address_of(self, message: Message, queue: Queue) -> Address:
        """The address that the message was sent to (its settings count); the queue's when that one is gone."""
        return self.addresses.get(message.head.address, queue.address)

    def obtain_resources(self, source: Address, target: str, *, dead: bool) -> None:
        """Make the queue for what is dead (or has expired) of an address, where its settings ask for one."""
        settings = source.settings
        if dead:
            wanted, prefix, suffix = (
                settings.auto_create_dead_letter_resources,
                settings.dead_letter_queue_prefix,
                settings.dead_letter_queue_suffix,
            )
        else:
            wanted, prefix, suffix = (
                settings.auto_create_expiry_resources,
                settings.expiry_queue_prefix,
                settings.expiry_queue_suffix,
            )
        name = f"{prefix}{source.name}{suffix}"
        if not wanted or name in self.queues:
            return
        address = self.addresses.get(target) or self.create_address(target, auto_created=True)
        routing_type = address.settings.default_queue_routing_type
        quoted = source.name.replace("'", "''")
        config = QueueConfig(
            name=name, address=target, routing_type=routing_type, filter=f"_AMQ_ORIG_ADDRESS = '{quoted}'"
        )
        self.create_queue(address, config, auto_created=True)

    def _route_of(self, forward: Forward) -> Route | None:
        """Where a copy goes. A divert's target comes into being as for a sender; dead and expired copies of which the
        address does not exist are dropped.
        """
        if forward.creates:
            try:
                return self.route(forward.address, None, forward.head.routing_type)
            except NotFoundError:
                return None
        address = self.addresses.get(forward.address)
        return None if address is None else Route(address, None, forward.head.routing_type, self.generation)

    def _publish_forward(self, forward: Forward, now_ms: int) -> None:
        route = self._route_of(forward)
        if route is None:
            return
        account = route.address.account
        number = self.next_message_id()
        message = Message(forward.head, forward.body, number, now_ms, forward.expires_ms, account, forward.origin)
        self.router.publish(
            Batch(
                route,
                [message],
                message.size_bytes,
                now_ms,
                plain=False,
                due_ms=forward.due_ms,
                hops=forward.hops,
                distinct=forward.as_it_is,
            ),
            admitted=True,
        )

    def create_temporary_address(self, name: str, routing_type: str) -> Address:
        """An address that goes with its last queue (a connection's temporary destination)."""
        address = self.create_address(name, auto_created=True, temporary=True)
        address.routing_types.add(routing_type)
        if routing_type != MULTICAST:
            self.create_queue(
                address,
                QueueConfig(name=name, address=name, routing_type=routing_type, durable=False),
                auto_created=True,
            )
        return address


def _dead_letter_address(queue: Queue, source: Address) -> str | None:
    """Where dead messages of a queue go; what the queue says itself counts before the address-setting."""
    own = queue.rules.dead_letter_address
    return source.settings.dead_letter_address if own is None else own


def _expiry_address(queue: Queue, source: Address) -> str | None:
    """Where expired messages of a queue go (``expiry-policy``; Qpid's alternate is the dead-letter address)."""
    if queue.rules.expiry_policy == "DELETE":
        return None
    target = source.settings.expiry_address
    if not target and queue.rules.expiry_policy == "ROUTE_TO_ALTERNATE":
        return _dead_letter_address(queue, source)
    return target
