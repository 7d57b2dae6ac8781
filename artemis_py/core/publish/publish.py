"""The way into an address: is there room, which queues get the message, and which copies go elsewhere."""

from __future__ import annotations

from typing import Final, final

from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, PLAIN, Address, Plan
from artemis_py.core.addresses.batch import Batch, FilterResults
from artemis_py.core.addresses.enqueue import Enqueuer, Share
from artemis_py.core.addresses.full_policy import note_full, why_dropped
from artemis_py.core.addresses.routing_table import Bindings, Route
from artemis_py.core.dead_letters import dead_letter_address_of, expiry_address_of
from artemis_py.core.destinations.auto_create import Resolver
from artemis_py.core.events import (
    ADDRESS_DROPS,
    ADDRESS_REFUSES,
    DEAD,
    DISCARDED,
    NO_DESTINATION,
    NOT_ROUTED,
    ORPHANED,
)
from artemis_py.core.publish.copies import CopyMaker, MessageCopy
from artemis_py.core.publish.duplicates import Duplicates
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.scheduled import AGAIN_MS
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import QueueReference
from artemis_py.core.recurrence import fall_due, job_of
from artemis_py.errors import NotFoundError
from artemis_py.message import HeaderName, Message

# ---- targets ---------------------------------------------------------------------------------------------------------
#
# Which queues a message goes to: all multicast queues that accept it, one of the anycast queues, in turn, and all
# views over the address.


def accepts(queue: Queue, filter_results: FilterResults) -> bool:
    """Does the message enter the queue?"""
    return queue.is_open_to(filter_results.message) and filter_results.of(queue.selector)


def next_in_turn(address: Address, queues: list[Queue], filter_results: FilterResults) -> int:
    """Which of several anycast queues is to get the message: the next that accepts it and admits it, or else the next
    that accepts it; -1 when none does.
    """
    accepting = -1
    for step in range(len(queues)):
        place = (address.anycast_turn + step) % len(queues)
        queue = queues[place]
        if accepts(queue, filter_results):
            if queue.flow.admits(filter_results.message.size_bytes):
                return place
            if accepting < 0:
                accepting = place
    return accepting


def offer(queues: list[Queue], batch: Batch) -> list[tuple[Queue, list[Message]]]:
    """What each of the queues takes of a batch. Equal filters are asked once for each message."""
    messages = batch.messages
    shares: list[tuple[Queue, list[Message]]] = []
    asked: list[FilterResults] = []
    for queue in queues:
        taken = messages
        if not queue.accepts_all:
            if not asked:
                asked = [batch.filter_results_of(message) for message in messages]
            taken = [filter_results.message for filter_results in asked if accepts(queue, filter_results)]
        if taken:
            shares.append((queue, taken))
    return shares


def deal(queues: list[Queue], batch: Batch) -> list[tuple[Queue, list[Message]]]:
    """Share a batch out among anycast queues, in turn, passing over queues that do not accept a message."""
    address = batch.route.address
    if len(queues) == 1 and queues[0].accepts_all:
        return [(queues[0], batch.messages)]
    dealt: dict[str, tuple[Queue, list[Message]]] = {}
    for message in batch.messages:
        place = next_in_turn(address, queues, batch.filter_results_of(message))
        if place >= 0:
            address.anycast_turn = (place + 1) % len(queues)
            queue = queues[place]
            dealt.setdefault(queue.name, (queue, []))[1].append(message)
    return list(dealt.values())


def every_target(route: Route, plan: Plan) -> list[Queue]:
    """The queues that each get every message: the queue that was named, or all multicast queues and views."""
    if route.queue is not None:
        return [route.queue]
    return plan.multicast if route.routing_type != ANYCAST else plan.views


def only_target(route: Route, plan: Plan) -> Queue | None:
    """The queue that gets every message that it accepts, if there is no other."""
    if route.queue is not None:
        return route.queue
    only = plan.only_queue
    if only is None or route.routing_type is None or route.routing_type == only.routing_type or plan.views:
        return only
    return None


