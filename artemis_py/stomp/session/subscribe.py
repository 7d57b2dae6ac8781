"""Turns the headers of a SUBSCRIBE frame into a consumer on the right queue."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from sys import maxsize
from typing import Any, Final

from artemis_py.config.problems import nearest
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import UNLIMITED, Consumer, Reader, encoded_size
from artemis_py.core.memory import SUBSCRIPTION_BYTES
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.errors import BrokerError, NotAllowedError, NotFoundError
from artemis_py.security.rights import Permit, Rights
from artemis_py.selector import Selector, compile_selector
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Client, obtain_address
from artemis_py.stomp.wire.dialect import integer, routing_type_of, split_qualified
from artemis_py.stomp.wire.frames import FrameError
from artemis_py.stomp.wire.writer import HeadWriter, MessageWriter

SELECTOR_CHARACTERS_PER_UNIT: Final = 2
"""How many characters of a selector cost one unit of the turn's budget."""
_NAMES_COMPARED_MAX: Final = 200
_NAME_UNITS: Final = 25
"""What it costs to compare a name that does not exist with one that does."""
AUTO: Final = "auto"
CLIENT: Final = "client"
INDIVIDUAL: Final = "client-individual"
_DURABLE_NAME_HEADERS: Final = ("durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName")
WINDOW: Final = "consumer-window-size"
RABBIT_PREFETCH: Final = "prefetch-count"
ACTIVEMQ_PREFETCH: Final = "activemq.prefetchSize"
LIMIT_HEADERS: Final = (WINDOW, "max-backlog", RABBIT_PREFETCH, ACTIVEMQ_PREFETCH)
"""What limits how much a consumer holds unacknowledged: in bytes the first, the others in messages."""
NO_LOCAL_HEADERS: Final = ("no-local", "activemq.noLocal")
EXCLUSIVE_HEADERS: Final = ("exclusive",)
_PRIORITY_HEADERS: Final = ("consumer-priority", "x-priority")
_REPLAY_HEADERS: Final = ("x-qpid-replay-period", "replay-period")
_REPLACE_HEADERS: Final = ("replace",)
BROWSER: Final = ("browser",)
_AUTO_CREATE: Final = "auto-create"
"""``false``: a SUBSCRIBE to a queue or an address that does not exist is refused."""
_BROWSE: Final = "browse"
_HEADS_HEADERS: Final = ("headers-only",)
_BOOKMARKS_HEADERS: Final = ("bookmarks",)


class Subscription:
    """One subscription of a connection: its consumer, and how its messages are written and acknowledged."""

    __slots__ = ("ack_mode", "consumer", "destination", "durable_name", "id", "queue", "size_bytes", "writer")

    def __init__(
        self,
        id: str,
        destination: str,
        ack_mode: str,
        queue: Queue,
        consumer: Consumer,
        writer: MessageWriter,
        durable_name: str | None,
    ) -> None:
        self.id = id
        self.destination = destination
        self.ack_mode = ack_mode
        self.queue = queue
        self.consumer = consumer
        self.writer = writer
        self.durable_name = durable_name
        self.size_bytes = SUBSCRIPTION_BYTES + len(id) + len(destination)
        """Its size in memory without its selector."""

    @property
    def selector(self) -> str | None:
        """Its own selector, not the filter of its queue."""
        selector = self.consumer.selector
        return None if selector is None else selector.text

    def covered_by(self, message_id: int) -> list[Entry]:
        """Release the entries that an ACK or NACK of this message settles: in the mode ``client`` also all entries sent
        before it.
        """
        consumer = self.consumer
        if self.ack_mode == INDIVIDUAL:
            return [consumer.let_go(message_id)]
        return consumer.let_go_up_to(message_id)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """The properties of a connection that matter to a subscription."""

    owner: Any
    client: Client
    version: str
    reader: Reader
    rights: Rights | None = None


