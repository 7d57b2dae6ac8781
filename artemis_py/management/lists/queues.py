"""What a list tells of a queue."""

from __future__ import annotations

from typing import Final

from artemis_py.core.queue.overflow import Ring
from artemis_py.core.queue.queue import Queue
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
    return "temporary" if queue.temporary else "auto-created" if queue.auto_created else "declared"


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
            lambda it: it.contents.tally.size_bytes,
            _BYTES,
        ),
        Field(
            "messagesAdded",
            NUMBER,
            "Messages that came since the queue was made, or since the start",
            lambda it: it.contents.tally.added,
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "messagesAcked",
            NUMBER,
            "Messages acknowledged since then",
            lambda it: it.contents.tally.acknowledged,
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "messagesExpired", NUMBER, "Messages expired since then", lambda it: it.contents.tally.expired, _MESSAGES
        ),
        Field(
            "messagesKilled",
            NUMBER,
            "Messages removed since then: dead, or purged",
            lambda it: it.contents.tally.killed,
            _MESSAGES,
        ),
        Field(
            "messagesReplaced",
            NUMBER,
            "Messages that a ring gave up since then, or that a newer value replaced",
            lambda it: it.contents.tally.replaced,
            _MESSAGES,
        ),
        Field("paused", FLAG, "Does it deliver nothing until it is resumed?", lambda it: it.gate.paused, is_brief=True),
        Field("enabled", FLAG, "Does it take messages?", lambda it: it.enabled),
        Field("sendersWait", FLAG, "Do senders wait until it is less full?", lambda it: it.flow.stopped),
        Field("durable", FLAG, "Does it survive a restart?", lambda it: it.durable),
        Field("temporary", FLAG, "Does it end with a connection?", lambda it: it.temporary),
        Field("autoCreated", FLAG, "Did a client's use make it?", lambda it: it.auto_created),
        Field("life", TEXT, "declared, auto-created or temporary", _life),
        Field(
            "filter",
            TEXT,
            "Which messages of the address it takes; null: all",
            lambda it: None if it.selector is None else it.selector.text,
        ),
        Field("nonDestructive", FLAG, "Do messages stay when they are read?", lambda it: it.non_destructive),
        Field("maxConsumers", NUMBER, "Consumers at most; -1: any number", lambda it: it.seats.consumers_max),
        Field(
            "purgeOnNoConsumers",
            FLAG,
            "Does it lose its messages with its last consumer?",
            lambda it: it.purge_on_no_consumers,
        ),
        Field("ringSize", NUMBER, "Ready messages at most, as a ring; -1: it is none", _ring_size, _MESSAGES),
    ],
)
