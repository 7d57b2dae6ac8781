"""The fields of an address in lists."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import Address
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT, Field, Kind

ADDRESSES: Final[Kind[Address]] = Kind(
    "address",
    "addresses",
    [
        Field("name", TEXT, "The address", lambda it: it.name, is_brief=True),
        Field(
            "routingTypes",
            TEXT,
            "ANYCAST, MULTICAST, or both with a comma between",
            lambda it: ",".join(sorted(it.routing_types)),
            is_brief=True,
        ),
        Field("queueCount", NUMBER, "Its queues", lambda it: len(it.queues), is_brief=True),
        Field(
            "messageCount",
            NUMBER,
            "Messages of the address in memory, each once",
            lambda it: it.account.message_count,
            "messages",
            is_brief=True,
        ),
        Field("addressSize", NUMBER, "What they hold in memory", lambda it: it.size_bytes, "bytes", is_brief=True),
        Field(
            "addressLimitPercent",
            NUMBER,
            "How much of max-size-bytes or max-size-messages is used; 0 without either",
            lambda it: it.limit_percent,
            "percent",
            is_brief=True,
        ),
        Field("fullPolicy", TEXT, "What a full address does; null: nothing", lambda it: it.full_policy),
        Field("paging", FLAG, "Do arrivals go to pages?", lambda it: it.is_paging, is_brief=True),
        Field("numberOfPages", NUMBER, "Its page files", lambda it: it.number_of_pages, "pages"),
        Field(
            "routedMessageCount",
            NUMBER,
            "Messages sent here since the start that some queue took",
            lambda it: it.routed_message_count,
            "messages",
        ),
        Field(
            "unroutedMessageCount",
            NUMBER,
            "Messages sent here since the start that no queue took",
            lambda it: it.unrouted_message_count,
            "messages",
        ),
        Field(
            "droppedMessageCount",
            NUMBER,
            "Messages that the full address dropped since the start",
            lambda it: it.dropped_message_count,
            "messages",
        ),
        Field(
            "paused", FLAG, "Do none of its queues deliver until it is resumed?", lambda it: it.paused, is_brief=True
        ),
        Field("blocked", FLAG, "Must senders wait until it is unblocked?", lambda it: it.blocked),
        Field("maxSizeBytes", NUMBER, "max-size-bytes; -1: no limit", lambda it: it.bytes_max, "bytes"),
        Field("maxSizeMessages", NUMBER, "max-size-messages; -1: no limit", lambda it: it.messages_max, "messages"),
        Field("numberOfBytesPerPage", NUMBER, "page-size-bytes", lambda it: it.settings.page_size_bytes, "bytes"),
        Field(
            "currentDuplicateIdCacheSize",
            NUMBER,
            "Duplicate ids that it has seen and remembers",
            lambda it: 0 if it.duplicate_ids is None else len(it.duplicate_ids),
        ),
        Field(
            "retroactiveResource",
            FLAG,
            "Does it keep messages for queues that come later?",
            lambda it: it.retention is not None,
        ),
        Field("internal", FLAG, "Is it the broker's own?", lambda it: retroactive.is_internal(it.name)),
        Field(
            "declaredAt",
            TEXT,
            "File and line that declare it; null: nothing does",
            lambda it: None if it.origin is None else str(it.origin),
        ),
        Field("autoCreated", FLAG, "Did a client's use make it?", lambda it: it.auto_created),
        Field("temporary", FLAG, "Does it end with a connection?", lambda it: it.temporary),
    ],
)