def durable_name_of(headers: dict[str, str]) -> str | None:
    """The durable subscription that a frame names, by any of the three header names (the first found counts)."""
    for header in _DURABLE_NAME_HEADERS:
        if header in headers:
            return headers[header]
    return None


def durable_queue_name(subscriber: Subscriber, durable_name: str) -> str:
    """The queue behind a durable subscription. Raises BrokerError if the connection has no client-id."""
    if not subscriber.client.client_id:
        raise BrokerError("A durable subscription needs a client-id header in CONNECT")
    return f"{subscriber.client.client_id}.{durable_name}"


def subscribe(service: StompService, subscriber: Subscriber, headers: dict[str, str], now_ms: int) -> Subscription:
    """Open a subscription. Raises BrokerError, SelectorError or FrameError without side effects."""
    broker = service.broker
    destination = headers["destination"]
    ack_mode = ack_mode_of(headers)
    selector = selector_of(service, headers)
    window_bytes = _window(service, headers, ack_mode)
    priority = _first_number(headers, _PRIORITY_HEADERS) or 0
    replay_period_s = _first_number(headers, _REPLAY_HEADERS)
    if replay_period_s is not None and replay_period_s < 0:
        raise FrameError(f"{_REPLAY_HEADERS[0]} must be a number of seconds, 0 or more, not {replay_period_s}")
    backlog = _backlog(headers)
    queue, durable_name, filters_itself = _queue_for(service, subscriber, headers, destination, selector)
    no_local = subscriber.client.origin if is_true(headers, NO_LOCAL_HEADERS) else 0
    if queue.temporary:
        queue.no_local = no_local
    consumer_id = broker.next_consumer_id()
    acks = ack_mode != AUTO
    writer = writer_for(headers, consumer_id, subscriber.version, settles=not acks)
    writer.amq_message_id = service.enable_message_id
    writer.lifetime = queue.contents.expiry.lifetime
    writer.ingress_timestamp = queue.address.settings.enable_ingress_timestamp
    browses = is_true(headers, BROWSER)
    destructive = not (queue.non_destructive or browses)
    settles = not acks or (destructive and queue.consumer_defaults.at_most_once)
    if is_true(headers, _HEADS_HEADERS) and destructive and settles:
        if queue.temporary and not queue.consumer_count:
            broker.registry.delete_queue(queue, now_ms)
        raise FrameError(
            "headers-only:true would lose the bodies of messages that are gone when they are sent: it needs another "
            "ack than auto, and a queue that is not at-most-once"
        )
    if selector is None:
        selector, filters_itself = queue.consumer_defaults.selector, False
    since_ms, after_id = queue.consumer_defaults.replay(replay_period_s, now_ms, broker.host.message_id)
    consumer = Consumer(
        consumer_id,
        subscriber.owner,
        settles=settles,
        destructive=destructive,
        acks=acks,
        browses=browses,
        selector=None if filters_itself else selector,
        window_bytes=window_bytes,
        priority=priority,
        no_local=0 if queue.temporary else no_local,
        weigh=writer.frame_bytes if window_bytes != UNLIMITED or isinstance(writer, HeadWriter) else encoded_size,
        since_ms=since_ms,
        after_id=after_id,
        exclusive=is_true(headers, EXCLUSIVE_HEADERS),
        reader=subscriber.reader,
        backlog_max=queue.consumer_defaults.backlog_for(backlog) if backlog or not browses else maxsize,
    )
    if destructive and not consumer.settles:
        writer.delivery_attempts, writer.leases = queue.contents.delivery_attempts, queue.contents.leases
    writer.tells_bookmarks = queue.tells_bookmarks or is_true(headers, _BOOKMARKS_HEADERS)
    if queue.grouping.rule is not None and queue.grouping.rule.first_key is not None:
        writer.mark_firsts(queue.grouping.rule.first_key, consumer.firsts)
    try:
        broker.attach(queue, consumer, now_ms)
    except BrokerError:
        if queue.temporary and not queue.consumer_count:
            broker.registry.delete_queue(queue, now_ms)
        raise
    if queue.durable and not browses:
        fields = {"subscription": headers.get("id"), "selector": headers.get("selector"), "ack": ack_mode}
        known: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        known["number"] = consumer.id
        try:
            consumer.actor = broker.log.audit.consumer_opened(subscriber.client.origin, queue.id, known)
        except Exception:
            broker.detach(queue, consumer, failed=False, now_ms=now_ms)
            raise
    return Subscription(headers.get("id") or destination, destination, ack_mode, queue, consumer, writer, durable_name)


