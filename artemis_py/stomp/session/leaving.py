"""The end of a session's subscriptions, however many it has."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.agenda import Chore
from artemis_py.core.budget import Budget
from artemis_py.core.holdings import SELECTORS, SUBSCRIPTIONS, Holdings, selector_bytes
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.replaying import Replaying
from artemis_py.stomp.session.subscription import Subscription

_CLOSE_UNITS: Final = 10
_REPLAY_UNITS: Final = 3
_CONSUMERS_PER_UNIT: Final = 16
"""A queue of which a consumer leaves looks through the others."""


@final
class Leaving(Chore):
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
        broker.log.story.session_closed(self._origin)
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

    def recover(self) -> bool:
        return not self._is_told


def uncount(holdings: Holdings, subscription: Subscription) -> None:
    """A subscription is no more among what clients make the broker hold."""
    holdings.move(SUBSCRIPTIONS, -subscription.size_bytes)
    holdings.move(SELECTORS, -selector_bytes(subscription.selector))
