"""The operation that shows the broker as a whole."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from artemis_py.core.tasks import Step
from artemis_py.management.listing import LOOKS_PER_STEP, Row
from artemis_py.management.managed import Arguments, Managed
from artemis_py.management.operation import ATTRIBUTES, VIEW, Operation
from artemis_py.version import VERSION

_SPANS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
_WORDS_MAX: Final = 2


def show_broker(managed: Managed, arguments: Arguments) -> Generator[Step, None, Row]:
    """What the broker is, and how much it has."""
    broker, stored = managed.broker, managed.stored
    consumers = messages = 0
    added, acknowledged = broker.bindings.departed.added, broker.bindings.departed.acknowledged
    queues = list(broker.queues.values())
    for start in range(0, len(queues), LOOKS_PER_STEP):
        for queue in queues[start : start + LOOKS_PER_STEP]:
            counters = queue.contents.counters
            consumers += queue.consumer_count
            messages += queue.message_count
            added += counters.added
            acknowledged += counters.acknowledged
        yield None
    used_bytes, bytes_max = broker.memory.account.size_bytes, broker.memory.bytes_max
    spaces = [] if stored is None else stored.spaces()
    uptime, node_id = in_words(managed.uptime_ms()), node_id_of(managed)
    return {
        "name": managed.name,
        "version": VERSION,
        "nodeID": node_id,
        "started": broker.started,
        "active": broker.started,
        "uptime": uptime,
        "uptimeMillis": managed.uptime_ms(),
        "addressCount": len(broker.addresses),
        "queueCount": len(broker.queues),
        "consumerCount": consumers,
        "totalConsumerCount": consumers,
        "connectionCount": managed.client_count(),
        "messageCount": messages,
        "totalMessageCount": messages,
        "totalMessagesAdded": added,
        "totalMessagesAcknowledged": acknowledged,
        "addressMemoryUsage": used_bytes,
        "addressMemoryUsagePercentage": used_bytes * 100 // bytes_max if bytes_max > 0 else 0,
        "globalMaxSize": bytes_max,
        "diskStoreUsage": max((space.used_percent for space in spaces), default=0),
        "diskFull": broker.memory.disk_full,
        "status": _status(managed, node_id, uptime),
    }


def node_id_of(managed: Managed) -> str:
    """The id of the log; that of a broker without one is made of its name."""
    stored = managed.stored
    return str(uuid5(NAMESPACE_OID, managed.name)) if stored is None else stored.node_id


def _status(managed: Managed, node_id: str, uptime: str) -> str:
    """The JSON text that the operator of Artemis on Kubernetes reads."""
    state = "STARTED" if managed.broker.started else "STOPPED"
    server = {"name": managed.name, "state": state, "version": VERSION, "nodeId": node_id, "uptime": uptime}
    return json.dumps({"configuration": {"properties": {}}, "server": {**server, "jaas": {"properties": {}}}})


def in_words(span_ms: int) -> str:
    """A span of time in its two largest units, such as ``3 days 2 hours``."""
    words: list[str] = []
    for name, unit_ms in _SPANS:
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            words.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
        elif words:
            break
    return " ".join(words[:_WORDS_MAX]) or "0 seconds"


BROKER_OPERATIONS: Final = (
    Operation(
        name="getBroker",
        right=VIEW,
        method="GET",
        path="/api/broker",
        command="broker show",
        sentence="Version, uptime, and the numbers of addresses, queues, consumers, connections and messages.",
        result="these, with nodeID (the id of the log), messages added and acknowledged since the start,"
        " addressMemoryUsage in bytes and in percent of globalMaxSize, diskStoreUsage (the fullest disk, in percent),"
        " and status, a JSON text",
        work=show_broker,
        is_watchable=True,
        mbean=(ATTRIBUTES,),
    ),
)
