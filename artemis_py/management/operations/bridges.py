"""Bridges: their fields, and the operations that list, start and stop them."""

from __future__ import annotations

from typing import Final

from artemis_py.management.listing import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, BridgeState, Managed, Steps, at_once, lookup
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows

BRIDGES: Final[Kind[BridgeState]] = Kind(
    "bridge",
    "bridges",
    [
        Field("name", TEXT, "The bridge's name", lambda it: it.name, is_brief=True),
        Field("queue", TEXT, "The queue that it forwards", lambda it: it.config.queue_name, is_brief=True),
        Field(
            "forwardingAddress",
            TEXT,
            "The destination there; null: the address of each message",
            lambda it: it.config.forwarding_address,
            is_brief=True,
        ),
        Field("started", FLAG, "Is it to be connected?", lambda it: it.is_started),
        Field("state", TEXT, "connected, connecting, waiting, stopping or stopped", lambda it: it.state, is_brief=True),
        Field(
            "peer", TEXT, "The broker that it is connected to, or tries; empty: none", lambda it: it.peer, is_brief=True
        ),
        Field("reason", TEXT, "Why it is not connected, or has stopped", lambda it: it.reason, is_brief=True),
        Field(
            "nextAttempt",
            NUMBER,
            "When it next tries to connect; 0: no attempt is planned",
            lambda it: it.next_ms,
            EPOCH_MS,
        ),
        Field("connectionCount", NUMBER, "How many connections it has", lambda it: it.connected_count),
        Field("concurrency", NUMBER, "How many it is to have", lambda it: it.config.concurrency),
        Field(
            "messagesAcknowledged",
            NUMBER,
            "Messages that the other broker has confirmed since the start",
            lambda it: it.forwarded_count,
            "messages",
            is_brief=True,
        ),
        Field(
            "messagesPendingAcknowledgement",
            NUMBER,
            "Messages on the way, which it has not confirmed",
            lambda it: it.unconfirmed_count,
            "messages",
        ),
        Field("messagesRefused", NUMBER, "How often it has refused one", lambda it: it.refused_count, "messages"),
        Field(
            "messagesLooped",
            NUMBER,
            "How often one came back that the bridge had forwarded",
            lambda it: it.looped_count,
            "messages",
        ),
        Field(
            "lastAcknowledgedTime", NUMBER, "When it last confirmed one; 0: never", lambda it: it.forwarded_ms, EPOCH_MS
        ),
        Field("filter", TEXT, "Which messages it forwards; null: all", lambda it: it.config.filter),
        Field("routingType", TEXT, "STRIP, PASS, ANYCAST or MULTICAST", lambda it: it.config.routing_type),
        Field("connectors", TEXT, "Where other brokers are, with commas between", lambda it: it.config.places),
        Field("user", TEXT, "The login there", lambda it: it.config.user),
        Field(
            "useDuplicateDetection",
            FLAG,
            "Do messages get an id by which the other broker drops what comes twice?",
            lambda it: it.config.use_duplicate_detection,
        ),
        Field("declaredAt", TEXT, "File and line that declare it", lambda it: str(it.config.origin)),
    ],
)


def _list(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from select_rows(BRIDGES, list(managed.bridges().values()), arguments))


def _start(managed: Managed, arguments: Arguments) -> Steps:
    bridge = lookup(managed.bridges(), "bridge", arguments["bridge"])
    bridge.start()
    return at_once(BRIDGES.row(bridge))


def _stop(managed: Managed, arguments: Arguments) -> Steps:
    bridge = lookup(managed.bridges(), "bridge", arguments["bridge"])
    bridge.stop(managed.now_ms())
    while not bridge.may_go_on and not bridge.is_started:
        yield bridge
    return BRIDGES.row(bridge)


_BRIDGE: Final = Argument("bridge", TEXT, "the name of the bridge")

BRIDGE_OPERATIONS: Final = (
    listing(
        "listBridges", "/api/bridges", "bridge ls", BRIDGES, "Bridges, which forward queues to other brokers.", _list
    ),
    Operation(
        name="start",
        on="bridge",
        right=EDIT,
        method="POST",
        path="/api/bridges/{bridge}/start",
        command="bridge start",
        sentence="Start a bridge that was stopped, or has given up. The answer does not wait until it is connected.",
        result="the fields of the bridge",
        arguments=(_BRIDGE,),
        shows=BRIDGES,
        work=_start,
        mbean=("void start()",),
    ),
    Operation(
        name="stop",
        on="bridge",
        right=EDIT,
        method="POST",
        path="/api/bridges/{bridge}/stop",
        command="bridge stop",
        sentence="Stop a bridge until it, or the broker, is started. It takes no more messages, and waits until those "
        "on the way are confirmed, for at most pending-ack-timeout; then they go back to the queue.",
        result="the fields of the bridge",
        arguments=(_BRIDGE,),
        shows=BRIDGES,
        work=_stop,
        mbean=("void stop()",),
    ),
)