def takers(
    address: Address, plan: Plan, named: Queue | None, routing_type: str | None, filter_results: FilterResults
) -> list[Queue]:
    """The queues that the message would come to; ``named`` is the one of a fully qualified destination."""
    if any(filter_results.of(divert.selector) for divert in plan.exclusive_diverts):
        return []
    if named is not None:
        return [named] if accepts(named, filter_results) else []
    every = plan.multicast if routing_type != ANYCAST else plan.views
    found = [queue for queue in every if accepts(queue, filter_results)]
    if plan.anycast and routing_type != MULTICAST:
        place = next_in_turn(address, plan.anycast, filter_results)
        if place >= 0:
            found.append(plan.anycast[place])
    return found


# ---- router ----------------------------------------------------------------------------------------------------------
#
# From an address to its queues: expiry settings, duplicates, diverts, and which queue gets which message.


_NAME_MAX: Final = 200


@final
class Router:
    """Decides who gets the messages that were admitted to an address. It holds no queue and gives nothing to
    consumers; a queue may, when messages arrive.
    """

    __slots__ = ("_bindings", "_duplicates", "_enqueuer", "_events", "_copy_maker", "_log", "_outcomes", "_resolver")

    def __init__(
        self,
        host: QueueHost,
        bindings: Bindings,
        resolver: Resolver,
        duplicates: Duplicates,
        copy_maker: CopyMaker,
        enqueuer: Enqueuer,
    ) -> None:
        self._log = host.log
        self._events = host.events
        self._outcomes = host.outcomes
        self._bindings = bindings
        self._resolver = resolver
        self._duplicates = duplicates
        self._copy_maker = copy_maker
        self._enqueuer = enqueuer

    def publish(self, batch: Batch) -> None:
        """Route messages in order. All of them are taken."""
        address = batch.route.address
        if address.changes_expiry:
            batch.plain = False
            for message in batch.messages:
                message.expires_ms = address.expiry_of(message.expires_ms, batch.now_ms)
        if not (batch.plain or batch.distinct) and any(one.head.duplicate_id is not None for one in batch.messages):
            self._log.begin_group()
            try:
                messages = self._duplicates.leave_out(address, batch.messages)
                batch.narrow(messages)
                try:
                    self._route(batch)
                except Exception:
                    paged = {one.id for one in batch.in_pages or ()}  # nothing refers to them
                    self._duplicates.forget(address, [one for one in messages if not (one.refs or one.id in paged)])
                    self._duplicates.write(address, [one for one in messages if one.refs or one.id in paged])
                    raise
                self._duplicates.write(address, messages)
            finally:
                self._log.end_group()
        else:
            self._route(batch)

    def _route(self, batch: Batch) -> None:
        plan = batch.plan or self._bindings.plan_of(batch.route)
        diverted: set[int] | None = None
        if plan.cost.programs and batch.filter_results is None and len(batch.messages) == 1:
            message = batch.messages[0]
            batch.filter_results = {message: FilterResults(message)}
        if plan.has_diverts and (batch.route.queue is None or plan.exclusive_diverts):
            diverted = self._copy_maker.divert(plan, batch)
        if not batch.messages:
            return
        route, messages = batch.route, batch.messages
        only = only_target(route, plan)
        if only is not None and only.accepts_all:
            address = route.address
            address.routed_message_count += len(messages)
            if batch.paged or (address.fan_outs is not None and address.is_fanning_out):
                self._enqueuer.enqueue(batch, [(only, messages)])
            else:
                self._enqueuer.enqueue_on_one(batch, only)
            return
        shares = offer(every_target(route, plan), batch)
        if route.queue is None and plan.anycast and route.routing_type != MULTICAST:
            shares.extend(deal(plan.anycast, batch))
        self._count_routed(batch, plan, shares, diverted)
        if shares:
            self._enqueuer.enqueue(batch, shares)
        elif not batch.plain:
            self._enqueuer.recording.record_unrouted(batch)

    def _count_routed(self, batch: Batch, plan: Plan, shares: list[Share], diverted: set[int] | None) -> None:
        """Count what reached a queue or a divert; the rest goes to the dead-letter address if settings say so."""
        address, messages = batch.route.address, batch.messages
        if any(taken is messages for _, taken in shares):
            address.routed_message_count += len(messages)
            return
        reached = {message.id for _, taken in shares for message in taken}
        if diverted:
            reached.update(diverted)
        missed = [message for message in messages if message.id not in reached]
        if missed:
            lost = _not_awaited(missed, batch, plan)
            if self._outcomes:
                self._note_missed(missed, lost, batch.route, plan)
            missed = lost
        address.routed_message_count += len(messages) - len(missed)
        address.unrouted_message_count += len(missed)
        if missed and address.deleted and address.temporary:
            who: dict[str, str | int] = {} if batch.sender is None else batch.sender.who
            self._events.note(ORPHANED, "", {"address": address.name[:_NAME_MAX], **who}, count=len(missed))
        settings = address.settings
        target = settings.dead_letter_address
        if missed and settings.send_to_dla_on_no_route and target and target != address.name:
            self._resolver.obtain_resources(address, target, dead=True)
            for message in missed:
                self._copy_maker.add_unrouted(target, address, message, batch.hops)

    def _note_missed(self, missed: list[Message], lost: list[Message], route: Route, plan: Plan) -> None:
        """Tell publishers who wait for it why no queue took their messages, or that one will find them in the log."""
        for message in missed:
            outcome = self._outcomes.get(message.id)
            if outcome is None:
                continue
            if message not in lost:
                outcome.is_awaited = True
            elif message.id != outcome.message_id:
                outcome.lose_copy(route.address.name, _why_unrouted(message, route, plan))
            else:
                outcome.is_orphaned = route.address.deleted
                outcome.has_targets = bool(possible_targets(route, plan))
                outcome.unrouted_because = _why_unrouted(message, route, plan)


