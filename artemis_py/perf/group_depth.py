"""Scenarios depth-groups and depth-shared-groups: the cost of a message on a deep queue with many groups, one of them
blocked.
"""

from __future__ import annotations

import gc
import itertools
import statistics
from typing import Any, ClassVar, Final

from artemis_py.config.settings import AddressConfig, BrokerConfig, QueueConfig
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import PerfError
from artemis_py.message import Head, Message, encode_headers
from artemis_py.perf.depth import DEPTH, SAMPLE, timed
from artemis_py.perf.result import MILLION
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.records import MemoryLog

_ROUNDS: Final = 20
_BATCH: Final = 50
_PER_GROUP: Final = 5
_DEPTH_MIN: Final = 4 * _PER_GROUP
_PASSED_MIN: Final = 10_000
_NAME: Final = "depth"
_NOW_MS: Final = 1_000_000


class DepthGroups(Scenario):
    """Fills a queue to its depth (``--messages``, else 100,000): half of it is one group, whose consumer is busy, the
    others are groups of five. Then another consumer gets 1,000 messages at a time.
    """

    id = "depth-groups"
    title = "sticky groups"
    headline = "dispatch_us"
    needs_broker = False
    group_type: ClassVar[str] = "STANDARD"

    def run(self, run: Run) -> dict[str, float]:
        """Microseconds per message, the median of all measurements: to be dispatched past the blocked group, to come
        back, to be acknowledged, to arrive with a group of its own; and for each message of the blocked group, once, to
        be passed over. Raises PerfError for too few messages.
        """
        depth = run.options.messages or DEPTH
        if depth < _DEPTH_MIN:
            raise PerfError(f"groups need more messages than {depth}: --messages {_DEPTH_MIN} at least")
        bench = _Grouped(depth, {"group_type": self.group_type})
        spent: dict[str, list[float]] = {}
        gc.collect()
        gc.disable()
        try:
            with timed(spent, "pass_us"):
                bench.park()
            for number in range(_ROUNDS):
                run.progress.show(lambda number=number: f"{number} of {_ROUNDS}")  # type: ignore[misc]
                bench.measure(spent)
        finally:
            gc.enable()
        medians = {name: statistics.median(seconds) for name, seconds in spent.items()}
        moved = {"pass_us": bench.blocked_count}
        costs = {name: seconds * MILLION / moved.get(name, bench.sample) for name, seconds in medians.items()}
        return {"messages": depth, "groups": bench.group_count, **costs}


class DepthSharedGroups(DepthGroups):
    """The same with shared groups."""

    id = "depth-shared-groups"
    title = "shared groups"
    group_type: ClassVar[str] = "SHARED_GROUPS"


class _Grouped:
    """A queue with its messages and a busy consumer."""

    def __init__(self, depth: int, attributes: dict[str, Any]) -> None:
        queue = QueueConfig(name=_NAME, address=_NAME, routing_type="ANYCAST", durable=False, **attributes)
        address = AddressConfig(name=_NAME, routing_types=("ANYCAST",), queues=(queue,))
        self._broker = Broker(BrokerConfig(addresses=(address,)), MemoryLog(), _NOW_MS)
        self._queue: Queue = self._broker.queues[_NAME]
        self._names = itertools.count()
        self.sample = min(SAMPLE, depth // 4)
        self.blocked_count = depth // 2
        self.group_count = 1 + (depth - self.blocked_count) // _PER_GROUP
        self._busy = self._join()
        self._busy.room_bytes = 1
        self._arrive([self._head("busy")] * (self.blocked_count + 1))
        self._queue.wake(self._busy)
        self._queue.dispatch(_NOW_MS)
        assert len(self._busy.held) == 1
        heads = self._heads((depth - self.blocked_count) // _PER_GROUP)
        self._arrive([head for _ in range(_PER_GROUP) for head in heads])

    def _head(self, group: str) -> Head:
        return Head(encode_headers([("destination", _NAME), ("JMSXGroupID", group)]), _NAME)

    def _heads(self, count: int) -> list[Head]:
        return [self._head(f"group-{next(self._names)}") for _ in range(count)]

    def _arrive(self, heads: list[Head]) -> None:
        route = self._broker.resolver.route(_NAME, None, "ANYCAST")
        account = self._broker.addresses[_NAME].account
        for start in range(0, len(heads), _BATCH):
            some = heads[start : start + _BATCH]
            first = self._broker.host.take_message_ids(len(some))
            batch = [Message(head, b"x", first + number, _NOW_MS, 0, account, 0) for number, head in enumerate(some)]
            size_bytes = sum(message.size_bytes for message in batch)
            self._broker.publisher.publish(Batch(route, batch, size_bytes, _NOW_MS, plain=False, due_ms=0))

    def _join(self) -> Consumer:
        consumer = Consumer(self._broker.next_consumer_id(), self, settles=False, destructive=True, weigh=_one)
        self._broker.attach(self._queue, consumer, _NOW_MS)
        return consumer

    def _serve(self, consumer: Consumer, count: int) -> None:
        consumer.room_bytes = count
        self._queue.wake(consumer)
        for _ in range(self._queue.contents.order.count // _PASSED_MIN + 1):  # a dispatch passes over so many at least
            self._queue.dispatch(_NOW_MS)
            if not consumer.room_bytes:
                return
        raise PerfError("a consumer of a queue with groups did not get its messages")

    def park(self) -> None:
        """One message to another consumer: everything before it is passed over."""
        consumer = self._join()
        self._serve(consumer, 1)
        self._broker.detach(self._queue, consumer, failed=False, now_ms=_NOW_MS)

    def measure(self, spent: dict[str, list[float]]) -> None:
        """Move ``sample`` messages through each part; the queue is as deep as before when it is done."""
        queue = self._queue
        consumer = self._join()
        with timed(spent, "dispatch_us"):
            self._serve(consumer, self.sample)
        entries = consumer.let_go_all()
        with timed(spent, "release_us"):
            queue.release(consumer, entries, failed=False, now_ms=_NOW_MS)
        self._serve(consumer, self.sample)
        entries = consumer.let_go_all()
        with timed(spent, "acknowledge_us"):
            queue.acknowledge(consumer, entries)
        fresh = self._heads(self.sample)
        with timed(spent, "arrive_us"):
            self._arrive(fresh)
        self._broker.detach(queue, consumer, failed=False, now_ms=_NOW_MS)
        assert len(self._busy.held) == 1


def _one(message: Message) -> int:
    return 1
