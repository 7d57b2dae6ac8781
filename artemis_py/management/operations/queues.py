"""Operations on queues as a whole."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import WAIT, Step, Task, until_done
from artemis_py.management.artemis.signature import ATTRIBUTES
from artemis_py.management.lists.field import FLAG, TEXT
from artemis_py.management.lists.queues import QUEUES
from artemis_py.management.managed import Given, Managed, Steps, at_once, found
from artemis_py.management.messages.changing import told
from artemis_py.management.messages.choosing import COUNT, choice_of
from artemis_py.management.operation import EDIT, VIEW, Argument, Operation
from artemis_py.management.operations.listing import listing, selected

_CLOSES_PER_TURN: Final = 16
QUEUE: Final = Argument("queue", TEXT, "the name of the queue")


def _list(managed: Managed, given: Given) -> Steps:
    return selected(QUEUES, list(managed.broker.queues.values()), given)


def _show(managed: Managed, given: Given) -> Steps:
    return at_once(QUEUES.row(found(managed.broker.queues, "queue", given["queue"])))


def _pause(managed: Managed, given: Given) -> Steps:
    return (yield from _changed(managed, given, managed.broker.queue_operations.pause))


def _resume(managed: Managed, given: Given) -> Steps:
    return (yield from _changed(managed, given, managed.broker.queue_operations.resume))


def _changed(managed: Managed, given: Given, change: Callable[[str], None]) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    change(queue.name)
    yield None
    return QUEUES.row(queue)


def _purge(managed: Managed, given: Given) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    if given["count"] is not None:
        change = managed.broker.message_operations.remove(queue, choice_of(given))
        yield from told(managed, change)
        return {"removed": change.done_count, "inDelivery": change.held_count}
    held_count = queue.message_count - queue.unheld_count
    result = yield from _removed(managed, given, managed.broker.queue_operations.purge)
    return {**result, "inDelivery": held_count}


def _destroy(managed: Managed, given: Given) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    address = managed.broker.bindings.address_of(queue)
    if given["remove-consumers"]:
        yield from without_consumers(managed, queue)
    result = yield from _removed(managed, given, managed.broker.queue_operations.delete)
    if given["auto-delete-address"] and not (address.deleted or address.queues or address.diverts):
        managed.broker.address_changes.delete(address)
    return result


def without_consumers(managed: Managed, queue: Queue) -> Generator[Step, None, None]:
    """Close the connections of all consumers of a queue, and wait until they have left."""
    while queue.consumer_count and not queue.deleted:
        numbers = {one.reader.connection for one in queue.distribution.consumers[:_CLOSES_PER_TURN]}
        for client in managed.clients():
            if client.number in numbers:
                client.end(f"An operator has deleted the queue {queue.name[:80]}")
        yield WAIT


def _removed(
    managed: Managed, given: Given, remove: Callable[[str, int], tuple[int, Task | None]]
) -> Generator[Step, None, dict[str, int]]:
    queue = found(managed.broker.queues, "queue", given["queue"])
    count, unfinished = remove(queue.name, managed.now_ms())
    yield from until_done((unfinished,))
    return {"removed": count}


QUEUE_OPERATIONS: Final = (
    listing("listQueues", "/api/queues", "queue ls", QUEUES, "Queues, one row each.", _list),
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
    Operation(
        name="pause",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/pause",
        command="queue pause",
        sentence="Deliver nothing of a queue until it is resumed, also after a restart. It still takes messages.",
        result="the fields of the queue",
        arguments=(QUEUE,),
        shows=QUEUES,
        work=_pause,
        mbean=("void pause()", "void pause(boolean persist=_)"),
    ),
    Operation(
        name="resume",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/resume",
        command="queue resume",
        sentence="Deliver the messages of a paused queue again.",
        result="the fields of the queue",
        arguments=(QUEUE,),
        shows=QUEUES,
        work=_resume,
        mbean=("void resume()",),
    ),
    Operation(
        name="removeAllMessages",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/purge",
        command="queue purge",
        sentence="Remove all messages that no consumer has, or the first of them. They are deleted, not dead-lettered.",
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
        sentence="Delete a queue that has no consumers, with its messages. A restart makes it again if broker.xml"
        " declares it.",
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
)
