"""Queues: their fields, and the operations that list, show, pause, purge, create, update and delete them, and reset
their counters and groups.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
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
from artemis_py.core.addresses import retroactive
from artemis_py.core.queue.overflow import Ring
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_reference import AutoDelete, deletion_of
from artemis_py.core.queue_states import severity_of, states_of, trend_of, until_empty_ms, until_limit_ms
from artemis_py.core.tasks import WAIT, Step, Task, until_done
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.management.listing import FLAG, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Managed, Steps, Work, at_once
from artemis_py.management.operation import AMOUNT, ATTRIBUTES, EDIT, VIEW, Argument, Operation, listing, select_rows
from artemis_py.management.operations.arguments import COUNT, QUEUE, message_filter_of, queue_of
from artemis_py.management.operations.messages import finish

_MESSAGES: Final = "messages"
_BYTES: Final = "bytes"
_MINUTE_S: Final = 60


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


def _is_auto_deleted(queue: Queue) -> bool:
    return deletion_of(queue.auto_delete, queue.address.settings, auto_created=queue.auto_created).is_wanted


def _recent_depths(queue: Queue) -> str:
    history = queue.host.rounds.by_queue.get(queue.id)
    return "" if history is None else ",".join([str(one.depth) for one in history.samples(recent=True)])


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
            "How long the first message waits that is ready; -1: none",
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
        Field("autoDelete", FLAG, "Is it deleted when nobody uses it any more?", _is_auto_deleted),
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
            "lastValueKey", TEXT, "The header that names the value; null: it is not a last-value queue", _last_value_key
        ),
        Field("groupRebalance", FLAG, "Are groups dealt anew when a consumer comes?", _rebalances),
        Field("groupRebalancePauseDispatch", FLAG, "Does it pause for that?", _rebalance_pauses),
        Field("groupBuckets", NUMBER, "Buckets of groups; -1: each group stands for itself", _group_buckets),
        Field("groupFirstKey", TEXT, "The header that marks the first message of a group", _group_first_key),
        Field(
            "consumersBeforeDispatch",
            NUMBER,
            "Consumers that must be there before it delivers; 0: none",
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
        Field("ringSize", NUMBER, "Ready messages at most, as a ring; -1: no ring", _ring_size, _MESSAGES),
        Field(
            "state",
            TEXT,
            "How it is, the worst word first: docs/why.md, and growing, falling-behind, draining, flows, waiting, idle",
            lambda it: ",".join(states_of(it)),
        ),
        Field("severity", NUMBER, "How bad that is: 2 bad, 1 to be watched, 0 neither", severity_of),
        Field(
            "addedPerMinute",
            NUMBER,
            "Messages that came in the last minute; of less time, as many as it would be",
            lambda it: round(trend_of(it).added * _MINUTE_S),
            _MESSAGES,
        ),
        Field(
            "ackedPerMinute",
            NUMBER,
            "Messages acknowledged in the last minute",
            lambda it: round(trend_of(it).acknowledged * _MINUTE_S),
            _MESSAGES,
        ),
        Field("timeUntilEmpty", NUMBER, "When nothing waits any more at this rate; -1: never", until_empty_ms, "ms"),
        Field(
            "timeUntilLimit",
            NUMBER,
            "When its address pages or is full, or the queue is full, at this rate; -1: not within a day",
            until_limit_ms,
            "ms",
        ),
        Field(
            "recentDepths",
            TEXT,
            "How many messages it had every ten seconds of the last five minutes, the latest last",
            _recent_depths,
            _MESSAGES,
        ),
    ],
)


_CLOSES_PER_TURN: Final = 16


def _list(managed: Managed, arguments: Arguments) -> Steps:
    return select_rows(QUEUES, list(managed.broker.queues.values()), arguments)


def _show(managed: Managed, arguments: Arguments) -> Steps:
    return at_once(QUEUES.row(queue_of(managed, arguments)))


def _pause(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from _changed(managed, arguments, managed.broker.queue_operations.pause))


def _resume(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from _changed(managed, arguments, managed.broker.queue_operations.resume))


def _changed(managed: Managed, arguments: Arguments, change: Callable[[str], None]) -> Steps:
    queue = queue_of(managed, arguments)
    change(queue.name)
    yield None
    return QUEUES.row(queue)


def _purge(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    if arguments["count"] is not None:
        change = managed.broker.message_operations.remove(queue, message_filter_of(arguments))
        yield from finish(managed, change)
        return {"removed": change.done_count, "inDelivery": change.held_count}
    held_count = queue.message_count - queue.unheld_count
    result = yield from _removed(managed, arguments, managed.broker.queue_operations.purge)
    return {**result, "inDelivery": held_count}


def _destroy(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    address = managed.broker.bindings.address_of(queue)
    if arguments["remove-consumers"]:
        yield from without_consumers(managed, queue)
    result = yield from _removed(managed, arguments, managed.broker.queue_operations.delete)
    if arguments["auto-delete-address"] and not (address.deleted or address.queues or address.diverts):
        managed.broker.address_changes.delete(address)
    return result


def without_consumers(managed: Managed, queue: Queue) -> Generator[Step, None, None]:
    """Close the connections of all consumers of a queue, and wait until they have left."""
    while queue.consumer_count and not queue.deleted:
        numbers = {one.reader.connection for one in queue.distribution.consumers[:_CLOSES_PER_TURN]}
        reason = f"An operator has deleted the queue {queue.name[:80]}"
        for client in managed.clients():
            if client.number in numbers:
                client.end(reason)
                numbers.remove(client.number)
        if managed.disconnect_bridge is not None:
            for number in numbers:
                managed.disconnect_bridge(number, reason)
        yield WAIT


def _removed(
    managed: Managed, arguments: Arguments, remove: Callable[[str, int], tuple[int, Task | None]]
) -> Generator[Step, None, dict[str, int]]:
    queue = queue_of(managed, arguments)
    count, unfinished = remove(queue.name, managed.now_ms())
    yield from until_done((unfinished,))
    return {"removed": count}


# ---- creating and changing -----------------------------------------------------------------------


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


def _create(managed: Managed, arguments: Arguments) -> Steps:
    broker, name = managed.broker, arguments["name"]
    address = arguments["address"] or name
    if not name or "::" in name or "::" in address:
        raise BadRequestError(f"{name[:80]!r} is not a name of a queue")
    known = broker.queues.get(name)
    if known is not None and arguments["ignore-if-exists"]:
        return at_once(QUEUES.row(known))
    routing_type = _routing_type(arguments) or broker.config.settings_for(address).default_queue_routing_type
    config = QueueConfig(name=name, address=address, routing_type=routing_type, **_values(arguments))
    queue = broker.queue_changes.create(
        config,
        _auto_delete(arguments),
        creates_address=arguments["auto-create-address"],
        auto_created=arguments["auto-created"],
    )
    return at_once(QUEUES.row(queue))


def _update(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    managed.broker.queue_changes.update(queue, _values(arguments), _routing_type(arguments), _auto_delete(arguments))
    return at_once(QUEUES.row(queue))


def _values(arguments: Arguments) -> dict[str, Any]:
    texts = {
        ("filter" if argument.name == _FILTER else argument.name): show(arguments[argument.name])
        for argument in _ATTRIBUTES
        if arguments[argument.name] is not None
    }
    return queue_values(texts)


def _routing_type(arguments: Arguments) -> str | None:
    text = arguments["routing-type"]
    if text is not None and text.upper() not in _ROUTING_TYPES:
        raise BadRequestError(f"routing-type must be ANYCAST or MULTICAST, not {text[:40]!r}")
    return None if text is None else text.upper()


def _auto_delete(arguments: Arguments) -> AutoDelete:
    return AutoDelete(arguments["auto-delete"], arguments["auto-delete-delay"], arguments["auto-delete-message-count"])


def _enable(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    managed.broker.queue_changes.enable(queue, enabled=True)
    return at_once(QUEUES.row(queue))


def _disable(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    managed.broker.queue_changes.enable(queue, enabled=False)
    return at_once(QUEUES.row(queue))


def _set_ring_size(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    managed.broker.queue_operations.set_ring_size(queue.name, arguments["ring-size"])
    return at_once(QUEUES.row(queue))


# ---- counters and groups -----------------------------------------------------------------------------


def _reset(counter: str) -> Work:
    """An operation that sets a counter of a queue to 0."""

    def work(managed: Managed, arguments: Arguments) -> Steps:
        counters = queue_of(managed, arguments).contents.counters
        before = getattr(counters, counter)
        setattr(counters, counter, 0)
        return at_once({"was": before})

    return work


def _reset_group(managed: Managed, arguments: Arguments) -> Steps:
    queue = _not_shared(queue_of(managed, arguments))
    if not queue.grouping.reset(arguments["group"]):
        raise NotFoundError(f"no consumer of queue {queue.name} has the group {arguments['group'][:80]!r}")
    queue.after_removal.run()
    return at_once({"reset": 1})


def _reset_all_groups(managed: Managed, arguments: Arguments) -> Steps:
    queue = _not_shared(queue_of(managed, arguments))
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


def _on_queue(
    name: str, path: str, command: str, sentence: str, work: Work, *more: Argument, mbean: Sequence[str] = ()
) -> Operation:
    """An operation on a queue that answers with the queue. ``mbean`` are its signatures; empty: the one without
    parameters.
    """
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
        mbean=() if more else mbean or (f"void {name}()",),
        no_mbean="`updateQueue` does it" if more else "",
    )


def _resetting(name: str, path: str, what: str, work: Work, *more: Argument, result: str = "") -> Operation:
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


_COUNTERS: Final = {
    "Added": "that came",
    "Acknowledged": "that were acknowledged",
    "Expired": "that expired",
    "Killed": "that were removed",
}

_LONG_FORM: Final = (
    "String createQueue(String address, String routingType, String name, String filterString, boolean durable, "
    "int maxConsumers, boolean purgeOnNoConsumers, boolean autoCreateAddress)"
)

QUEUE_OPERATIONS: Final = (
    listing("listQueues", "/api/queues", "queue ls", QUEUES, "Queues.", _list),
    Operation(
        name="getAttributes",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}",
        command="queue show",
        sentence="All fields of one queue.",
        result="the fields of a queue",
        arguments=(QUEUE,),
        shows=QUEUES,
        work=_show,
        is_watchable=True,
        mbean=(ATTRIBUTES,),
    ),
    _on_queue(
        "pause",
        "pause",
        "queue pause",
        "Deliver nothing of a queue until it is resumed, also after a restart. It still takes messages.",
        _pause,
        mbean=("void pause()", "void pause(boolean persist=_)"),
    ),
    _on_queue("resume", "resume", "queue resume", "Deliver the messages of a paused queue again.", _resume),
    Operation(
        name="removeAllMessages",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/purge",
        command="queue purge",
        sentence="Remove all messages that no consumer has, or the first of them. They do not go to the dead-letter"
        " address.",
        result="removed: how many messages; inDelivery: how many stay because consumers have them",
        destroys="{messages} of queue {queue}",
        arguments=(QUEUE, COUNT),
        work=_purge,
        mbean=("int removeAllMessages() -> removed", "int removeFirstMessages(int count) -> removed"),
    ),
    Operation(
        name="destroyQueue",
        right=EDIT,
        method="DELETE",
        path="/api/queues/{queue}",
        command="queue delete",
        sentence="Delete a queue that has no consumers, with its messages. A restart creates it again if"
        " broker.xml declares it.",
        result="removed: how many messages it had",
        destroys="queue {queue} with {messages}",
        arguments=(
            QUEUE,
            Argument(
                "remove-consumers",
                FLAG,
                "close the connections of its consumers first",
                False,
                destroys="the connections of {consumers}",
            ),
            Argument("auto-delete-address", FLAG, "delete its address, too, if that has no other queue", False),
        ),
        work=_destroy,
        mbean=(
            "void destroyQueue(String name=queue)",
            "void destroyQueue(String name=queue, boolean removeConsumers)",
            "void destroyQueue(String name=queue, boolean removeConsumers, boolean autoDeleteAddress)",
        ),
    ),
    Operation(
        name="createQueue",
        right=EDIT,
        method="POST",
        path="/api/queues",
        command="queue create",
        sentence="Create a queue. It survives a restart. What is not given comes from the address-settings.",
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
                "treat it as a queue that a client's use created: auto-delete-queues counts for it",
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
        sentence="Change attributes of a queue: all that are given, or none. What an existing queue cannot change is"
        " refused, with the reason. If broker.xml declares the queue, a reload or a restart sets all of them but"
        " ring-size back to the file.",
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
        Argument("ring-size", NUMBER, "how many messages it keeps; 0: none; -1: it is not a ring"),
    ),
    *[
        _resetting(
            f"resetMessages{name}",
            f"reset-{name.lower()}",
            f"Count messages {which} from 0 again.",
            _reset(name.lower()),
        )
        for name, which in _COUNTERS.items()
    ],
    _resetting(
        "resetGroup",
        "reset-group",
        "Release a message group from its consumer. Its next message chooses a consumer anew.",
        _reset_group,
        Argument("group", TEXT, "the name of the group"),
        result="reset: 1",
    ),
    _resetting(
        "resetAllGroups",
        "reset-groups",
        "Release all message groups of a queue from their consumers.",
        _reset_all_groups,
        result="reset: how many groups had a consumer",
    ),
)
