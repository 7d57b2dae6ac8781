"""The subscriptions of a session: their consumers, their output, and their end."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer, Reader
from artemis_py.core.memory import SELECTORS, SUBSCRIPTIONS, Holdings, selector_bytes
from artemis_py.core.tasks import Task
from artemis_py.errors import LimitError, NotAllowedError
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.replay import Replaying, asks_for_replay
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscribe import (
    BROWSER,
    Subscriber,
    Subscription,
    durable_name_of,
    durable_queue_name,
    is_true,
    replace,
    replaces,
    subscribe,
    why_not_browsed,
)
from artemis_py.stomp.wire.frames import FrameError

# ---- end -------------------------------------------------------------------------------------------------------------
#
# The end of a session's subscriptions, however many it has.


_CLOSE_UNITS: Final = 10
_REPLAY_UNITS: Final = 3
_CONSUMERS_PER_UNIT: Final = 16
"""A queue of which a consumer leaves looks through the others."""


@final
class SubscriptionsEnd(Task):
    """A session is over. Its consumers and its replays get nothing more from here on; they leave one by one, and its
    temporary destinations go behind them.
    """

    def __init__(
        self,
        service: StompService,
        origin: int,
        subscriptions: list[Subscription],
        replaying: Replaying | None,
        *,
        failed: bool,
    ) -> None:
        self._service = service
        self._broker = service.broker
        self._origin = origin
        self._subscriptions = subscriptions
        self._replaying = replaying
        self._replays = [] if replaying is None else replaying.take_all()
        self._temporary: list[str] | None = None
        self._failed = failed
        self._is_told = False
        subscriptions.reverse()
        for subscription in subscriptions:
            subscription.consumer.closed = True
            subscription.consumer.room_bytes = 0

    def work(self, budget: Budget, now_ms: int) -> bool:
        broker = self._broker
        while self._replaying is not None and self._replays:
            self._replaying.drop(self._replays.pop())
            budget.spend(_REPLAY_UNITS)
            if budget.is_spent or broker.budget.is_spent:
                return False
        while self._subscriptions:
            subscription = self._subscriptions.pop()
            try:
                budget.spend(_CLOSE_UNITS + subscription.queue.consumer_count // _CONSUMERS_PER_UNIT)
                uncount(broker.holdings, subscription)
            finally:
                broker.detach(subscription.queue, subscription.consumer, failed=self._failed, now_ms=now_ms)
            if budget.is_spent or broker.budget.is_spent:
                return False
        temporary = self._temporary
        if temporary is None:
            temporary = self._temporary = list(self._service.temporaries.release(self._origin))
        while temporary:
            self._delete(temporary.pop(), now_ms)
            budget.spend(_CLOSE_UNITS)
            if budget.is_spent and temporary:
                return False
        self._is_told = True
        broker.log.audit.session_closed(self._origin)
        return True

    def _delete(self, name: str, now_ms: int) -> None:
        """Remove a temporary destination that nobody else reads."""
        broker = self._broker
        address = broker.addresses.get(name)
        if address is None:
            return
        for queue in list(address.queues.values()):
            if not queue.consumer_count:
                broker.registry.delete_queue(queue, now_ms)
        if not address.queues and not address.deleted:
            broker.registry.delete_address(address)

    def break_off(self, now_ms: int) -> bool:
        return not self._is_told


def uncount(holdings: Holdings, subscription: Subscription) -> None:
    """A subscription is no more among what clients make the broker hold."""
    holdings.move(SUBSCRIPTIONS, -subscription.size_bytes)
    holdings.move(SELECTORS, -selector_bytes(subscription.selector))


# ---- subscriptions ---------------------------------------------------------------------------------------------------
#
# SUBSCRIBE and UNSUBSCRIBE, and the messages that go to the consumers.


_LOGIN_CHANGED: Final = "The login of this connection has changed: connect again to read on"
_NONE_BY_KEY: Final[dict[str, Subscription]] = {}
_NONE_BY_CONSUMER: Final[dict[int, Subscription]] = {}
"""Instead of empty tables of its own for each connection that only sends. Nobody adds to them."""


@final
class Subscriptions:
    """The subscriptions of one session."""

    __slots__ = ("_state", "by_consumer", "by_key", "replaying")

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.by_key = _NONE_BY_KEY
        """By the id that the client gave, or else by destination."""
        self.by_consumer = _NONE_BY_CONSUMER
        self.replaying: Replaying | None = None
        """The replays, after the first one."""

    def subscribe(self, headers: dict[str, str], now_ms: int) -> None:
        """SUBSCRIBE. Raises ArtemisError; the session is then as before."""
        state = self._state
        if not headers.get("destination"):
            raise FrameError("SUBSCRIBE needs a destination header", syntax=True)
        key = headers.get("id") or headers["destination"]
        if not headers.get("id") and state.version != "1.0":
            headers = {**headers, "id": key}
            state.service.foreign.note("SUBSCRIBE", "id", state.who)
        if state.is_outdated and (asks_for_replay(headers) or is_true(headers, BROWSER)):
            raise NotAllowedError(_LOGIN_CHANGED)
        if asks_for_replay(headers) or (self.replaying is not None and key in self.replaying.by_key):
            self._replay(key, headers, now_ms)
            return
        if key in self.by_key:
            if not replaces(headers):
                raise FrameError(
                    f"There is already a subscription {key[:80]!r}; unsubscribe it, or change it with replace:true"
                )
            self._replace(self.by_key[key], headers, now_ms)
            return
        self._admit()
        holdings = state.broker.holdings
        subscription = subscribe(state.service, self._subscriber(), headers, now_ms)
        if not self.by_key:
            self.by_key, self.by_consumer = {}, {}
        self.by_key[key] = subscription
        holdings.move(SUBSCRIPTIONS, subscription.size_bytes)
        holdings.move(SELECTORS, selector_bytes(subscription.selector))
        self.by_consumer[subscription.consumer.id] = subscription
        state.service.foreign.check("SUBSCRIBE", headers, state.who)
        queue = subscription.queue
        if queue.address.temporary:
            state.service.temporaries.add_holder(queue.address.name, state.origin)
        if queue.durable:
            state.lsn_written = state.broker.log.last_lsn  # somebody else may just have made the queue
        subscription.consumer.room_bytes = state.service.turn_bytes(len(self.by_consumer))
        queue.wake(subscription.consumer)

    def _admit(self) -> None:
        """Raises LimitError if there must not be one more."""
        state = self._state
        count = len(self.by_key) + (0 if self.replaying is None else len(self.replaying.by_key))
        if count >= state.service.limits.subscriptions_max:
            raise LimitError(
                f"Too many subscriptions: a connection may have {state.service.limits.subscriptions_max}; unsubscribe, "
                "use another connection, or raise maxSubscriptions of the acceptor"
            )
        state.broker.holdings.admit("SUBSCRIBE")

    def _replay(self, key: str, headers: dict[str, str], now_ms: int) -> None:
        """Begin a replay, or change one. Raises ArtemisError."""
        if key in self.by_key:
            raise FrameError(f"The subscription {key[:80]!r} is not a replay; unsubscribe it, or use another id")
        if self.replaying is None:
            self.replaying = Replaying(self._state)
        if key not in self.replaying.by_key:
            self._admit()
        self.replaying.subscribe(key, headers, now_ms)

    def _replace(self, subscription: Subscription, headers: dict[str, str], now_ms: int) -> None:
        """Change a subscription in place. Raises ArtemisError."""
        state = self._state
        holdings = state.broker.holdings
        holdings.admit("SUBSCRIBE")
        before = selector_bytes(subscription.selector)
        state.leave_unfinished(replace(state.service, subscription, headers, state.origin, now_ms))
        holdings.move(SELECTORS, selector_bytes(subscription.selector) - before)

    def _subscriber(self) -> Subscriber:
        state = self._state
        reader = Reader(state.origin, state.client_id, state.user, state.address, state.service.acceptor.name)
        return Subscriber(state.owner, state.client, state.version, reader, state.rights)

    def unsubscribe(self, headers: dict[str, str], now_ms: int) -> None:
        """UNSUBSCRIBE by id, by destination (of a subscription that the client gave no id), or of a durable
        subscription by its name, which is deleted. Raises ArtemisError.
        """
        durable_name = durable_name_of(headers)
        key = headers.get("id")
        if key is None and durable_name is None:
            key = headers.get("destination")
        if key is None and durable_name is None:
            raise FrameError("UNSUBSCRIBE needs an id or destination header", syntax=True)
        if key is not None and self.replaying is not None and key in self.replaying.by_key:
            self.replaying.unsubscribe(self.replaying.by_key[key])
            return
        subscription = None if key is None else self.by_key.get(key)
        if subscription is None and durable_name is None:
            raise FrameError(f"There is no subscription {key!r}")
        if subscription is None and durable_name is not None:
            subscription = self._durable(durable_name)
        self._check_deletions(subscription, durable_name)
        if subscription is not None:
            self._close(subscription, now_ms)
        if durable_name is not None:
            self._delete_durable(durable_name, now_ms)

    def _check_deletions(self, subscription: Subscription | None, durable_name: str | None) -> None:
        """May the client delete the queues that go with this UNSUBSCRIBE: the subscription's own one, and that of a
        durable subscription? When a connection ends, its queues go without being asked for. Raises NotAllowedError.
        """
        state = self._state
        if state.rights is None:
            return
        if subscription is not None and subscription.queue.temporary:
            queue = subscription.queue
            state.rights.demand("deleteNonDurableQueue", queue.address.name, queue.name)
        if durable_name is not None:
            durable = state.broker.queues.get(durable_queue_name(self._subscriber(), durable_name))
            if durable is not None:
                state.rights.demand("deleteDurableQueue", durable.address.name, durable.name)

    def _durable(self, durable_name: str) -> Subscription | None:
        """This connection's subscription of a durable one."""
        queue = self._state.broker.queues.get(durable_queue_name(self._subscriber(), durable_name))
        if queue is None:
            return None
        here = [self.by_consumer[one.id] for one in queue.distribution.consumers if one.id in self.by_consumer]
        return next((one for one in here if one.durable_name == durable_name), None)

    def _delete_durable(self, durable_name: str, now_ms: int) -> None:
        broker = self._state.broker
        queue = broker.queues.get(durable_queue_name(self._subscriber(), durable_name))
        if queue is None:
            raise FrameError(f"There is no durable subscription {durable_name[:80]!r}")
        if queue.consumer_count:
            raise FrameError(f"The durable subscription {durable_name[:80]!r} is in use by another connection")
        self._state.leave_unfinished(broker.registry.delete_queue(queue, now_ms))

    def lose(self, subscription: Subscription, now_ms: int) -> None:
        """The broker ends a subscription: what its consumer holds goes back as a failed delivery."""
        self._remove(subscription)
        self._state.broker.detach(subscription.queue, subscription.consumer, failed=True, now_ms=now_ms)

    def _close(self, subscription: Subscription, now_ms: int) -> None:
        self._remove(subscription)
        broker = self._state.broker
        work = broker.detach(subscription.queue, subscription.consumer, failed=False, now_ms=now_ms)
        self._state.leave_unfinished(work)

    def _remove(self, subscription: Subscription) -> None:
        del self.by_key[subscription.id]
        del self.by_consumer[subscription.consumer.id]
        uncount(self._state.broker.holdings, subscription)

    def close_all(self, *, failed: bool, now_ms: int) -> Exception | None:
        """The session ends: unsettled messages go back, temporary destinations are deleted. If a step fails, the rest
        is still done; returns the failure.
        """
        broker = self._state.broker
        replaying = self.replaying
        end = SubscriptionsEnd(
            self._state.service, self._state.origin, list(self.by_key.values()), replaying, failed=failed
        )
        self.by_key.clear()
        self.by_consumer.clear()
        failure: Exception | None = None
        try:
            end.done = end.work(broker.budget, now_ms)
        except Exception as error:
            failure = error
            end.fail(now_ms)
        if not end.done:
            broker.agenda.add(end)
        return failure

    # ---- rights ----------------------------------------------------------------------------------

    def recheck_rights(self, users: Container[str]) -> str:
        """Rights have changed, or what is known of these users. Returns why the session must end, since its client
        may not have what it only reads any more, replays and browsers; empty: it goes on, as who consumes does.
        """
        state = self._state
        rights = state.rights
        if rights is None:
            return ""
        state.is_outdated = state.is_outdated or rights.user in users
        browsers = [each for each in self.by_consumer.values() if each.consumer.browses]
        replaying = self.replaying
        if state.is_outdated:
            return _LOGIN_CHANGED if browsers or (replaying is not None and replaying.by_key) else ""
        for browser in browsers:
            reason = why_not_browsed(state.service, browser, rights)
            if reason:
                return reason
        return "" if replaying is None else replaying.refusal()

    # ---- output ----------------------------------------------------------------------------------

    def write_messages(self, subscription: Subscription) -> None:
        """Turn a consumer's outbox into MESSAGE frames. Each waits until its message's record is durable; a barrier
        until all is durable that came before, for it says that earlier messages are done.
        """
        consumer, out = subscription.consumer, self._state.out
        handed, entries = consumer.handed, consumer.outbox
        if handed:  # taken when they are written: if writing fails, they go back
            subscription.writer.write(handed, out.parts())
            consumer.handed = []
            consumer.statistics.note_delivered(len(handed), self._state.broker.host.turn_ms, settles=not consumer.acks)
            self._state.service.traffic.frames_out["MESSAGE"] += len(handed)
        if entries:
            is_barrier = consumer.barrier is not None
            lsn = self._state.broker.log.last_lsn if is_barrier else 0
            for entry in entries:
                if entry.message.lsn > lsn:
                    lsn = entry.message.lsn
            subscription.writer.write(entries, out.parts(lsn), is_settled=is_barrier)
            consumer.outbox = []
            self._state.service.traffic.frames_out["MESSAGE"] += len(entries)
            subscription.queue.sent(consumer, entries)
            if consumer.settles and consumer.acks:  # sent at most once: the ACK will write nothing
                self._state.lsn_written = self._state.broker.log.last_lsn

    def make_room(self) -> None:
        """The client reads again: every consumer and every replay may be sent a turn's worth."""
        if self.replaying is not None:
            self.replaying.wake(self._state.broker.log.now_ms)
        for subscription in self.by_consumer.values():
            self.make_room_for(subscription.consumer)

    def make_room_for(self, consumer: Consumer) -> None:
        """This consumer may be sent a turn's worth again."""
        consumer.room_bytes = self._state.service.turn_bytes(len(self.by_consumer))
        if consumer.parked:
            subscription = self.by_consumer.get(consumer.id)
            if subscription is not None:
                subscription.queue.wake(consumer)
