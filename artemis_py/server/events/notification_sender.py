"""Sends notifications, some in each turn: as messages to their address, and as server-sent events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.events import Event
from artemis_py.core.notifications import LOGIN_REFUSED, PERMISSION_REFUSED, Fields, Notification
from artemis_py.management.notifications import head_of
from artemis_py.message import Message
from artemis_py.server.events.server_sent_events import Hub

_SENT_MAX: Final = 50
"""How many are sent in a turn."""
_UNITS_MAX: Final = 800
"""What publishing them may cost in a turn, in units; one is published whatever it costs."""
_HEAD_BYTES: Final = 512
"""The size of a head, about."""


@final
class Notifying:
    """A step of the turn. Nothing that it does brings forth a notification, so it ends.

    ``schedule`` runs a turn soon.
    """

    def __init__(self, broker: Broker, hub: Hub, schedule: Callable[[], None]) -> None:
        self._schedule = schedule
        self._broker = broker
        self._hub = hub
        self._notifications = broker.notifications
        self._address = broker.config.management_notification_address

    def note_events(self, events: list[Event]) -> None:
        """Events of the operational log become notifications, too."""
        if self._notifications.is_heard:
            address = self._broker.addresses.get(self._address)
            listening = set[str]() if address is None else {queue.name for queue in address.queues.values()}
            self._notifications.note_events(events, listening)

    def note(self, type: str, fields: Fields) -> None:
        """Something happened, perhaps outside of turns."""
        if self._notifications.is_heard:
            self._notifications.note(type, fields)
            self._schedule()

    def note_denial(self, user: str, permission: str, address: str) -> None:
        """Somebody was denied something."""
        self.note(PERMISSION_REFUSED, {"user": user, "permission": permission, "address": address})

    def note_refusal(self, user: str, peer: str, reason: str) -> None:
        """A client of HTTP could not log in."""
        self.note(LOGIN_REFUSED, {"user": user, "remoteAddress": peer, "reason": reason, "protocol": "HTTP"})

    def run(self, now_ms: int) -> None:
        """Send some of them."""
        taken = self._notifications.take(self._affordable())
        if self._notifications.has_queues:
            self._publish(taken, now_ms)
        if self._notifications.is_listened_to:
            self._hub.send(taken, now_ms)

    def _affordable(self) -> int:
        address = self._broker.addresses.get(self._address)
        if address is None or not self._notifications.has_queues:
            return _SENT_MAX
        cost = self._broker.bindings.plan_for(address).cost
        return max(cost.affordable(_UNITS_MAX, iter([_HEAD_BYTES] * _SENT_MAX), _SENT_MAX), 1)

    def _publish(self, taken: list[Notification], now_ms: int) -> None:
        broker = self._broker
        address = broker.addresses[self._address]
        route = broker.bindings.route_to(address, None, None)
        number = broker.host.take_message_ids(len(taken))
        messages = [
            Message(head_of(notification, now_ms, self._address), b"", number + place, now_ms, 0, address.account, 0)
            for place, notification in enumerate(taken)
        ]
        size_bytes = sum([message.size_bytes for message in messages])
        broker.publisher.publish(Batch(route, messages, size_bytes, now_ms, plain=True, distinct=True), admitted=True)
        if broker.copy_maker.waiting:
            broker.copy_publisher.flush(now_ms)
