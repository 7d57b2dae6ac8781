"""Waits for changes of messages, and tells what came of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from artemis_py.core.operations.messages import Change
from artemis_py.core.tasks import WAIT, Until
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.management.managed import Managed, Steps


def told(managed: Managed, change: Change) -> Steps:
    """What a change has done, when it is over. Raises BrokerError if it could not do anything."""
    yield from over(managed, change)
    if change.stopped_because and not change.done_count:
        raise BrokerError(f"no message was {change.operation.word}: {change.stopped_because}")
    return answer(change)


def answer(change: Change) -> dict[str, Any]:
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


def told_of_one(managed: Managed, change: Change, number: int) -> Steps:
    """The same for one message. Raises NotFoundError if it is not there, and BrokerError if it stayed."""
    yield from over(managed, change)
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
    raise NotFoundError(f"queue {name} has no message {number}, or has it no more")


def over(managed: Managed, change: Change) -> Generator[bool | Until, None, None]:
    """Wait until a change is over, and let it go on when it can."""
    while not change.is_over:
        managed.broker.message_operations.nudge(change)
        yield managed.in_a_moment() if change.done else WAIT
