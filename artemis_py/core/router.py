"""From an address to its queues: admission, expiry, duplicates, diverts, and who gets a copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from mypy_extensions import mypyc_attr, trait

from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, DuplicateIds, Plan
from artemis_py.core.admission import deal, must_page, obstacle, passes, takers
from artemis_py.core.commits import Commits
from artemis_py.core.entry import Entry
from artemis_py.core.paging import PageStream
from artemis_py.core.queue import Queue
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Head, LargeBody, Message
from artemis_py.records import RecordLog, Refusal

HOPS_MAX: Final = 16
"""How often one message may be forwarded (diverts, dead letters, expiry) before it is taken for a loop and dropped."""

_ROUTING_TYPE_CODES: Final = {MULTICAST: "0", ANYCAST: "1"}
_STRIPPED: Final = frozenset({"destination-type"})


class Route:
    """A destination, resolved: an address, or one queue of it. ``generation`` tells whether bindings changed since."""

    __slots__ = ("address", "generation", "queue", "routing_type")

    def __init__(self, address: Address, queue: Queue | None, routing_type: str | None, generation: int) -> None:
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.generation = generation


@dataclass(slots=True)
class Forward:
    """A copy on its way to another address, published later in the turn (so that nothing recurses)."""

    address: str
    head: Head
    body: bytes | LargeBody
    expires_ms: int
    hops: int
    due_ms: int = 0
    creates: bool = False
    """May the target address be created, as for a sender's message?"""
    as_it_is: bool = False
    """Nothing of the head was changed, so a duplicate id in it is that of the original and says nothing here."""
    origin: int = 0
    """The connection that sent the original of a diverted copy, which may be nowhere else; 0 for other copies."""


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class Bindings(ABC):
    """What the router asks of the registry of addresses."""

    log: RecordLog

    @abstractmethod
    def queues_for(self, address: Address) -> list[Queue]:
        """Queues bound to the address itself and to wildcard addresses that match it."""

    @abstractmethod
    def next_message_id(self) -> int:
        """A number that no message has had."""

    @abstractmethod
    def open_stream(self, address: Address) -> PageStream:
        """Pages for an address that never had any."""

    @abstractmethod
    def obtain_resources(self, source: Address, target: str, *, dead: bool) -> None:
        """Make the queue for what is dead (or has expired) of an address, where its settings ask for one."""


@dataclass(slots=True)
class Batch:
    """Messages on their way into one address together.

    ``size_bytes`` is the sum of their encoded sizes. ``plain`` promises that none of them is persistent, expires or
    carries a duplicate id, ``distinct`` only the last of these. ``due_ms`` above 0 schedules them. ``hops`` counts how
    often they were forwarded.
    """

    route: Route
    messages: list[Message]
    size_bytes: int
    now_ms: int
    plain: bool
    due_ms: int = 0
    hops: int = 0
    distinct: bool = False
    paged: bool = False
    refused_by: Queue | None = None
    """The queue that took no more, where not all messages were taken because of a queue and not of the address."""
    refused_bytes: int = 0
    """The encoded size of the message that it did not take."""

    @property
    def memory_bytes(self) -> int:
        """What the messages add to their address' size. Large bodies come alone: several messages have none."""
        messages = self.messages
        if len(messages) == 1:
            return messages[0].memory_bytes
        return self.size_bytes + MESSAGE_OVERHEAD_BYTES * len(messages)

    def narrow(self, messages: list[Message]) -> None:
        """Go on with only some of the messages."""
        if len(messages) != len(self.messages):
            self.messages = messages
            self.size_bytes = sum(message.size_bytes for message in messages)


