"""Operations that create queues and change their attributes and counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from artemis_py.config.checks.requested import queue_values
from artemis_py.config.settings import QueueConfig
from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    HONOURED,
    INT,
    LONG,
    PERIOD,
    Setting,
    settings_of,
    show,
)
from artemis_py.core.queue.queue import Queue
from artemis_py.core.reference import AutoDelete
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT
from artemis_py.management.lists.queues import QUEUES
from artemis_py.management.managed import Given, Managed, Steps, at_once, found
from artemis_py.management.operation import AMOUNT, EDIT, Argument, Operation
from artemis_py.management.operations.queues import QUEUE

_ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")
_RESETS_PER_STEP: Final = 250
_TYPES: Final = {BOOLEAN: FLAG, INT: NUMBER, LONG: NUMBER, DOUBLE: AMOUNT, BYTES: AMOUNT, PERIOD: AMOUNT}
_FILTER: Final = "filter-string"
"""Artemis' name of the filter in this JSON."""


def _argument(row: Setting) -> Argument:
    name = _FILTER if row.name == "filter" else row.name
    unit = f", in {row.unit}" if row.unit else ""
    return Argument(name, _TYPES.get(row.kind, TEXT), f"{row.meaning}{unit}; else {row.default_text}", None)


_ATTRIBUTES: Final = tuple(_argument(row) for row in settings_of(QueueConfig).values() if row.treatment == HONOURED)
_ROUTING_TYPE: Final = Argument("routing-type", TEXT, "ANYCAST or MULTICAST", None)
_AUTO_DELETE: Final = (
    Argument("auto-delete", FLAG, "delete the queue when nobody uses it any more; else the address-settings say", None),
    Argument("auto-delete-delay", NUMBER, "how long it is unused before, in ms; else auto-delete-queues-delay", None),
    Argument(
        "auto-delete-message-count",
        NUMBER,
        "how many messages it may have then, -1 for any; else auto-delete-queues-message-count",
        None,
    ),
)


def _create(managed: Managed, given: Given) -> Steps:
    broker, name = managed.broker, given["name"]
    address = given["address"] or name
    if not name or "::" in name or "::" in address:
        raise BadRequestError(f"{name[:80]!r} is no name of a queue")
    known = broker.queues.get(name)
    if known is not None and given["ignore-if-exists"]:
        return at_once(QUEUES.row(known))
    routing_type = _routing_type(given) or broker.config.settings_for(address).default_queue_routing_type
    config = QueueConfig(name=name, address=address, routing_type=routing_type, **_values(given))
    queue = broker.queue_changes.create(
        config,
        _auto_delete(given),
        creates_address=given["auto-create-address"],
        auto_created=given["auto-created"],
    )
    return at_once(QUEUES.row(queue))


def _update(managed: Managed, given: Given) -> Steps:
    queue = _found(managed, given)
    managed.broker.queue_changes.update(queue, _values(given), _routing_type(given), _auto_delete(given))
    return at_once(QUEUES.row(queue))


def _values(given: Given) -> dict[str, Any]:
    texts = {
        ("filter" if argument.name == _FILTER else argument.name): show(given[argument.name])
        for argument in _ATTRIBUTES
        if given[argument.name] is not None
    }
    return queue_values(texts)


def _routing_type(given: Given) -> str | None:
    text = given["routing-type"]
    if text is not None and text.upper() not in _ROUTING_TYPES:
        raise BadRequestError(f"routing-type must be ANYCAST or MULTICAST, not {text[:40]!r}")
    return None if text is None else text.upper()


def _auto_delete(given: Given) -> AutoDelete:
    return AutoDelete(given["auto-delete"], given["auto-delete-delay"], given["auto-delete-message-count"])


def _found(managed: Managed, given: Given) -> Queue:
    return found(managed.broker.queues, "queue", given["queue"])


def _enable(managed: Managed, given: Given) -> Steps:
    queue = _found(managed, given)
    managed.broker.queue_changes.enable(queue, enabled=True)
    return at_once(QUEUES.row(queue))


def _disable(managed: Managed, given: Given) -> Steps:
    queue = _found(managed, given)
    managed.broker.queue_changes.enable(queue, enabled=False)
    return at_once(QUEUES.row(queue))


def _set_ring_size(managed: Managed, given: Given) -> Steps:
    queue = _found(managed, given)
    managed.broker.queue_operations.set_ring_size(queue.name, given["ring-size"])
    return at_once(QUEUES.row(queue))


# ---- counters and groups -----------------------------------------------------------------------------


def _reset_added(managed: Managed, given: Given) -> Steps:
    return _reset(_found(managed, given), "added")


def _reset_acknowledged(managed: Managed, given: Given) -> Steps:
    return _reset(_found(managed, given), "acknowledged")


def _reset_expired(managed: Managed, given: Given) -> Steps:
    return _reset(_found(managed, given), "expired")


def _reset_killed(managed: Managed, given: Given) -> Steps:
    return _reset(_found(managed, given), "killed")


def _reset(queue: Queue, counter: str) -> Steps:
    counters = queue.contents.counters
    before = getattr(counters, counter)
    setattr(counters, counter, 0)
    return at_once({"was": before})


def _reset_group(managed: Managed, given: Given) -> Steps:
    queue = _not_shared(_found(managed, given))
    if not queue.grouping.reset(given["group"]):
        raise NotFoundError(f"no consumer of queue {queue.name} has the group {given['group'][:80]!r}")
    queue.after_removal.run()
    return at_once({"reset": 1})


