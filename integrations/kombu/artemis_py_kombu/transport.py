"""kombu's transport over STOMP: queues, exchanges and consumers of kombu as those of the broker.

A queue is the anycast queue of its name. An exchange is the multicast address ``kombu.NAME``, and every message to it
has its routing key in a header. A binding is a divert with a filter from the exchange to the queue. A queue that goes
with its client (``auto_delete`` or ``exclusive``) is on the address of its exchange instead, with the filter of its
own: so nothing is left of it. All that is in the broker, so every process sees it.

A broker that is no artemis_py has no such requests: there only queues are in the broker, bindings are those that this
process declared, as kombu's other virtual transports do, and fanout is refused.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, final

from amqp.basic_message import Message as AmqpMessage
from amqp.protocol import queue_declare_ok_t
from kombu.exceptions import ChannelError
from kombu.transport import virtual
from kombu.utils.json import dumps, loads
from kombu.utils.url import parse_url
from kombu.utils.uuid import uuid

import artemis_py_kombu
from artemis_py_kombu.routing import KEY, filter_of
from artemis_py_kombu.stomp_connection import Frame, LostError, RefusedError, StompConnection

PORT: Final = 61613
_ENVELOPE: Final = "application/x-kombu+json"
"""The content-type of a body that has kombu's headers and properties beside the message's own body."""
_PREFETCH_MAX: Final = 65535
_GET_S: Final = 1.0
"""How long a message may take that is ready on the queue."""
_TEMPORARY_MS: Final = 600_000
"""After this time without a consumer a queue of a client that has died is deleted, if it has no ``expires``."""
_RABBITMQ: Final = {"x-expires": "auto-delete-delay", "x-message-ttl": "max-message-ttl", "x-max-length": "ring-size"}
_NEEDLESS: Final = frozenset({"x-max-priority"})  # every queue has ten priorities
_AMQP: Final = frozenset(name for name, _ in AmqpMessage.PROPERTIES)
"""The properties of a message that AMQP has. An application may give others."""


@final
class Subscription:
    """What a consumer, or a single get, has subscribed to."""

    __slots__ = ("callback", "channel", "held", "id", "is_ending", "no_ack", "queue", "waiting")

    def __init__(
        self, id: str, queue: str, channel: Channel, no_ack: bool, callback: Callable[[Any], Any] | None
    ) -> None:
        self.id = id
        self.queue = queue
        self.channel = channel
        self.no_ack = no_ack
        self.callback = callback
        self.held: set[str] = set()  # messages that kombu has and has not settled; other threads settle, too
        self.is_ending = False
        self.waiting: deque[Frame] = deque()


class Channel(virtual.Channel):
    """A channel. Its messages are acknowledged in the broker, so nothing is kept or restored here."""

    supports_fanout = True
    do_restore = False
    connection: Transport | None
    closed: bool

    def __init__(self, connection: Transport, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._subscriptions: dict[str, Subscription] = {}
        self._unsettled: dict[str, Subscription] = {}
        self._prefetch = 0

    @property
    def _transport(self) -> Transport:
        if self.connection is None:
            raise LostError("the channel is closed; its connection was lost, or somebody closed it")
        return self.connection

    @property
    def _link(self) -> StompConnection:
        return self._transport.link

    # ---- queues ----------------------------------------------------------------------------------

    def prepare_queue_arguments(self, arguments: Mapping[str, Any] | None, **options: Any) -> dict[str, Any]:
        """The attributes of a queue in Artemis' words; those of RabbitMQ are translated."""
        found: dict[str, Any] = {}
        times = {"expires": "auto-delete-delay", "message_ttl": "max-message-ttl"}
        for name, seconds in options.items():
            if seconds is not None and name in times:
                found[times[name]] = int(seconds * 1000)
        if options.get("max_length") is not None:
            found["ring-size"] = options["max_length"]
        if options.get("max_length_bytes") is not None:
            raise ChannelError("max_length_bytes: a ring has a number of messages here: use max_length")
        for name, value in (arguments or {}).items():
            if name not in _NEEDLESS:
                found[_RABBITMQ.get(name, name)] = value
        return found

    def queue_declare(
        self,
        queue: str | None = None,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        """Declare a queue; passive: only ask for it."""
        queue = queue or f"amq.gen-{uuid()}"
        if not self._transport.has_management:
            return queue_declare_ok_t(queue, 0, 0)
        if passive:
            if (counts := self._counts(queue)) is None:
                raise ChannelError(f"NOT_FOUND - no queue {queue!r}", (50, 10), "Channel.queue_declare", "404")
            return queue_declare_ok_t(queue, *counts)
        attributes = dict(arguments or {})
        is_temporary = auto_delete or exclusive
        if is_temporary or "auto-delete-delay" in attributes:
            attributes = {
                "auto-delete-delay": _TEMPORARY_MS,
                **attributes,
                "auto-delete": True,
                "auto-delete-message-count": -1,
            }
        if is_temporary:
            attributes["expiry-policy"] = "DELETE"
            self._transport.temporary[queue] = attributes
        made = self._create(queue, queue, "ANYCAST", {"durable": durable and not is_temporary, **attributes})
        return queue_declare_ok_t(queue, made["message-count"], made["consumer-count"])

    def _create(self, queue: str, address: str, routing_type: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Create a queue, or find the one of this name."""
        wanted = {"name": queue, "address": address, "routing-type": routing_type, **attributes}
        found: dict[str, Any] = loads(self._link.request("broker", "createQueue", dumps(wanted), True))
        self._transport.addresses[queue] = found["address"]
        if "auto-delete" in attributes and not found["messages-added"] and not found["consumer-count"]:
            # The broker deletes no queue that was never used, so one whose client dies now would stay for ever.
            mark = f"{self.channel_id}.mark"
            self._link.send("SUBSCRIBE", {"id": mark, "destination": self._transport.source_of(queue), "ack": "client"})
            self._link.ask("UNSUBSCRIBE", {"id": mark})
        return found

    def _counts(self, queue: str) -> tuple[int, int] | None:
        """The numbers of messages and consumers; None: there is no such queue."""
        resource = f"queue.{queue}"
        try:
            return self._link.request(resource, "getMessageCount"), self._link.request(resource, "getConsumerCount")
        except RefusedError as error:
            if "Cannot find resource" not in str(error):
                raise
            return None

    def _size(self, queue: str) -> int:
        counts = self._counts(queue) if self._transport.has_management else None
        return counts[0] if counts else 0

    def _purge(self, queue: str) -> int:
        self._need_management("to purge a queue")
        return int(self._link.request(f"queue.{queue}", "removeAllMessages")) if self._size(queue) else 0

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any) -> None:
        """Delete a queue, with its bindings."""
        self._need_management("to delete a queue")
        counts = self._counts(queue)
        if counts and ((if_empty and counts[0]) or (if_unused and counts[1])):
            return
        for name in self._diverts("forwardingAddress", queue):
            self._link.request("broker", "destroyDivert", name)
        if counts:
            # The connections of other consumers are closed, so this one's leave first.
            for subscription in [one for one in self._transport.subscriptions.values() if one.queue == queue]:
                self._transport.unsubscribe(subscription)
            self._link.request("broker", "destroyQueue", queue, not if_unused)
        self._transport.forget(queue)

    def _need_management(self, for_what: str) -> None:
        if not self._transport.has_management:
            raise ChannelError(
                f"{self._link.name} ({self._link.server or 'unknown'}) is no artemis_py, which it takes {for_what}"
            )

    # ---- exchanges -------------------------------------------------------------------------------

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Let a queue have what is sent to an exchange with a routing key."""
        exchange = exchange or "amq.direct"
        routing_key = routing_key or ""
        if not self._transport.has_management:
            super().queue_bind(queue, exchange, routing_key, arguments)
            return
        kind = self.typeof(exchange).type
        address = _address_of(exchange)
        self.state.binding_declare(queue, exchange, routing_key, arguments)
        try:
            if queue in self._transport.temporary:
                self._bind_temporary(queue, exchange, kind)
                return
            divert = {
                "name": _divert_of(exchange, routing_key, queue),
                "address": address,
                "forwarding-address": queue,
                "exclusive": False,
                "routing-type": "ANYCAST",
            }
            if condition := filter_of(kind, [routing_key]):
                divert["filter-string"] = condition
        except ValueError as error:
            raise ChannelError(f"exchange {exchange!r}, queue {queue!r}: {error}") from None
        try:
            self._link.request("broker", "createDivert", dumps(divert))
        except RefusedError as error:
            if "already exists" not in str(error):
                raise

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Nothing more to do for a binding that only this process knows."""

    def _bind_temporary(self, queue: str, exchange: str, kind: str) -> None:
        """Move a queue that goes with its client to the address of its exchange, or widen its filter there."""
        address = _address_of(exchange)
        keys = [binding.routing_key for binding in self.state.queue_bindings(queue) if binding.exchange == exchange]
        attributes = {**self._transport.temporary[queue], "durable": False}
        condition = filter_of(kind, keys)
        where = self._transport.addresses[queue]
        if where == address:
            change = {"name": queue, "filter-string": condition}
            self._link.request("broker", "updateQueue", dumps(change))
            return
        if where != queue:
            raise ChannelError(
                f"queue {queue!r} is bound to {where!r}, and a queue with auto_delete or exclusive has one exchange "
                f"only: declare it without them to bind it to {exchange!r}, too"
            )
        self._link.request("broker", "destroyQueue", queue)
        if condition:
            attributes["filter-string"] = condition
        self._create(queue, address, "MULTICAST", attributes)

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """End what queue_bind began."""
        exchange = exchange or "amq.direct"
        self._need_management("to unbind a queue")
        self.state.binding_delete(queue, exchange, routing_key or "")
        if queue in self._transport.temporary:
            raise ChannelError(f"queue {queue!r} goes with its client: delete it instead")
        name = _divert_of(exchange, routing_key or "", queue)
        if name in self._diverts("forwardingAddress", queue):
            self._link.request("broker", "destroyDivert", name)

    def exchange_delete(self, exchange: str, if_unused: bool = False, nowait: bool = False) -> None:
        """Delete an exchange, its bindings, and the queues that are nowhere else."""
        self._need_management("to delete an exchange")
        for name in self._diverts("address", _address_of(exchange)):
            self._link.request("broker", "destroyDivert", name)
        try:
            self._link.request("broker", "deleteAddress", _address_of(exchange), True)
        except RefusedError as error:
            if "not exist" not in str(error) and "Cannot find" not in str(error):
                raise
        self.state.exchanges.pop(exchange, None)

    def _diverts(self, field: str, value: str) -> Iterator[str]:
        """The names of this transport's diverts of which a field has this value."""
        where = dumps({"field": field, "operation": "EQUALS", "value": value})
        found = loads(self._link.request("broker", "listDiverts", where, -1, -1))
        return (row["name"] for row in found["data"] if row["name"].startswith("kombu/"))

    def list_bindings(self) -> Iterator[tuple[str, str, str]]:
        """The bindings that this process has declared."""
        return ((key.queue, key.exchange, key.routing_key) for key in self.state.bindings)

    # ---- out -------------------------------------------------------------------------------------

    def prepare_message(
        self,
        body: Any,
        priority: int | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A message to publish. Celery makes properties of all options that it does not know, objects, too: RabbitMQ's
        transport leaves those out that AMQP does not have, and this one those of them that JSON cannot write.
        """
        known = {name: value for name, value in (properties or {}).items() if name in _AMQP or _can_be_written(value)}
        message: dict[str, Any] = super().prepare_message(
            body, priority, content_type, content_encoding, headers, known
        )
        return message

    def basic_publish(
        self, message: dict[str, Any], exchange: str, routing_key: str, timeout: float | None = None, **kwargs: Any
    ) -> None:
        """Publish. A persistent message is on the broker's disk when this returns."""
        if not self._transport.has_management:
            super().basic_publish(message, exchange, routing_key, answer_s=timeout)
            return
        self._inplace_augment_message(message, exchange, routing_key)
        if exchange:
            where = {"destination": _address_of(exchange), "destination-type": "MULTICAST", KEY: routing_key or ""}
        else:
            where = {"destination": self._transport.place_of(routing_key)}
            if _is_persistent(message) and where["destination"] == routing_key:
                where["destination-type"] = "ANYCAST"  # where an operator has deleted the queue it is made again
        self._send(where, message, timeout)

    def _put(self, queue: str, message: dict[str, Any], answer_s: float | None = None, **_: Any) -> None:
        self._send({"destination": f"/queue/{queue}", "destination-type": "ANYCAST"}, message, answer_s)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **_: Any) -> None:
        self._need_management("to publish to a fanout exchange")

    def _send(self, where: Mapping[str, object], message: dict[str, Any], answer_s: float | None) -> None:
        properties = message["properties"]
        is_persistent = _is_persistent(message)
        headers: dict[str, object] = {
            **where,
            "content-type": _ENVELOPE,
            "persistent": "true" if is_persistent else "false",
            "priority": self._get_message_priority(message),
        }
        if (expiration := properties.get("expiration")) is not None:
            headers["expires"] = int(time.time() * 1000) + int(expiration)
        if correlation_id := properties.get("correlation_id"):
            headers["correlation-id"] = correlation_id
        if isinstance(task := message["headers"].get("task"), str):
            headers["task"] = task
        if self._transport.schedules and (due_ms := _due_ms(message["headers"].get("eta"))):
            headers["AMQ_SCHEDULED_TIME"] = due_ms
        body = dumps(message).encode()
        if is_persistent and self._transport.confirms:
            self._link.ask("SEND", headers, body, answer_s=answer_s)
        else:
            self._link.send("SEND", headers, body)

    # ---- in --------------------------------------------------------------------------------------

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Any], Any], consumer_tag: str, **_: Any
    ) -> None:
        """Consume from a queue."""
        subscription = Subscription(f"{self.channel_id}.{consumer_tag}", queue, self, no_ack, callback)
        self._subscriptions[consumer_tag] = subscription
        self._subscribe(subscription, self._prefetch)

    def _subscribe(self, subscription: Subscription, prefetch: int, **more: object) -> None:
        headers: dict[str, object] = {
            "id": subscription.id,
            "destination": self._transport.source_of(subscription.queue),
            "ack": "auto" if subscription.no_ack else "client-individual",
            **more,
        }
        if not subscription.no_ack:
            headers["prefetch-count"] = headers["activemq.prefetchSize"] = prefetch or _PREFETCH_MAX
        self._transport.subscriptions[subscription.id] = subscription
        self._link.ask("SUBSCRIBE", headers)

    def basic_cancel(self, consumer_tag: str) -> None:
        """End a consumer. As in AMQP the messages that it has are still its own, until it has settled them."""
        subscription = self._subscriptions.pop(consumer_tag, None)
        if subscription is None:
            return
        subscription.is_ending = True
        if subscription.held and self._transport.has_management:
            # No more come. An UNSUBSCRIBE would give back those that are being worked on.
            self._subscribe(subscription, 1, replace="true")
        if not subscription.held:
            self._end(subscription)

    def _end(self, subscription: Subscription) -> None:
        self._transport.unsubscribe(subscription)
        if subscription.queue in self._transport.temporary:
            with suppress(RefusedError):  # another consumer has come, or its last one was faster
                self.queue_delete(subscription.queue, if_unused=True)  # as in AMQP: with its last consumer

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        """How many unacknowledged messages each consumer of this channel may have; 0: any number."""
        if prefetch_count == self._prefetch:
            return
        self._prefetch = prefetch_count
        if self._transport.has_management:
            for subscription in self._subscriptions.values():
                if not subscription.no_ack:
                    self._subscribe(subscription, prefetch_count, replace="true")

    def can_take(self, subscription: Subscription) -> bool:
        """May kombu have one more message of it? What came beyond that waits here, unacknowledged."""
        return subscription.no_ack or not self._prefetch or len(self._unsettled) < self._prefetch

    def deliver(self, subscription: Subscription, frame: Frame) -> None:
        """Hand a message to its consumer."""
        assert subscription.callback is not None
        subscription.callback(self._taken(subscription, frame))

    def _taken(self, subscription: Subscription, frame: Frame) -> Any:
        payload = _payload_of(frame)
        message = self.Message(payload, channel=self)
        if not subscription.no_ack:
            subscription.held.add(message.delivery_tag)
            self._unsettled[message.delivery_tag] = subscription
        return message

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> Any:
        """One message; None if the queue has none that is ready."""
        subscription = Subscription(f"{self.channel_id}.get.{uuid()}", queue, self, False, None)
        subscription.is_ending = True
        self._subscribe(subscription, 1)
        # After a request and its answer the broker has been through its queues once: a ready message is on its way.
        until_s = time.monotonic() + _GET_S
        if self._transport.has_management:
            self._counts(queue)
            until_s = time.monotonic()
        link, transport = self._link, self._transport
        while not transport.sort(subscription) and (left_s := until_s - time.monotonic()) > 0:
            link.wait(left_s)
        if not subscription.waiting:
            transport.unsubscribe(subscription)
            return None
        message = self._taken(subscription, subscription.waiting.popleft())
        if no_ack:
            message.ack()
        return message

    # ---- settle ----------------------------------------------------------------------------------

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Acknowledge a message, or all of this channel up to it."""
        self._settle("ACK", delivery_tag, multiple)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give a message back (which counts as a failed delivery), or let it go as one that cannot be processed."""
        if requeue:
            self._settle("NACK", delivery_tag)
        elif self._transport.has_management:
            self._settle("ACK", delivery_tag, options="expire")
        else:
            self._settle("ACK", delivery_tag)

    def basic_recover(self, requeue: bool = False) -> None:
        """Give all messages back that this channel has."""
        if not requeue:
            raise NotImplementedError("Does not support recover(requeue=False)")
        for delivery_tag in list(self._unsettled):
            self._settle("NACK", delivery_tag)

    def _settle(self, command: str, delivery_tag: str, multiple: bool = False, **more: str) -> None:
        if not delivery_tag:
            return  # it came with no_ack
        if delivery_tag not in self._unsettled:
            raise LostError(f"message {delivery_tag} is settled already, or came over a connection that was lost")
        tags = [delivery_tag]
        if multiple:
            tags = list(self._unsettled)
            tags = tags[: tags.index(delivery_tag) + 1]
        for tag in tags:
            subscription = self._unsettled.pop(tag)
            subscription.held.discard(tag)
            self._link.send(command, {"id": tag, **more})
            if subscription.is_ending and not subscription.held:
                self._transport.unsubscribe(subscription)

    def close(self) -> None:
        """Close the channel. What it has not settled goes back to its queues."""
        if self.closed:
            return
        self.closed = True
        transport = self.connection
        if transport is not None:
            mine = [one for one in list(transport.subscriptions.values()) if one.channel is self]
            with suppress(LostError):
                for subscription in mine if transport.is_open else ():
                    self._end(subscription)
            self.let_go()

    def let_go(self) -> None:
        """Forget what it had. From now on everything fails that is asked of it."""
        self.closed = True
        self._subscriptions.clear()
        self._unsettled.clear()
        if self.connection is not None:
            self.connection.close_channel(self)


