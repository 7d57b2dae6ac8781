"""Consumers: their fields, and the operations that list them and close one."""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.management.listing import EPOCH_MS, FLAG, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Managed, Steps
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows


class ConsumerOnQueue(NamedTuple):
    """A consumer on its queue."""

    consumer: Consumer
    queue: Queue


def _backlog(it: ConsumerOnQueue) -> int:
    return it.consumer.backlog_max if it.consumer.backlog_max < 1 << 31 else -1


def _status(it: ConsumerOnQueue) -> str:
    consumer = it.consumer
    if consumer.browses:
        return "browses"
    if len(consumer.held) >= consumer.backlog_max:
        return "backlog used up"
    if consumer.credit_bytes <= 0:
        return "window used up"
    return "does not read" if consumer.room_bytes <= 0 else "takes messages"


CONSUMERS: Final[Kind[ConsumerOnQueue]] = Kind(
    "consumer",
    "consumers",
    [
        Field("id", NUMBER, "The consumer's number", lambda it: it.consumer.id, is_brief=True),
        Field("queue", TEXT, "Its queue", lambda it: it.queue.name, is_brief=True),
        Field("address", TEXT, "The address of its queue", lambda it: it.queue.address.name),
        Field("queueType", TEXT, "ANYCAST or MULTICAST", lambda it: it.queue.routing_type),
        Field(
            "connection",
            NUMBER,
            "The number of its connection",
            lambda it: it.consumer.reader.connection,
            is_brief=True,
        ),
        Field("sessionID", TEXT, "The name of its session", lambda it: f"s{it.consumer.reader.connection}"),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.consumer.reader.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.consumer.reader.user, is_brief=True),
        Field(
            "filter",
            TEXT,
            "Its selector; null: it takes any message",
            lambda it: None if it.consumer.selector is None else it.consumer.selector.text,
        ),
        Field("browseOnly", FLAG, "Does it only look?", lambda it: it.consumer.browses),
        Field("priority", NUMBER, "Its consumer priority", lambda it: it.consumer.priority),
        Field(
            "messagesInTransit",
            NUMBER,
            "Messages that it has and has not settled",
            lambda it: len(it.consumer.held),
            "messages",
            is_brief=True,
        ),
        Field(
            "messagesDelivered",
            NUMBER,
            "Messages that were written for it",
            lambda it: it.consumer.statistics.delivered_count,
            "messages",
        ),
        Field(
            "messagesAcknowledged",
            NUMBER,
            "Messages that it acknowledged; with ack:auto all that were written",
            lambda it: it.consumer.statistics.acknowledged_count,
            "messages",
        ),
        Field("creationTime", NUMBER, "When it subscribed", lambda it: it.consumer.statistics.begun_ms, EPOCH_MS),
        Field(
            "lastDeliveredTime",
            NUMBER,
            "When it last got one; 0: never",
            lambda it: it.consumer.statistics.delivered_ms,
            EPOCH_MS,
        ),
        Field(
            "lastAcknowledgedTime",
            NUMBER,
            "When it last acknowledged one; 0: never",
            lambda it: it.consumer.statistics.acknowledged_ms,
            EPOCH_MS,
        ),
        Field("maxBacklog", NUMBER, "How many it may have; -1: any number", _backlog, "messages"),
        Field("windowSize", NUMBER, "Its window; -1: none", lambda it: it.consumer.window_bytes, "bytes"),
        Field(
            "status",
            TEXT,
            "takes messages, browses, does not read, window used up, or backlog used up",
            _status,
            is_brief=True,
        ),
    ],
)


def _list(managed: Managed, arguments: Arguments) -> Steps:
    rows: list[ConsumerOnQueue] = []
    queues = list(managed.broker.queues.values())
    for number, queue in enumerate(queues):
        consumers = list(queue.distribution.consumers)
        for start in range(0, len(consumers), LOOKS_PER_STEP):
            rows += [ConsumerOnQueue(consumer, queue) for consumer in consumers[start : start + LOOKS_PER_STEP]]
            yield None
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from select_rows(CONSUMERS, rows, arguments))


CONSUMER: Final = Argument("consumer", NUMBER, "the number of the consumer")


def _close_consumer(managed: Managed, arguments: Arguments) -> Steps:
    number = arguments["consumer"]
    why = f"An operator has closed the consumer {number}"
    for count, queue in enumerate(list(managed.broker.queues.values()), 1):
        consumer = next((one for one in queue.distribution.consumers if one.id == number), None)
        if consumer is not None:
            client = managed.client(consumer.reader.connection)
            bridge = (consumer.reader.client_id or "").removeprefix("bridge ")
            if client is None and bridge in managed.bridges():
                raise BrokerError(f"consumer {number} is that of a bridge: artemis-py bridge stop {bridge} ends it")
            if client is None or not client.end_consumer(number, why):
                break
            return {"closed": number}
        if count % LOOKS_PER_STEP == 0:
            yield None
    raise NotFoundError(f"there is no consumer {number}")


CONSUMER_OPERATIONS: Final = (
    listing("listConsumers", "/api/consumers", "consumer ls", CONSUMERS, "Consumers.", _list),
    Operation(
        name="closeConsumerWithID",
        right=EDIT,
        method="DELETE",
        path="/api/consumers/{consumer}",
        command="consumer close",
        sentence="End one subscription with an ERROR. What it holds goes back to its queue. STOMP 1.2 closes the"
        " connection after every ERROR; a client of an earlier version keeps it.",
        result="closed: the number of the consumer",
        destroys="consumer {consumer}, and with STOMP 1.2 its connection and transactions that are open on it",
        arguments=(CONSUMER,),
        mbean=("boolean closeConsumerWithID(String sessionID=_, String ID=consumer)",),
        work=_close_consumer,
    ),
)
