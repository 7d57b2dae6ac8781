"""Operations that move, copy, remove, retry, expire, prioritize or deliver messages: one by its number, or all that a
filter matches. Those that consumers have stay.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.messages import DELIVERED_MAX, Change
from artemis_py.core.operations.scan import SCHEDULED, LocatedMessage, MessageFilter
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import WAIT, Until
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.management.listing import NUMBER, TEXT
from artemis_py.management.managed import Arguments, Managed, Steps
from artemis_py.management.operation import EDIT, Argument, Operation
from artemis_py.management.operations.arguments import (
    COUNT,
    FILTER,
    MESSAGE,
    NEEDED_FILTER,
    QUEUE,
    message_filter_of,
    queue_of,
)
from artemis_py.management.operations.browse import scan_messages

# ---- waiting for a change ------------------------------------------------------------------------


def finish(managed: Managed, change: Change) -> Steps:
    """Wait until a change is over, and report what it has done. Raises BrokerError if it could not do anything."""
    yield from wait_until_over(managed, change)
    if change.stopped_because and not change.done_count:
        raise BrokerError(f"no message was {change.operation.word}: {change.stopped_because}")
    return report(change)


def report(change: Change) -> dict[str, Any]:
    """What a change that is over has done."""
    return {
        change.operation.word: change.done_count,
        **(_of_copies(change) if change.operation.makes_copies else {}),
        "inDelivery": change.held_count,
        "inDeliveryMessages": change.held_ids,
        "kept": change.kept,
        "stoppedBecause": change.stopped_because or None,
    }


def _of_copies(change: Change) -> dict[str, Any]:
    return {"replaced": change.replaced, "transient": change.transient}


def _finish_single(managed: Managed, change: Change, number: int) -> Steps:
    """The same for a change of one message. Raises NotFoundError if it is not there, BrokerError if it stayed."""
    yield from wait_until_over(managed, change)
    if change.done_count:
        return {
            change.operation.word: change.done_count,
            **(_of_copies(change) if change.operation.makes_copies else {}),
        }
    name = change.queue.name
    if change.held_count:
        raise BrokerError(f"message {number} of queue {name} is in delivery, and left alone; close its consumer first")
    for reason in (*change.kept, change.stopped_because):
        if reason:
            raise BrokerError(f"message {number} of queue {name} was not {change.operation.word}: {reason}")
    raise NotFoundError(f"queue {name} has no message {number} (any more)")


def wait_until_over(managed: Managed, change: Change) -> Generator[bool | Until, None, None]:
    """Wait until a change is over."""
    while not change.is_over:
        managed.broker.message_operations.nudge(change)
        yield managed.in_a_moment() if change.done else WAIT


_TARGET: Final = Argument("target", TEXT, "the queue that gets them (also address::queue), or else the address")
_PRIORITY: Final = Argument("priority", NUMBER, "the new priority, 0 to 9")
LEFT: Final = (
    "inDelivery: how many that match were left because consumers have them, and inDeliveryMessages: the first 100 of"
    " them; kept: how many stayed for another reason; stoppedBecause: why it ended early"
)
OF_COPIES: Final = (
    "replaced: how many messages are gone because copies came to a full ring, or with newer values, by the queue;"
    " transient: how many do not survive a restart any more, by the queue that is not durable"
)

_Begin = Callable[[Managed, Queue, MessageFilter, Arguments], Change]


def _remove(managed: Managed, queue: Queue, message_filter: MessageFilter, _arguments: Arguments) -> Change:
    return managed.broker.message_operations.remove(queue, message_filter)


def _expire(managed: Managed, queue: Queue, message_filter: MessageFilter, _arguments: Arguments) -> Change:
    return managed.broker.message_operations.expire(queue, message_filter)


def _send_to_dead_letters(
    managed: Managed, queue: Queue, message_filter: MessageFilter, _arguments: Arguments
) -> Change:
    return managed.broker.message_operations.send_to_dead_letters(queue, message_filter)


def _move(managed: Managed, queue: Queue, message_filter: MessageFilter, arguments: Arguments) -> Change:
    return managed.broker.message_operations.move(queue, message_filter, arguments["target"])


def _copy(managed: Managed, queue: Queue, message_filter: MessageFilter, arguments: Arguments) -> Change:
    return managed.broker.message_operations.copy(queue, message_filter, arguments["target"])


def _prioritize(managed: Managed, queue: Queue, message_filter: MessageFilter, arguments: Arguments) -> Change:
    return managed.broker.message_operations.prioritize(queue, message_filter, arguments["priority"])


def _retry(managed: Managed, queue: Queue, message_filter: MessageFilter, _arguments: Arguments) -> Change:
    return managed.broker.message_operations.retry(queue, message_filter)


def _deliver(managed: Managed, arguments: Arguments) -> Steps:
    """Have scheduled messages delivered: first they are chosen, and then all of them fall due. They go to the head of
    the queue, so of very many the last ones do so first.
    """
    queue = queue_of(managed, arguments)
    ids = array("q")

    def visit(located: LocatedMessage, _budget: Budget) -> bool:
        ids.append(located.message.id)
        return False

    yield from scan_messages(managed, queue, (SCHEDULED,), message_filter_of(arguments), visit)
    if not ids and arguments.get("message") is not None:
        raise NotFoundError(f"queue {queue.name} has no scheduled message {arguments['message']} in memory")
    count = 0
    while ids and not queue.deleted:
        some = ids[-DELIVERED_MAX:]
        del ids[-DELIVERED_MAX:]
        count += managed.broker.message_operations.deliver(queue, some, managed.now_ms())
        while not queue.tasks.may_go_on and not queue.deleted:
            yield WAIT
    return {"delivered": count}


GONE: Final = (
    "A deleted anycast queue is created again, as by a SEND; messages of a deleted subscription stay where they are."
)
_MOVED: Final = "It gets a new number, says where it comes from, and stays scheduled."
_ALL_MOVED: Final = "They get new numbers, say where they come from, and stay scheduled."
_LEFT_ALONE: Final = "A message that a consumer has is left alone."


def _both(  # noqa: PLR0913 - a row of the table has as many
    one: str,
    many: str,
    word: str,
    begin: _Begin,
    sentences: tuple[str, str],
    participle: str,
    arguments: Sequence[Argument] = (),
    filter: Argument = FILTER,
    *,
    mbeans: tuple[str, ...],
    no_mbean: str = "",
    destroys: str = "",
    makes_copies: bool = True,
) -> tuple[Operation, Operation]:
    """The operation on one message, and the same on all that match, with a sentence for each. ``mbeans``: the
    parameters of the first in Artemis' beans, and then those of each form of the second. ``destroys`` has braces for
    which messages they are.
    """

    of_copies = f"; {OF_COPIES}" if makes_copies else ""

    def do_one(managed: Managed, arguments: Arguments) -> Steps:
        queue = queue_of(managed, arguments)
        return (
            yield from _finish_single(
                managed, begin(managed, queue, message_filter_of(arguments), arguments), arguments["message"]
            )
        )

    def do_many(managed: Managed, arguments: Arguments) -> Steps:
        queue = queue_of(managed, arguments)
        return (yield from finish(managed, begin(managed, queue, message_filter_of(arguments), arguments)))

    return (
        Operation(
            name=one,
            on="queue",
            right=EDIT,
            method="POST",
            path=f"/api/queues/{{queue}}/messages/{{message}}/{word}",
            command=f"message {word}",
            sentence=f"{sentences[0]} {_LEFT_ALONE}",
            result=f"{participle}: 1{of_copies}",
            destroys=destroys.format("message {message}"),
            arguments=(QUEUE, MESSAGE, *arguments),
            work=do_one,
            mbean=(f"boolean {one}({mbeans[0]}) -> {participle}",),
        ),
        Operation(
            name=many,
            on="queue",
            right=EDIT,
            method="POST",
            path=f"/api/queues/{{queue}}/{word}",
            command=f"queue {word}",
            sentence=sentences[1],
            result=f"{participle}: how many{of_copies}; {LEFT}",
            destroys=destroys.format("{messages}"),
            arguments=(QUEUE, *arguments, filter, COUNT),
            work=do_many,
            mbean=() if no_mbean else tuple(f"int {many}({form}) -> {participle}" for form in mbeans[1:]),
            no_mbean=no_mbean,
        ),
    )


MESSAGE_OPERATIONS: Final = (
    *_both(
        "removeMessage", "removeMessages", "remove", _remove,
        ("Delete a message. It does not go to the dead-letter address.",
         "Delete all messages that match. They do not go to the dead-letter address."),
        "removed", filter=NEEDED_FILTER,
        destroys="{} of queue {{queue}}",
        makes_copies=False,
        mbeans=("long messageID=message", "String filter", "int flushLimit=_, String filter"),
    ),
    *_both(
        "expireMessage", "expireMessages", "expire", _expire,
        ("Let a message expire now, whatever its date: it goes to the expiry address, if there is one.",
         "Let all messages that match expire now: they go to the expiry address, if there is one."),
        "expired",
        filter=NEEDED_FILTER, destroys="{} of queue {{queue}}, but for copies at its expiry address",
        makes_copies=False,
        mbeans=("long messageID=message", "String filter"),
    ),
    *_both(
        "moveMessage", "moveMessages", "move", _move,
        (f"Move a message to another queue or address. {_MOVED}",
         f"Move all messages that match to another queue or address. {_ALL_MOVED}"),
        "moved", (_TARGET,),
        mbeans=("long messageID=message, String otherQueueName=target", "String filter, String otherQueueName=target"),
    ),
    *_both(
        "copyMessage", "copyMessages", "copy", _copy,
        ("Copy a message to another queue or address.", "Copy all messages that match to another queue or address."),
        "copied", (_TARGET,),
        mbeans=("long messageID=message, String targetQueue=target",),
        no_mbean="Artemis copies one message at a time.",
    ),
    *_both(
        "changeMessagePriority", "changeMessagesPriority", "priority", _prioritize,
        ("Change the priority of a message. It gets a new number and goes behind the others of that priority.",
         "Change the priority of all messages that match. They go behind the others of it, with new numbers."),
        "changed", (_PRIORITY,),
        mbeans=("long messageID=message, int newPriority=priority", "String filter, int newPriority=priority"),
    ),
    *_both(
        "sendMessageToDeadLetterAddress", "sendMessagesToDeadLetterAddress", "dead", _send_to_dead_letters,
        ("Send a message to the dead-letter address.", "Send all messages that match to the dead-letter address."),
        "sent", filter=NEEDED_FILTER,
        mbeans=("long messageID=message", "String filter"),
    ),
    *_both(
        "retryMessage", "retryMessages", "retry", _retry,
        (f"Send a message of a dead-letter or expiry queue back to the queue it came from. {GONE}",
         f"Send all messages that match of a dead-letter or expiry queue back to the queues they came from. {GONE}"),
        "retried",
        mbeans=("long messageID=message", "", "String filter"),
    ),
    Operation(
        name="deliverScheduledMessage",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/messages/{message}/deliver",
        command="message deliver",
        sentence="Deliver a scheduled message now.",
        result="delivered: 1",
        arguments=(QUEUE, MESSAGE),
        work=_deliver,
        mbean=("void deliverScheduledMessage(long messageId=message)",),
    ),
    Operation(
        name="deliverScheduledMessages",
        on="queue",
        right=EDIT,
        method="POST",
        path="/api/queues/{queue}/deliver",
        command="queue deliver",
        sentence="Deliver all scheduled messages that match now, the earliest of each 5,000 first. Those in pages keep "
        "their time.",
        result="delivered: how many",
        arguments=(QUEUE, FILTER),
        work=_deliver,
        mbean=("void deliverScheduledMessages(String filter)",),
    ),
)  # fmt: skip
