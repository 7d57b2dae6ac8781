"""The broker: one deterministic state machine. Requests and the time go in; entries in consumers' outboxes come out."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.config.settings import BrokerConfig, QueueConfig
from artemis_py.core.address import MULTICAST, Address
from artemis_py.core.budget import Budget
from artemis_py.core.commits import NO_ADDRESS
from artemis_py.core.depths import depths_of
from artemis_py.core.due import Due
from artemis_py.core.events import (
    DEAD,
    DISCARDED,
    GIVEN_UP,
    LOOPED,
    NOT_ROUTED,
    OPERATION,
    SUBSCRIBED,
    UNSUBSCRIBED,
    described,
)
from artemis_py.core.forward import Forward
from artemis_py.core.holdings import ADDRESS_BYTES, ADDRESSES, QUEUE_BYTES, QUEUES, SELECTORS, Holdings, selector_bytes
from artemis_py.core.host import Host
from artemis_py.core.queue.consumer import Consumer
from artemis_py.core.queue.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.reference import QueueReference
from artemis_py.core.queue.works import QueueWork
from artemis_py.core.recipe import overflow_for
from artemis_py.core.registry import Registry
from artemis_py.core.router import Batch, Route, Router
from artemis_py.core.sweep import Sweep
from artemis_py.core.transaction import Publisher
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.message import Head, HeaderName, LargeBody, Message
from artemis_py.records import PageLog, RecordLog, RecoveredState

_FORWARD_ROUNDS_MAX: Final = 32
_TICK_PARTS: Final = 4
_DISPATCH_PARTS: Final = 2
"""What of a turn's units is left for what was decided before, and what is due, and for dispatch, however much was read.
"""
_ACTUAL_EXPIRY: Final = HeaderName("_AMQ_ACTUAL_EXPIRY")


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
        kept: RecoveredState | None = None,
        pages: PageLog | None = None,
        global_max_bytes: int | None = None,
    ) -> None:
        limit = config.global_max_size if global_max_bytes is None else global_max_bytes
        host = Host(log)
        super().__init__(config, host, pages, limit)
        self.name = config.name
        self.started = False
        self.router = Router(self, config.id_cache_size, self.memory.holdings, keeps_ids=config.persist_id_cache)
        self.timers = host.timers
        self.events = host.events
        """What the operational log is to tell."""
        self._due = Due(host, self.by_id)
        self._sweep = Sweep(config.address_queue_scan_period, config.message_expiry_scan_period, now_ms)
        self._consumer_id = 0
        kept = kept or RecoveredState()
        host.message_id = kept.message_id
        self.queue_id = kept.queue_id
        self.deploy(kept.queues, kept.addresses)
        self._take_back(kept, now_ms)
        log.now_ms = now_ms
        self.give_retained()
        for queue in self.queues.values():
            self._count_queue(queue, 1)
        self.started = True

    def _take_back(self, kept: RecoveredState, now_ms: int) -> None:
        """Put what survived a restart on its queues again."""
        for address_name, seen in kept.duplicate_ids.items():
            if address_name == NO_ADDRESS:
                self.router.commits.take_back(seen)
            address = self.addresses.get(address_name)
            if address is not None:
                self.router.remember_duplicates(address, seen)
        for queue_id, survivors in kept.messages.items():
            queue = self.by_id.get(queue_id)
            if queue is None:
                continue
            entries: list[tuple[Entry, int]] = []
            for survivor in survivors:
                message = survivor.message
                if not message.refs:
                    message.account = self._address_of(message, queue.reference).account
                    message.account.charge(1, message.memory_bytes)
                entry = Entry(message)
                entry.attempts = survivor.attempts
                entry.redelivered = survivor.attempts > 0
                entries.append((entry, survivor.due_ms))
            queue.arrivals.take_back(entries, now_ms)
        self.restore_streams(kept.streams, kept.stream)

    # ---- numbers ---------------------------------------------------------------------------------

    def next_message_id(self) -> int:
        """A number that no message has had."""
        return self.host.next_message_id()

    @property
    def last_message_id(self) -> int:
        """The highest id that a message has."""
        return self.host.message_id

    def take_message_ids(self, count: int) -> int:
        """Reserve ``count`` ids; returns the first."""
        first = self.host.message_id + 1
        self.host.message_id += count
        return first

    @property
    def memory_bytes(self) -> int:
        """What all addresses hold in memory."""
        return self.memory.account.size_bytes

    def give_back_message_ids(self, count: int) -> None:
        """Of the ids that were reserved just now the last ones are not needed."""
        self.host.message_id -= count

    # ---- sending ---------------------------------------------------------------------------------

    def current(self, route: Route) -> bool:
        """Is a route still what resolving its destination would give?"""
        return route.losses == route.address.losses and route.anycast_losses == self.wildcards.anycast_losses

    def renewed(self, route: Route) -> Route:
        if self.current(route):
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
        owner = queue.seats.exclusivity.owner
        queue.attach(consumer, now_ms)
        kind = "browser" if consumer.browses else "consumer"
        selector = "" if consumer.selector is None else consumer.selector.text
        self.note_event(
            SUBSCRIBED, queue, {"consumer": consumer.id, "kind": kind, "selector": selector}, kind=str(consumer.id)
        )
        if queue.seats.exclusivity.outlives_consumers and owner is None:
            self.note_queue(queue)
        if queue.gate.opens_at_ms:
            self.timers.note_gate(queue.gate.opens_at_ms, queue.id)

    def detach(self, queue: Queue, consumer: Consumer, *, failed: bool, now_ms: int) -> QueueWork | None:
        """Disconnect a consumer; a temporary queue goes with its last one. Returns what is not done yet of what comes
        of it.
        """
        if queue.deleted:
            queue.parts.tell_left(consumer, failed=failed)
            return None
        unfinished: QueueWork | None = None
        try:
            unfinished = queue.detach(consumer, failed=failed, now_ms=now_ms)
        except Exception as error:
            self.set_aside(queue, "detach", error)
        self.note_event(UNSUBSCRIBED, queue, {"consumer": consumer.id}, kind=str(consumer.id))
        if queue.temporary and not queue.consumer_count:
            unfinished = self.delete_queue(queue, now_ms) or unfinished
        return unfinished

    def set_ring_size(self, queue_name: str, ring_size: int) -> None:
        """Change a ring while it runs; -1 makes it no ring. A smaller ring purges nothing: it stops growing (R-08).

        0 keeps nothing. Raises NotFoundError for an unknown queue, BrokerError for a size below -1 and for a queue with
        an overflow-policy.
        """
        queue = self._queue(queue_name)
        if queue.flow.overflow.depth is not None:
            raise BrokerError(f"Queue {queue_name} has an overflow-policy; a ring-size would replace it")
        if ring_size < -1:
            raise BrokerError(f"ring-size must be -1 (no ring), 0 (keeps nothing) or more, not {ring_size}")
        queue.flow.overflow = overflow_for(ring_size)
        queue.ring_size_changed = ring_size
        queue.parts.aftermath.use_room()
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

    def take_outgoing(self) -> list[Consumer]:
        """Consumers whose outbox is to be written out; they are forgotten here."""
        outgoing = self.host.outgoing
        if outgoing:
            self.host.outgoing = []
        return outgoing

    # ---- what exists -----------------------------------------------------------------------------

    @property
    def holdings(self) -> Holdings:
        """What clients make the broker hold in memory."""
        return self.memory.holdings

    def create_address(self, name: str, *, auto_created: bool, temporary: bool = False) -> Address:
        address = super().create_address(name, auto_created=auto_created, temporary=temporary)
        self.holdings.move(ADDRESSES, _address_bytes(address))
        return address

    def create_queue(
        self,
        address: Address,
        config: QueueConfig,
        *,
        auto_created: bool,
        temporary: bool = False,
        by: str | None = None,
    ) -> Queue:
        queue = super().create_queue(address, config, auto_created=auto_created, temporary=temporary, by=by)
        if self.started:  # those that are declared or remembered are counted when all of them are there
            self._count_queue(queue, 1)
        return queue

    def _count_queue(self, queue: Queue, sign: int) -> None:
        self.holdings.move(QUEUES, sign * (QUEUE_BYTES + len(queue.name)))
        self.holdings.move(SELECTORS, sign * selector_bytes(None if queue.selector is None else queue.selector.text))

    def delete_queue(self, queue: Queue, now_ms: int) -> QueueWork | None:
        unfinished = super().delete_queue(queue, now_ms)
        self.timers.forget(queue.id)
        queue.grouping.forget()
        if self.started:
            self._count_queue(queue, -1)
        return unfinished

    def delete_address(self, address: Address) -> None:
        super().delete_address(address)
        self.holdings.move(ADDRESSES, -_address_bytes(address))
        if address.duplicate_ids is not None:
            address.duplicate_ids.forget()
            address.duplicate_ids = None  # a sender's shape may know the address a while longer

    def note_looped(self, address: Address, target: str) -> None:
        self.events.note(LOOPED, address.name, {"target": target})

    # ---- turn ------------------------------------------------------------------------------------

    def take_in(self) -> None:
        """Hand out what has arrived from pages."""
        if self.pages is None:
            return
        for chunk in self.pages.arrivals():
            stream = self.streams.get(chunk.page.stream)
            for reader in () if stream is None else stream.arrived(chunk):
                queue = self.by_id.get(reader.queue.id)
                if queue is None:
                    continue
                try:
                    queue.page_arrived(reader.consumer)
                except Exception as error:
                    self.set_aside(queue, "page", error)

    def tick(self, now_ms: int) -> None:
        """Whatever is due at ``now_ms``: schedules, redelivery delays, gates, expiry scans, deletions."""
        self.log.now_ms = now_ms
        self.budget.allow(_TICK_PARTS)
        self.timers.look_at_clock(self.clock.shift_ms, now_ms)
        due_ms = self.next_due_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._begin_what_is_due(now_ms)
        self._work_off(self.budget, now_ms)

    def _begin_what_is_due(self, now_ms: int) -> None:
        if self._due.run(now_ms):
            self._sweep.run(self, now_ms)

    def _work_off(self, budget: Budget, now_ms: int) -> None:
        """Go on with what was decided and is not done."""
        if self.agenda:
            self.agenda.run(budget, now_ms)
            while self.agenda.broken:
                name, failure = self.agenda.broken.pop()
                self.step_broke_off(now_ms)
                self._give_up("", name, failure)

    def dispatch(self, now_ms: int) -> None:
        """Offer what is ready to consumers, and publish the copies that this and the turn so far brought forth."""
        self.budget.allow(_DISPATCH_PARTS)
        ready = self.host.ready
        for _ in range(len(ready)):
            reference = ready.popleft()
            reference.noted_ready = False
            queue = self.by_id.get(reference.id)
            if queue is not None:
                try:
                    queue.dispatch(now_ms)
                except Exception as error:
                    self.set_aside(queue, "dispatch", error)
            if self.budget.is_spent:
                break
        if self.host.copies.are_due or self.router.forwards:
            self.flush_forwards(now_ms)
        self.log.message_id = self.host.message_id
        self.log.queue_id = self.queue_id

    def _give_up(self, queue_name: str, step: str, error: Exception) -> None:
        """A copy or a chore broke off: it is told of and does not happen. Raises the error when the disk failed."""
        self.events.note(GIVEN_UP, queue_name, described(step, error), kind=step)

    def step_broke_off(self, now_ms: int) -> None:
        """Somebody's request broke off half done: what it has done so far stands, in the log too, and what others do is
        no part of it.
        """
        self.flush_forwards(now_ms)
        self.log.close_groups()

    def end_turn(self) -> None:
        """Everything of the turn has happened: tell a log that is retained what its readers cannot add up."""
        if self.router.begun:
            self.router.take_begun()  # copies for which nobody waits
        if self.log.story.end_turn():
            self.log.story.depths(depths_of(self.queues.values(), self.router.coming()))

    def finish(self, now_ms: int) -> None:
        """The broker stops: carry out to its end what was decided."""
        unlimited = Budget()
        while self.agenda:
            self._work_off(unlimited, now_ms)
        self.flush_forwards(now_ms)

    @property
    def has_ready(self) -> bool:
        """Is there something left to do in another turn?"""
        now_ms = self.log.now_ms
        return bool(self.host.ready or self.agenda) or self.timers.is_behind(now_ms, self.clock.steady_ms(now_ms))

    def next_due_ms(self) -> int | None:
        """The date at which ``tick`` has something to do next if nobody sets the clock until then, or None."""
        shift_ms = self.clock.shift_ms
        first_ms = self.timers.next_due_ms(shift_ms)
        sweep_ms = self._sweep.next_due_ms()
        if sweep_ms is not None and (first_ms is None or sweep_ms + shift_ms < first_ms):
            first_ms = sweep_ms + shift_ms
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
                try:
                    self._publish_forward(forward, now_ms)
                except Exception as error:
                    self._give_up("", f"copy to {forward.address}", error)
        self.host.copies.close()

    def _make_copies(self, now_ms: int) -> None:
        copies = self.host.copies
        dead, copies.dead = copies.dead, []
        for queue, message in dead:
            try:
                self._forward_dead(queue, message)
            except Exception as error:
                self._give_up(queue.name, "dead letter", error)
        expired, copies.expired = copies.expired, []
        for queue, message in expired:
            try:
                self._forward_expired(queue, message, now_ms)
            except Exception as error:
                self._give_up(queue.name, "expiry", error)

    def _forward_dead(self, queue: QueueReference, message: Message) -> None:
        source = self._address_of(message, queue)
        target = _dead_letter_address(queue, source)
        if target:
            self.obtain_resources(source, target, dead=True)
            self.router.forward_dead(target, source, queue.name, message)
        self._tell_dead(queue, message, target)

    def _forward_expired(self, queue: QueueReference, message: Message, now_ms: int) -> None:
        source = self._address_of(message, queue)
        target = _expiry_address(queue, source)
        if target and not (target == source.name and message.head.first(_ACTUAL_EXPIRY) is not None):
            self.obtain_resources(source, target, dead=False)
            self.router.forward_expired(target, source, queue.name, message, now_ms)

    def _tell_dead(self, queue: QueueReference, message: Message, target: str | None) -> None:
        """What became of a message after its last attempt, for the operational log."""
        fields: dict[str, str | int] = {"message": message.id}
        if target:
            fields["dead_letter_address"] = target
        address = self.addresses.get(target) if target else None
        reached = address is not None and (bool(address.diverts) or self.has_queues(address))
        self.host.note_event(DEAD if reached else NOT_ROUTED if target else DISCARDED, queue, fields)

    def _address_of(self, message: Message, queue: QueueReference) -> Address:
        """The address that the message was sent to (its settings count); the queue's when that one is gone."""
        found = self.addresses.get(message.head.address) or self.addresses.get(queue.address.name)
        return Address(queue.address.name, queue.address.settings) if found is None else found

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
        return None if address is None else self.route_to(address, None, forward.head.routing_type)

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
                passed=forward.passed,
            ),
            admitted=True,
        )

    def create_temporary_address(self, name: str, routing_type: str, by: str | None = None) -> Address:
        """An address that goes with its last queue (a connection's temporary destination). Raises LimitError."""
        self.quota.check_address(name, len(self.addresses), by)
        if routing_type != MULTICAST:
            self.quota.check_queue(name, len(self.queues), by)
        address = self.create_address(name, auto_created=True, temporary=True)
        address.add_routing_types((routing_type,))
        if routing_type != MULTICAST:
            self.create_queue(
                address,
                QueueConfig(name=name, address=name, routing_type=routing_type, durable=False),
                auto_created=True,
                by=by,
            )
        return address


def _address_bytes(address: Address) -> int:
    return ADDRESS_BYTES + len(address.name)


def _dead_letter_address(queue: QueueReference, source: Address) -> str | None:
    """Where dead messages of a queue go; what the queue says itself counts before the address-setting."""
    own = queue.rules.dead_letter_address
    return source.settings.dead_letter_address if own is None else own


def _expiry_address(queue: QueueReference, source: Address) -> str | None:
    """Where expired messages of a queue go (``expiry-policy``; Qpid's alternate is the dead-letter address)."""
    if queue.rules.expiry_policy == "DELETE":
        return None
    target = source.settings.expiry_address
    if not target and queue.rules.expiry_policy == "ROUTE_TO_ALTERNATE":
        return _dead_letter_address(queue, source)
    return target