def ack_mode_of(headers: dict[str, str]) -> str:
    """The header ``ack`` of a SUBSCRIBE. Raises FrameError."""
    ack_mode = headers.get("ack", AUTO)
    if ack_mode not in (AUTO, CLIENT, INDIVIDUAL):
        raise FrameError(f"ack must be auto, client or client-individual, not {ack_mode[:40]!r}")
    return ack_mode


def replaces(headers: dict[str, str]) -> bool:
    """Does a SUBSCRIBE change the subscription that has its id already?"""
    return is_true(headers, _REPLACE_HEADERS)


def replace(
    service: StompService, subscription: Subscription, headers: dict[str, str], origin: int, now_ms: int
) -> Task | None:
    """Change a subscription in place: its selector, no-local and backlog become those of the frame. Returns the
    unfinished work, if any. Raises FrameError, SelectorError or LimitError, and
    nothing has changed then.
    """
    consumer, queue = subscription.consumer, subscription.queue
    if queue.temporary or subscription.durable_name is not None:
        raise FrameError(
            "replace:true changes subscriptions of queues: this one has a queue of its own, which has its selector; "
            "unsubscribe, and subscribe again"
        )
    if not consumer.destructive:
        raise FrameError("replace:true changes subscriptions that take messages, and this one only looks at them")
    known = {
        "destination": subscription.destination,
        "ack": subscription.ack_mode,
        _PRIORITY_HEADERS[0]: str(consumer.priority),
        WINDOW: str(consumer.window_bytes),
        _HEADS_HEADERS[0]: str(isinstance(subscription.writer, HeadWriter)).lower(),
    }
    asked = {
        "destination": headers["destination"],
        "ack": headers.get("ack", AUTO),
        _PRIORITY_HEADERS[0]: str(_first_number(headers, _PRIORITY_HEADERS) or 0),
        WINDOW: str(_window(service, headers, subscription.ack_mode)),
        _HEADS_HEADERS[0]: str(is_true(headers, _HEADS_HEADERS)).lower(),
    }
    for name, value in asked.items():
        if value != known[name]:
            raise FrameError(
                f"replace:true changes selector, no-local and max-backlog; {name} was {known[name][:80]} and cannot "
                f"become {value[:80]}: unsubscribe, and subscribe again"
            )
    selector = selector_of(service, headers) or queue.consumer_defaults.selector
    backlog_max = queue.consumer_defaults.backlog_for(_backlog(headers))
    no_local = origin if is_true(headers, NO_LOCAL_HEADERS) else 0
    return queue.replace(consumer, selector, no_local, backlog_max, now_ms)


def writer_for(headers: dict[str, str], consumer_id: int, version: str, *, settles: bool) -> MessageWriter:
    """What writes the frames: with or without the bodies."""
    if is_true(headers, _HEADS_HEADERS):
        return HeadWriter(headers.get("id"), consumer_id, version, settles=settles)
    return MessageWriter(headers.get("id"), consumer_id, version, settles=settles)


