"""An operator who does things with messages, at random."""

from __future__ import annotations

import random

from artemis_py.core.budget import Budget
from artemis_py.core.operations.choice import Choice
from artemis_py.core.operations.scan import SCHEDULED, Round
from artemis_py.errors import BrokerError
from artemis_py.selector import compile_selector
from tests.sim.incarnation import Incarnation

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
    handling = broker.handling
    queue = broker.queues.get(rng.choice((*QUEUES, "dead", "late")))
    if queue is None:
        return
    choice = rng.choice((Choice(), Choice(compile_selector("tag = 'a'")), Choice(compile_selector("AMQPriority > 4"))))
    for change in handling.changes:
        handling.nudge(change)
    move = rng.randrange(8)
    try:
        if move == 0:
            handling.remove(queue, Choice(compile_selector("tag = 'b'")))
        elif move == 1:
            handling.expire(queue, choice)
        elif move == 2:
            handling.send_to_dead_letters(queue, choice)
        elif move == 3:
            handling.copy(queue, choice, rng.choice(TARGETS))
        elif move == 4:
            handling.prioritize(queue, choice, rng.randrange(10))
        elif move == 5:
            _deliver(life, queue.name)
        elif move == 6:
            handling.retry(broker.queues[rng.choice(("dead", "late"))], choice)
        else:
            handling.move(queue, choice, rng.choice(TARGETS))
    except BrokerError:
        pass  # there is no dead-letter address, for example
    life.turns.schedule()


def _deliver(life: Incarnation, name: str) -> None:
    queue = life.broker.queues[name]
    round = Round(queue.parts, (SCHEDULED,))
    ids = []
    while (sight := round.next(Budget())) is not None:
        ids.append(sight.message.id)
    round.close()
    life.broker.handling.deliver(queue, ids, life.loop.now_ms)
