"""The subscriptions of a session: SUBSCRIBE, UNSUBSCRIBE, and the end of all."""

from __future__ import annotations

from artemis_py.core.consumer import Reader
from artemis_py.core.holdings import SELECTORS, SUBSCRIPTIONS, selector_bytes
from artemis_py.errors import LimitError
from artemis_py.stomp.acknowledging import Acknowledging
from artemis_py.stomp.frames import FrameError
from artemis_py.stomp.leaving import Leaving, uncount
from artemis_py.stomp.service import turn_bytes
from artemis_py.stomp.subscription import Subscriber, Subscription, durable_name_of, durable_queue_name, subscribe


class Subscribing(Acknowledging):
    """Opens and closes subscriptions."""

    __slots__ = ()

    def subscribe(self, headers: dict[str, str], now_ms: int) -> None:
        """SUBSCRIBE. Raises ArtemisError; the session is then as before."""
        if not headers.get("destination"):
            raise FrameError("SUBSCRIBE needs a destination header", syntax=True)
        if not headers.get("id") and self.version != "1.0":
            raise FrameError(f"SUBSCRIBE needs an id header in STOMP {self.version}", syntax=True)
        key = headers.get("id") or headers["destination"]
        if key in self.subscriptions:
            raise FrameError(f"There is already a subscription {key[:80]!r}")
        if len(self.subscriptions) >= self.service.limits.subscriptions_max:
            raise LimitError(
                f"Too many subscriptions: a connection may have {self.service.limits.subscriptions_max}; unsubscribe, "
                "use another connection, or raise maxSubscriptions of the acceptor"
            )
        holdings = self.service.broker.holdings
        holdings.admit("SUBSCRIBE")
        subscriber = self._subscriber()
        subscription = subscribe(self.service, subscriber, headers, now_ms)
        self.subscriptions[key] = subscription
        holdings.move(SUBSCRIPTIONS, subscription.size_bytes)
        holdings.move(SELECTORS, selector_bytes(subscription.selector))
        self.by_consumer[subscription.consumer.id] = subscription
        if subscription.queue.address.temporary:
            self.service.temporaries.hold(subscription.queue.address.name, self.origin)
        if subscription.queue.durable:
            self.lsn_written = max(self.lsn_written, self.service.broker.log.last_lsn)
        subscription.consumer.room_bytes = turn_bytes(len(self.by_consumer))
        subscription.queue.wake(subscription.consumer)

    def _subscriber(self) -> Subscriber:
        reader = Reader(self.origin, self.client_id, self.user)
        return Subscriber(self.owner, self.client, self.version, reader)

    def unsubscribe(self, headers: dict[str, str], now_ms: int) -> None:
        """UNSUBSCRIBE by id, by destination (1.0), or of a durable subscription by its name, which is deleted. Raises
        ArtemisError.
        """
        key = headers.get("id")
        if key is None and self.version == "1.0":
            key = headers.get("destination")
        durable_name = durable_name_of(headers)
        if key is None and durable_name is None:
            needed = "an id or destination" if self.version == "1.0" else "an id"
            raise FrameError(f"UNSUBSCRIBE needs {needed} header", syntax=True)
        subscription = None if key is None else self.subscriptions.get(key)
        if subscription is None and durable_name is None:
            raise FrameError(f"There is no subscription {key!r}")
        if subscription is None and durable_name is not None:
            subscription = self._durable(durable_name)
        if subscription is not None:
            self._close(subscription, now_ms)
        if durable_name is not None:
            self._delete_durable(durable_name, now_ms)

    def _durable(self, durable_name: str) -> Subscription | None:
        """This connection's subscription of a durable one."""
        queue = self.service.broker.queues.get(durable_queue_name(self._subscriber(), durable_name))
        if queue is None:
            return None
        here = [self.by_consumer[one.id] for one in queue.distribution.consumers if one.id in self.by_consumer]
        return next((one for one in here if one.durable_name == durable_name), None)

    def _delete_durable(self, durable_name: str, now_ms: int) -> None:
        subscriber = self._subscriber()
        broker = self.service.broker
        queue = broker.queues.get(durable_queue_name(subscriber, durable_name))
        if queue is None:
            raise FrameError(f"There is no durable subscription {durable_name[:80]!r}")
        if queue.consumer_count:
            raise FrameError(f"The durable subscription {durable_name[:80]!r} is in use by another connection")
        self.leave_unfinished(broker.delete_queue(queue, now_ms))

    def _close(self, subscription: Subscription, now_ms: int) -> None:
        del self.subscriptions[subscription.id]
        del self.by_consumer[subscription.consumer.id]
        broker = self.service.broker
        uncount(broker.holdings, subscription)
        self.leave_unfinished(broker.detach(subscription.queue, subscription.consumer, failed=False, now_ms=now_ms))

    def unsubscribe_all(self, *, failed: bool, now_ms: int) -> Exception | None:
        """The session ends: everything unsettled goes back, temporary destinations go. What breaks off in that keeps
        nothing of the rest; returns why it did.
        """
        broker = self.service.broker
        leaving = Leaving(self.service, self.origin, list(self.subscriptions.values()), failed=failed)
        self.subscriptions.clear()
        self.by_consumer.clear()
        failure: Exception | None = None
        try:
            is_done = leaving.work(broker.budget, now_ms)
        except Exception as error:
            failure = error
            is_done = not leaving.recover()
        if not is_done:
            broker.agenda.add(leaving)
        return failure