def selector_of(service: StompService, headers: dict[str, str]) -> Selector | None:
    """The compiled selector of a SUBSCRIBE. Raises SelectorError."""
    text = headers.get("selector")
    if text is None:
        return None
    service.broker.budget.spend(len(text) // SELECTOR_CHARACTERS_PER_UNIT)
    return compile_selector(text, service.limits.selectors)


def _backlog(headers: dict[str, str]) -> int | None:
    """How many messages a SUBSCRIBE asks for, by its tightest limit; None: it does not say. With RabbitMQ's
    ``prefetch-count`` 0 is no limit; with ActiveMQ's ``activemq.prefetchSize`` -1 is none, and 0 one message at a time.
    Raises FrameError.
    """
    asked: list[int] = []
    for header, off in (("max-backlog", None), (RABBIT_PREFETCH, 0), (ACTIVEMQ_PREFETCH, UNLIMITED)):
        if header in headers:
            count = integer(headers[header], header)
            least = 0 if header == ACTIVEMQ_PREFETCH else 1
            if count >= least:
                asked.append(max(count, 1))
            elif count != off:
                none = "" if off is None else f" (or {off}: no limit)"
                raise FrameError(f"{header} must be a number of messages, {least} or more{none}, not {count}")
    return min(asked) if asked else None


def _window(service: StompService, headers: dict[str, str], ack_mode: str) -> int:
    """How many bytes a consumer may hold unacknowledged. Who asks for a number of messages as with another broker gets
    that number, whatever the acceptor's window. Raises FrameError.
    """
    asked = service.window_bytes
    if WINDOW in headers:
        asked = integer(headers[WINDOW], WINDOW)
        if asked < UNLIMITED:
            raise FrameError(f"{WINDOW} must be -1 (unlimited), 0 (one message) or a number of bytes, not {asked}")
    elif RABBIT_PREFETCH in headers or ACTIVEMQ_PREFETCH in headers:
        asked = UNLIMITED
    return UNLIMITED if ack_mode == AUTO else asked


def _first_number(headers: dict[str, str], names: tuple[str, ...]) -> int | None:
    """The number in the first of these headers that is present."""
    for name in names:
        if name in headers:
            return integer(headers[name], name)
    return None


def is_true(headers: dict[str, str], names: tuple[str, ...]) -> bool:
    """Is one of these headers ``true``, in any case?"""
    return any(headers.get(name, "").lower() == "true" for name in names)


def _queue_for(
    service: StompService, subscriber: Subscriber, headers: dict[str, str], destination: str, selector: Selector | None
) -> tuple[Queue, str | None, bool]:
    """The queue to read, the durable subscription's name, and whether the selector is the queue's filter."""
    broker = service.broker
    by, permit = subscriber.reader.user or "", _permit(subscriber, headers)
    creates = headers.get(_AUTO_CREATE, "").lower() != "false"
    temporary = service.temporaries.obtain(destination, subscriber.client, service.limits.temporary_max)
    if temporary is not None:
        name, routing_type = temporary.address, temporary.routing_type
        obtain_address(broker, temporary, by, permit)
    else:
        name, prefix_type = service.prefixes.split(destination)
        routing_type_asked = prefix_type or routing_type_of(headers.get("subscription-type"), "subscription-type")
        address_name, queue_name = split_qualified(name)
        if permit is not None and (address_name or queue_name) == service.asked_address:
            permit.to_use(address_name, queue_name)
        service.check_may_read(address_name or queue_name or "")
        _check_private(service, subscriber.client, address_name, queue_name)
        if queue_name is not None and not creates:
            return _existing(broker, address_name, queue_name, permit), None, False
        if queue_name is not None:
            return broker.resolver.obtain_queue(address_name, queue_name, routing_type_asked, by, permit), None, False
        if name == service.told_address:
            if permit is not None:
                permit.to_use(name, None)
            service.open_notifications()
        routing_type = routing_type_asked or _usual_type(broker, name)
    if routing_type == ANYCAST and not creates:
        return _existing(broker, name, None, permit), None, False
    if routing_type == ANYCAST:
        return broker.resolver.obtain_anycast_queue(name, by, permit), None, False
    durable_name = durable_name_of(headers)
    if durable_name is None:
        queue_name = service.temporaries.name_of_subscription()
    else:
        queue_name = durable_queue_name(subscriber, durable_name)
    if permit is not None:
        broker.resolver.ask_to_use(permit, name, queue_name, durable=durable_name is not None)
    if not creates and name not in broker.addresses:
        raise NotFoundError(f"There is no address {name}")
    address = broker.resolver.obtain_address(name, MULTICAST, by)
    if durable_name is not None:
        return _durable_queue(broker, subscriber, address, durable_name, selector), durable_name, True
    queue = broker.resolver.create_subscription_queue(
        queue_name, address, durable=False, selector=None if selector is None else selector.text, by=by
    )
    return queue, None, True


def _existing(broker: Broker, name: str, queue_name: str | None, permit: Permit | None) -> Queue:
    """The queue, for a client that wants none created. Raises NotFoundError, with the most similar name that the client
    may read, NotAllowedError.
    """
    try:
        queue = broker.resolver.existing_queue(name, queue_name)
    except NotFoundError as error:
        asked = name if queue_name is None else queue_name
        if permit is not None:
            permit.to_use(name or asked, asked, in_full=queue_name is not None)
        known = list(islice(broker.queues.values(), _NAMES_COMPARED_MAX))
        broker.budget.spend(len(known) * _NAME_UNITS)
        near = nearest(
            asked, (one.name for one in known if permit is None or permit.allows(one.address.name, one.name))
        )
        if near is None:
            raise
        raise NotFoundError(f"{error}; did you mean {near}?") from None
    if permit is not None:
        permit.to_use(queue.address.name, queue.name, in_full=queue_name is not None)
    return queue


def why_not_browsed(service: StompService, subscription: Subscription, rights: Rights) -> str:
    """Why a client may not browse its queue any more, as if it subscribed now; empty: it may."""
    name, _ = service.prefixes.split(subscription.destination)
    queue = subscription.queue
    try:
        in_full = split_qualified(name)[1] is not None
        Permit(rights, _BROWSE).to_use(queue.address.name, queue.name, in_full=in_full)
    except NotAllowedError as error:
        return str(error)
    return ""


def _permit(subscriber: Subscriber, headers: dict[str, str]) -> Permit | None:
    """What the client may do with what it subscribes to; None: everything."""
    if subscriber.rights is None:
        return None
    return Permit(subscriber.rights, _BROWSE if is_true(headers, BROWSER) else "consume")


def _usual_type(broker: Broker, name: str) -> str:
    """A consumer of an anycast address reads the address' queue; a consumer of a multicast-only address gets its own
    queue.
    """
    address = broker.addresses.get(name)
    if address is None or not address.routing_types:
        return broker.config.settings_for(name).default_address_routing_type
    return ANYCAST if ANYCAST in address.routing_types else MULTICAST


def _durable_queue(
    broker: Broker, subscriber: Subscriber, address: Address, durable_name: str, selector: Selector | None
) -> Queue:
    name = durable_queue_name(subscriber, durable_name)
    queue = broker.queues.get(name)
    if queue is None:
        return broker.resolver.create_subscription_queue(
            name,
            address,
            durable=True,
            selector=None if selector is None else selector.text,
            by=subscriber.reader.user or "",
        )
    if queue.address is not address:
        raise NotFoundError(
            f"The durable subscription {durable_name} is on address {queue.address.name}, not on {address.name}"
        )
    return queue


def _check_private(service: StompService, client: Client, address_name: str, queue_name: str | None) -> None:
    """Raises BrokerError if a destination, by whatever name, is another client's temporary destination."""
    queue = None if queue_name is None else service.broker.queues.get(queue_name)
    name = address_name if queue is None else queue.address.name
    if not service.temporaries.may_read(name, client):
        raise BrokerError(f"{name} is a temporary destination of another client; only that client may read it")
