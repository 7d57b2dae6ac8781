"""Messages for clients of HTTP: they take messages one by one, hold them for a lease, and settle them."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import CONNECTION_BYTES, CONNECTIONS
from artemis_py.core.order.entry import LEASE_EXPIRED, NACKED, Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import ArtemisError, BadRequestError, BrokerError, NotFoundError, SelectorError
from artemis_py.management.managed import Steps, lookup
from artemis_py.message import LargeBody
from artemis_py.security.identity import Identity
from artemis_py.security.rights import UNKNOWN_PEER, Authorizer, Peer
from artemis_py.server.client_socket import ClientSocket
from artemis_py.server.messages.publish import HttpPublisher
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.server.turn_client import Recipient
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscribe import Subscription
from artemis_py.stomp.session.subscriptions import Subscriptions
from artemis_py.stomp.wire.frames import FrameError

# ---- taken -----------------------------------------------------------------------------------------------------------
#
# Who asks for a message over HTTP, with which options, and the message.


TIMEOUT_S_MAX: Final = 50.0
"""How long a request may wait for a message: idle connections are closed after 60 s."""
LEASE_S: Final = 30.0
LEASE_S_MAX: Final = 43_200.0


@final
@dataclass(frozen=True, slots=True)
class Requester:
    """The user who has logged in (None: nobody has to), and the client."""

    identity: Identity | None = None
    peer: Peer = UNKNOWN_PEER

    @property
    def user(self) -> str | None:
        """The user's name."""
        return None if self.identity is None else self.identity.user


@final
@dataclass(frozen=True, slots=True)
class TakeOptions:
    """``timeout_s``: how long to wait for a message. ``lease_s``: how long the client may hold it; then it goes back.
    ``acks_itself``: it counts as acknowledged when it is sent, so that nobody need acknowledge it.
    """

    timeout_s: float = 0.0
    lease_s: float = LEASE_S
    acks_itself: bool = False
    selector: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """The message. ``receipt`` settles it, None if it is acknowledged already. ``lease_s`` is 0 then."""

    queue: str
    receipt: str | None
    lease_s: float
    message_id: int
    timestamp_ms: int
    expires_ms: int
    delivery_count: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | LargeBody


# ---- taker -----------------------------------------------------------------------------------------------------------
#
# One consumer for one message: it belongs to a request, and to the client that holds the message afterwards.


_ID: Final = "taker"
_WINDOW: Final = {"ack": "client-individual", "consumer-window-size": "0", "max-backlog": "1"}
"""Exactly one message."""