def possible_targets(route: Route, plan: Plan) -> list[Queue]:
    """Every queue that some message on this route may come to."""
    queues = every_target(route, plan)
    if route.queue is None and route.routing_type != MULTICAST:
        queues = [*queues, *plan.anycast]
    return queues


def _why_unrouted(message: Message, route: Route, plan: Plan) -> str:
    """Why no queue on this route took a message; each reason was looked at."""
    queues, name = possible_targets(route, plan), route.address.name
    if route.address.deleted:
        return f"{name} is a temporary destination whose client has gone"
    if not queues:
        kind = "" if route.routing_type is None else f"{route.routing_type} "
        return f"address {name} has no {kind}queue that would take it"
    found = list(dict.fromkeys(_why_closed(queue, message) for queue in queues))
    whose = f"queue {queues[0].name}" if len(queues) == 1 else f"each of the {len(queues)} queues of address {name}"
    return f"{whose} {', or '.join(found)}"


def _why_closed(queue: Queue, message: Message) -> str:
    """Why a queue does not take a message."""
    if not queue.enabled:
        return "is disabled"
    if queue.purge_on_no_consumers and not queue.taker_count:
        return "has no consumer, and keeps nothing without one (purge-on-no-consumers)"
    if queue.selector is not None and not queue.selector.matches(message.lookup):
        return "has a filter that does not match it"
    return "does not take it from this sender"


def _not_awaited(messages: list[Message], batch: Batch, plan: Plan) -> list[Message]:
    """Those of the messages that no queue will get from the log while it is filled."""
    for queue in possible_targets(batch.route, plan):
        if queue.filling is not None:
            messages = [
                message
                for message in messages
                if not message.head.persistent or not batch.filter_results_of(message).of(queue.selector)
            ]
    return messages


# ---- publisher -------------------------------------------------------------------------------------------------------
#
# The way into an address: is there room for what a client or the broker publishes? A message is refused before
# anything happens to it, and then none of the queues gets it. A queue that limits its senders first lets its
# consumers take what they have room for.


_NONE: Final[list[Queue]] = []