class Router:
    """Takes messages in at an address and puts entries on queues. It holds no queue and dispatches nothing itself."""

    def __init__(self, bindings: Bindings, id_cache_size: int, *, keeps_ids: bool = True) -> None:
        self._bindings = bindings
        self._keeps_ids = keeps_ids
        self._id_cache_size = id_cache_size
        self.commits = Commits(id_cache_size, keeps=keeps_ids)
        self.forwards: list[Forward] = []
        self.refusals: dict[tuple[str, str, int], Refusal] = {}
        """What was refused in this turn, by address, policy and origin; always empty where nothing is retained."""
        self.looped_message_count = 0

    @property
    def log(self) -> RecordLog:
        """Where what happens is written."""
        return self._bindings.log

    # ---- admission -------------------------------------------------------------------------------

    def publish(self, batch: Batch, *, admitted: bool = False) -> int:
        """Route messages in order; returns how many the address took.

        Fewer than given are taken only when the address is full (or its pages are) and the policy is FAIL or BLOCK.
        ``admitted`` says that nobody is there to be blocked or told any more (a commit, a copy made by the broker):
        then only DROP still applies.
        """
        address = batch.route.address
        plan = self._plan(address)
        if plan.limited and not all(
            queue.fits(len(batch.messages), batch.size_bytes) and not queue.flow_stopped for queue in plan.limited
        ):
            return self._publish_to_limited(batch, plan, admitted)
        return self._publish_admitted(batch, admitted)

    def _publish_to_limited(self, batch: Batch, plan: Plan, admitted: bool) -> int:
        """One by one, because a queue may take some of the messages and not all."""
        route, now_ms = batch.route, batch.now_ms
        address = route.address
        for index, message in enumerate(batch.messages):
            size_bytes = message.size_bytes
            queues = takers(address, plan, route.queue, route.routing_type, message)
            # A repeated message is confirmed: it is there, or was.
            refusing = None if admitted or self.has_seen(address, message) else obstacle(queues, size_bytes, now_ms)
            if refusing is not None:
                batch.refused_by = refusing
                batch.refused_bytes = size_bytes
                if refusing.overflow.refuses:
                    self.note_refused(address, "reject", message)
                return index
            one = replace(batch, messages=[message], size_bytes=size_bytes)
            if not address.is_paging and address.refusal is None and must_page(address, queues, size_bytes, now_ms):
                one.paged = True
                self._publish(one)
            elif not self._publish_admitted(one, admitted):
                return index
        return len(batch.messages)

    def limited_takers(self, route: Route, message: Message) -> list[Queue]:
        """Of the queues that the message would come to, those of which the depth may stand against it."""
        plan = self._plan(route.address)
        if not plan.limited:
            return []
        queues = takers(route.address, plan, route.queue, route.routing_type, message)
        return [queue for queue in queues if queue.limits_senders]

    def _publish_admitted(self, batch: Batch, admitted: bool) -> int:
        """No queue stands against it; the address may."""
        count = len(batch.messages)
        if batch.route.address.has_room_for(count, batch.memory_bytes):
            self._publish(batch)
            return count
        return self._publish_while_room(batch, admitted)

    def _publish_while_room(self, batch: Batch, admitted: bool) -> int:
        address = batch.route.address
        messages = batch.messages
        for index, message in enumerate(messages):
            refusal = address.refusal
            if refusal == "DROP":
                address.routed_message_count += 1
                address.dropped_message_count += 1
                self.note_refused(address, "drop", message)
            elif refusal is not None and not admitted and not self.has_seen(address, message):
                if refusal == "FAIL":
                    self.note_refused(address, "fail", message)
                return index
            elif address.must_page and not address.has_page_limit:
                self._publish_rest(batch, messages[index:])
                break
            else:
                one = replace(batch, messages=[message], size_bytes=message.size_bytes, paged=address.must_page)
                self._publish(one)
        return len(messages)

    def note_refused(self, address: Address, policy: str, message: Message) -> None:
        """Count what an address does not take in, for readers of a log that is retained."""
        if self.log.retains and message.head.persistent:
            key = address.name, policy, message.origin
            refusal = self.refusals.get(key)
            if refusal is None:
                refusal = self.refusals[key] = Refusal(*key)
            refusal.count += 1
            refusal.size_bytes += message.size_bytes

    def _publish_rest(self, batch: Batch, messages: list[Message]) -> None:
        """From here on nothing in the batch can be refused one by one: it goes to pages."""
        rest = replace(batch, paged=True)
        rest.narrow(messages)
        self._publish(rest)

    def _publish(self, batch: Batch) -> None:
        address = batch.route.address
        if address.changes_expiry:
            batch.plain = False
            for message in batch.messages:
                message.expires_ms = address.expiry_of(message.expires_ms, batch.now_ms)
        if not (batch.plain or batch.distinct) and any(one.head.duplicate_id is not None for one in batch.messages):
            self.log.begin_group()
            batch.narrow(self._without_duplicates(address, batch.messages))
            self._publish_distinct(batch)
            self.log.end_group()
        else:
            self._publish_distinct(batch)

    def _plan(self, address: Address) -> Plan:
        plan = address.plan
        if plan is None:
            plan = address.plan = Plan(self._bindings.queues_for(address), address.diverts, address.retention)
        return plan

    def _publish_distinct(self, batch: Batch) -> None:
        address = batch.route.address
        plan = self._plan(address)
        diverted: set[int] | None = None
        if plan.has_diverts:
            diverted = self._divert(address, plan, batch)
        if batch.messages:
            self._route(batch, plan, diverted)

    # ---- duplicates and diverts ------------------------------------------------------------------

    def has_seen(self, address: Address, message: Message) -> bool:
        """Has the address seen the message's duplicate id?"""
        duplicate_id = message.head.duplicate_id
        return duplicate_id is not None and address.duplicate_ids is not None and duplicate_id in address.duplicate_ids

    def remember_duplicates(self, address: Address, duplicate_ids: list[str]) -> None:
        """Take back the ids that an address had seen before a restart."""
        seen = self._duplicate_ids(address)
        for duplicate_id in duplicate_ids:
            seen.add(duplicate_id)

    def _duplicate_ids(self, address: Address) -> DuplicateIds:
        if address.duplicate_ids is None:
            size = address.settings.id_cache_size
            address.duplicate_ids = DuplicateIds(self._id_cache_size if size is None else size)
        return address.duplicate_ids

    def _without_duplicates(self, address: Address, messages: list[Message]) -> list[Message]:
        kept: list[Message] = []
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                seen = self._duplicate_ids(address)
                if duplicate_id in seen:
                    message.lsn = self.log.last_lsn  # where the first one was written, at the latest
                    self.note_refused(address, "duplicate", message)
                    continue
                seen.add(duplicate_id)
                if self._keeps_ids:
                    message.lsn = self._bindings.log.duplicate_id(address.name, duplicate_id)
            kept.append(message)
        return kept

    def _divert(self, address: Address, plan: Plan, batch: Batch) -> set[int]:
        """Make the copies that diverts ask for; what an exclusive one took leaves the batch. Returns who got a copy."""
        kept: list[Message] = []
        diverted: set[int] = set()
        for message in batch.messages:
            matched = [divert for divert in plan.exclusive_diverts if passes(divert, message)]
            if not matched:
                kept.append(message)
                if plan.retention is not None:
                    self._retain(plan.retention, message, batch)
                matched = [divert for divert in plan.diverts if passes(divert, message)]
            if matched:
                diverted.add(message.id)
            for divert in matched:
                self._forward_diverted(address, divert, message, batch)
        address.routed_message_count += len(batch.messages) - len(kept)
        batch.narrow(kept)
        return diverted

    def _retain(self, retention: Divert, message: Message, batch: Batch) -> None:
        """Copy a message as it is to where it is kept for queues of later."""
        target = retention.forwarding_addresses[0]
        self._forward(
            Forward(target, message.head, message.body, message.expires_ms, batch.hops + 1, batch.due_ms, as_it_is=True)
        )

    def give(self, queue: Queue, messages: list[Message], now_ms: int) -> None:
        """Put messages on one queue past everything that decides who gets what: copies that it alone is to have."""
        route = Route(queue.address, queue, None, 0)
        batch = Batch(route, messages, sum(message.size_bytes for message in messages), now_ms, plain=False)
        batch.paged = queue.address.must_page
        self._enqueue(batch, [(queue, messages)])

    def _forward_diverted(self, address: Address, divert: Divert, message: Message, batch: Batch) -> None:
        changes = _origin(message, address.name, divert.routing_name)
        drop = frozenset[str]() if divert.routing_type == "PASS" else _STRIPPED
        routing_type = divert.routing_type if divert.routing_type in _ROUTING_TYPE_CODES else None
        if routing_type is not None:
            changes["destination-type"] = routing_type
        for target in divert.forwarding_addresses:
            head = message.head.forwarded(target, changes, drop)
            if routing_type is not None:
                head.routing_type = routing_type
            hops, expires_ms = batch.hops + 1, message.expires_ms
            self._forward(
                Forward(target, head, message.body, expires_ms, hops, batch.due_ms, creates=True, origin=message.origin)
            )

    def _forward(self, forward: Forward) -> None:
        if forward.hops > HOPS_MAX:
            self.looped_message_count += 1
            return
        self.forwards.append(forward)

    def forward_dead(
        self, address: str, source: Address, queue: Queue | None, message: Message, reason: str, hops: int = 0
    ) -> None:
        """Send a copy of a dead message to the dead-letter address."""
        changes = _origin(message, source.name, None if queue is None else queue.name)
        changes["reason"] = reason
        self._forward(Forward(address, message.head.forwarded(address, changes, _STRIPPED), message.body, 0, hops + 1))

    def forward_expired(self, address: str, source: Address, queue: Queue, message: Message, now_ms: int) -> None:
        """Send a copy of an expired message to the expiry address."""
        changes = _origin(message, source.name, queue.name)
        changes["_AMQ_ACTUAL_EXPIRY"] = str(now_ms)
        changes["reason"] = "time_limit"
        self._forward(Forward(address, message.head.forwarded(address, changes, _STRIPPED), message.body, 0, 1))

    # ---- queues ----------------------------------------------------------------------------------

    def _route(self, batch: Batch, plan: Plan, diverted: set[int] | None) -> None:
        route, messages = batch.route, batch.messages
        only = _only_target(route, plan)
        if only is not None and only.accepts_all:
            route.address.routed_message_count += len(messages)
            if batch.paged:
                self._enqueue(batch, [(only, messages)])
            else:
                self._enqueue_on_one(batch, only)
            return
        shares: list[tuple[Queue, list[Message]]] = []
        for queue in _targets(route, plan):
            taken = messages if queue.accepts_all else [message for message in messages if queue.accepts(message)]
            if taken:
                shares.append((queue, taken))
        if route.queue is None and plan.anycast and route.routing_type != MULTICAST:
            shares.extend(deal(route.address, plan.anycast, messages))
        self._count_routed(batch, shares, diverted)
        if shares:
            self._enqueue(batch, shares)
        elif self.log.retains and not batch.plain:
            self._record(batch, shares)

    def _count_routed(self, batch: Batch, shares: list[tuple[Queue, list[Message]]], diverted: set[int] | None) -> None:
        address, messages = batch.route.address, batch.messages
        if any(taken is messages for _, taken in shares):
            address.routed_message_count += len(messages)
            return
        reached = {message.id for _, taken in shares for message in taken}
        if diverted:
            reached.update(diverted)
        missed = [message for message in messages if message.id not in reached]
        address.routed_message_count += len(messages) - len(missed)
        address.unrouted_message_count += len(missed)
        settings = address.settings
        target = settings.dead_letter_address
        if missed and settings.send_to_dla_on_no_route and target and target != address.name:
            self._bindings.obtain_resources(address, target, dead=True)
            for message in missed:
                self.forward_dead(target, address, None, message, "no_route", batch.hops)

    def _enqueue(self, batch: Batch, shares: list[tuple[Queue, list[Message]]]) -> None:
        if batch.paged:
            self._enqueue_paged(batch, shares)
            return
        if not batch.plain:
            self._record(batch, shares)
        waiting = self._hand_over(batch, shares)
        if len(waiting) == 1 and waiting[0][1] is batch.messages:
            _put_all(waiting[0][0], batch)
        elif waiting:
            self._put_on_several(batch, waiting)

    def _hand_over(self, batch: Batch, shares: list[tuple[Queue, list[Message]]]) -> list[tuple[Queue, list[Message]]]:
        """Give plain messages straight to consumers that wait for them; returns the shares of the other queues."""
        if not batch.plain or batch.due_ms:
            return shares
        messages = batch.messages
        shared: list[Entry] | None = None
        waiting: list[tuple[Queue, list[Message]]] = []
        for queue, taken in shares:
            consumer = queue.direct_consumer(taken)
            if consumer is None:
                waiting.append((queue, taken))
            elif taken is messages:
                if shared is None:
                    shared = [Entry(message) for message in messages]
                queue.hand_over(consumer, shared, batch.size_bytes)
            else:
                size_bytes = sum(message.size_bytes for message in taken)
                queue.hand_over(consumer, [Entry(message) for message in taken], size_bytes)
        return waiting

    def _enqueue_paged(self, batch: Batch, shares: list[tuple[Queue, list[Message]]]) -> None:
        """Put messages into pages, each once with the queues that it goes to. Paging begins with the first of them."""
        if not self.log.retains or batch.plain:
            self._put_into_pages(batch, shares)
            return
        self.log.begin_group()  # no crash leaves a message in the log and not in its page
        self._record_paged(batch, shares)
        self._put_into_pages(batch, shares)
        self.log.end_group()

    def _put_into_pages(self, batch: Batch, shares: list[tuple[Queue, list[Message]]]) -> None:
        refusing = [share for share in shares if share[0].overflow.keeps_none]
        if refusing:
            if not self.log.retains and not batch.plain:
                self._record(batch, refusing)
            for queue, taken in refusing:
                queue.refuse(taken)
            shares = [share for share in shares if not share[0].overflow.keeps_none]
        waiting = self._hand_over(batch, shares)
        if not waiting:
            return
        address = batch.route.address
        stream = address.stream
        if stream is None:
            stream = address.stream = self._bindings.open_stream(address)
        stream.begin()
        for queue, _ in waiting:
            queue.prepare_paged(stream)
        if all(taken is batch.messages for _, taken in waiting):
            stream.append(batch.messages, [queue for queue, _ in waiting], batch.due_ms)
        else:
            self._append_each(batch, waiting, stream)
        for queue, taken in waiting:
            size_bytes = batch.size_bytes if taken is batch.messages else sum(one.size_bytes for one in taken)
            queue.arrive_paged(stream, taken, size_bytes, batch.now_ms)

    def _record_paged(self, batch: Batch, shares: list[tuple[Queue, list[Message]]]) -> None:
        """Write messages that go to pages to a log that retains, each with the place that it will have there."""
        stream = batch.route.address.stream
        place = 1 if stream is None else stream.next_place
        kept = {message.id for queue, taken in shares if not queue.overflow.keeps_none for message in taken}
        staying = [message.id for message in batch.messages if message.id in kept]
        places = dict(zip(staying, range(place, place + len(staying)), strict=True))
        log = self.log
        self._record(
            batch,
            shares,
            lambda message, queue_ids, due_ms: log.published_in_page(
                message, queue_ids, due_ms, places.get(message.id, 0)
            ),
        )

    def _append_each(self, batch: Batch, shares: list[tuple[Queue, list[Message]]], stream: PageStream) -> None:
        """Messages of one batch that go to different queues."""
        targets: dict[int, list[Queue]] = {}
        for queue, taken in shares:
            for message in taken:
                targets.setdefault(message.id, []).append(queue)
        for message in batch.messages:
            if message.id in targets:
                stream.append([message], targets[message.id], batch.due_ms)

    def _enqueue_on_one(self, batch: Batch, queue: Queue) -> None:
        """The usual case of ``_enqueue``: one queue takes everything."""
        log = self._bindings.log
        if not batch.plain and not queue.durable:
            self._record(batch, [(queue, batch.messages)])
        elif not batch.plain:
            log.published_run([one for one in batch.messages if one.head.persistent], queue.id, batch.due_ms)
        elif not batch.due_ms:
            consumer = queue.direct_consumer(batch.messages)
            if consumer is not None:
                queue.hand_over(consumer, [Entry(message) for message in batch.messages], batch.size_bytes)
                return
        _put_all(queue, batch)

    def _put_on_several(self, batch: Batch, waiting: list[tuple[Queue, list[Message]]]) -> None:
        """Several queues refer to one message: it is charged once, and kept until all of them have seen it."""
        account = batch.route.address.account
        distinct = {message.id: message for _, taken in waiting for message in taken}
        for message in distinct.values():
            message.refs += 1
            account.charge(1, message.memory_bytes)
        for queue, taken in waiting:
            _put(queue, taken, sum(message.size_bytes for message in taken), batch)
        for message in distinct.values():
            message.refs -= 1
            if not message.refs:
                account.credit(1, message.memory_bytes)

    def _record(
        self,
        batch: Batch,
        shares: list[tuple[Queue, list[Message]]],
        write: Callable[[Message, list[int], int], int] | None = None,
    ) -> None:
        """Write persistent messages to the log, each once with the durable queues that it goes to. A log that retains
        gets those without such a queue too. ``write`` is ``published`` or its like.
        """
        log = self._bindings.log
        due_ms = batch.due_ms
        durable = [(queue.id, taken) for queue, taken in shares if queue.durable]
        if len(durable) == 1 and not log.retains:
            queue_id, taken = durable[0]
            log.published_run([message for message in taken if message.head.persistent], queue_id, due_ms)
            return
        write = write or log.published
        targets: dict[int, list[int]] = {message.id: [] for message in batch.messages if message.head.persistent}
        for queue_id, taken in durable:
            for message in taken:
                if message.head.persistent:
                    targets[message.id].append(queue_id)
        for message in batch.messages:  # in this order a restart finds them, in each of the queues
            queue_ids = targets.get(message.id)
            if queue_ids or (queue_ids is not None and log.retains):
                message.lsn = write(message, queue_ids, due_ms)