@final
class Inbox:
    """What the turns know as the session of a taker: it keeps the message instead of writing a frame."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.out = state.out
        self.subscriptions = Subscriptions(state)
        self.is_closing = False
        self.entry: Entry | None = None
        """The message, as soon as there is one."""

    def write_messages(self, consumer: Consumer) -> None:
        """The consumer got a message."""
        subscription = self.subscriptions.by_consumer.get(consumer.id)
        waiting = consumer.handed or consumer.outbox
        if subscription is not None and waiting:
            self.entry = waiting[0]
            self.subscriptions.write_messages(subscription)


@final
class Taker(Recipient):
    """The owner of the consumer, as the turns know their clients. ``on_message`` is called in a turn when there is a
    message and what it depends on is durable; ``on_failure`` when a step of it has failed.
    """

    def __init__(
        self,
        turns: Turns,
        state: SessionState,
        on_message: Callable[[Taker, Entry], None],
        on_failure: Callable[[], None],
    ) -> None:
        self.session = Inbox(state)
        self.socket = ClientSocket()
        self.is_dirty = False
        self._on_failure = on_failure
        self._turns = turns
        self._on_message: Callable[[Taker, Entry], None] | None = on_message
        self._on_due: Callable[[], object] | None = None
        self._is_open = False
        self.is_delivered = False
        """Did the client get the message?"""
        state.owner = self

    @property
    def peer(self) -> str:
        """The client's address."""
        return self.session.state.address

    @property
    def origin(self) -> int:
        return self.session.state.origin

    @property
    def subscription(self) -> Subscription | None:
        """The consumer's subscription; None once it is closed."""
        return self.session.subscriptions.by_key.get(_ID)

    def open(self, queue: Queue, selector: str | None, now_ms: int) -> None:
        """Attach the consumer. Raises ArtemisError."""
        headers = {"id": _ID, "destination": f"{queue.address.name}::{queue.name}", **_WINDOW}
        if selector is not None:
            headers["selector"] = selector
        self.session.subscriptions.subscribe(headers, now_ms)
        self._is_open = True
        self._turns.guard.holdings.move(CONNECTIONS, CONNECTION_BYTES)

    def call_after(self, span_s: float, on_due: Callable[[], object]) -> None:
        """Call ``on_due`` in a turn after this time, and not what was to be called before."""
        self._on_due = on_due
        steady_ms = self._turns.broker.clock.steady_ms(self._turns.clock_ms())
        self._turns.watches.add(self, steady_ms + math.ceil(span_s * 1000))

    def call_off(self) -> None:
        """Do not call what was to be called."""
        self._on_due = None
        self._turns.watches.forget(self)

    def check(self, now_ms: int) -> None:
        on_due, self._on_due = self._on_due, None
        if on_due is not None:
            on_due()

    def disconnect(self, reason: str, now_ms: int) -> None:
        """What it waits for is over now: the wait for a message, or the lease."""
        self._turns.watches.forget(self)
        self.check(now_ms)

    def flush(self, durable_lsn: int, now_ms: int) -> bool:
        self.is_dirty = False
        on_message, entry = self._on_message, self.session.entry
        if self.session.out.take(durable_lsn) and on_message is not None and entry is not None:
            self._on_message = None
            on_message(self, entry)
        return bool(self.session.out)

    def close(self, now_ms: int) -> None:
        """Detach the consumer. A message that it holds goes back; one that no client got was never delivered. May be
        called twice.
        """
        self._on_message = None
        if not self._is_open:
            return
        self._is_open = False
        if not self.is_delivered:
            self.call_off()
        self._turns.guard.holdings.move(CONNECTIONS, -CONNECTION_BYTES)
        self._turns.output.forget(self)
        self._take_back(now_ms)
        failure = self.session.subscriptions.close_all(failed=False, now_ms=now_ms)
        self.session.out.clear()
        self.session.state.owner = None
        if failure is not None:
            raise failure

    def _take_back(self, now_ms: int) -> None:
        entry, subscription = self.session.entry, self.subscription
        if entry is None or subscription is None or self.is_delivered:
            return
        consumer, queue = subscription.consumer, subscription.queue
        if entry.message.id in consumer.held and not queue.deleted:
            queue.release(consumer, [consumer.let_go(entry.message.id)], failed=False, now_ms=now_ms, sent=False)

    def fail(self, now_ms: int) -> None:
        """A step failed, which is reported."""
        self.close(now_ms)
        self._on_failure()


# ---- http messages ---------------------------------------------------------------------------------------------------
#
# Messages for clients of HTTP: they publish, take, and settle what they have taken. A message is published as a SEND
# is, and taken by a consumer as SUBSCRIBE makes one: what a queue, an address, a permission or a limit means does not
# depend on the protocol. Everything happens in turns.


_DELIVERY_S: Final = 1.0
"""How long a request that does not want to wait does so if the queue has a message: it may have to be read."""
_RECEIPT_BYTES: Final = 12
_CLIENT_ID: Final = "http"


@final
class _Held:
    """A message that somebody holds until it is settled or the lease ends."""

    __slots__ = ("entry", "queue", "taker", "user")

    def __init__(self, taker: Taker, queue: Queue, entry: Entry, user: str | None) -> None:
        self.taker = taker
        self.queue = queue
        self.entry = entry
        self.user = user


