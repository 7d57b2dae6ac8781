"""An operator who does things with messages, at random."""

from __future__ import annotations

import random

from artemis_py.core.operations.scan import MessageFilter
from artemis_py.errors import BrokerError
from artemis_py.selector import compile_selector
from tests.kit.crash.incarnation import Incarnation

QUEUES = (
    "work",
    "levels",
    "sorted",
    "values",
    "bounded",
    "archive",
    "embargo",
    "leased",
    "barriers",
    "narrow",
    "news.a",
)
TARGETS = (
    "work",
    "ring",
    "sorted",
    "values",
    "full",
    "archive",
    "news",
    "news.b",
    "levels",
    "late",
    "narrow",
    "barriers",
)


def handle(life: Incarnation, rng: random.Random) -> None:
    """Begin one operation on the messages of a queue. It goes on by itself."""
    broker = life.broker
    message_operations = broker.message_operations
    queue = broker.queues.get(rng.choice((*QUEUES, "dead", "late")))
    if queue is None:
        return
    choice = rng.choice(
        (
            MessageFilter(),
            MessageFilter(compile_selector("tag = 'a'")),
            MessageFilter(compile_selector("AMQPriority > 4")),
        )
    )
    for change in message_operations.changes:
        message_operations.nudge(change)
    move = rng.randrange(8)
    try:
        if move == 0:
            message_operations.remove(queue, MessageFilter(compile_selector("tag = 'b'")))
        elif move == 1:
            message_operations.expire(queue, choice)
        elif move == 2:
            message_operations.send_to_dead_letters(queue, choice)
        elif move == 3:
            message_operations.copy(queue, choice, rng.choice(TARGETS))
        elif move == 4:
            message_operations.prioritize(queue, choice, rng.randrange(10))
        elif move == 5:
            scheduled = [entry.message.id for entry in queue.contents.scheduled.values()]
            message_operations.deliver(queue, scheduled, life.loop.now_ms)
        elif move == 6:
            message_operations.retry(broker.queues[rng.choice(("dead", "late"))], choice)
        else:
            message_operations.move(queue, choice, rng.choice(TARGETS))
    except BrokerError:
        pass  # there is no dead-letter address, for example
    life.turns.schedule()
