"""The fields of a queue in lists."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses import retroactive
from artemis_py.core.queue.overflow import Ring
from artemis_py.core.queue.queue import Queue
from artemis_py.core.reference import deletion_of
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT, Field, Kind

_MESSAGES: Final = "messages"
_BYTES: Final = "bytes"


def _ring_size(queue: Queue) -> int:
    overflow = queue.flow.overflow
    return overflow.size if isinstance(overflow, Ring) else -1


def _leased(queue: Queue) -> int:
    leases = queue.contents.leases
    return 0 if leases is None else len(leases)


def _life(queue: Queue) -> str:
    if queue.temporary:
        return "temporary"
    if queue.auto_created:
        return "auto-created"
    return "created" if queue.origin is None else "declared"


def _first_message_age(queue: Queue) -> int:
    oldest_ms = queue.contents.oldest_ms()
    return max(queue.host.turn_ms - oldest_ms, 0) if oldest_ms else -1


def _auto_delete(queue: Queue) -> bool:
    return deletion_of(queue.auto_delete, queue.address.settings, auto_created=queue.auto_created).is_wanted


def _last_value_key(queue: Queue) -> str | None:
    values = queue.contents.last_values
    return None if values is None else values.key


def _group_buckets(queue: Queue) -> int:
    rule = queue.grouping.rule
    return -1 if rule is None else rule.buckets


def _group_first_key(queue: Queue) -> str | None:
    rule = queue.grouping.rule
    return None if rule is None else rule.first_key


def _rebalances(queue: Queue) -> bool:
    rule = queue.grouping.rule
    return rule is not None and rule.rebalances


def _rebalance_pauses(queue: Queue) -> bool:
    rule = queue.grouping.rule
    return rule is not None and rule.rebalances and rule.pauses


def _text(value: object) -> str | None:
    return None if value is None else str(value)


QUEUES: Final[Kind[Queue]] = Kind(
    "queue",
    "queues",
    [
        Field("name", TEXT, "The queue's name", lambda it: it.name, is_brief=True),
        Field("id", NUMBER, "The queue's number, the same after a restart", lambda it: it.id),
        Field("address", TEXT, "The address on which it is", lambda it: it.address.name, is_brief=True),
        Field("routingType", TEXT, "ANYCAST or MULTICAST", lambda it: it.routing_type, is_brief=True),
        Field(
            "messageCount",
            NUMBER,
            "Messages on the queue: ready, in delivery, scheduled and in pages",
            lambda it: it.message_count,
            _MESSAGES,
            is_brief=True,
        ),
        Field("consumerCount", NUMBER, "Consumers, also browsers", lambda it: it.consumer_count, is_brief=True),
        Field(
            "deliveringCount",
            NUMBER,
            "Messages that consumers have and have not settled",
            lambda it: it.contents.delivering_count,
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "scheduledCount",
            NUMBER,
            "Messages that wait for their time",
            lambda it: len(it.contents.scheduled),
            _MESSAGES,
        ),
        Field(
            "pagedCount",
            NUMBER,
            "Messages that are in pages and not in memory",
            lambda it: it.contents.paged.count,
            _MESSAGES,
        ),
        Field("leasedCount", NUMBER, "Messages under a lease", _leased, _MESSAGES),
        Field(
            "persistentSize",
            NUMBER,
            "Headers and bodies of the messages on the queue",
            lambda it: it.contents.counters.size_bytes,
            _BYTES,
        ),
        Field(
            "messagesAdded",
            NUMBER,
            "Messages that came since the queue was made, or since the start",
            lambda it: it.contents.counters.added,
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "messagesAcked",
            NUMBER,
            "Messages acknowledged since then",
            lambda it: it.contents.counters.acknowledged,
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "messagesExpired", NUMBER, "Messages expired since then", lambda it: it.contents.counters.expired, _MESSAGES
        ),
        Field(
            "messagesKilled",
            NUMBER,
            "Messages removed since then: dead, or purged",
            lambda it: it.contents.counters.killed,
            _MESSAGES,
        ),
        Field(
            "messagesReplaced",
            NUMBER,
            "Messages that a ring gave up since then, or that a newer value replaced",
            lambda it: it.contents.counters.replaced,
            _MESSAGES,
        ),
        Field(
            "firstMessageAge",
            NUMBER,
            "How long the first message waits that is ready; -1: none is",
            _first_message_age,
            "ms",
        ),
        Field(
            "paused",
            FLAG,
            "Does it deliver nothing until it, or its address, is resumed?",
            lambda it: it.gate.is_paused,
            is_brief=True,
        ),
        Field("persistedPause", FLAG, "Is it paused itself, also after a restart?", lambda it: it.gate.paused),
        Field("enabled", FLAG, "Does it take messages?", lambda it: it.enabled),
        Field("sendersWait", FLAG, "Do senders wait until it is less full?", lambda it: it.flow.stopped),
        Field("durable", FLAG, "Does it survive a restart?", lambda it: it.durable),
        Field("temporary", FLAG, "Does it end with a connection?", lambda it: it.temporary),
        Field("autoCreated", FLAG, "Did a client's use make it?", lambda it: it.auto_created),
        Field("life", TEXT, "declared (in the file), created, auto-created or temporary", _life),
        Field(
            "declaredAt",
            TEXT,
            "File and line that declare it; null: nothing does",
            lambda it: None if it.origin is None else str(it.origin),
        ),
        Field("user", TEXT, "The owner that its attribute user names", lambda it: _text(it.attributes.get("user"))),
        Field("autoDelete", FLAG, "Is it deleted when nobody uses it any more?", _auto_delete),
        Field(
            "holdsDeadLetters",
            FLAG,
            "Do settings or queues send dead or expired messages to its address?",
            lambda it: it.address.name in it.host.dead_letter_addresses,
        ),
        Field("internalQueue", FLAG, "Is it the broker's own?", lambda it: retroactive.is_internal(it.address.name)),
        Field("exclusive", FLAG, "Does one consumer get everything?", lambda it: it.distribution.live_max == 1),
        Field(
            "lastValue",
            FLAG,
            "Does a newer value replace an older one?",
            lambda it: it.contents.last_values is not None,
        ),
        Field(
            "lastValueKey", TEXT, "The header that names the value; null: it is no last-value queue", _last_value_key
        ),
        Field("groupRebalance", FLAG, "Are groups dealt anew when a consumer comes?", _rebalances),
        Field("groupRebalancePauseDispatch", FLAG, "Does it pause for that?", _rebalance_pauses),
        Field("groupBuckets", NUMBER, "Buckets of groups; -1: each group stands for itself", _group_buckets),
        Field("groupFirstKey", TEXT, "The header that marks the first message of a group", _group_first_key),
        Field(
            "consumersBeforeDispatch",
            NUMBER,
            "Consumers that must be there before it delivers",
            lambda it: it.gate.consumers_min,
        ),
        Field(
            "delayBeforeDispatch",
            NUMBER,
            "How long it waits for them at most; -1: for ever",
            lambda it: it.gate.delay_ms,
            "ms",
        ),
        Field(
            "filter",
            TEXT,
            "Which messages of the address it takes; null: all",
            lambda it: None if it.selector is None else it.selector.text,
        ),
        Field("nonDestructive", FLAG, "Do messages stay when they are read?", lambda it: it.non_destructive),
        Field(
            "maxConsumers", NUMBER, "Consumers at most; -1: any number", lambda it: it.consumer_registry.consumers_max
        ),
        Field(
            "purgeOnNoConsumers",
            FLAG,
            "Does it lose its messages with its last consumer?",
            lambda it: it.purge_on_no_consumers,
        ),
        Field("ringSize", NUMBER, "Ready messages at most, as a ring; -1: it is none", _ring_size, _MESSAGES),
    ],
)
