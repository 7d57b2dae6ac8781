"""The work of each operation, under its id. It goes on in steps: between two of them the broker does other things."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final, TypeVar

from artemis_py.config.problems import nearest
from artemis_py.core.broker import Broker
from artemis_py.core.queue.works import QueueWork
from artemis_py.errors import BadRequestError, NotFoundError
from artemis_py.management.lists.addresses import ADDRESSES
from artemis_py.management.lists.connections import CONNECTIONS, Connected
from artemis_py.management.lists.consumers import CONSUMERS, Place
from artemis_py.management.lists.field import AnyKind, Row
from artemis_py.management.lists.queues import QUEUES
from artemis_py.management.lists.selection import LOOKS_PER_STEP, Selection, select
from artemis_py.management.lists.wanted import Wanted, condition_of_artemis, wanted_of
from artemis_py.version import VERSION

Owner = TypeVar("Owner")
Given = Mapping[str, Any]
"""The arguments by name; all are there."""
Result = Row | Selection[Any]
WAIT: Final = True
"""What a step yields if the work can only go on in another turn."""
Steps = Generator[bool | None, None, Result]
_SHOWN_MAX: Final = 200
_NAMES_COMPARED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Managed:
    """What the operations work on: the broker, its name, the clients that are connected, and for how long it runs."""

    broker: Broker
    name: str
    clients: Callable[[], Sequence[Connected]]
    """Those that are connected, in no order."""
    client_count: Callable[[], int]
    uptime_ms: Callable[[], int]
    now_ms: Callable[[], int]
    """The date of the turn, in epoch ms."""
    close: Callable[[int], bool]
    """Closes the connection of this number; False: there is none."""


def work_of(managed: Managed, id: str, given: Given) -> Steps:
    """The work of the operation with this id. It raises BrokerError, at once or in a step."""
    return _WORK[id](managed, given)


# ---- lists ---------------------------------------------------------------------------------------


def _list_queues(managed: Managed, given: Given) -> Steps:
    return (yield from _selected(QUEUES, list(managed.broker.queues.values()), given))


def _list_addresses(managed: Managed, given: Given) -> Steps:
    return (yield from _selected(ADDRESSES, list(managed.broker.addresses.values()), given))


def _list_connections(managed: Managed, given: Given) -> Steps:
    which = wanted(CONNECTIONS, given)
    if which.sort is None:
        which = replace(which, sort="connectionID")  # the order in which they came
    return (yield from select(CONNECTIONS, managed.clients(), which))


def _list_consumers(managed: Managed, given: Given) -> Steps:
    places: list[Place] = []
    queues = list(managed.broker.queues.values())
    for number, queue in enumerate(queues):
        consumers = list(queue.distribution.consumers)
        for start in range(0, len(consumers), LOOKS_PER_STEP):
            places += [Place(consumer, queue) for consumer in consumers[start : start + LOOKS_PER_STEP]]
            yield None
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from _selected(CONSUMERS, places, given))


def _selected(kind: AnyKind, owners: Sequence[Any], given: Given) -> Steps:
    return (yield from select(kind, owners, wanted(kind, given)))


def wanted(kind: AnyKind, given: Given) -> Wanted:
    """Which rows the arguments of a list mean. Raises BadRequestError."""
    where, sort = list(given["where"]), given["sort"]
    fields = [name.strip() for name in chain.from_iterable(text.split(",") for text in given["fields"])]
    found = wanted_of(kind, where=where, sort=sort, page=given["page"], size=given["size"], fields=fields)
    return found if not given["options"] else _with_options(kind, found, given["options"])


def _with_options(kind: AnyKind, found: Wanted, text: str) -> Wanted:
    """What Artemis' console sends: one condition and one order, each of which may be empty."""
    try:
        options = json.loads(text)
        field, operation = str(options.get("field", "")), str(options.get("operation", ""))
        value = str(options.get("value", ""))
        sort = str(options.get("sortField") or options.get("sortColumn") or "")
        order = str(options.get("sortOrder", "asc"))
    except (ValueError, AttributeError, RecursionError):
        raise BadRequestError(f"options must be a JSON object, not {text[:_SHOWN_MAX]!r}") from None
    if field and operation and value:
        found = replace(found, conditions=(*found.conditions, condition_of_artemis(kind, field, operation, value)))
    if not sort:
        return found
    ordered = wanted_of(kind, sort=f"{sort}:{order.lower()}")
    return replace(found, sort=ordered.sort, is_descending=ordered.is_descending)


# ---- one of a kind -------------------------------------------------------------------------------


def _show_broker(managed: Managed, given: Given) -> Steps:
    broker = managed.broker
    consumers = messages = 0
    queues = list(broker.queues.values())
    for start in range(0, len(queues), LOOKS_PER_STEP):
        for queue in queues[start : start + LOOKS_PER_STEP]:
            consumers += queue.consumer_count
            messages += queue.message_count
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
        "addressMemoryUsage": broker.memory.account.size_bytes,
        "globalMaxSize": broker.memory.bytes_max,
    }


def _show_queue(managed: Managed, given: Given) -> Steps:
    yield from ()
    return QUEUES.row(found(managed.broker.queues, "queue", given["queue"]))


def _show_address(managed: Managed, given: Given) -> Steps:
    yield from ()
    return ADDRESSES.row(found(managed.broker.addresses, "address", given["address"]))


# ---- changes -------------------------------------------------------------------------------------


def _pause(managed: Managed, given: Given) -> Steps:
    return (yield from _changed(managed, given, managed.broker.operations.pause))


def _resume(managed: Managed, given: Given) -> Steps:
    return (yield from _changed(managed, given, managed.broker.operations.resume))


def _changed(managed: Managed, given: Given, change: Callable[[str], None]) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    change(queue.name)
    yield None
    return QUEUES.row(queue)


def _purge(managed: Managed, given: Given) -> Steps:
    return (yield from _removed(managed, given, managed.broker.operations.purge))


def _destroy_queue(managed: Managed, given: Given) -> Steps:
    return (yield from _removed(managed, given, managed.broker.operations.delete))


def _removed(managed: Managed, given: Given, remove: Callable[[str, int], tuple[int, QueueWork | None]]) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    count, unfinished = remove(queue.name, managed.now_ms())
    while unfinished is not None and not unfinished.may_go_on:
        yield WAIT
    return {"removed": count}


def _close_connection(managed: Managed, given: Given) -> Steps:
    yield from ()
    number = given["connection"]
    if not managed.close(number):
        raise NotFoundError(f"there is no connection {number}")
    return {"closed": number}


# ---- names ---------------------------------------------------------------------------------------


def found(owners: Mapping[str, Owner], one: str, name: str) -> Owner:
    """What has this name. Raises NotFoundError, with the most similar name if there is one."""
    owner = owners.get(name)
    if owner is None:
        near = nearest(name, islice(owners, _NAMES_COMPARED_MAX))
        advice = "" if near is None else f"; did you mean {near}?"
        raise NotFoundError(f"there is no {one} {name[:_SHOWN_MAX]!r}{advice}")
    return owner


_WORK: Final[Mapping[str, Callable[[Managed, Given], Steps]]] = {
    "getBroker": _show_broker,
    "listQueues": _list_queues,
    "listAddresses": _list_addresses,
    "listConsumers": _list_consumers,
    "listConnections": _list_connections,
    "queue.getAttributes": _show_queue,
    "address.getAttributes": _show_address,
    "queue.pause": _pause,
    "queue.resume": _resume,
    "queue.removeAllMessages": _purge,
    "destroyQueue": _destroy_queue,
    "closeConnectionWithID": _close_connection,
}
