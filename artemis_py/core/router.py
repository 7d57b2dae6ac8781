"""From an address to its queues: admission, expiry, duplicates, diverts, and who gets a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, DuplicateIds, Plan
from artemis_py.core.admission import deal, must_page, obstacle, offer, takers
from artemis_py.core.batch import Batch, Route
from artemis_py.core.bindings import Bindings
from artemis_py.core.commits import Commits
from artemis_py.core.enqueuing import Enqueuer
from artemis_py.core.forward import HOPS_HEADER, HOPS_MAX, Forward, copy_headers, hops_of
from artemis_py.core.holdings import Holdings
from artemis_py.core.plan_cost import PLAIN, PlanCost
from artemis_py.core.queue.queue import Queue
from artemis_py.core.recording import Share
from artemis_py.core.spreading import Placing
from artemis_py.core.verdicts import Verdicts
from artemis_py.message import Message
from artemis_py.records import RecordLog

_NONE: Final[list[Queue]] = []
__all__ = ["Batch", "Bindings", "Route", "Router"]

_STRIPPED: Final = frozenset({"destination-type", HOPS_HEADER})
_HOPS: Final = frozenset({HOPS_HEADER})
_OWN_TYPES: Final = (ANYCAST, MULTICAST)


class Router:
    """Takes messages in at an address and puts entries on queues. It holds no queue and dispatches nothing itself."""

    def __init__(self, bindings: Bindings, id_cache_size: int, holdings: Holdings, *, keeps_ids: bool = True) -> None:
        self._bindings = bindings
        self._wildcards = bindings.wildcards
        self._keeps_ids = keeps_ids
        self._id_cache_size = id_cache_size
        self.commits = Commits(id_cache_size, holdings, keeps=keeps_ids)
        self.forwards: list[Forward] = []
        self.looped_message_count = 0
        self._enqueuer = Enqueuer(bindings)

    @property
    def begun(self) -> bool:
        """Was something published since ``take_begun`` that is not on all of its queues?"""
        return len(self._enqueuer.begun) > 0

    def take_begun(self) -> list[Placing]:
        """That, and forget it: whoever asks may wait for it."""
        begun, self._enqueuer.begun = self._enqueuer.begun, []
        return begun

    def coming(self) -> dict[int, list[int]]:
        """What durable queues are still to get of persistent messages that are written down; see ``Enqueuer``."""
        return self._enqueuer.coming()

    @property
    def log(self) -> RecordLog:
        """Where what happens is written."""
        return self._bindings.log

    def cost_of(self, route: Route) -> PlanCost:
        """What a message to this destination costs."""
        queue = route.queue
        if queue is None:
            return self._plan(route).cost
        diverts = route.address.diverts
        if queue.selector is None and not diverts:
            return PLAIN
        cost = PlanCost()
        cost.add(queue.selector)
        for divert in diverts:
            cost.add(divert.selector)
        return cost

    # ---- admission -------------------------------------------------------------------------------

    def publish(self, batch: Batch, *, admitted: bool = False) -> int:
        """Route messages in order; returns how many the address took.

        Fewer than given are taken only when the address is full (or its pages are) and the policy is FAIL or BLOCK.
        ``admitted`` says that nobody is there to be blocked or told any more (a commit, a copy made by the broker):
        then only DROP still applies.
        """
        plan = self._plan(batch.route)
        cost = plan.cost if batch.route.queue is None else self.cost_of(batch.route)
        asked = batch.verdicts is not None
        self._bindings.budget.spend(cost.places_of(len(batch.messages)) if asked else cost.of_all(batch.messages))
        limited = _limited(batch.route, plan)
        batch.limited = len(limited) > 0
        if batch.route.address.is_spreading and not admitted and self._must_wait(batch, limited):
            return 0
        if limited and not all(
            queue.flow.fits(len(batch.messages), batch.size_bytes) and not queue.flow.stopped for queue in limited
        ):
            return self._publish_to_limited(batch, plan, admitted)
        return self._publish_admitted(batch, admitted)

    def _must_wait(self, batch: Batch, limited: list[Queue]) -> bool:
        """Something is being put on the address' queues. What may come to a page waits for that: it stands behind it
        there.
        """
        address = batch.route.address
        pages = any(queue.flow.overflow.pages for queue in limited)
        if pages or not address.has_room_for(len(batch.messages), batch.memory_bytes):
            batch.behind = address.spread
        return batch.behind is not None

    def _publish_to_limited(self, batch: Batch, plan: Plan, admitted: bool) -> int:
        """One by one, because a queue may take some of the messages and not all."""
        route, now_ms = batch.route, batch.now_ms
        address = route.address
        for index, message in enumerate(batch.messages):
            size_bytes = message.size_bytes
            queues = takers(address, plan, route.queue, route.routing_type, batch.verdicts_of(message))
            # A repeated message is confirmed: it is there, or was.
            refusing = None if admitted or self.has_seen(address, message) else obstacle(queues, size_bytes, now_ms)
            if refusing is not None:
                batch.refused_by = refusing
                batch.refused_bytes = size_bytes
                if refusing.flow.overflow.refuses:
                    self.log.story.refused(address.name, "reject", message)
                return index
            one = replace(batch, messages=[message], size_bytes=size_bytes)
            if not address.is_paging and address.refusal is None and must_page(address, queues, size_bytes, now_ms):
                one.paged = True
                self._publish(one)
            elif not self._publish_admitted(one, admitted):
                return index
        return len(batch.messages)

    def is_limited(self, route: Route) -> bool:
        """Is there a queue at the route's end of which the depth may stand against a message?"""
        return len(_limited(route, self._plan(route))) > 0

    def limited_takers(self, route: Route, verdicts: Verdicts) -> list[Queue]:
        """Of the queues that a message would come to, those of which the depth may stand against it."""
        plan = self._plan(route)
        if not _limited(route, plan):
            return []
        queues = takers(route.address, plan, route.queue, route.routing_type, verdicts)
        return [queue for queue in queues if queue.flow.limits_senders]

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
                self.log.story.refused(address.name, "drop", message)
            elif refusal is not None and not admitted and not self.has_seen(address, message):
                if refusal == "FAIL":
                    self.log.story.refused(address.name, "fail", message)
                return index
            elif address.must_page and not address.has_page_limit:
                self._publish_rest(batch, messages[index:])
                break
            else:
                one = replace(batch, messages=[message], size_bytes=message.size_bytes, paged=address.must_page)
                self._publish(one)
        return len(messages)

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

    def _plan(self, route: Route) -> Plan:
        """The plan of the route's address. Of a route to one queue only diverts matter: its plan may know queues that
        are gone.
        """
        address = route.address
        plan = address.plan
        if plan is None:
            return self._bindings.plan_for(address)
        if plan.losses != address.losses or plan.wildcard_changes != self._wildcards.changes:
            return plan if route.queue is not None else self._bindings.plan_for(address)
        return plan

    def _publish_distinct(self, batch: Batch) -> None:
        address = batch.route.address
        plan = self._plan(batch.route)
        diverted: set[int] | None = None
        if plan.cost.programs and batch.verdicts is None and len(batch.messages) == 1:
            message = batch.messages[0]
            batch.verdicts = {message: Verdicts(message)}
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
            own = address.settings.id_cache_size
            size = self._id_cache_size if own is None else own
            address.duplicate_ids = DuplicateIds(size, address.memory.holdings)
        return address.duplicate_ids

    def _without_duplicates(self, address: Address, messages: list[Message]) -> list[Message]:
        kept: list[Message] = []
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                seen = self._duplicate_ids(address)
                if duplicate_id in seen:
                    message.lsn = self.log.last_lsn  # where the first one was written, at the latest
                    self.log.story.refused(address.name, "duplicate", message)
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
            verdicts = batch.verdicts_of(message)
            matched = [divert for divert in plan.exclusive_diverts if verdicts.of(divert.selector)]
            if not matched:
                kept.append(message)
                if plan.retention is not None:
                    self._retain(plan.retention, message, batch)
                matched = [divert for divert in plan.diverts if verdicts.of(divert.selector)]
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
            Forward(
                target, message.head, message.body, message.expires_ms, batch.hops + 1, batch.due_ms, as_it_is=True
            ),
            batch.route.address,
        )

    def give(self, address: Address, queue: Queue, messages: list[Message], now_ms: int) -> None:
        """Put messages on one queue past everything that decides who gets what: copies that it alone is to have."""
        route = Route(address, queue, None)
        batch = Batch(route, messages, sum(message.size_bytes for message in messages), now_ms, plain=False)
        batch.paged = address.must_page
        batch.limited = queue.flow.limits_senders
        self._enqueuer.enqueue(batch, [(queue, messages)])

    def _forward_diverted(self, address: Address, divert: Divert, message: Message, batch: Batch) -> None:
        hops = max(batch.hops, hops_of(message.head)) + 1
        changes = copy_headers(message, address.name, divert.routing_name, hops)
        drop = _HOPS if divert.routing_type == "PASS" else _STRIPPED
        routing_type = divert.routing_type if divert.routing_type in _OWN_TYPES else None
        if routing_type is not None:
            changes["destination-type"] = routing_type
        passed = (*batch.passed, divert.name)
        for target in divert.forwarding_addresses:
            if divert.name in batch.passed:
                self._drop_looping(address, target)
                continue
            head = message.head.forwarded(target, changes, drop)
            if routing_type is not None:
                head.routing_type = routing_type
            self._forward(
                Forward(
                    target,
                    head,
                    message.body,
                    message.expires_ms,
                    hops,
                    batch.due_ms,
                    creates=True,
                    origin=message.origin,
                    passed=passed,
                ),
                address,
            )

    def _forward(self, forward: Forward, source: Address) -> None:
        if forward.hops > HOPS_MAX:
            self._drop_looping(source, forward.address)
            return
        self.forwards.append(forward)

    def _drop_looping(self, source: Address, target: str) -> None:
        self.looped_message_count += 1
        self._bindings.note_looped(source, target)

    def forward_dead(self, address: str, source: Address, queue_name: str, message: Message) -> None:
        """Send a copy of a message to the dead-letter address for which a consumer has failed for the last time."""
        changes = copy_headers(message, source.name, queue_name, 1)
        changes["reason"] = "max_deliveries"
        self._forward_changed(address, source, message, changes, 1)

    def _forward_unrouted(self, address: str, source: Address, message: Message, hops: int) -> None:
        changes = copy_headers(message, source.name, None, hops)
        changes["reason"] = "no_route"
        self._forward_changed(address, source, message, changes, hops)

    def forward_expired(self, address: str, source: Address, queue_name: str, message: Message, now_ms: int) -> None:
        """Send a copy of an expired message to the expiry address."""
        hops = hops_of(message.head) + 1
        changes = copy_headers(message, source.name, queue_name, hops)
        changes["_AMQ_ACTUAL_EXPIRY"] = str(now_ms)
        changes["reason"] = "time_limit"
        self._forward_changed(address, source, message, changes, hops)

    def _forward_changed(
        self, address: str, source: Address, message: Message, changes: dict[str, str], hops: int
    ) -> None:
        head = message.head.forwarded(address, changes, _STRIPPED)
        self._forward(Forward(address, head, message.body, 0, hops), source)

    # ---- queues ----------------------------------------------------------------------------------

    def _route(self, batch: Batch, plan: Plan, diverted: set[int] | None) -> None:
        route, messages = batch.route, batch.messages
        only = _only_target(route, plan)
        if only is not None and only.accepts_all:
            route.address.routed_message_count += len(messages)
            if batch.paged or route.address.is_spreading:
                self._enqueuer.enqueue(batch, [(only, messages)])
            else:
                self._enqueuer.enqueue_on_one(batch, only)
            return
        shares = offer(_targets(route, plan), batch)
        if route.queue is None and plan.anycast and route.routing_type != MULTICAST:
            shares.extend(deal(plan.anycast, batch))
        self._count_routed(batch, shares, diverted)
        if shares:
            self._enqueuer.enqueue(batch, shares)
        elif not batch.plain:
            self._enqueuer.recording.record_unrouted(batch)

    def _count_routed(self, batch: Batch, shares: list[Share], diverted: set[int] | None) -> None:
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
                hops = max(batch.hops, hops_of(message.head)) + 1
                self._forward_unrouted(target, address, message, hops)


def _limited(route: Route, plan: Plan) -> list[Queue]:
    """The queues of which the depth may stand against a message that takes this route."""
    queue = route.queue
    if queue is None:
        return plan.limited
    return [queue] if queue.flow.limits_senders else _NONE


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
