"""Which queues have dead and expired messages, and what is on them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.scan import STATES, LocatedMessage
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.management.lists.dead_letters import DeadLetters
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.managed import Managed, found
from artemis_py.management.messages.looking import look

_LETTER_UNITS: Final = 6
"""What it costs to read three headers of a message."""


def dead_letter_queues(managed: Managed, name: str) -> Generator[None, None, list[Queue]]:
    """The queue of this name; without one all queues on addresses that settings, or queues, name for dead or expired
    messages. Raises NotFoundError.
    """
    broker = managed.broker
    if name:
        return [found(broker.queues, "queue", name)]
    chosen: list[Queue] = []
    for number, queue in enumerate(list(broker.queues.values())):
        if queue.address.name in broker.host.dead_letter_addresses:
            chosen.append(queue)
        if number % LOOKS_PER_STEP == 0:
            yield None
    return chosen


def survey(
    managed: Managed, queues: Sequence[Queue], choice: MessageFilter, states: Sequence[str] = STATES
) -> Generator[Until | None, None, tuple[DeadLetters, int]]:
    """What is on these queues, by origin and cause, and how many messages were looked at."""
    dead_letters = DeadLetters()
    looked = 0
    for queue in queues:

        def see(located: LocatedMessage, budget: Budget, name: str = queue.name) -> bool:
            budget.spend(_LETTER_UNITS)
            dead_letters.add(name, located.message)
            return False

        looked += yield from look(managed, queue, states, choice, see)
    return dead_letters, looked