class Transport(virtual.Transport):
    """One connection to the broker, which the channels share."""

    Channel = Channel
    default_port = PORT
    driver_type = "stomp"
    driver_name = "artemis-py-kombu"
    has_tls = False
    connection_errors = (*virtual.Transport.connection_errors, OSError)
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"]), heartbeats=True
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self._link: StompConnection | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.addresses: dict[str, str] = {}
        """On which address each queue is that this process has declared."""
        self.temporary: dict[str, dict[str, Any]] = {}
        """Of queues that go with their client, the attributes."""
        options = client.transport_options
        self.schedules = bool(options.get("schedule_eta", True))
        self.confirms = bool(options.get("confirm_publish", True))
        self.has_management = False
        """Is it an artemis_py, which is asked to make queues and bindings?"""

    def driver_version(self) -> str:
        """The version of this package."""
        return artemis_py_kombu.VERSION

    # ---- the connection --------------------------------------------------------------------------

    @property
    def link(self) -> StompConnection:
        """The connection. Raises LostError if there is none."""
        if self._link is None:
            raise LostError("there is no connection to the broker")
        return self._link

    @property
    def is_open(self) -> bool:
        """Is it connected, as far as is known?"""
        return self._link is not None and self._link.is_open

    connected = is_open  # by this name an event loop asks

    def establish_connection(self) -> Transport:
        """Connect. Raises LostError, and RefusedError for a wrong login."""
        self._let_go()  # what a connection had that was lost: its messages' ids may come again, and mean others
        self._link = self._connect()
        self.has_management = self.client.transport_options.get("management", True) and self._link.server.startswith(
            "artemis_py"
        )
        return self

    def _connect(self) -> StompConnection:
        client, options = self.client, self.client.transport_options
        host, port, login, passcode = client.hostname, client.port, client.userid, client.password
        virtual_host, tls, has_tls = client.virtual_host, client.ssl, self.has_tls
        if host and "://" in host:  # kombu splits stomp+ssl://… at the plus
            parts = parse_url(host)
            if parts["transport"] != "ssl":
                raise ChannelError(f"stomp+{parts['transport']}:// is unknown: use stomp:// or stomp+ssl://")
            has_tls, tls = True, parts.get("ssl") or tls
            host, port = parts["hostname"], parts["port"]
            login, passcode, virtual_host = parts["userid"], parts["password"], parts["virtual_host"]
        return StompConnection(
            host or "localhost",
            port or PORT,
            login=login,
            passcode=passcode() if callable(passcode) else passcode,
            virtual_host=virtual_host or "/",
            context=_context_of(tls) if has_tls or tls else None,
            connect_s=client.connect_timeout or 5.0,
            heartbeat_s=client.heartbeat or 0.0,
            answer_s=options.get("answer_s", 60.0),
        )

    def close_connection(self, connection: Any) -> None:
        """Close it, and all channels."""
        for channel in [*self.channels]:
            channel.close()
        if self._link is not None:
            self._link.close()
            self._link = None

    def _collect(self, connection: Any) -> None:
        """Let it go without a word to the broker: kombu asks for this in a process that was forked, too."""
        self._let_go()

    def _let_go(self) -> None:
        for channel in [*self.channels]:
            channel.let_go()
        for known in (self.subscriptions, self.addresses, self.temporary):
            known.clear()
        if self._link is not None:
            self._link.close(politely=False)
            self._link = None

    def verify_connection(self, connection: Any) -> bool:
        """Is it usable?"""
        return self.is_open

    def get_heartbeat_interval(self, connection: Any) -> float:
        """How often heartbeat_check() has to be called, at least."""
        return self.link.beat_s

    def heartbeat_check(self, connection: Any, rate: int = 2) -> None:
        """Send a heart-beat, and see whether the broker's come. Raises LostError."""
        self.link.beat()

    def qos_semantics_matches_spec(self, connection: Any) -> bool:
        """False: a changed limit of unacknowledged messages counts for consumers that are there, too."""
        return not self.has_management

    # ---- where queues are ------------------------------------------------------------------------

    def place_of(self, queue: str) -> str:
        """Where a message for this queue alone is sent."""
        address = self.addresses.get(queue, queue)
        return queue if address == queue else f"{address}::{queue}"

    def source_of(self, queue: str) -> str:
        """What a consumer of this queue subscribes to."""
        return f"{self.addresses.get(queue, queue)}::{queue}" if self.has_management else f"/queue/{queue}"

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. What it has goes back."""
        self.subscriptions.pop(subscription.id, None)
        self.link.send("UNSUBSCRIBE", {"id": subscription.id})

    def forget(self, queue: str) -> None:
        """A queue was deleted."""
        self.state.queue_bindings_delete(queue)
        self.addresses.pop(queue, None)
        self.temporary.pop(queue, None)

    # ---- events ----------------------------------------------------------------------------------

    def drain_events(self, connection: Any = None, timeout: float | None = None, **_: Any) -> None:
        """Wait for a message, and hand it to its consumer. Raises socket.timeout."""
        until_s = None if timeout is None else time.monotonic() + timeout
        while not self._deliver_one():
            left_s = None if until_s is None else until_s - time.monotonic()
            if not self.link.wait(left_s) and left_s is not None and left_s <= 0:
                raise TimeoutError

    def sort(self, wanted: Subscription | None = None) -> bool:
        """Give the messages that have come to their subscriptions. Returns whether this one has any."""
        messages = self.link.messages
        while messages:
            frame = messages.popleft()
            # Without a subscription it has just been ended, and its messages have gone back.
            if (found := self.subscriptions.get(frame.headers.get("subscription", ""))) is not None:
                found.waiting.append(frame)
        return wanted is not None and bool(wanted.waiting)

    def _deliver_one(self) -> bool:
        self.sort()
        for subscription in list(self.subscriptions.values()):  # other threads end some
            if subscription.waiting and not subscription.is_ending and subscription.channel.can_take(subscription):
                frame = subscription.waiting.popleft()
                # The next one is another consumer's turn.
                self.subscriptions[subscription.id] = self.subscriptions.pop(subscription.id)
                subscription.channel.deliver(subscription, frame)
                return True
        return False

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Read when the socket has something, and deliver what waited for room at each turn of the loop."""
        loop.add_reader(self.link.fileno(), self.on_readable, self, loop)

        def deliver() -> None:
            if not self.is_open:
                loop.on_tick.discard(deliver)
            while self.is_open and self._deliver_one():
                pass

        loop.on_tick.add(deliver)

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """kombu shows it itself."""
        raise NotImplementedError


