"""Scenarios depth-…: the cost of each step of a message on a deep queue, by type of queue.

The queue is the broker's own, without sockets and journal: so the figures show the queue alone, and costs that grow
with the depth cannot hide behind the network.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from artemis_py.config.settings import AddressConfig, BrokerConfig, QueueConfig
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import UNLIMITED, Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, Message, encode_headers
from artemis_py.perf.result import MILLION
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.records import MemoryLog

DEPTH: Final = 100_000
SAMPLE: Final = 1_000
"""How many messages one measurement moves, if the queue has that many."""
_MOVED_MIN: Final = 20_000
_BATCH: Final = 50
_NAME: Final = "depth"
_START_MS: Final = 1_000_000
_NEVER_MS: Final = 1 << 50


class Depth(Scenario):
    """Fills a queue to its depth (``--messages``, else 100,000), then moves 1,000 messages at a time through each part.

    Messages have priorities from 0 to 9 and keys that all differ, in random order.
    """

    headline = "dispatch_us"
    needs_broker = False
    attributes: ClassVar[dict[str, Any]] = {}
    replaces: ClassVar[bool] = False

    def run(self, run: Run) -> dict[str, float]:
        """Microseconds per message, the median of all measurements: to arrive, to be dispatched, to come back, to
        expire, to be given up by a ring, and on a last-value queue to be replaced.
        """
        depth = run.options.messages or DEPTH
        bench = _Filled(depth, self.attributes)
        spent: dict[str, list[float]] = {}
        rounds = max(3, _MOVED_MIN // SAMPLE)
        sample = min(SAMPLE, depth)
        gc.collect()
        gc.disable()
        try:
            for number in range(rounds):
                run.progress.show(lambda number=number: f"{number} of {rounds}")  # type: ignore[misc]
                bench.measure(spent, sample, replaces=self.replaces)
        finally:
            gc.enable()
        medians = {name: statistics.median(seconds) for name, seconds in spent.items()}
        return {"messages": depth, **{name: seconds * MILLION / sample for name, seconds in medians.items()}}


class DepthPlain(Depth):
    """Artemis' queue: ten priorities."""

    id = "depth-plain"
    title = "plain queue"


class DepthStandard(Depth):
    """Strict FIFO."""

    id = "depth-standard"
    title = "standard queue"
    attributes: ClassVar[dict[str, Any]] = {"queue_type": "standard"}


class DepthPriority(Depth):
    """Three levels."""

    id = "depth-priority"
    title = "priority queue, 3 levels"
    attributes: ClassVar[dict[str, Any]] = {"priority_levels": 3}


class DepthSorted(Depth):
    """Sorted by a key that differs in each message."""

    id = "depth-sorted"
    title = "sorted queue"
    attributes: ClassVar[dict[str, Any]] = {"sort_key": "key"}


class DepthLastValue(Depth):
    """As many keys as messages."""

    id = "depth-last-value"
    title = "last-value queue"
    attributes: ClassVar[dict[str, Any]] = {"queue_type": "lvq", "last_value_key": "key"}
    replaces = True


class _Filled:
    """A queue with its messages, and methods to move some."""

    def __init__(self, depth: int, attributes: dict[str, Any]) -> None:
        queue = QueueConfig(name=_NAME, address=_NAME, routing_type="ANYCAST", durable=False, **attributes)
        address = AddressConfig(name=_NAME, routing_types=("ANYCAST",), queues=(queue,))
        config = BrokerConfig(addresses=(address,), message_expiry_scan_period=-1)
        self._broker = Broker(config, MemoryLog(), _START_MS)
        self._queue: Queue = self._broker.queues[_NAME]
        self._depth = depth
        self._keys = itertools.count()
        self._random = random.Random(depth)
        self._heads: dict[int, Head] = {}
        self._keyed = "sort_key" in attributes or "last_value_key" in attributes
        self._arrive(self._messages(depth))

    def _head(self, key: str | None) -> Head:
        priority = self._random.randrange(10)
        if key is not None:
            return Head(encode_headers([("destination", _NAME), ("key", key)]), _NAME, priority=priority)
        head = self._heads.get(priority)
        if head is None:
            head = self._heads[priority] = Head(encode_headers([("destination", _NAME)]), _NAME, priority=priority)
        return head

    def _messages(self, count: int, expires_ms: int = _NEVER_MS, keys: list[str] | None = None) -> list[Message]:
        account = self._broker.addresses[_NAME].account
        first = self._broker.host.take_message_ids(count)
        messages = []
        for number in range(count):
            key = f"{self._random.getrandbits(32):08x}-{next(self._keys)}" if keys is None else keys[number]
            head = self._head(key if self._keyed else None)
            messages.append(Message(head, b"x", first + number, _START_MS, expires_ms, account, 0))
        return messages

    def _arrive(self, messages: list[Message]) -> None:
        route = self._broker.resolver.route(_NAME, None, "ANYCAST")
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            size_bytes = sum(message.size_bytes for message in batch)
            self._broker.publisher.publish(Batch(route, batch, size_bytes, _START_MS, plain=False, due_ms=0))

    def measure(self, spent: dict[str, list[float]], sample: int, *, replaces: bool) -> None:
        """Move ``sample`` messages through each part; the queue is as deep as before when it is done."""
        queue = self._queue
        fresh = self._messages(sample, _START_MS + 10)
        with timed(spent, "arrive_us"):
            self._arrive(fresh)
        with timed(spent, "expire_us"):
            queue.expire_due(_START_MS + 10)
        consumer = Consumer(self._broker.next_consumer_id(), self, settles=False, destructive=True, weigh=_one)
        self._broker.attach(queue, consumer, _START_MS)
        consumer.room_bytes = sample
        queue.wake(consumer)
        with timed(spent, "dispatch_us"):
            queue.dispatch(_START_MS)
        entries = consumer.let_go_all()
        assert len(entries) == sample
        with timed(spent, "release_us"):
            queue.release(consumer, entries, failed=False, now_ms=_START_MS)
        self._broker.detach(queue, consumer, failed=False, now_ms=_START_MS)
        self._broker.queue_operations.set_ring_size(_NAME, self._depth)
        fresh = self._messages(sample)
        with timed(spent, "evict_us"):
            self._arrive(fresh)
        self._broker.queue_operations.set_ring_size(_NAME, UNLIMITED)
        if replaces:
            newer = self._messages(sample, keys=[message.head.properties["key"] for message in fresh])
            with timed(spent, "replace_us"):
                self._arrive(newer)
        assert queue.message_count == self._depth


def _one(message: Message) -> int:
    return 1


@contextmanager
def timed(spent: dict[str, list[float]], name: str) -> Iterator[None]:
    """Add to ``spent``, under a name, how many seconds of CPU time the block takes: other programs do not count."""
    started = time.process_time()
    yield
    spent.setdefault(name, []).append(time.process_time() - started)