def _targets(route: Route, plan: Plan) -> list[Queue]:
    """The queues that each get every message: the one that was named, or all multicast ones."""
    if route.queue is not None:
        return [route.queue]
    return plan.multicast if route.routing_type != ANYCAST else []


def _only_target(route: Route, plan: Plan) -> Queue | None:
    """The queue that gets every message that it accepts, if there is no other."""
    if route.queue is not None:
        return route.queue
    only = plan.only_queue
    if only is None or route.routing_type is None or route.routing_type == only.routing_type:
        return only
    return None


def _put_all(queue: Queue, batch: Batch) -> None:
    """Every message goes to this queue and to no other."""
    batch.route.address.account.charge(len(batch.messages), batch.memory_bytes)
    _put(queue, batch.messages, batch.size_bytes, batch)


def _put(queue: Queue, messages: list[Message], size_bytes: int, batch: Batch) -> None:
    if batch.due_ms:
        for message in messages:
            queue.schedule(Entry(message), batch.due_ms, batch.now_ms)
    else:
        queue.arrive([Entry(message) for message in messages], size_bytes, batch.now_ms)


def _origin(message: Message, address: str, queue: str | None) -> dict[str, str]:
    """The headers that say where a copy came from (Artemis manual, "Message Expiry" and "Undelivered messages"); the
    last hop wins.
    """
    changes = {"_AMQ_ORIG_ADDRESS": address, "_AMQ_ORIG_MESSAGE_ID": str(message.id)}
    if queue is not None:
        changes["_AMQ_ORIG_QUEUE"] = queue
    if message.head.routing_type is not None:
        changes["_AMQ_ORIG_ROUTING_TYPE"] = _ROUTING_TYPE_CODES[message.head.routing_type]
    return changes