def _reset_all_groups(managed: Managed, given: Given) -> Steps:
    queue = _not_shared(_found(managed, given))
    count = 0
    while some := queue.grouping.reset_some(_RESETS_PER_STEP):
        count += some
        yield None
    queue.after_removal.run()
    return {"reset": count}


def _not_shared(queue: Queue) -> Queue:
    rule = queue.grouping.rule
    if rule is not None and rule.shared:
        raise BrokerError(
            f"Queue {queue.name} has shared groups, which a consumer has only while it holds messages of them"
        )
    return queue


def _on_queue(name: str, path: str, command: str, sentence: str, work: Any, *more: Argument) -> Operation:
    """An operation on a queue that answers with the queue."""
    return Operation(
        name=name,
        on="queue",
        right=EDIT,
        method="POST",
        path=f"/api/queues/{{queue}}/{path}",
        command=command,
        sentence=sentence,
        result="the fields of the queue",
        arguments=(QUEUE, *more),
        shows=QUEUES,
        work=work,
        mbean=() if more else (f"void {name}()",),
        no_mbean="`updateQueue` does it" if more else "",
    )


def _resetting(name: str, path: str, what: str, work: Any, *more: Argument, result: str = "") -> Operation:
    return Operation(
        name=name,
        on="queue",
        right=EDIT,
        method="POST",
        path=f"/api/queues/{{queue}}/{path}",
        command=f"queue {path}",
        sentence=what,
        result=result or "was: what it had counted",
        arguments=(QUEUE, *more),
        work=work,
        mbean=(f"void {name}(String groupID=group)" if more else f"void {name}()",),
    )


_COUNTERS: Final[Sequence[tuple[str, str, Any]]] = (
    ("Added", "that came", _reset_added),
    ("Acknowledged", "that were acknowledged", _reset_acknowledged),
    ("Expired", "that expired", _reset_expired),
    ("Killed", "that were removed", _reset_killed),
)

_LONG_FORM: Final = (
    "String createQueue(String address, String routingType, String name, String filterString, boolean durable, "
    "int maxConsumers, boolean purgeOnNoConsumers, boolean autoCreateAddress)"
)

QUEUE_CHANGE_OPERATIONS: Final = (
    Operation(
        name="createQueue",
        right=EDIT,
        method="POST",
        path="/api/queues",
        command="queue create",
        sentence="Create a queue. What is not given comes from the address-settings. A restart has it again.",
        result="the fields of the queue",
        arguments=(
            Argument("name", TEXT, "the name of the queue"),
            Argument("address", TEXT, "the address on which it is; else its own name", None),
            Argument("routing-type", TEXT, "ANYCAST or MULTICAST; else default-queue-routing-type", None),
            Argument("auto-create-address", FLAG, "create the address, too; else auto-create-addresses says so", None),
            Argument("ignore-if-exists", FLAG, "answer with the queue of this name if there is one", False),
            Argument(
                "auto-created",
                FLAG,
                "what the address-settings say of queues that clients' needs made counts for it, as for auto-delete",
                False,
            ),
            *_ATTRIBUTES,
            *_AUTO_DELETE,
        ),
        shows=QUEUES,
        work=_create,
        mbean=(
            "String createQueue(String queueConfiguration={}, boolean ignoreIfExists)",
            "String createQueue(String queueConfiguration={})",
            "void createQueue(String address, String name)",
            "void createQueue(String address, String name, String routingType)",
            "void createQueue(String address, String name, boolean durable)",
            "void createQueue(String address, String name, boolean durable, String routingType)",
            "void createQueue(String address, String name, String filterString, boolean durable)",
            "void createQueue(String address, String name, String filterString, boolean durable, String routingType)",
            _LONG_FORM,
        ),
    ),
    Operation(
        name="updateQueue",
        right=EDIT,
        method="PATCH",
        path="/api/queues/{queue}",
        command="queue update",
        sentence="Change attributes of a queue, all that are given or none. What cannot change while the queue is there"
        " is refused with the reason. A reload or a restart gives a queue that broker.xml declares the attributes of"
        " the file, but for its ring-size.",
        result="the fields of the queue",
        arguments=(QUEUE, _ROUTING_TYPE, *_ATTRIBUTES, *_AUTO_DELETE),
        shows=QUEUES,
        mbean=("String updateQueue(String queueConfiguration={name=queue})",),
        work=_update,
    ),
    _on_queue("enable", "enable", "queue enable", "Let a disabled queue take messages again.", _enable),
    _on_queue(
        "disable",
        "disable",
        "queue disable",
        "Let a queue take no more messages: those sent to its address pass it by. What it has is delivered.",
        _disable,
    ),
    _on_queue(
        "setRingSize",
        "ring-size",
        "queue ring-size",
        "Make a queue a ring of so many ready messages, also after a restart. A smaller ring gives up nothing at once:"
        " it stops growing.",
        _set_ring_size,
        Argument("ring-size", NUMBER, "so many messages; 0 keeps nothing, -1 makes it no ring"),
    ),
    *[
        _resetting(f"resetMessages{name}", f"reset-{name.lower()}", f"Count messages {which} from 0 again.", work)
        for name, which, work in _COUNTERS
    ],
    _resetting(
        "resetGroup",
        "reset-group",
        "Take a message group away from its consumer. The next message of it finds another one.",
        _reset_group,
        Argument("group", TEXT, "the name of the group"),
        result="reset: 1",
    ),
    _resetting(
        "resetAllGroups",
        "reset-groups",
        "Take all message groups of a queue away from their consumers.",
        _reset_all_groups,
        result="reset: how many groups had a consumer",
    ),
)
