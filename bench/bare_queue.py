"""A queue of the broker without sockets and journal: figures show the queue alone, and costs that grow with its depth
cannot hide behind the network.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from artemis_py.config.settings import AddressConfig, BrokerConfig, QueueConfig
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, Message, encode_headers
from artemis_py.record_log import MemoryLog

NAME: Final = "bench"
START_MS: Final = 1_000_000
Spent = dict[str, list[float]]
"""Seconds of each measurement, by operation."""


class BareQueue:
    """An anycast queue with attributes. Messages arrive ``batch`` at a time, at ``now_ms``."""

    def __init__(self, attributes: dict[str, Any], batch: int) -> None:
        queue = QueueConfig(name=NAME, address=NAME, routing_type="ANYCAST", durable=False, **attributes)
        address = AddressConfig(name=NAME, routing_types=("ANYCAST",), queues=(queue,))
        self.broker = Broker(BrokerConfig(addresses=(address,), message_expiry_scan_period=-1), MemoryLog(), START_MS)
        self.queue: Queue = self.broker.queues[NAME]
        self.now_ms = START_MS
        self._batch = batch

    def messages(self, heads: Sequence[Head], expires_ms: int = 0) -> list[Message]:
        """A new message for each head."""
        account = self.broker.addresses[NAME].account
        first, now_ms = self.broker.host.take_message_ids(len(heads)), self.now_ms
        return [
            Message(head, b"x", first + number, now_ms, expires_ms, account, 0) for number, head in enumerate(heads)
        ]

    def publish(self, messages: Sequence[Message]) -> None:
        """They arrive."""
        route = self.broker.resolver.route(NAME, None, "ANYCAST")
        for start in range(0, len(messages), self._batch):
            batch = list(messages[start : start + self._batch])
            size_bytes = sum(message.size_bytes for message in batch)
            self.broker.publisher.publish(Batch(route, batch, size_bytes, self.now_ms, plain=False, due_ms=0))

    def join(self, backlog: int = sys.maxsize) -> Consumer:
        """A new consumer, which has no room yet."""
        consumer = Consumer(
            self.broker.next_consumer_id(), self, settles=False, destructive=True, weigh=_one, backlog_max=backlog
        )
        self.broker.attach(self.queue, consumer, self.now_ms)
        return consumer

    def leave(self, consumer: Consumer) -> None:
        """A consumer goes."""
        self.broker.detach(self.queue, consumer, failed=False, now_ms=self.now_ms)


def head_of(*properties: tuple[str, str], priority: int = 4) -> Head:
    """The head of a message for the queue."""
    return Head(encode_headers([("destination", NAME), *properties]), NAME, priority=priority)


@contextmanager
def timed(spent: Spent, name: str) -> Iterator[None]:
    """Add to ``spent``, under a name, how many seconds of CPU time the block takes: other programs do not count."""
    started = time.process_time()
    yield
    spent.setdefault(name, []).append(time.process_time() - started)


@contextmanager
def without_collector() -> Iterator[None]:
    """No garbage is collected in the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _one(message: Message) -> int:
    return 1
