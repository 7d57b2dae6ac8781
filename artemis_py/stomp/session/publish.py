"""SEND: from frames to batches of messages on addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.core.addresses.address import ANYCAST, Address, PlanCost
from artemis_py.core.addresses.batch import Batch, FilterResults
from artemis_py.core.addresses.full_policy import note_full, why_dropped, why_full
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.events import ADDRESS_DROPS, REJECTED
from artemis_py.core.publish_outcome import ADDRESS_FULL, DIVERTED, PublishOutcome
from artemis_py.core.recurrence import waiting_head
from artemis_py.errors import AddressFullError, ArtemisError, NotFoundError, QueueFullError
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Head, HeaderName, LargeBody, Message, encode_headers
from artemis_py.security.rights import USER_HEADER
from artemis_py.stomp.management_requests import ManagementRequest, PendingRequest, ReplyTo
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.temporaries import Temporary, obtain_address
from artemis_py.stomp.wire import writer
from artemis_py.stomp.wire.dialect import BLANKS, split_qualified
from artemis_py.stomp.wire.frames import AnyFrame, FrameError, LargeSend, Send, Shape
from artemis_py.units import date_after

# ---- stamp -----------------------------------------------------------------------------------------------------------
#
# The sender's name in each message (``populate-validated-user``), so that consumers know who sent it.


_NAME: Final = USER_HEADER.encode()


def stamped(head: Head, line: bytes) -> Head:
    """Return the same head with the header line ``line`` (``Rights.stamp``), instead of whatever the client wrote
    there itself.
    """
    block = head.block
    if _NAME in block:
        if block.startswith(line) and block.count(_NAME) == 1:
            return head
        kept = [(name, value) for name, value in head.headers() if name.strip(BLANKS) != USER_HEADER]
        block = encode_headers(kept)
    return Head(
        line + block, head.address, head.priority, head.persistent, head.sized, head.routing_type, head.duplicate_id
    )


# ---- producers -------------------------------------------------------------------------------------------------------
#
# To which addresses a session has sent lately, as an operator is told. STOMP itself has no producers.


_KEPT_MAX: Final = 8
"""So many addresses are remembered of one session, the latest."""


@final
class Producer:
    """What a session has sent to one address. Dates are in epoch ms."""

    __slots__ = ("address", "begun_ms", "last_ms", "sent_bytes", "sent_count")

    def __init__(self, address: str, now_ms: int) -> None:
        self.address = address
        self.begun_ms = now_ms
        self.last_ms = now_ms
        self.sent_count = 0
        self.sent_bytes = 0


_NONE: Final[dict[str, Producer]] = {}
"""Instead of an empty table for each connection that sends nothing. Nobody adds to it."""


@final
class Producers:
    """The producers of one session, by address."""

    __slots__ = ("_last", "by_address")

    def __init__(self) -> None:
        self.by_address = _NONE
        self._last: Producer | None = None

    def note(self, address: str, count: int, size_bytes: int, now_ms: int) -> None:
        """Messages were sent to an address, together."""
        producer = self._last
        if producer is None or producer.address != address:
            producer = self._last = self._of(address, now_ms)
        producer.sent_count += count
        producer.sent_bytes += size_bytes
        producer.last_ms = now_ms

    def _of(self, address: str, now_ms: int) -> Producer:
        known = self.by_address.pop(address, None)
        if not self.by_address and known is None:
            self.by_address = {}
        elif len(self.by_address) >= _KEPT_MAX:
            del self.by_address[next(iter(self.by_address))]
        producer = self.by_address[address] = known or Producer(address, now_ms)
        return producer


# ---- addressing ------------------------------------------------------------------------------------------------------
#
# From the destinations of SENDs to routes.


_REPLY_TO: Final = HeaderName("reply-to")


def route_of(state: SessionState, shape: Shape) -> Route:
    """Where a SEND goes. The route is remembered until a queue that matters to it is deleted; all
    connections share it, so who sends is looked at each time. Raises ArtemisError.
    """
    routes, rights = state.service.routes, state.rights
    route = routes.by_target.get(shape.target)
    if route is None or not state.broker.bindings.is_current(route):
        return _resolve(state, shape)
    if rights is not None:
        if route.decider in rights.senders:
            rights.checks.success += 1
        else:
            route.decider = rights.demand_send(route.asked_address, route.asked_queue)
    return route


def _resolve(state: SessionState, shape: Shape) -> Route:
    broker, service = state.broker, state.service
    by, permit = state.user or "", state.permit("send")
    if permit is None:
        service.check_named()
    temporary = temporary_of(state, shape.destination, "send")
    if temporary is not None:
        return broker.resolver.route(temporary.address, None, temporary.routing_type, by, permit)
    service.check_may_send(shape.address or shape.queue or "")
    if shape.address not in broker.addresses:
        if broker.resolver.is_gone(shape.address):
            return broker.resolver.route_to_nobody(shape.address, shape.routing_type, permit)
        broker.holdings.admit(f"SEND to the new address {shape.address[:80]}")
    route = broker.resolver.route(shape.address, shape.queue, shape.routing_type, by, permit)
    service.routes.remember(shape.target, route)
    return route


def temporary_of(state: SessionState, destination: str, permission: str) -> Temporary | None:
    """The temporary destination of this name, which the session then holds; None for any other destination. To create
    it, the client needs ``permission`` on it, too. Raises LimitError and NotAllowedError.
    """
    temporaries, broker = state.service.temporaries, state.broker
    if temporaries.would_make(destination, state.client):
        broker.holdings.admit("a temporary destination")
    temporary = temporaries.obtain(destination, state.client, state.service.limits.temporary_max)
    if temporary is not None:
        obtain_address(broker, temporary, state.user or "", state.permit(permission))
    return temporary


def head_for(state: SessionState, frame: Send) -> Head:
    """The frame's head, with the user's name if messages get one. If its reply-to names a temporary destination, the
    name that others can use replaces it.
    """
    head, rights = frame.head, state.rights
    if rights is not None and rights.stamp is not None:
        head = stamped(head, rights.stamp)
    if frame.shape.simple:
        return head
    reply_to = head.first(_REPLY_TO)
    temporary = None if reply_to is None else temporary_of(state, reply_to, "consume")
    return head if temporary is None else head.with_header("reply-to", temporary.address)


# ---- asking ----------------------------------------------------------------------------------------------------------
#
# A SEND to the address of management: a request. It is carried out at once, also in a transaction, as in Artemis.


BODY_BYTES_MAX: Final = 64 * 1024


def request_management(state: SessionState, frame: Send, body: bytes | LargeBody) -> PendingRequest:
    """Hand the request to whoever answers it. Raises ArtemisError, and then nothing is done."""
    service = state.service
    if state.rights is None:
        service.check_named()
    else:
        state.rights.demand("manage", frame.shape.address)
    if service.receiver is None:
        raise NotFoundError(f"{frame.shape.address} is the address for management messages, and nobody answers here")
    if isinstance(body, LargeBody) or len(body) > BODY_BYTES_MAX:
        raise FrameError(f"A management message has a body of at most {BODY_BYTES_MAX} bytes")
    reply_to = _reply_to(state, frame)
    return service.receiver.receive(
        ManagementRequest(frame.head.properties, body, reply_to, state.rights, state.user, state.address)
    )


def _reply_to(state: SessionState, frame: Send) -> ReplyTo | None:
    """Where the reply goes, if the client may send there. Raises ArtemisError."""
    shown = frame.head.first(_REPLY_TO)
    if shown is None:
        return None
    temporary = temporary_of(state, shown, "consume")
    if temporary is not None:
        return ReplyTo(shown, temporary.address, None, temporary.routing_type)
    name, routing_type = state.service.prefixes.split(shown)
    address, queue = split_qualified(name)
    state.service.check_may_send(address)
    if state.rights is not None:
        state.rights.demand_send(address, queue)
    return ReplyTo(shown, address, queue, routing_type)


# ---- publishing ------------------------------------------------------------------------------------------------------
#
# SEND: from frames to messages on addresses.


_COPIED_AT_ONCE: Final = 4
"""Messages of which copies may go to other addresses: what selectors there cost is not known before."""


@final
class _Asked:
    """A SEND whose selectors are evaluated before it is published, over several turns."""

    __slots__ = ("address", "frame", "filter_results")

    def __init__(self, frame: Send, address: Address, filter_results: FilterResults) -> None:
        self.frame = frame
        self.address = address
        self.filter_results = filter_results


@final
class Publishing:
    """What one session sends. SENDs of one shape that follow each other are published together, as a run.

    A SEND that must wait stays with the session; ``SessionState.blocked_by`` says what for. It comes again later, so it
    is not counted until it is carried out.
    """

    __slots__ = ("_asked", "_outcome", "_state", "_told", "_transactions", "producers")

    def __init__(self, state: SessionState, transactions: Transactions, outcome: PublishOutcome | None = None) -> None:
        self._state = state
        self._transactions = transactions
        self._outcome = outcome
        """Of the one message, if its publisher waits to know."""
        self._asked: _Asked | None = None
        self._told: list[tuple[str, str]] | None = None
        """What the RECEIPT of the last published SEND says of its message."""
        self.producers = Producers()

    def forget(self) -> None:
        """The session ends: the SEND that waits is not published."""
        self._asked = None

    # ---- runs ------------------------------------------------------------------------------------

    def send_run(self, frames: list[tuple[AnyFrame, bytes]], start: int, now_ms: int) -> int:
        """Publish the run of quick SENDs with one shape that begins at ``start``. Returns where to go on. A run ends
        where it would cost more than the session may spend in this turn.
        """
        state = self._state
        first = frames[start][0]
        assert isinstance(first, Send)
        shape = first.shape
        try:
            route = route_of(state, shape)
        except ArtemisError as error:
            self._refuse(first, str(error))
            return start + 1
        if state.tells_routing:
            return start + 1 if self._send_or_refuse(first, frames[start][1], now_ms) else start
        bindings, host = state.broker.bindings, state.broker.host
        address, plan = route.address, bindings.plan_of(route)
        cost = plan.cost if route.queue is None else bindings.cost_of(route)
        limit = len(frames)
        may_forward = address.may_forward
        if cost.units > 1 or address.fan_outs is not None or may_forward:
            limit = self._end_of_run(frames, start, address, cost)
        if limit == start:
            return start + 1 if self._send_or_refuse(first, frames[start][1], now_ms) else start
        account, origin = address.account, state.origin
        stamp = None if state.rights is None else state.rights.stamp
        messages: list[Message] = []
        receipts: list[tuple[int, str]] = []
        size_bytes = 0
        number = host.message_id + 1
        for position in range(start, limit):
            frame, body = frames[position]
            if not isinstance(frame, Send) or frame.shape is not shape or not frame.quick:
                break
            head = frame.head if stamp is None else stamped(frame.head, stamp)
            messages.append(Message(head, body, number, now_ms, 0, account, origin))
            number += 1
            size_bytes += head.size_bytes + len(body)
            if frame.receipt is not None:
                receipts.append((position, frame.receipt))
        end = start + len(messages)
        host.message_id = number - 1
        if route.view is not None and messages:
            route.take_over(messages)
        batch = Batch(route, messages, size_bytes, now_ms, shape.plain, distinct=True, plan=plan, sender=state)
        behind = start + self._publish(batch, may_forward=may_forward)
        state.service.traffic.frames_in["SEND"] += behind - start
        if receipts:
            state.confirm_run(receipts, behind)
        if (state.broker.enqueuer.begun or state.unfinished) and state.has_unfinished():
            state.wait_for_unfinished("SEND", None, None)
        if behind == end or self._has_to_wait(batch):
            return behind
        refused = frames[behind][0]
        assert isinstance(refused, Send)
        self._refuse(refused, self._why_refused(batch))
        return behind + 1

    def _end_of_run(self, frames: list[tuple[AnyFrame, bytes]], start: int, address: Address, cost: PlanCost) -> int:
        """Up to where a run may go in this turn; ``start`` if not even the first SEND may be part of one."""
        state, count = self._state, len(frames)
        if cost.units > 1 or address.is_fanning_out:
            units = 0 if address.is_fanning_out else state.broker.budget.left - state.stop_at
            count = start + cost.affordable(units, _sizes_bytes(frames, start), count - start)
        return min(count, start + _COPIED_AT_ONCE) if address.may_forward else count

    def _send_or_refuse(self, frame: Send, body: bytes, now_ms: int) -> bool:
        """Publish a quick SEND by itself; False if it has to wait."""
        self._state.service.traffic.frames_in["SEND"] += 1
        try:
            return self.send(frame, body, now_ms)
        except ArtemisError as error:
            self._state.refuse(str(error), frame.receipt, syntax=False)
            return True

    def _refuse(self, frame: Send, reason: str) -> None:
        """Count a SEND and answer ERROR to it."""
        self._state.service.traffic.frames_in["SEND"] += 1
        self._state.refuse(reason, frame.receipt, syntax=False)

    def keep_run(self, frames: list[tuple[AnyFrame, bytes]], start: int, now_ms: int) -> int:
        """Keep the run of SENDs with one shape for their transaction, from ``start``. Returns where to go on."""
        state, transactions = self._state, self._transactions
        first = frames[start][0]
        assert isinstance(first, Send)
        assert first.transaction is not None
        shape, name = first.shape, first.transaction
        broker, traffic = state.broker, state.service.traffic
        try:
            transaction = transactions.named(name)
            broker.holdings.admit("SEND in a transaction")
            route = route_of(state, shape)
        except ArtemisError as error:
            self._refuse(first, str(error))
            return start + 1
        account, origin = route.address.account, state.origin
        stamp = None if state.rights is None else state.rights.stamp
        number = broker.host.message_id + 1
        room_bytes = transactions.bytes_left
        messages: list[Message] = []
        kept_bytes = 0
        end = min(len(frames), start + max(transactions.operations_left, 0))
        for position in range(start, end):
            frame, body = frames[position]
            if not isinstance(frame, Send) or frame.shape is not shape or not frame.gathers:
                break
            if frame.transaction != name:
                break
            head = frame.head if stamp is None else stamped(frame.head, stamp)
            size_bytes = head.size_bytes + len(body) + MESSAGE_OVERHEAD_BYTES
            if kept_bytes + size_bytes > room_bytes:
                break
            kept_bytes += size_bytes
            messages.append(Message(head, body, number, now_ms, 0, account, origin))
            number += 1
        broker.host.message_id = number - 1
        broker.budget.spend(len(messages))
        if not messages:
            self._refuse(first, transactions.too_many_bytes if end > start else transactions.too_many_operations)
            return start + 1
        if route.view is not None:
            route.take_over(messages)
        transaction.send_run(route, messages, kept_bytes)
        self.producers.note(route.address.name, len(messages), kept_bytes, now_ms)
        traffic.frames_in["SEND"] += len(messages)
        return start + len(messages)

    # ---- one SEND --------------------------------------------------------------------------------

    def send_large(self, frame: LargeSend, now_ms: int) -> bool:
        """Publish a SEND whose body goes to a file; False if it has to wait, first of all for that file. Raises
        ArtemisError.
        """
        state, upload = self._state, frame.upload
        if not upload.may_go_on:
            state.blocked_by = upload
            return False
        state.service.traffic.frames_in["SEND"] += 1
        if upload.failure is not None:
            self._drop_without_room(frame, upload.failure)
            return True
        return self.send(frame, upload.body, now_ms)

    def _drop_without_room(self, frame: LargeSend, reason: str) -> None:
        """The disk had no room for a body. Raises AddressFullError, unless the address has the policy DROP."""
        address = route_of(self._state, frame.shape).address
        if address.refusal != "DROP":
            raise AddressFullError(f"No disk space for this body: {reason}")
        address.dropped_message_count += 1
        note_full(self._state.broker.events, ADDRESS_DROPS, address, self._state)
        if self._outcome is not None:
            self._outcome.full_because = why_dropped(address)
        if frame.receipt is not None:
            told = _lost_told(ADDRESS_FULL, address.name, self._state.version) if self._state.tells_routing else None
            self._state.confirm(frame.receipt, told)

    def send(self, frame: Send, body: bytes | LargeBody, now_ms: int) -> bool:
        """Publish one SEND, or keep it for its transaction; False if it has to wait. Raises ArtemisError."""
        state, shape = self._state, frame.shape
        transaction = None if frame.transaction is None else self._transactions.named(frame.transaction)
        if shape.address == state.service.asked_address:
            pending = request_management(state, frame, body)
            state.unfinished.append(pending)
            state.wait_for_unfinished("SEND", frame.receipt, pending)
            return True
        route = route_of(state, shape)
        head = head_for(state, frame)
        due_ms = shape.due_ms or (date_after(now_ms, shape.due_delay_ms) if shape.due_delay_ms else 0)
        if shape.recurrence is not None:
            due_ms = shape.recurrence.first_ms(due_ms, now_ms)
            target = route.asked_address if route.asked_queue is None else f"{route.asked_address}::{route.asked_queue}"
            head = waiting_head(head, target, SCHEDULES, due_ms)
            route = state.broker.resolver.route(SCHEDULES, None, ANYCAST)
        self._take_told()
        if transaction is not None:
            self._asked = None
            message = state.broker.message(route, head, body, now_ms, shape.expires_ms, state.origin)
            self._transactions.keep(transaction, route, message, due_ms)
            self.producers.note(route.address.name, 1, message.size_bytes, now_ms)
        else:
            sent = self._send_alone(frame, head, body, route, due_ms, now_ms)
            if sent is None:
                state.service.traffic.frames_in["SEND"] -= 1
                return False
            message = sent
        state.lsn_written = max(state.lsn_written, message.lsn)
        told = self._take_told()
        if state.has_unfinished():
            state.wait_for_unfinished("SEND", frame.receipt, told)
        elif frame.receipt is not None:
            state.confirm(frame.receipt, told)
        return True

    def _take_told(self) -> list[tuple[str, str]] | None:
        """What the RECEIPT of this SEND says of its message. Each SEND begins without."""
        told, self._told = self._told, None
        return told

    def _send_alone(
        self, frame: Send, head: Head, body: bytes | LargeBody, route: Route, due_ms: int, now_ms: int
    ) -> Message | None:
        """Publish one message; None if it has to wait. Raises AddressFullError and QueueFullError."""
        state, shape = self._state, frame.shape
        if not self._may_publish(frame, head, body, route, now_ms):
            return None
        asked, self._asked = self._asked, None
        if asked is None:
            message = state.broker.message(route, head, body, now_ms, shape.expires_ms, state.origin)
        else:
            message = asked.filter_results.message
            message.id = state.broker.host.next_message_id()
        batch = Batch(route, [message], message.size_bytes, now_ms, shape.plain, due_ms, sender=state)
        if asked is not None:
            batch.filter_results = {message: asked.filter_results}
        if not self._publish_one(batch):
            if self._has_to_wait(batch):
                return None
            reason = self._why_refused(batch)
            raise AddressFullError(reason) if batch.refused_by is None else QueueFullError(reason)
        return message

    def _publish_one(self, batch: Batch) -> int:
        """Publish a batch of one message, and follow it for a publisher that wants to know where it is. Returns 1 if it
        was accepted, else 0.
        """
        state, message = self._state, batch.messages[0]
        if self._outcome is not None:
            self._outcome.begin(message.id)
        if not state.tells_routing:
            return self._publish(batch, may_forward=batch.route.address.may_forward)
        outcome = PublishOutcome(state.broker.host.outcomes)
        outcome.origin = state.origin
        outcome.begin(message.id)
        try:
            return self._publish(batch, may_forward=batch.route.address.may_forward)
        finally:
            outcome.end()
            self._told = _routing_told(outcome, batch.route.asked_address, state.version)

    def _may_publish(self, frame: Send, head: Head, body: bytes | LargeBody, route: Route, now_ms: int) -> bool:
        """May a SEND be published? If it costs more than the session may spend in this turn, all selectors have to be
        evaluated before, some in each turn.
        """
        state, broker = self._state, self._state.broker
        cost = broker.bindings.cost_of(route)
        asked = self._asked
        if asked is None or asked.frame is not frame or asked.address is not route.address:
            self._asked = None
            if not cost.programs or cost.of(head.size_bytes) <= broker.budget.left - state.stop_at:
                return True
            expires_ms = route.address.expiry_of(frame.shape.expires_ms, now_ms)
            message = Message(route.head_of(head), body, 0, now_ms, expires_ms, route.address.account, state.origin)
            asked = self._asked = _Asked(frame, route.address, FilterResults(message))
        return asked.filter_results.ask_ahead(cost.programs, broker.budget, state.stop_at)

    # ---- both ------------------------------------------------------------------------------------

    def _publish(self, batch: Batch, *, may_forward: bool) -> int:
        """Publish a batch with the copies that diverts make of it; returns how many messages were accepted. A duplicate
        id is not remembered without all of them. ``may_forward``: see ``Address.may_forward``.
        """
        broker = self._state.broker
        is_group = not batch.plain and may_forward
        if is_group:
            broker.log.begin_group()
        accepted = broker.publisher.publish(batch)
        if accepted:
            self.producers.note(batch.route.address.name, accepted, batch.size_bytes, batch.now_ms)
        if broker.copy_maker.waiting:
            broker.copy_publisher.flush(batch.now_ms)
        if is_group:
            broker.log.end_group()
        return accepted

    def _has_to_wait(self, batch: Batch) -> bool:
        """Must the rest of a batch be sent again when the queue or the address has room? Then the session waits."""
        state = self._state
        if batch.waits_for is not None:
            state.blocked_by = batch.waits_for
            return True
        queue = batch.refused_by
        if queue is not None:
            if queue.flow.stopped:
                state.wait_for_queue(queue)
            return queue.flow.stopped
        if batch.route.address.refusal != "BLOCK":
            return False
        state.wait_for_room(batch.route.address)
        return True

    def _why_refused(self, batch: Batch) -> str:
        queue = batch.refused_by
        if queue is None:
            return why_full(batch.route.address)
        fields: dict[str, str | int] = {**self._state.who, "limit": str(queue.flow.overflow.depth)}
        self._state.broker.note_event(REJECTED, queue, fields)
        return queue.flow.why_full(1, batch.refused_bytes)


def _sizes_bytes(frames: list[tuple[AnyFrame, bytes]], start: int) -> Iterator[int]:
    for position in range(start, len(frames)):
        frame = frames[position][0]
        yield frame.head.size_bytes if isinstance(frame, Send) else 0


def _routing_told(outcome: PublishOutcome, address: str, version: str) -> list[tuple[str, str]]:
    """What a RECEIPT says of where a message is, to a client that has asked for it (``receipt-routing``). ``address``:
    where it was sent.
    """
    count = outcome.queue_count - outcome.dropped_count
    replaced: list[tuple[str, str]] = []
    if outcome.replaced:
        replaced.append(("replaced", str(sum(outcome.replaced.values()))))
        replaced.append(("replaced-ids", ",".join([f"{id}={count}" for id, count in outcome.replaced.items()])))
    if count <= 0:
        told = _lost_told(outcome.reason, address, version)
        if outcome.reason == DIVERTED:
            told.append(("diverted-to", writer.escape(outcome.lost_at, version)))
        return told + replaced
    names = writer.escape(",".join(outcome.taken_by), version)
    told = [("queues", str(count)), ("queue-names", names)]
    if outcome.may_be_replaced:
        told.append(("message-ids", ",".join([str(id) for id in outcome.ids])))
    return told + replaced


def _lost_told(reason: str, address: str, version: str) -> list[tuple[str, str]]:
    return [("queues", "0"), ("reason", reason), ("address", writer.escape(address, version))]
