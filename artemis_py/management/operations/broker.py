"""Operations on the broker itself."""

from __future__ import annotations

from typing import Final

from artemis_py.management.artemis.signature import ATTRIBUTES
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.managed import Given, Managed, Steps
from artemis_py.management.operation import VIEW, Operation
from artemis_py.version import VERSION


def _show_broker(managed: Managed, given: Given) -> Steps:
    broker = managed.broker
    consumers = messages = added = acknowledged = 0
    queues = list(broker.queues.values())
    for start in range(0, len(queues), LOOKS_PER_STEP):
        for queue in queues[start : start + LOOKS_PER_STEP]:
            consumers += queue.consumer_count
            messages += queue.message_count
            added += queue.contents.tally.added
            acknowledged += queue.contents.tally.acknowledged
        yield None
    return {
        "name": managed.name,
        "version": VERSION,
        "uptimeMillis": managed.uptime_ms(),
        "addressCount": len(broker.addresses),
        "queueCount": len(broker.queues),
        "consumerCount": consumers,
        "connectionCount": managed.client_count(),
        "messageCount": messages,
        "totalMessagesAdded": added,
        "totalMessagesAcknowledged": acknowledged,
        "addressMemoryUsage": broker.memory.account.size_bytes,
        "globalMaxSize": broker.memory.bytes_max,
    }


BROKER_OPERATIONS: Final = (
    Operation(
        name="getBroker",
        right=VIEW,
        method="GET",
        path="/api/broker",
        command="broker show",
        sentence="What the broker is and how much it has.",
        result="name, version, uptime in ms, the numbers of addresses, queues, consumers, connections and messages, and"
        " how many messages came to the queues and were acknowledged there",
        work=_show_broker,
        is_watchable=True,
        mbean=(ATTRIBUTES,),
    ),
)