@final
class Publisher:
    """Takes batches as far as the address and its queues have room, and hands them to the router."""

    __slots__ = ("_bindings", "_duplicates", "_host", "_router")

    def __init__(self, host: QueueHost, bindings: Bindings, duplicates: Duplicates, router: Router) -> None:
        self._host = host
        self._bindings = bindings
        self._duplicates = duplicates
        self._router = router

    def publish(self, batch: Batch, *, admitted: bool = False) -> int:
        """Publish messages in order; returns how many the address took.

        Fewer than given are taken only when the address is full (or its pages are) and the policy is FAIL or BLOCK, or
        when a queue has no room. ``admitted`` says that nobody is there to be blocked or told any more (a commit, a
        copy made by the broker): then only DROP still applies.
        """
        route, messages = batch.route, batch.messages
        plan = batch.plan or self._bindings.plan_of(route)
        cost = plan.cost if route.queue is None else self._bindings.cost_of(route)
        if cost is PLAIN:
            self._host.budget.left -= len(messages)
        else:
            asked = batch.filter_results is not None
            self._host.budget.spend(cost.places_of(len(messages)) if asked else cost.of_all(messages))
        limited = plan.limited if route.queue is None else _limited(route, plan)
        batch.limited = len(limited) > 0
        if route.address.fan_outs is not None and not admitted and _must_wait(batch, limited):
            return 0
        if limited and not _have_room(limited, batch):
            return self._publish_to_limited(batch, plan, admitted)
        if route.address.has_room_for(len(messages), batch.memory_bytes):
            self._router.publish(batch)
            return len(messages)
        return self._publish_while_room(batch, admitted)

    def is_limited(self, route: Route) -> bool:
        """Does the route lead to a queue whose depth limit may refuse a message?"""
        return len(_limited(route, self._bindings.plan_of(route))) > 0

    def limited_takers(self, route: Route, filter_results: FilterResults) -> list[Queue]:
        """Of the queues that would get a message, those whose depth limit may refuse it."""
        plan = self._bindings.plan_of(route)
        if not _limited(route, plan):
            return []
        queues = takers(route.address, plan, route.queue, route.routing_type, filter_results)
        return [queue for queue in queues if queue.flow.limits_senders]

    def _publish_to_limited(self, batch: Batch, plan: Plan, admitted: bool) -> int:
        """One by one, because a queue may take some of the messages and not all."""
        route, now_ms = batch.route, batch.now_ms
        address = route.address
        for index, message in enumerate(batch.messages):
            size_bytes = message.size_bytes
            queues = takers(address, plan, route.queue, route.routing_type, batch.filter_results_of(message))
            # A repeated message is confirmed: it is there, or was.
            refusing: Queue | None = None
            if not admitted and not self._duplicates.has_seen(address, message):
                refusing = make_room(queues, size_bytes, now_ms)
            if refusing is not None:
                batch.refused_by = refusing
                batch.refused_bytes = size_bytes
                if refusing.flow.overflow.refuses:
                    self._host.log.audit.refused(address.name, "reject", message)
                return index
            one = batch.part([message])
            if (
                not address.is_paging
                and address.refusal is None
                and make_room_or_page(address, queues, size_bytes, now_ms)
            ):
                one.paged = True
                self._router.publish(one)
            elif not self._publish_admitted(one, admitted):
                return index
        return len(batch.messages)

    def _publish_admitted(self, batch: Batch, admitted: bool) -> int:
        """The queues have room. The address may still refuse the batch."""
        count = len(batch.messages)
        if batch.route.address.has_room_for(count, batch.memory_bytes):
            self._router.publish(batch)
            return count
        return self._publish_while_room(batch, admitted)

    def _publish_while_room(self, batch: Batch, admitted: bool) -> int:
        address = batch.route.address
        messages = batch.messages
        audit, events = self._host.log.audit, self._host.events
        for index, message in enumerate(messages):
            refusal = address.refusal
            if refusal == "DROP":
                address.routed_message_count += 1
                address.dropped_message_count += 1
                audit.refused(address.name, "drop", message)
                note_full(events, ADDRESS_DROPS, address, batch.sender)
                outcome = self._host.outcomes.get(message.id)
                if outcome is not None:
                    outcome.drop_at_address(message.id, address.name, why_dropped(address))
            elif refusal is not None and not admitted and not self._duplicates.has_seen(address, message):
                if refusal == "FAIL":
                    audit.refused(address.name, "fail", message)
                    note_full(events, ADDRESS_REFUSES, address, batch.sender)
                return index
            elif address.must_page and not address.has_page_limit:
                self._publish_rest(batch, messages[index:])
                break
            else:
                one = batch.part([message])
                one.paged = address.must_page
                self._router.publish(one)
        return len(messages)

    def _publish_rest(self, batch: Batch, messages: list[Message]) -> None:
        """From here on nothing in the batch can be refused one by one: it goes to pages."""
        rest = batch.part(messages)
        rest.paged = True
        self._router.publish(rest)


