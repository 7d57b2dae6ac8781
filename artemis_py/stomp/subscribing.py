"""The subscriptions of a session: SUBSCRIBE, UNSUBSCRIBE, and the end of all."""

from __future__ import annotations

from artemis_py.core.consumer import Reader
from artemis_py.errors import LimitError
from artemis_py.stomp.acknowledging import Acknowledging
from artemis_py.stomp.frames import FrameError
from artemis_py.stomp.service import TURN_BYTES_MAX
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
            raise FrameError(f"There is a subscription {key[:80]!r} already")
        if len(self.subscriptions) >= self.service.limits.subscriptions_max:
            raise LimitError(f"A connection may have {self.service.limits.subscriptions_max} subscriptions")
        subscriber = self._subscriber()
        subscription = subscribe(self.service, subscriber, headers, now_ms)
        self.subscriptions[key] = subscription
        self.by_consumer[subscription.consumer.id] = subscription
        if subscription.queue.address.temporary:
            self.temporary_addresses = (self.temporary_addresses or set()) | {subscription.queue.address.name}
        if subscription.queue.durable:
            self.lsn_written = max(self.lsn_written, self.service.broker.log.last_lsn)
        subscription.consumer.room_bytes = TURN_BYTES_MAX
        subscription.queue.wake(subscription.consumer)

    def _subscriber(self) -> Subscriber:
        reader = Reader(self.origin, self.client_id, self.user)
        return Subscriber(self.owner, self.origin, self.name, self.client_id, self.version, reader)

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
            subscription = next((one for one in self.subscriptions.values() if one.durable_name == durable_name), None)
        if subscription is not None:
            self._close(subscription, failed=False, now_ms=now_ms)
        if durable_name is not None:
            self._delete_durable(durable_name, now_ms)

    def _delete_durable(self, durable_name: str, now_ms: int) -> None:
        subscriber = self._subscriber()
        broker = self.service.broker
        queue = broker.queues.get(durable_queue_name(subscriber, durable_name))
        if queue is None:
            raise FrameError(f"There is no durable subscription {durable_name[:80]!r}")
        if queue.consumer_count:
            raise FrameError(f"The durable subscription {durable_name[:80]!r} is in use by another connection")
        broker.delete_queue(queue, now_ms)

    def _close(self, subscription: Subscription, *, failed: bool, now_ms: int) -> None:
        key = next(key for key, one in self.subscriptions.items() if one is subscription)
        del self.subscriptions[key]
        del self.by_consumer[subscription.consumer.id]
        broker = self.service.broker
        broker.detach(subscription.queue, subscription.consumer, failed=failed, now_ms=now_ms)
        actor = subscription.consumer.actor
        if actor is not None:
            broker.log.consumer_closed(actor, failed=failed)

    def unsubscribe_all(self, *, failed: bool, now_ms: int) -> None:
        """The session ends: everything unsettled goes back, temporary destinations go."""
        for subscription in list(self.subscriptions.values()):
            self._close(subscription, failed=failed, now_ms=now_ms)
        broker = self.service.broker
        for name in self.temporary_addresses or ():
            address = broker.addresses.get(name)
            if address is None:
                continue
            for queue in list(address.queues):
                if not queue.consumer_count:
                    broker.delete_queue(queue, now_ms)
            if not address.queues and not address.deleted:
                broker.delete_address(address)
        self.temporary_addresses = None
