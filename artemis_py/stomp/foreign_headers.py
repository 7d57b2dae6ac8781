"""Headers that clients of other brokers send and this one gives no meaning: the log tells each once, with what to use
here. Whoever moves from another broker would otherwise wonder why they have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from artemis_py.core.events import FOREIGN_HEADER, NO_ID, Events

_TOLD_MAX: Final = 256
"""So many are logged by an acceptor. Clients choose names, so there must be a limit."""
_NAME_MAX: Final = 64
_OF_QUEUES: Final = {
    "durable": "durable of the queue in broker.xml; for a topic durable-subscription-name, and client-id in CONNECT",
    "auto-delete": "auto-delete-queues of the address-setting",
    "auto_delete": "auto-delete-queues of the address-setting",
    "x-queue-name": "the destination ADDRESS::QUEUE",
    "x-queue-type": "queue-type of the queue",
    "x-expires": "auto-delete-queues and auto-delete-queues-delay of the address-setting",
    "x-message-ttl": "expires in SEND, or expiry-delay of the address-setting",
    "x-max-length": "ring-size or max-depth-messages of the queue",
    "x-max-length-bytes": "max-depth-bytes of the queue",
    "x-overflow": "overflow-policy of the queue",
    "x-max-priority": "priority-levels of the queue",
    "x-dead-letter-exchange": "dead-letter-address of the address-setting",
    "x-dead-letter-routing-key": "dead-letter-address of the address-setting",
    "x-delivery-limit": "max-delivery-attempts of the address-setting",
    "x-queue-mode": "address-full-policy PAGE of the address-setting",
    "x-single-active-consumer": "exclusive of the queue",
}
"""What RabbitMQ's clients say of a queue, in SUBSCRIBE or SEND; here the file says it."""
KNOWN: Final[dict[str, dict[str, str]]] = {
    "CONNECT": {
        "username": "login",
        "user": "login",
        "password": "passcode",
        "heartbeat": "heart-beat",
        "accept_version": "accept-version",
        "prefetch-count": "prefetch-count in SUBSCRIBE",
        "activemq.prefetchSize": "activemq.prefetchSize in SUBSCRIBE",
    },
    "SUBSCRIBE": {
        **_OF_QUEUES,
        "id": "an id of its own for each subscription",
        "persistent": "durable-subscription-name, and client-id in CONNECT",
        "prefetch": "prefetch-count",
        "prefetch_count": "prefetch-count",
        "prefetchSize": "prefetch-count",
        "credit": "prefetch-count",
        "x-prefetch": "prefetch-count",
        "x-exclusive": "exclusive",
        "activemq.exclusive": "exclusive",
        "activemq.priority": "consumer-priority",
        "activemq.maximumPendingMessageLimit": "ring-size of the queue",
        "activemq.retroactive": "retroactive-message-count of the address-setting",
        "activemq.subcriptionName": "durable-subscription-name",
        "x-stream-offset": "bookmark",
        "from-seq": "bookmark",
        "noLocal": "no-local",
        "transformation": "nothing: a message is delivered as it was sent",
    },
    "UNSUBSCRIBE": {
        "durable": "durable-subscription-name, which deletes the subscription",
        "persistent": "durable-subscription-name, which deletes the subscription",
    },
    "NACK": {"requeue": "options:expire, or max-delivery-attempts 1 of the address-setting"},
    "SEND": {
        **_OF_QUEUES,
        "ttl": "expires, in epoch ms",
        "expiration": "expires, in epoch ms",
        "JMSExpiration": "expires, in epoch ms",
        "x-delay": "AMQ_SCHEDULED_DELAY",
        "delivery-mode": "persistent",
        "delivery_mode": "persistent",
        "JMSDeliveryMode": "persistent",
        "JMSPriority": "priority",
        "retain": "retroactive-message-count of the address-setting",
    },
}
"""By frame and header: what to use here."""
FAMILIES: Final = ("activemq.", "x-")
"""In a SUBSCRIBE a header that begins like this is meant for a broker, whichever it is."""
OWN: Final = frozenset(
    {
        "activemq.prefetchSize", "activemq.noLocal", "activemq.subscriptionName", "x-priority", "x-qpid-replay-period",
    }
)  # fmt: skip
"""Those that have a meaning here."""


@final
class ForeignHeaders:
    """What one acceptor has told."""

    __slots__ = ("_events", "_told", "found", "in_send")

    def __init__(self, events: Events) -> None:
        self._events = events
        self._told: set[tuple[str, str]] = set()
        self.found: list[str] = []
        """Such headers of SENDs that were read, and not logged yet: whoever reads a block does not know whose it is, so
        its session logs them at once.
        """
        self.in_send = frozenset(name.encode() for name in KNOWN["SEND"])
        """The names to look for in a SEND, as they stand in its block."""

    def find(self, name: str) -> None:
        """A header of a SEND is one of them."""
        if ("SEND", name) not in self._told and name not in self.found:
            self.found.append(name)

    def tell_found(self, who: Mapping[str, str | int]) -> None:
        """Log those that were found: ``who`` has sent them."""
        found, self.found = self.found, []
        for name in found:
            self.note("SEND", name, who)

    def check(self, command: str, names: Iterable[str], who: Mapping[str, str | int]) -> None:
        """Log those headers of a CONNECT, SUBSCRIBE, UNSUBSCRIBE or NACK that mean nothing here."""
        known = KNOWN[command]
        for name in names:
            if (name in known and name != "id") or (
                command == "SUBSCRIBE" and name.startswith(FAMILIES) and name not in OWN
            ):
                self.note(command, name, who)

    def note(self, command: str, name: str, who: Mapping[str, str | int]) -> None:
        """Log one header, unless it was logged before. ``who`` are the fields of the client whose frame it was."""
        key = command, name[:_NAME_MAX]
        if key in self._told or len(self._told) >= _TOLD_MAX:
            return
        self._told.add(key)
        use = KNOWN[command].get(name, "nothing: this broker has no such header")
        if name == "id":
            self._events.note(NO_ID, "", {**who, "use": use})
            return
        fields = {**who, "frame": command, "header": key[1], "use": use}
        self._events.note(FOREIGN_HEADER, "", fields, kind=f"{command} {key[1]}")
