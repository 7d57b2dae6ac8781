"""The sending side of a session: SEND, and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from artemis_py.core.events import BLOCKED, REJECTED
from artemis_py.core.holdings import ACKNOWLEDGED_BYTES, FRAME_BYTES
from artemis_py.core.queue import Queue
from artemis_py.core.router import Batch, Route
from artemis_py.core.transaction import Transaction
from artemis_py.core.verdicts import Verdicts
from artemis_py.errors import AddressFullError, ArtemisError, LimitError, QueueFullError
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Head, HeaderName, LargeBody, Message
from artemis_py.stomp.frames import FrameError, LargeSend, Send, Shape
from artemis_py.stomp.parser import AnyFrame
from artemis_py.stomp.state import Asked
from artemis_py.stomp.subscribing import Subscribing
from artemis_py.stomp.subscription import obtain_temporary
from artemis_py.stomp.temporaries import Temporary

_REPLY_TO: Final = HeaderName("reply-to")
_COPIED_AT_ONCE: Final = 4
"""Messages of which copies may go to other addresses: what selectors there cost is not known before."""


class Sending(Subscribing):
    """From SEND frames to messages on addresses."""

    __slots__ = ()

    def send_run(self, frames: list[tuple[AnyFrame, bytes]], start: int, now_ms: int) -> int:
        """Publish the run of quick SENDs with one shape that begins at ``start``; returns where to go on. It is cut
        when it would cost more than the session may spend in this turn.
        """
        first = frames[start][0]
        assert isinstance(first, Send)
        shape = first.shape
        broker = self.service.broker
        try:
            route = self._route(shape)
        except ArtemisError as error:
            self.service.traffic.came("SEND")
            self.refuse(str(error), first.receipt, syntax=False)
            return start + 1
        account = route.address.account
        origin = self.origin
        cost = broker.router.cost_of(route)
        count = len(frames)
        if cost.units > 1 or route.address.spread is not None:
            units = 0 if route.address.spread is not None else broker.budget.left - self.stop_at
            count = start + cost.affordable(units, _sizes_bytes(frames, start), count - start)
            if count == start:
                return start + 1 if self._send_or_refuse(first, frames[start][1], now_ms) else start
        if route.address.may_forward:
            count = min(count, start + _COPIED_AT_ONCE)
        messages: list[Message] = []
        receipts: list[tuple[int, str]] = []
        append = messages.append
        size_bytes = 0
        position = start
        number = broker.take_message_ids(count - start)
        for position in range(start, count):
            frame, body = frames[position]
            if frame.__class__ is not Send or frame.shape is not shape or not frame.quick:
                break
            head = frame.head
            append(Message(head, body, number, now_ms, 0, account, origin))
            number += 1
            size_bytes += head.size_bytes + len(body)
            if frame.receipt is not None:
                receipts.append((position, frame.receipt))
        end = start + len(messages)
        broker.give_back_message_ids(count - end)
        batch = Batch(route, messages, size_bytes, now_ms, shape.plain, distinct=True)
        behind = start + self._publish(batch)
        self.service.traffic.came("SEND", behind - start)
        if receipts:
            self.confirm_run([receipt for place, receipt in receipts if place < behind])
        if self.leave_begun():
            self.begin_errand("SEND", None, None)
        if behind == end:
            return end
        refused = frames[behind][0]
        assert isinstance(refused, Send)
        return self._not_all_accepted(batch, behind, refused.receipt)

    def _send_or_refuse(self, frame: Send, body: bytes, now_ms: int) -> bool:
        """A quick SEND by itself; False when it has to wait."""
        self.service.traffic.came("SEND")
        try:
            return self.send(frame, body, now_ms)
        except ArtemisError as error:
            self.refuse(str(error), frame.receipt, syntax=False)
            return True

    def _not_all_accepted(self, batch: Batch, position: int, receipt: str | None) -> int:
        if self._has_to_wait(batch):
            return position
        self.service.traffic.came("SEND")
        self.refuse(self._why_refused(batch), receipt, syntax=False)
        return position + 1

    def _has_to_wait(self, batch: Batch) -> bool:
        """Is what was not taken to be sent again later, when the queue or the address has room? Then wait for it."""
        if batch.behind is not None:
            self.blocked_by = batch.behind
            return True
        queue = batch.refused_by
        if queue is not None:
            if not queue.flow_stopped:
                return False
            self._wait_for_queue(queue)
            return True
        if batch.route.address.refusal != "BLOCK":
            return False
        self.blocked_by = batch.route.address
        return True

    def _wait_for_queue(self, queue: Queue) -> None:
        self.blocked_by = queue
        self.service.broker.note_event(BLOCKED, queue, {"session": self.name})

    def _why_refused(self, batch: Batch) -> str:
        queue = batch.refused_by
        if queue is None:
            return f"Address {batch.route.address.name} is full"
        self.service.broker.note_event(REJECTED, queue, {"session": self.name, "limit": str(queue.overflow.depth)})
        return queue.why_full(1, batch.refused_bytes)

    def _route(self, shape: Shape) -> Route:
        """The resolved destination, remembered with the shape while bindings stay as they are."""
        broker = self.service.broker
        route = shape.route
        if route is None or not broker.current(route):
            temporary = self._temporary(shape.destination)
            if temporary is not None:
                return broker.route(temporary.address, None, temporary.routing_type, self.user or "")
            self.service.check_served(shape.address or shape.queue or "")
            if shape.address not in broker.addresses:
                broker.holdings.admit(f"SEND to the new address {shape.address[:80]}")
            route = shape.route = broker.route(shape.address, shape.queue, shape.routing_type, self.user or "")
        return route

    def _temporary(self, destination: str) -> Temporary | None:
        """What a temporary destination means here, from now on as long as the session; None for any other. Raises
        LimitError.
        """
        temporaries, broker = self.service.temporaries, self.service.broker
        if temporaries.would_make(destination, self.client):
            broker.holdings.admit("a temporary destination")
        temporary = temporaries.obtain(destination, self.client, self.service.limits.temporary_max)
        if temporary is not None:
            obtain_temporary(broker, temporary, self.user or "")
        return temporary

    def send_large(self, frame: LargeSend, now_ms: int) -> bool:
        """Publish a SEND whose body is in a file, once all of it is there; False when the sender has to wait. Raises
        ArtemisError.
        """
        if not frame.upload.may_go_on:
            self.blocked_by = frame.upload
            return False
        self.service.traffic.came("SEND")
        if frame.upload.failure is not None:
            return self._without_room(frame, frame.upload.failure)
        return self.send(frame, frame.upload.body, now_ms)

    def _without_room(self, frame: LargeSend, why: str) -> bool:
        """The disk took no more of a body. Raises AddressFullError, unless the address drops what finds no room."""
        address = self._route(frame.shape).address
        if address.refusal != "DROP":
            raise AddressFullError(f"No disk space for this body: {why}")
        address.dropped_message_count += 1
        if frame.receipt is not None:
            self.confirm(frame.receipt)
        return True

    def send(self, frame: Send, body: bytes | LargeBody, now_ms: int) -> bool:
        """Publish one SEND, or keep it for its transaction; False when the sender has to wait for room. Raises
        ArtemisError.
        """
        shape = frame.shape
        transaction = None if frame.transaction is None else self._transaction(frame.transaction)
        route = self._route(shape)
        head = self._head_for(frame)
        due_ms = shape.due_ms or (now_ms + shape.due_delay_ms if shape.due_delay_ms else 0)
        broker = self.service.broker
        if transaction is None and not self._is_asked_ahead(frame, head, body, route, now_ms):
            self.service.traffic.came("SEND", -1)  # it comes again
            return False
        asked, self.asked = self.asked, None
        if asked is None:
            message = broker.message(route, head, body, now_ms, shape.expires_ms, self.origin)
        else:
            message = asked.verdicts.message
            message.id = broker.next_message_id()
        if transaction is not None:
            broker.holdings.admit("SEND in a transaction")
            if self._transaction_bytes() + message.memory_bytes > self.service.limits.transaction_bytes_max:
                raise LimitError(self._transactions_full)
            if self.operations_left <= 0:
                raise LimitError(self.too_many_operations)
            transaction.send(route, message, due_ms)
        else:
            batch = Batch(route, [message], message.size_bytes, now_ms, shape.plain, due_ms)
            if asked is not None:
                batch.verdicts = {message: asked.verdicts}
            if not self._publish(batch):
                if self._has_to_wait(batch):
                    self.service.traffic.came("SEND", -1)  # it comes again
                    return False
                reason = self._why_refused(batch)
                raise AddressFullError(reason) if batch.refused_by is None else QueueFullError(reason)
        self.lsn_written = max(self.lsn_written, message.lsn)
        if self.leave_begun():
            self.begin_errand("SEND", frame.receipt, None)
        elif frame.receipt is not None:
            self.confirm(frame.receipt)
        return True

    def _is_asked_ahead(self, frame: Send, head: Head, body: bytes | LargeBody, route: Route, now_ms: int) -> bool:
        """May a SEND be published? One that costs more than the session may spend in this turn may when all selectors
        were asked before, some in each turn.
        """
        broker = self.service.broker
        cost = broker.router.cost_of(route)
        asked = self.asked
        if asked is None or asked.frame is not frame or asked.address is not route.address:
            self.asked = None
            if not cost.programs or cost.of(head.size_bytes) <= broker.budget.left - self.stop_at:
                return True
            expires_ms = route.address.expiry_of(frame.shape.expires_ms, now_ms)
            message = Message(head, body, 0, now_ms, expires_ms, route.address.account, self.origin)
            asked = self.asked = Asked(frame, route.address, Verdicts(message))
        return asked.verdicts.ask_ahead(cost.programs, broker.budget, self.stop_at)

    def _publish(self, batch: Batch) -> int:
        """Publish with the copies that diverts make of it; a duplicate id is not remembered without all of them."""
        broker = self.service.broker
        if batch.plain or not batch.route.address.may_forward:
            accepted = broker.router.publish(batch)
            if broker.router.forwards:
                broker.flush_forwards(batch.now_ms)
            return accepted
        broker.log.begin_group()
        accepted = broker.router.publish(batch)
        if broker.router.forwards:
            broker.flush_forwards(batch.now_ms)
        broker.log.end_group()
        return accepted

    def _head_for(self, frame: Send) -> Head:
        """The frame's head; a reply-to that names a temporary destination is replaced by the name others can use."""
        head = frame.head
        if frame.shape.simple:
            return head
        reply_to = head.first(_REPLY_TO)
        temporary = None if reply_to is None else self._temporary(reply_to)
        return head if temporary is None else head.with_header("reply-to", temporary.address)

    # ---- transactions ----------------------------------------------------------------------------

    def keep_run(self, frames: list[tuple[AnyFrame, bytes]], start: int, now_ms: int) -> int:
        """Keep the run of SENDs with one shape for their transaction, from ``start``; returns where to go on."""
        first = frames[start][0]
        assert isinstance(first, Send)
        assert first.transaction is not None
        shape, name = first.shape, first.transaction
        traffic = self.service.traffic
        try:
            transaction = self._transaction(name)
            self.service.broker.holdings.admit("SEND in a transaction")
            route = self._route(shape)
        except ArtemisError as error:
            traffic.came("SEND")
            self.refuse(str(error), None, syntax=False)
            return start + 1
        account, origin = route.address.account, self.origin
        broker = self.service.broker
        number = broker.take_message_ids(len(frames) - start)
        room_bytes = self.service.limits.transaction_bytes_max - self._transaction_bytes()
        messages: list[Message] = []
        kept_bytes = 0
        end = min(len(frames), start + max(self.operations_left, 0))
        for position in range(start, end):
            frame, body = frames[position]
            if frame.__class__ is not Send or frame.shape is not shape or frame.transaction != name or frame.receipt:
                break
            head = frame.head
            size_bytes = head.size_bytes + len(body) + MESSAGE_OVERHEAD_BYTES
            if kept_bytes + size_bytes > room_bytes:
                break
            kept_bytes += size_bytes
            messages.append(Message(head, body, number, now_ms, 0, account, origin))
            number += 1
        broker.give_back_message_ids(len(frames) - start - len(messages))
        broker.budget.spend(len(messages))
        if not messages:
            traffic.came("SEND")
            self.refuse(self._transactions_full if end > start else self.too_many_operations, None, syntax=False)
            return start + 1
        transaction.send_run(route, messages, kept_bytes)
        traffic.came("SEND", len(messages))
        return start + len(messages)

    @property
    def _transactions_full(self) -> str:
        return (
            f"Open transactions hold more than {self.service.limits.transaction_bytes_max} bytes (maxTransactionBytes "
            "of the acceptor)"
        )

    def _transaction(self, name: str) -> Transaction:
        transaction = self.transactions.get(name)
        if transaction is None:
            raise FrameError(f"No transaction {name[:80]!r} has begun")
        return transaction

    def _transaction_bytes(self) -> int:
        return sum(transaction.size_bytes for transaction in self.transactions.values())

    @property
    def kept_bytes(self) -> int:
        """What is held of transactions that are open."""
        kept_bytes = 0
        for transaction in self.transactions.values():
            acknowledged_count = len(transaction.acknowledged) + len(transaction.refused)
            kept_bytes += FRAME_BYTES + transaction.size_bytes + ACKNOWLEDGED_BYTES * acknowledged_count
        return kept_bytes

    def begin(self, headers: dict[str, str]) -> None:
        """BEGIN. Raises FrameError without an id or with one that is open, LimitError when too many are."""
        name = _transaction_name(headers, "BEGIN")
        if name in self.transactions:
            raise FrameError(f"Transaction {name[:80]!r} has already begun")
        if len(self.transactions) >= self.service.limits.transactions_max:
            raise LimitError(
                f"Too many open transactions: a connection may have {self.service.limits.transactions_max} "
                "(maxTransactions of the acceptor)"
            )
        self.service.broker.holdings.admit("BEGIN")
        self.transactions[name] = Transaction()

    def commit(self, headers: dict[str, str], now_ms: int) -> list[tuple[str, str]] | None:
        """COMMIT; returns what else its RECEIPT says, or None when a full address has to be waited for, or the rest of
        the selectors is asked in the next turn. Raises ArtemisError, and the transaction is then aborted.

        One with an id (``_AMQ_DUPL_ID``) that was committed before is aborted, too, and confirmed.
        """
        name = _transaction_name(headers, "COMMIT")
        transaction = self._transaction(name)
        broker = self.service.broker
        commit_id = headers.get("_AMQ_DUPL_ID")
        digest = headers.get("digest", "")
        is_repeated = False
        try:
            is_repeated = commit_id is not None and broker.router.commits.has_seen(commit_id, digest)
            if not is_repeated:
                self._check_places(transaction.places(broker.router))
                if not transaction.is_asked(broker.router, broker.budget, self.stop_at):
                    return None
                address = transaction.blocked_by()
                if address is not None:
                    self.blocked_by = address
                    return None
                queue = transaction.stopped_by(broker.router, now_ms)
                if queue is not None:
                    self._wait_for_queue(queue)
                    return None
                transaction.commit(broker, now_ms, commit_id, digest)
        except ArtemisError:
            del self.transactions[name]
            transaction.abort(now_ms)
            raise
        del self.transactions[name]
        if is_repeated:
            self.unfinished += transaction.abort(now_ms)
            self.lsn_written = broker.log.last_lsn  # where the first one was written, at the latest
        return [] if commit_id is None else self._told_of_ids(is_repeated=is_repeated)

    def _check_places(self, places: int) -> None:
        places_max = self.service.limits.transaction_places_max
        if places > places_max:
            raise LimitError(
                f"The messages of this transaction go to {places} queues, counted per message; the limit is "
                f"{places_max} (maxTransactionPlaces of the acceptor). Send fewer messages in a transaction"
            )

    def _told_of_ids(self, *, is_repeated: bool) -> list[tuple[str, str]]:
        commits = self.service.broker.router.commits
        return [
            ("duplicate", str(is_repeated).lower()),
            ("id-cache-size", str(commits.size)),
            ("id-cache-persisted", str(commits.keeps).lower()),
        ]

    def abort(self, headers: dict[str, str], now_ms: int) -> None:
        """ABORT. Raises FrameError for an id that is not open."""
        name = _transaction_name(headers, "ABORT")
        transaction = self._transaction(name)
        del self.transactions[name]
        self.unfinished += transaction.abort(now_ms)

    def abort_all(self, now_ms: int) -> Exception | None:
        """The session ends: nothing of its open transactions happens. One that breaks off does not keep the others;
        returns why the last of those did.
        """
        failure: Exception | None = None
        for transaction in self.transactions.values():
            try:
                transaction.abort(now_ms)
            except Exception as error:
                failure = error
        self.transactions.clear()
        return failure


def _sizes_bytes(frames: list[tuple[AnyFrame, bytes]], start: int) -> Iterator[int]:
    for position in range(start, len(frames)):
        frame = frames[position][0]
        yield frame.head.size_bytes if isinstance(frame, Send) else 0


def _transaction_name(headers: dict[str, str], command: str) -> str:
    name = headers.get("transaction")
    if not name:
        raise FrameError(f"{command} needs a transaction header", syntax=True)
    return name