@final
class HttpMessages:
    """All messages that clients of HTTP hold. ``service`` has the rules by which headers and bodies are read. Without
    an ``authorizer`` everybody may do everything.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        calls: OperatorRequests,
        service: StompService,
        authorizer: Authorizer | None,
    ) -> None:
        self._loop = loop
        self._turns = turns
        self._calls = calls
        self._service = service
        self._authorizer = authorizer
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        """How many messages are held."""
        return len(self._held)

    def _now_ms(self) -> int:
        return self._turns.isolation.turn_ms

    def _state(self, requester: Requester) -> SessionState:
        state = SessionState(self._service, self._turns.next_origin(), None)
        state.user, state.client_id, state.address = requester.user, _CLIENT_ID, requester.peer.address
        if requester.identity is not None and self._authorizer is not None:
            state.rights = self._authorizer.rights_of(requester.identity, requester.peer)
        return state

    # ---- publish ---------------------------------------------------------------------------------

    def publish(
        self, requester: Requester, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> asyncio.Future[Any]:
        """Publish a message with a body in parts. The result comes when it survives a crash. Fails with BrokerError."""
        posting = HttpPublisher(self._state(requester), self._now_ms)
        return self._calls.begin(posting.steps(headers, parts), changes=True)

    # ---- take ------------------------------------------------------------------------------------

    def take(
        self, requester: Requester, queue: str, options: TakeOptions, is_gone: Callable[[], bool]
    ) -> asyncio.Future[Taken | None]:
        """Take a message; the result is None if none came in time. If the client ``is_gone`` then, or nobody waits for
        the result any more, the message goes back. Fails with BrokerError.
        """
        answer: asyncio.Future[Taken | None] = self._loop.create_future()
        opening = self._calls.begin(self._open(requester, queue, options, answer, is_gone), changes=True)
        opening.add_done_callback(partial(_pass_failure, answer))
        return answer

    def _open(
        self,
        requester: Requester,
        name: str,
        options: TakeOptions,
        answer: asyncio.Future[Taken | None],
        is_gone: Callable[[], bool],
    ) -> Steps:
        yield from ()
        state = self._state(requester)
        queue = self._queue(state, name)
        taker = Taker(
            self._turns, state, partial(self._deliver, queue, options, answer, is_gone), partial(_break, answer)
        )
        try:
            taker.open(queue, options.selector, self._now_ms())
        except (FrameError, SelectorError) as error:
            raise BadRequestError(str(error)) from None
        wait_s = options.timeout_s or (_DELIVERY_S if queue.contents.ready_count + queue.contents.paged.count else 0.0)
        taker.call_after(wait_s, partial(self._begin, self._end_wait(taker, answer)))
        answer.add_done_callback(partial(self._given_up, taker))
        return {}

    def may_take(self, requester: Requester, queue: str) -> bool:
        """May the client consume the queue, by the rights that count now?"""
        rights = self._state(requester).rights
        return rights is None or rights.may("consume", *self._place(queue))

    def _place(self, name: str) -> tuple[str, str | None]:
        """The address and the queue that decide about a name; no queue if there is none."""
        queue = self._turns.broker.queues.get(name.rpartition("::")[2])
        return (name.partition("::")[0], None) if queue is None else (queue.address.name, queue.name)

    def _queue(self, state: SessionState, name: str) -> Queue:
        """The queue, which the client may consume. Raises NotAllowedError and NotFoundError."""
        if state.rights is not None:
            state.rights.demand("consume", *self._place(name))
        return lookup(self._turns.broker.queues, "queue", name.rpartition("::")[2])

    def _begin(self, work: Steps) -> asyncio.Future[Any]:
        future = self._calls.begin(work, changes=True)
        future.add_done_callback(self._note_failure)
        return future

    def _note_failure(self, done: asyncio.Future[Any]) -> None:
        failure = None if done.cancelled() else done.exception()
        if isinstance(failure, Exception) and not isinstance(failure, ArtemisError):
            self._turns.stats.faults.note("", "take", failure)

    def _end_wait(self, taker: Taker, answer: asyncio.Future[Taken | None]) -> Steps:
        yield from ()
        if not answer.done() and taker.session.entry is None:
            taker.close(self._now_ms())
            answer.set_result(None)
        return {}

    def _given_up(self, taker: Taker, answer: asyncio.Future[Taken | None]) -> None:
        """Nobody waits any more."""
        if answer.cancelled():
            self._begin(self._give_back(taker))

    def _give_back(self, taker: Taker) -> Steps:
        yield from ()
        taker.close(self._now_ms())
        return {}

    def _deliver(
        self,
        queue: Queue,
        options: TakeOptions,
        answer: asyncio.Future[Taken | None],
        is_gone: Callable[[], bool],
        taker: Taker,
        entry: Entry,
    ) -> None:
        """There is a message, and it is durable."""
        if answer.done() or is_gone():
            self._begin(self._give_back(taker))
            if not answer.done():
                answer.set_result(None)
            return
        subscription = taker.subscription
        assert subscription is not None
        if options.acks_itself or entry.message.id not in subscription.consumer.held:
            settling = self._begin(self._settle(queue, taker, entry, ""))
            settling.add_done_callback(partial(self._acknowledged, answer, _taken(queue, entry, None, 0.0)))
            return
        taker.is_delivered = True
        receipt = secrets.token_urlsafe(_RECEIPT_BYTES)
        taker.call_after(options.lease_s, partial(self._expire_lease, receipt))
        self._held[receipt] = _Held(taker, queue, entry, taker.session.state.user)
        answer.set_result(_taken(queue, entry, receipt, options.lease_s))

    @staticmethod
    def _acknowledged(answer: asyncio.Future[Taken | None], taken: Taken, done: asyncio.Future[Any]) -> None:
        if not answer.done():
            failure = done.exception()
            if failure is None:
                answer.set_result(taken)
            else:
                answer.set_exception(failure)

    # ---- settle ----------------------------------------------------------------------------------

    def acknowledge(self, requester: Requester, queue: str, receipt: str) -> asyncio.Future[Any]:
        """The message is done with. The result comes when that survives a crash. Raises NotFoundError for a receipt
        that is unknown, or not for this user and queue.
        """
        held = self._let_go(requester, queue, receipt)
        return self._begin(self._settle(held.queue, held.taker, held.entry, ""))

    def refuse(self, requester: Requester, queue: str, receipt: str) -> asyncio.Future[Any]:
        """The message goes back to its queue, as a failed delivery. Raises NotFoundError."""
        held = self._let_go(requester, queue, receipt)
        return self._begin(self._settle(held.queue, held.taker, held.entry, NACKED))

    def _let_go(self, requester: Requester, queue: str, receipt: str) -> _Held:
        held = self._held.get(receipt)
        if held is None or held.queue.name != queue.rpartition("::")[2] or held.user != requester.user:
            raise _unknown(queue)
        held.taker.call_off()
        return self._held.pop(receipt)

    def _expire_lease(self, receipt: str) -> None:
        held = self._held.pop(receipt, None)
        if held is not None:
            self._begin(self._settle(held.queue, held.taker, held.entry, LEASE_EXPIRED))

    def _settle(self, queue: Queue, taker: Taker, entry: Entry, cause: str) -> Steps:
        """Acknowledge a message, or give it back for a ``cause``. It may have left its holder already: a lease of the
        queue's own, or the end of the queue.
        """
        yield from ()
        now_ms = self._now_ms()
        subscription = taker.subscription
        consumer = None if subscription is None else subscription.consumer
        message_id = entry.message.id
        is_held = consumer is not None and not queue.deleted and message_id in consumer.held
        settles = consumer is not None and consumer.settles
        unfinished = None
        try:
            if consumer is not None and is_held:
                entries = [consumer.let_go(message_id)]
                if cause:
                    unfinished = queue.release(consumer, entries, failed=True, now_ms=now_ms, cause=cause)
                else:
                    queue.acknowledge(consumer, entries)
        finally:
            taker.close(now_ms)  # else it would get the next message, and hold it for ever
        if unfinished is not None and not unfinished.may_go_on:
            yield unfinished
        if not is_held and not settles and not cause:
            raise _unknown(queue.name)
        return {}


def _unknown(queue: str) -> NotFoundError:
    return NotFoundError(
        f"nobody holds a message of {queue[:200]} with this receipt: it is settled, or its lease has ended and the "
        "message is on the queue again"
    )


def _taken(queue: Queue, entry: Entry, receipt: str | None, lease_s: float) -> Taken:
    message, delivery_attempts = entry.message, queue.contents.delivery_attempts
    body: bytes | LargeBody = message.body
    count = delivery_attempts.count_of(message.id) + 1 if delivery_attempts is not None else entry.returned + 1
    return Taken(
        queue.name,
        receipt,
        lease_s,
        message.id,
        message.timestamp_ms,
        message.expires_ms,
        count,
        tuple(message.head.headers()),
        body,
    )


def _break(answer: asyncio.Future[Taken | None]) -> None:
    if not answer.done():
        answer.set_exception(BrokerError("the message could not be delivered; see the broker's log"))


def _pass_failure(answer: asyncio.Future[Taken | None], opening: asyncio.Future[Any]) -> None:
    failure = opening.exception()
    if failure is not None and not answer.done():
        answer.set_exception(failure)
