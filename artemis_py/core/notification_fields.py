"""The notifications about addresses, queues and consumers. To be called only if somebody listens."""

from __future__ import annotations

from artemis_py.core.addresses.address import Address
from artemis_py.core.consumer import Consumer
from artemis_py.core.notifications import BINDING_REMOVED, CONSUMER_CLOSED, Fields, Notifications
from artemis_py.core.queue.queue import Queue


def tell_address(notifications: Notifications, type: str, address: Address) -> None:
    """An address came or went."""
    fields: Fields = {"address": address.name, "temporary": _flag(address.temporary)}
    if address.routing_types:
        fields["routingType"] = ",".join(sorted(address.routing_types))
    notifications.note(type, fields)


def tell_binding(notifications: Notifications, type: str, queue: Queue) -> None:
    """A queue came or went."""
    fields: Fields = {
        "queue": queue.name,
        "address": queue.address.name,
        "queueID": queue.id,
        "routingType": queue.routing_type,
        "durable": _flag(queue.durable),
        "temporary": _flag(queue.temporary),
    }
    if queue.selector is not None or type == BINDING_REMOVED:
        fields["filter"] = "" if queue.selector is None else queue.selector.text
    notifications.note(type, fields)


def tell_consumer(
    notifications: Notifications, type: str, queue: Queue, consumer: Consumer, more: Fields | None = None
) -> None:
    """A consumer came or went, or is slow; ``more`` are further fields."""
    reader = consumer.reader
    fields: Fields = {
        "queue": queue.name,
        "address": queue.address.name,
        "consumer": consumer.id,
        "consumerCount": queue.consumer_count,
        "connection": reader.connection,
        "session": f"s{reader.connection}",
        "remoteAddress": reader.address,
        "user": reader.user or "",
    }
    if reader.client_id:
        fields["clientID"] = reader.client_id
    if consumer.browses:
        fields["browses"] = "true"
    selector = consumer.selector or (queue.selector if queue.temporary else None)
    if selector is not None or type == CONSUMER_CLOSED:
        fields["filter"] = "" if selector is None else selector.text
    notifications.note(type, {**fields, **(more or {})})


def _flag(is_so: bool) -> str:
    return "true" if is_so else "false"
