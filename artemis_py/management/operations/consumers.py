"""Operations on consumers."""

from __future__ import annotations

from typing import Final

from artemis_py.management.lists.consumers import CONSUMERS, Place
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.managed import Given, Managed, Steps
from artemis_py.management.operations.listing import listing, selected


def _list(managed: Managed, given: Given) -> Steps:
    places: list[Place] = []
    queues = list(managed.broker.queues.values())
    for number, queue in enumerate(queues):
        consumers = list(queue.distribution.consumers)
        for start in range(0, len(consumers), LOOKS_PER_STEP):
            places += [Place(consumer, queue) for consumer in consumers[start : start + LOOKS_PER_STEP]]
            yield None
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from selected(CONSUMERS, places, given))


CONSUMER_OPERATIONS: Final = (
    listing("listConsumers", "/api/consumers", "consumer ls", CONSUMERS, "Consumers, one row each.", _list),
)