def make_room(queues: list[Queue], size_bytes: int, now_ms: int) -> Queue | None:
    """Let consumers take messages from each queue that has no room for one more of this size. Returns the first queue
    that still has none, and None when the message may come.
    """
    for queue in queues:
        if not queue.flow.admits(size_bytes):
            queue.offer_first(now_ms)
            if not queue.flow.admits(size_bytes):
                return queue
    return None


def make_room_or_page(address: Address, queues: list[Queue], size_bytes: int, now_ms: int) -> bool:
    """Let consumers take messages from full queues whose ``overflow-policy`` is PAGE. True when one of them still has
    no room: then the message goes to a page for all of its queues, because it stands in a page once.
    """
    if not address.can_page:
        return False
    for queue in queues:
        if queue.flow.overflow.pages and not queue.flow.fits(1, size_bytes):
            queue.offer_first(now_ms)
            if not queue.flow.fits(1, size_bytes):
                return True
    return False


def _must_wait(batch: Batch, limited: list[Queue]) -> bool:
    """Is an earlier publication still being put on the address' queues? A batch that may go to a page waits for that,
    to keep the order.
    """
    address = batch.route.address
    if not address.is_fanning_out:
        return False
    pages = any(queue.flow.overflow.pages for queue in limited)
    if pages or not address.has_room_for(len(batch.messages), batch.memory_bytes):
        batch.waits_for = address.fan_outs
    return batch.waits_for is not None


def _limited(route: Route, plan: Plan) -> list[Queue]:
    """The queues on this route whose depth limit may refuse a message."""
    queue = route.queue
    if queue is None:
        return plan.limited
    return [queue] if queue.flow.limits_senders else _NONE


def _have_room(queues: list[Queue], batch: Batch) -> bool:
    return all(queue.flow.fits(len(batch.messages), batch.size_bytes) and not queue.flow.stopped for queue in queues)


# ---- copy publisher --------------------------------------------------------------------------------------------------
#
# Publishes copies for other addresses: of diverted, dead, expired and unrouted messages.


_ROUNDS_MAX: Final = 32
_SCHEDULES_MAX: Final = 10_000
"""Of so many the log remembers what it has said; then it begins anew."""
_REASON_MAX: Final = 300
_ACTUAL_EXPIRY: Final = HeaderName("_AMQ_ACTUAL_EXPIRY")


