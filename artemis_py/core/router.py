"""From an address to its queues: admission, expiry, duplicates, diverts, and who gets a copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, DuplicateIds, Plan
from artemis_py.core.entry import Entry
from artemis_py.core.queue import Queue
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Head, Message
from artemis_py.records import RecordLog

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
    body: bytes
    expires_ms: int
    hops: int
    source: str
    kind: str
    """divert, dead or expired: what made the copy."""


class Bindings(ABC):
    """What the router asks of the registry of addresses."""

    log: RecordLog

    @abstractmethod
    def queues_for(self, address: Address) -> list[Queue]:
        """Queues bound to the address itself and to wildcard addresses that match it."""

    @abstractmethod
    def next_message_id(self) -> int:
        """A number that no message has had."""


class Router:
    """Takes messages in at an address and puts entries on queues. It holds no queue and dispatches nothing itself."""

    def __init__(self, bindings: Bindings, id_cache_size: int) -> None:
        self._bindings = bindings
        self._id_cache_size = id_cache_size
        self.forwards: list[Forward] = []
        self.looped_message_count = 0

    def publish(
        self,
        route: Route,
        messages: list[Message],
        size_bytes: int,
        now_ms: int,
        *,
        plain: bool,
        due_ms: int = 0,
        hops: int = 0,
    ) -> int:
        """Route messages in order; returns how many the address took, fewer than given only when it is full and its
        policy is FAIL or BLOCK.

        ``size_bytes`` is the sum of their encoded sizes. ``plain`` promises that none of them is persistent, expires
        or carries a duplicate id. ``due_ms`` above 0 schedules them.
        """
        address = route.address
        if address.full_policy is not None and (
            address.is_full
            or not address.has_room_for(len(messages), size_bytes + MESSAGE_OVERHEAD_BYTES * len(messages))
        ):
            return self._publish_while_room(route, messages, now_ms, plain, due_ms, hops)
        self._publish_admitted(route, messages, size_bytes, now_ms, plain, due_ms, hops)
        return len(messages)

    def _publish_while_room(
        self, route: Route, messages: list[Message], now_ms: int, plain: bool, due_ms: int, hops: int
    ) -> int:
        address = route.address
        for index, message in enumerate(messages):
            if address.is_full:
                if address.full_policy != "DROP":
                    return index
                address.routed_message_count += 1
                address.dropped_message_count += 1
                continue
            self._publish_admitted(route, [message], message.size_bytes, now_ms, plain, due_ms, hops)
        return len(messages)

    def _publish_admitted(
        self, route: Route, messages: list[Message], size_bytes: int, now_ms: int, plain: bool, due_ms: int, hops: int
    ) -> None:
        address = route.address
        if address.changes_expiry:
            plain = False
            for message in messages:
                message.expires_ms = address.expiry_of(message.expires_ms, now_ms)
        count = len(messages)
        if not plain:
            messages = self._without_duplicates(address, messages)
        plan = address.plan
        if plan is None:
            plan = address.plan = Plan(self._bindings.queues_for(address), address.diverts)
        if plan.exclusive_diverts or plan.diverts:
            messages = self._divert(address, plan, messages, hops)
        if len(messages) != count:
            size_bytes = sum(message.size_bytes for message in messages)
            if not messages:
                return
        self._route(route, plan, messages, size_bytes, now_ms, plain, due_ms)

    # ---- duplicates and diverts ------------------------------------------------------------------

    def has_seen(self, address: Address, message: Message) -> bool:
        """Has the address seen the message's duplicate id?"""
        duplicate_id = message.head.duplicate_id
        return duplicate_id is not None and address.duplicate_ids is not None and duplicate_id in address.duplicate_ids

    def _without_duplicates(self, address: Address, messages: list[Message]) -> list[Message]:
        kept: list[Message] = []
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                if address.duplicate_ids is None:
                    size = address.settings.id_cache_size
                    address.duplicate_ids = DuplicateIds(self._id_cache_size if size is None else size)
                if duplicate_id in address.duplicate_ids:
                    continue
                address.duplicate_ids.add(duplicate_id)
            kept.append(message)
        return kept

    def _divert(self, address: Address, plan: Plan, messages: list[Message], hops: int) -> list[Message]:
        kept: list[Message] = []
        for message in messages:
            matched = [divert for divert in plan.exclusive_diverts if _passes(divert, message)]
            if not matched:
                kept.append(message)
                matched = [divert for divert in plan.diverts if _passes(divert, message)]
            for divert in matched:
                self._forward_diverted(address, divert, message, hops)
        address.routed_message_count += len(messages) - len(kept)
        return kept

    def _forward_diverted(self, address: Address, divert: Divert, message: Message, hops: int) -> None:
        changes = _origin(message, address.name, divert.routing_name)
        drop = frozenset[str]() if divert.routing_type == "PASS" else _STRIPPED
        routing_type = divert.routing_type if divert.routing_type in _ROUTING_TYPE_CODES else None
        if routing_type is not None:
            changes["destination-type"] = routing_type
        for target in divert.forwarding_addresses:
            head = message.head.forwarded(target, changes, drop)
            if routing_type is not None:
                head.routing_type = routing_type
            self._forward(Forward(target, head, message.body, message.expires_ms, hops + 1, address.name, "divert"))

    def _forward(self, forward: Forward) -> None:
        if forward.hops > HOPS_MAX:
            self.looped_message_count += 1
            return
        self.forwards.append(forward)

    def forward_dead(self, address: str, source: Address, queue: Queue | None, message: Message, reason: str) -> None:
        """Send a copy of a dead message to the dead-letter address."""
        changes = _origin(message, source.name, None if queue is None else queue.name)
        changes["reason"] = reason
        head = message.head.forwarded(address, changes, _STRIPPED)
        self._forward(Forward(address, head, message.body, 0, 1, message.head.address, "dead"))

    def forward_expired(self, address: str, source: Address, queue: Queue, message: Message, now_ms: int) -> None:
        """Send a copy of an expired message to the expiry address."""
        changes = _origin(message, source.name, queue.name)
        changes["_AMQ_ACTUAL_EXPIRY"] = str(now_ms)
        changes["reason"] = "time_limit"
        head = message.head.forwarded(address, changes, _STRIPPED)
        self._forward(Forward(address, head, message.body, 0, 1, message.head.address, "expired"))

    # ---- queues ----------------------------------------------------------------------------------

    def _route(
        self, route: Route, plan: Plan, messages: list[Message], size_bytes: int, now_ms: int, plain: bool, due_ms: int
    ) -> None:
        address = route.address
        shares: list[tuple[Queue, list[Message]]] = []
        routed_all = False
        if route.queue is not None:
            targets = [route.queue]
        elif route.routing_type == ANYCAST:
            targets = []
        else:
            targets = plan.multicast
        for queue in targets:
            taken = messages if queue.accepts_all else [message for message in messages if queue.accepts(message)]
            if taken:
                routed_all = routed_all or taken is messages
                shares.append((queue, taken))
        if route.queue is None and plan.anycast and route.routing_type != MULTICAST:
            only = plan.anycast[0]
            if len(plan.anycast) == 1 and only.accepts_all:
                routed_all = True
                shares.append((only, messages))
            else:
                shares.extend(_deal(plan, messages))
        routed = len(messages)
        if not routed_all:
            reached = {message.id for _, taken in shares for message in taken}
            routed = len(reached)
            if routed < len(messages):
                self._unrouted(address, [message for message in messages if message.id not in reached])
        address.routed_message_count += routed
        if shares:
            self._enqueue(address, shares, messages, size_bytes, now_ms, plain, due_ms)

    def _unrouted(self, address: Address, messages: list[Message]) -> None:
        address.unrouted_message_count += len(messages)
        settings = address.settings
        target = settings.dead_letter_address
        if settings.send_to_dla_on_no_route and target and target != address.name:
            for message in messages:
                self.forward_dead(target, address, None, message, "no_route")

    def _enqueue(
        self,
        address: Address,
        shares: list[tuple[Queue, list[Message]]],
        messages: list[Message],
        size_bytes: int,
        now_ms: int,
        plain: bool,
        due_ms: int,
    ) -> None:
        if not plain:
            self._record(shares)
        shared: list[Entry] | None = None
        waiting: list[tuple[Queue, list[Message]]] = []
        for queue, taken in shares:
            consumer = queue.direct_consumer() if plain and not due_ms else None
            if consumer is None:
                waiting.append((queue, taken))
            elif taken is messages:
                if shared is None:
                    shared = [Entry(message) for message in messages]
                queue.hand_over(consumer, shared, size_bytes)
            else:
                queue.hand_over(
                    consumer, [Entry(message) for message in taken], sum(message.size_bytes for message in taken)
                )
        if not waiting:
            return
        if len(waiting) == 1 and waiting[0][1] is messages:
            address.account.charge(len(messages), size_bytes + MESSAGE_OVERHEAD_BYTES * len(messages))
            self._put(waiting[0][0], messages, size_bytes, now_ms, due_ms)
            return
        self._put_on_several(address, waiting, now_ms, due_ms)

    def _put_on_several(
        self, address: Address, waiting: list[tuple[Queue, list[Message]]], now_ms: int, due_ms: int
    ) -> None:
        """Several queues refer to one message: it is charged once, and kept until all of them have seen it."""
        distinct = {message.id: message for _, taken in waiting for message in taken}
        for message in distinct.values():
            message.refs += 1
            address.account.charge(1, message.memory_bytes)
        for queue, taken in waiting:
            self._put(queue, taken, sum(message.size_bytes for message in taken), now_ms, due_ms)
        for message in distinct.values():
            message.refs -= 1
            if not message.refs:
                address.account.credit(message.memory_bytes)

    def _put(self, queue: Queue, messages: list[Message], size_bytes: int, now_ms: int, due_ms: int) -> None:
        if due_ms:
            for message in messages:
                queue.schedule(Entry(message), due_ms)
        else:
            queue.arrive([Entry(message) for message in messages], size_bytes, now_ms)

    def _record(self, shares: list[tuple[Queue, list[Message]]]) -> None:
        """Write persistent messages to the log, each once with the durable queues that it goes to."""
        names: dict[int, list[str]] = {}
        persistent: dict[int, Message] = {}
        for queue, taken in shares:
            if queue.durable:
                for message in taken:
                    if message.head.persistent:
                        names.setdefault(message.id, []).append(queue.name)
                        persistent[message.id] = message
        for message_id, queue_names in names.items():
            message = persistent[message_id]
            message.lsn = self._bindings.log.published(message, queue_names)


def _passes(divert: Divert, message: Message) -> bool:
    return divert.selector is None or divert.selector.matches(message.lookup)


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


def _deal(plan: Plan, messages: list[Message]) -> list[tuple[Queue, list[Message]]]:
    """Share messages out among the anycast queues, in turn, passing over queues that do not accept one."""
    queues = plan.anycast
    dealt: dict[str, tuple[Queue, list[Message]]] = {}
    for message in messages:
        for step in range(len(queues)):
            queue = queues[(plan.anycast_turn + step) % len(queues)]
            if queue.accepts(message):
                plan.anycast_turn = (plan.anycast_turn + step + 1) % len(queues)
                dealt.setdefault(queue.name, (queue, []))[1].append(message)
                break
    return list(dealt.values())
