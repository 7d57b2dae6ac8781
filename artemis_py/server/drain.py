"""``graceful-shutdown-enabled``: clients settle what they have got, and get nothing more; and what is left then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final, final

from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.server.client import Client
from artemis_py.shown import many
from artemis_py.stomp.service import StompService

_LOOK_EVERY_S: Final = 0.02


@final
class Drain:
    """Messages in delivery, on their way to being settled. Acknowledgements, sends and commits are carried out."""

    def __init__(self, connections: Collection[Client], services: Sequence[StompService]) -> None:
        self._queues: list[Queue] = []
        seen: set[int] = set()
        for service in services:
            service.drains = True
        for connection in connections:
            for subscription in connection.session.subscriptions.by_consumer.values():
                subscription.consumer.room_bytes = 0
                queue = subscription.queue
                if queue.id not in seen:
                    seen.add(queue.id)
                    self._queues.append(queue)

    @property
    def left(self) -> int:
        """How many messages are in delivery, those in transactions included. Nothing is added, so only queues that had
        some are asked again.
        """
        self._queues = [queue for queue in self._queues if queue.contents.tally.held_count]
        return sum(queue.contents.tally.held_count for queue in self._queues)

    async def wait(self, timeout_ms: int, hurry: asyncio.Event, has_failed: Callable[[], bool]) -> None:
        """Wait until nothing is in delivery, for at most ``timeout_ms`` (-1: for ever), and no longer than until
        ``hurry`` is set or the broker has failed.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        while self.left and not hurry.is_set() and not has_failed() and (timeout_ms < 0 or loop.time() < until):
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), _LOOK_EVERY_S)


def remains(broker: Broker) -> str:
    """What a broker that stops leaves behind, in a few words."""
    count = queue_count = in_delivery = durable = 0
    for queue in broker.queues.values():
        if queue.message_count:
            queue_count += 1
            count += queue.message_count
            in_delivery += queue.contents.tally.held_count
            durable += queue.contents.tally.durable_count if queue.durable else 0
    if not broker.config.persistence_enabled:
        durable = 0
    parts = [f"{many(count, 'message')} in {many(queue_count, 'queue')}"]
    if in_delivery:
        parts.append(f"{in_delivery} of them in delivery, to be delivered again")
    if count > durable:
        parts.append(f"{count - durable} not durable and lost with this stop")
    return "; ".join(parts)