class TlsTransport(Transport):
    """The same over TLS, for the second URL of a list, which kombu does not split."""

    has_tls = True


def _address_of(exchange: str) -> str:
    return f"kombu.{exchange}"


def _divert_of(exchange: str, routing_key: str, queue: str) -> str:
    return f"kombu/{exchange}/{routing_key}/{queue}"


def _can_be_written(value: object) -> bool:
    try:
        dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_persistent(message: Mapping[str, Any]) -> bool:
    return bool(message["properties"].get("delivery_mode", 2) == 2)


def _due_ms(eta: object) -> int:
    """A date in ISO 8601, as Celery writes it, in epoch ms; 0: there is none, or it has passed."""
    if not isinstance(eta, str):
        return 0
    due = datetime.fromisoformat(eta)
    due_ms = int((due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() * 1000)
    return due_ms if due_ms > time.time() * 1000 else 0


def _payload_of(frame: Frame) -> dict[str, Any]:
    """A message in the form of kombu's virtual transports; one that another program has sent, with its own headers."""
    headers = frame.headers
    if headers.get("content-type") == _ENVELOPE:
        payload: dict[str, Any] = loads(frame.body)
    else:
        kind = headers.get("content-type", "").partition(";")[0]
        payload = {
            "body": frame.body,
            "content-type": kind or "application/data",
            "content-encoding": "utf-8" if kind else "binary",
            "headers": dict(headers),
            "properties": {"delivery_info": {"exchange": "", "routing_key": headers.get("destination", "")}},
        }
    properties = payload["properties"]
    properties["delivery_tag"] = headers.get("ack", "")
    info = properties.setdefault("delivery_info", {})
    info["redelivered"] = headers.get("redelivered") == "true"
    return payload


def _context_of(options: object) -> ssl.SSLContext:
    """TLS by broker_use_ssl, or by ssl_… in the URL: True, or keyfile, certfile, ca_certs, cert_reqs."""
    given = (
        {str(name).removeprefix("ssl_"): value for name, value in dict(options).items()}
        if isinstance(options, dict)
        else {}
    )
    unknown = given.keys() - {"keyfile", "certfile", "ca_certs", "cert_reqs"}
    if unknown:
        raise ChannelError(
            f"TLS has no option {', '.join(sorted(unknown))}; it has ca_certs, cert_reqs, certfile, keyfile"
        )
    context = ssl.create_default_context(cafile=given.get("ca_certs"))
    if given.get("certfile"):
        context.load_cert_chain(given["certfile"], given.get("keyfile"))
    if given.get("cert_reqs", ssl.CERT_REQUIRED) == ssl.CERT_NONE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
