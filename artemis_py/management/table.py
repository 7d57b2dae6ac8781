"""The table of operations. HTTP, commands, the OpenAPI description and docs/operations.md come from it.

A row is added here, and its work under its id to ``work.py``; nothing else knows operations by name.
"""

from __future__ import annotations

from typing import Final

from artemis_py.management.lists.addresses import ADDRESSES
from artemis_py.management.lists.connections import CONNECTIONS
from artemis_py.management.lists.consumers import CONSUMERS
from artemis_py.management.lists.field import NUMBER, TEXT, AnyKind
from artemis_py.management.lists.queues import QUEUES
from artemis_py.management.lists.wanted import PAGE_SIZE, PAGE_SIZE_MAX
from artemis_py.management.operation import BROKER, EDIT, TEXTS, VIEW, Argument, Operation

LISTING: Final = (
    Argument("where", TEXTS, "a condition, such as messageCount>10 or name~orders; all must hold", ()),
    Argument("sort", TEXT, "the field to sort by; with :desc behind it the greatest first", ""),
    Argument("page", NUMBER, "which page, from 1", 1),
    Argument("size", NUMBER, f"rows on a page, at most {PAGE_SIZE_MAX}", PAGE_SIZE),
    Argument("fields", TEXTS, "the fields to show, with commas between; without it all", ()),
    Argument("options", TEXT, "conditions and order in the JSON of Artemis' lists, instead of where and sort", ""),
)
CONNECTION: Final = Argument("connection", NUMBER, "the number of the connection")
QUEUE: Final = Argument("queue", TEXT, "the name of the queue")
ADDRESS: Final = Argument("address", TEXT, "the address")


def _listing(name: str, path: str, command: str, kind: AnyKind, sentence: str) -> Operation:
    result = f"count: how many {kind.several} match; page and size; data: those of the page"
    return Operation(name, BROKER, VIEW, "GET", path, command, sentence, result, LISTING, lists=kind)


OPERATIONS: Final = (
    Operation(
        "getBroker", BROKER, VIEW, "GET", "/api/broker", "broker show",
        "What the broker is and how much it has.",
        "name, version, uptime in ms, and the numbers of addresses, queues, consumers, connections and messages",
    ),
    _listing("listQueues", "/api/queues", "queue ls", QUEUES, "Queues, one row each."),
    _listing("listAddresses", "/api/addresses", "address ls", ADDRESSES, "Addresses, one row each."),
    _listing("listConsumers", "/api/consumers", "consumer ls", CONSUMERS, "Consumers, one row each."),
    _listing("listConnections", "/api/connections", "connection ls", CONNECTIONS, "Clients of STOMP, one row each."),
    Operation(
        "getAttributes", "queue", VIEW, "GET", "/api/queues/{queue}", "queue show",
        "Everything that a list tells of one queue.", "the fields of a queue", (QUEUE,), shows=QUEUES,
    ),
    Operation(
        "getAttributes", "address", VIEW, "GET", "/api/addresses/{address}", "address show",
        "Everything that a list tells of one address.", "the fields of an address", (ADDRESS,), shows=ADDRESSES,
    ),
    Operation(
        "pause", "queue", EDIT, "POST", "/api/queues/{queue}/pause", "queue pause",
        "Deliver nothing of a queue until it is resumed, also after a restart. It still takes messages.",
        "the fields of the queue", (QUEUE,), shows=QUEUES,
    ),
    Operation(
        "resume", "queue", EDIT, "POST", "/api/queues/{queue}/resume", "queue resume",
        "Deliver the messages of a paused queue again.", "the fields of the queue", (QUEUE,), shows=QUEUES,
    ),
    Operation(
        "removeAllMessages", "queue", EDIT, "POST", "/api/queues/{queue}/purge", "queue purge",
        "Remove all messages that no consumer has. They are gone, and no dead letters.",
        "removed: how many messages", (QUEUE,),
    ),
    Operation(
        "destroyQueue", BROKER, EDIT, "DELETE", "/api/queues/{queue}", "queue delete",
        "Delete a queue that has no consumers, with its messages. A restart makes it again if broker.xml declares it.",
        "removed: how many messages it had", (QUEUE,),
    ),
    Operation(
        "closeConnectionWithID", BROKER, EDIT, "DELETE", "/api/connections/{connection}", "connection close",
        "Close a client's connection with an ERROR. What it holds goes back to its queues.",
        "closed: the number of the connection", (CONNECTION,),
    ),
)  # fmt: skip