@final
class CopyPublisher:
    """Makes the copies of dead and expired messages, which queues note in ``Copies``. Publishes them, and the copies of
    diverted and unrouted messages. A SEND and a COMMIT publish theirs at once; the rest follows the dispatch of a turn.
    """

    __slots__ = (
        "_publisher", "_bindings", "_duplicates", "_enqueuer", "_copy_maker", "_host", "_resolver",
        "_without_destination",
    )  # fmt: skip

    def __init__(
        self,
        host: QueueHost,
        bindings: Bindings,
        resolver: Resolver,
        copy_maker: CopyMaker,
        publisher: Publisher,
        enqueuer: Enqueuer,
        duplicates: Duplicates,
    ) -> None:
        self._enqueuer = enqueuer
        self._duplicates = duplicates
        self._host = host
        self._bindings = bindings
        self._resolver = resolver
        self._copy_maker = copy_maker
        self._publisher = publisher
        self._without_destination: set[int] = set()
        """Schedules whose destination does not exist, as the log has said."""

    def flush(self, now_ms: int) -> None:
        """Publish all copies, in a bounded number of rounds: what goes on in a circle of addresses waits for the next
        turn.
        """
        for _ in range(_ROUNDS_MAX):
            self._make_copies(now_ms)
            copies = self._copy_maker.take()
            if not copies:
                break
            for copy in copies:
                try:
                    self._publish(copy, now_ms)
                except Exception as error:
                    if copy.outcome is not None:
                        copy.outcome.lose_copy(copy.address, "the copy failed; see the broker's log")
                    self._host.give_up("", f"copy to {copy.address}", error)
                    if copy.source is not None:
                        self._put_back(*copy.source, now_ms)
        if self._duplicates.undecided:
            self._duplicates.decide()
        self._host.copies.close()

    def _make_copies(self, now_ms: int) -> None:
        copies = self._host.copies
        dead, copies.dead = copies.dead, []
        for queue, message, reason in dead:
            try:
                self._copy_dead(queue, message, reason)
            except Exception as error:
                self._host.give_up(queue.name, "dead letter", error)
                self._put_back(queue, message, now_ms)
        due, copies.due = copies.due, []
        for queue, message in due:
            try:
                self._send_due(queue, message, now_ms)
            except Exception as error:
                self._host.give_up(queue.name, "schedule", error)
                self._put_back(queue, message, now_ms, now_ms + AGAIN_MS)
        expired, copies.expired = copies.expired, []
        if expired and self._host.notifications.is_heard:
            self._host.notifications.note_expired(expired)
        for queue, message, reason in expired:
            try:
                self._copy_expired(queue, message, reason, now_ms)
            except Exception as error:
                self._host.give_up(queue.name, "expiry", error)
                self._put_back(queue, message, now_ms)

    def _send_due(self, queue: QueueReference, message: Message, now_ms: int) -> None:
        """A message that is sent again and again is due. What waits for the next date is published first: if that
        fails, nothing has been sent, and the message is due again soon.
        """
        due = fall_due(message.head, message.id, now_ms)
        body, expires_ms = message.body, message.expires_ms
        if due.again is not None:
            head, due_ms = due.again
            self._publish_copy(MessageCopy(SCHEDULES, head, body, expires_ms, 0, due_ms, creates=True), now_ms)
        if due.begins is not None:
            head, due_ms = due.begins
            copy = MessageCopy(SCHEDULES, head, body, expires_ms, 0, due_ms, creates=True)
        else:
            copy = MessageCopy(
                due.address, due.head, body, expires_ms, 0, due.due_ms, creates=True, queue=due.queue,
                schedule=job_of(message),
            )  # fmt: skip
        self._copy_maker.waiting.append(copy)

    def _put_back(self, reference: QueueReference, message: Message, now_ms: int, due_ms: int = 0) -> None:
        """The copy of a dead or expired message could not be made or published: a copy goes to the queue that it has
        left, which is paused, so that it does not die again at once. With ``due_ms`` it waits there until then.
        """
        queue = self._bindings.by_id.get(reference.id)
        if queue is None or queue.deleted:
            return
        if not due_ms:
            queue.pause()
        address = self._bindings.address_of(queue)
        number = self._host.next_message_id()
        expires_ms = message.expires_ms if due_ms else 0
        again = Message(message.head, message.body, number, now_ms, expires_ms, address.account, message.origin)
        self._enqueuer.enqueue_copies(address, queue, [again], now_ms, due_ms)

    def _copy_dead(self, queue: QueueReference, message: Message, reason: str) -> None:
        source = self._bindings.source_of(message, queue)
        target = dead_letter_address_of(queue, source.settings.dead_letter_address)
        if target:
            self._resolver.obtain_resources(source, target, dead=True)
            self._copy_maker.add_dead(target, source, queue, message, reason)
        self._tell_dead(queue, message, target, reason)

    def _copy_expired(self, queue: QueueReference, message: Message, reason: str, now_ms: int) -> None:
        source = self._bindings.source_of(message, queue)
        settings = source.settings
        target = expiry_address_of(queue, settings.expiry_address, settings.dead_letter_address)
        if target and not (target == source.name and message.head.first(_ACTUAL_EXPIRY) is not None):
            self._resolver.obtain_resources(source, target, dead=False)
            self._copy_maker.add_expired(target, source, queue, message, reason, now_ms)

    def _tell_dead(self, queue: QueueReference, message: Message, target: str | None, reason: str) -> None:
        """Tell the operational log what became of a message after its last attempt, and which limit it reached."""
        fields: dict[str, str | int] = {"message": message.id, "reason": reason}
        if target:
            fields["dead_letter_address"] = target
        address = self._bindings.addresses.get(target) if target else None
        reached = address is not None and (bool(address.diverts) or self._bindings.has_queues(address))
        code = DEAD if reached else NOT_ROUTED if target else DISCARDED
        self._host.note_event(code, queue, fields, kind=reason)

    def _publish(self, copy: MessageCopy, now_ms: int) -> None:
        diverted = copy.diverted
        if diverted is None:
            self._publish_copy(copy, now_ms)
            return
        is_routed = diverted.is_passed_on = False
        try:
            is_routed = self._publish_copy(copy, now_ms)
        finally:
            diverted.end_copy(is_there=is_routed and not diverted.is_passed_on)

    def _publish_copy(self, copy: MessageCopy, now_ms: int) -> bool:
        """Publish a copy. Returns False if its address counts it as unrouted, or does not exist."""
        outcome = copy.outcome
        if outcome is not None:
            outcome.publish_copy()
        route = self._route_of(copy)
        if route is None:
            if outcome is not None:
                outcome.lose_copy(copy.address, f"address {copy.address} does not exist")
            return False
        account, unrouted_count = route.address.account, route.address.unrouted_message_count
        number = self._host.next_message_id()
        if outcome is not None:
            outcome.watch(number)
        head = route.head_of(copy.head)
        message = Message(head, copy.body, number, now_ms, copy.expires_ms, account, copy.origin)
        batch = Batch(
            route,
            [message],
            message.size_bytes,
            now_ms,
            plain=False,
            due_ms=copy.due_ms,
            distinct=copy.as_it_is,
        )
        batch.hops, batch.passed, batch.diverted = copy.hops, copy.passed, copy.diverted
        self._publisher.publish(batch, admitted=True)
        return route.address.unrouted_message_count == unrouted_count

    def _route_of(self, copy: MessageCopy) -> Route | None:
        """Where a copy goes. The target of a divert is created as for a sender. Dead and expired copies whose
        address does not exist are dropped.
        """
        if copy.schedule:
            return self._route_of_schedule(copy)
        if copy.creates:
            try:
                return self._resolver.route(copy.address, copy.queue, copy.head.routing_type)
            except NotFoundError:
                return None
        address = self._bindings.addresses.get(copy.address)
        if address is None:
            return None
        if address.view is None:
            return self._bindings.route_to(address, None, copy.head.routing_type)
        try:
            return self._resolver.route_through(address.view)
        except NotFoundError:
            return None

    def _route_of_schedule(self, copy: MessageCopy) -> Route:
        """Where a schedule sends. Where nothing is any more, its message is unrouted: the settings of that name say
        whether it becomes a dead letter, and the log says so once, because the sender may have left long ago.
        """
        try:
            route = self._resolver.route(copy.address, copy.queue, copy.head.routing_type)
        except NotFoundError as error:
            if copy.schedule not in self._without_destination:
                if len(self._without_destination) >= _SCHEDULES_MAX:
                    self._without_destination.clear()
                self._without_destination.add(copy.schedule)
                fields: dict[str, str | int] = {"schedule": copy.schedule, "error": str(error)[:_REASON_MAX]}
                self._host.events.note(NO_DESTINATION, "", fields, kind=str(copy.schedule))
            return self._resolver.route_to_nobody(copy.address or copy.queue or "", copy.head.routing_type)
        self._without_destination.discard(copy.schedule)
        return route
