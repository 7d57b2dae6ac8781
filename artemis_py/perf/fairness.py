"""Scenarios fairness-…: what each step of a leased message costs, by fairness model, depth and number of subscriptions.

The queue is the broker's own, without sockets and journal, as in scenarios depth-….
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
from typing import Any, ClassVar, Final

from artemis_py.config.settings import AddressConfig, BrokerConfig, QueueConfig
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, Message, encode_headers
from artemis_py.perf.depth import DEPTH, timed
from artemis_py.perf.result import MILLION
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.records import MemoryLog

BACKLOG: Final = 10
_MOVED: Final = 10_000
"""How many messages one measurement moves, or as many as all backlogs hold."""
_ROUNDS: Final = 15
_SINGLE: Final = 2_000
_BATCH: Final = BACKLOG
"""Messages arrive by so many, however many subscriptions there are."""
_NAME: Final = "fairness"
_START_MS: Final = 1_000_000
_LEASE_MS: Final = 60_000
_PLENTY: Final = 1 << 50


class Fairness(Scenario):
    """Fills a queue to its depth (``--messages``, else 100,000), with ``--consumers`` subscriptions of a backlog of ten
    each. Then, turn after turn, all of them acknowledge what they have, one message after the other, and get more.
    """

    headline = "together_us"
    needs_broker = False
    model: ClassVar[str]

    def run(self, run: Run) -> dict[str, float]:
        """Microseconds per message, the median of all measurements: to arrive, to be dispatched, to be leased, to be
        acknowledged, and these together; of a message that is the only one of its turn; of a lease that ends; and of
        the next delivery of its message.
        """
        bench = LeasedQueue(run.options.messages or DEPTH, run.options.consumers, self.model)
        spent: dict[str, list[float]] = {}
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            for number in range(_ROUNDS):
                run.progress.show(lambda number=number: f"{number} of {_ROUNDS}")  # type: ignore[misc]
                bench.measure(spent)
        finally:
            gc.enable()
            gc.unfreeze()
        costs = {name: statistics.median(seconds) * MILLION for name, seconds in spent.items()}
        costs["together_us"] = sum(costs[name] for name in ("arrive_us", "dispatch_us", "lease_us", "acknowledge_us"))
        return {"messages": bench.depth, "consumers": run.options.consumers, **costs}


class FairnessFast(Fairness):
    """The first with room."""

    id = "fairness-fast"
    title = "leases, fast"
    model = "fast"


class FairnessRoundRobin(Fairness):
    """Each in turn."""

    id = "fairness-round-robin"
    title = "leases, round-robin"
    model = "round-robin"


class FairnessProportional(Fairness):
    """The one with most room."""

    id = "fairness-proportional"
    title = "leases, proportional"
    model = "proportional"


class LeasedQueue:
    """A queue with leases, ``depth`` ready messages, and subscriptions whose backlogs are full; and steps that move
    some of its messages.
    """

    def __init__(self, depth: int, consumers: int, model: str, backlog: int = BACKLOG) -> None:
        attributes: dict[str, Any] = {
            "fairness_model": model, "lease_period": _LEASE_MS, "max_per_subscription_backlog": backlog,
            "max_delivery_attempts": -1,
        }  # fmt: skip
        queue = QueueConfig(name=_NAME, address=_NAME, routing_type="ANYCAST", durable=False, **attributes)
        address = AddressConfig(name=_NAME, routing_types=("ANYCAST",), queues=(queue,))
        self._broker = Broker(BrokerConfig(addresses=(address,)), MemoryLog(), _START_MS)
        self._queue: Queue = self._broker.queues[_NAME]
        self._head = Head(encode_headers([("destination", _NAME)]), _NAME)
        self._now_ms = _START_MS
        self._random = random.Random(depth)
        self.depth = depth
        self._backlog = backlog
        self.consumers = [self._join() for _ in range(consumers)]
        self.held = backlog * consumers
        """What all backlogs hold."""
        self._turns = max(_MOVED // self.held, 1)
        self.arrive(depth + self.held)
        self.dispatch()
        self.send()

    def _join(self) -> Consumer:
        broker = self._broker
        consumer = Consumer(
            broker.next_consumer_id(), self, settles=False, destructive=True, weigh=_one, backlog_max=self._backlog
        )
        broker.attach(self._queue, consumer, _START_MS)
        consumer.room_bytes = _PLENTY
        self._queue.wake(consumer)
        return consumer

    # ---- steps -----------------------------------------------------------------------------------

    def arrive(self, count: int) -> None:
        """So many messages come, a few at a time."""
        route = self._broker.resolver.route(_NAME, None, "ANYCAST")
        account = self._broker.addresses[_NAME].account
        head, now_ms = self._head, self._now_ms
        for start in range(0, count, _BATCH):
            some = min(_BATCH, count - start)
            first = self._broker.host.take_message_ids(some)
            batch = [Message(head, b"x", first + number, now_ms, 0, account, 0) for number in range(some)]
            size_bytes = some * batch[0].size_bytes
            self._broker.publisher.publish(Batch(route, batch, size_bytes, now_ms, plain=False, due_ms=0))

    def dispatch(self) -> None:
        """Consumers with room are given messages."""
        self._queue.dispatch(self._now_ms)

    def send(self) -> None:
        """As a session writes what consumers were given."""
        queue = self._queue
        for consumer in self._broker.take_outgoing():
            consumer.listed = False
            entries, consumer.outbox = consumer.outbox, []
            queue.sent(consumer, entries)

    def acknowledge(self, consumer: Consumer, count: int) -> None:
        """A consumer acknowledges the first of what it has, one by one (as a session does)."""
        entries: list[Entry] = []
        for message_id in list(itertools.islice(consumer.held, count)):
            entries.append(consumer.let_go(message_id))
        self._queue.acknowledge(consumer, entries)
        if consumer.parked:
            self._queue.wake(consumer)

    def acknowledge_all(self) -> None:
        """All consumers acknowledge all that they have."""
        for consumer in self.consumers:
            self.acknowledge(consumer, self._backlog)

    def wait(self) -> None:
        """Let a lease period pass."""
        self._now_ms += _LEASE_MS
        self._broker.host.log.now_ms = self._now_ms

    def lapse(self) -> None:
        """End the leases that are over."""
        self._queue.end_leases(self._now_ms)

    def one_more(self, consumer: Consumer) -> None:
        """A consumer acknowledges a message, another message comes, and it gets one."""
        self.acknowledge(consumer, 1)
        self.arrive(1)
        self.dispatch()
        self.send()

    # ---- measuring -------------------------------------------------------------------------------

    def measure(self, spent: dict[str, list[float]]) -> None:
        """Seconds per message of each step; the queue is as deep as before when it is done."""
        turn: dict[str, list[float]] = {}
        for _ in range(self._turns):
            with timed(turn, "acknowledge_us"):
                self.acknowledge_all()
            with timed(turn, "arrive_us"):
                self.arrive(self.held)
            with timed(turn, "dispatch_us"):
                self.dispatch()
            with timed(turn, "lease_us"):
                self.send()
        for name, seconds in turn.items():
            spent.setdefault(name, []).append(sum(seconds) / (self._turns * self.held))
        some = [self._random.choice(self.consumers) for _ in range(_SINGLE)]
        single: dict[str, list[float]] = {}
        with timed(single, "single_us"):
            for consumer in some:
                self.one_more(consumer)
        spent.setdefault("single_us", []).append(single["single_us"][0] / _SINGLE)
        self._let_lapse(spent)
        assert self._queue.contents.order.count == self.depth
        assert self._queue.contents.counters.held_count == self.held

    def _let_lapse(self, spent: dict[str, list[float]]) -> None:
        """All leases end, as often as it takes, and the messages are leased again."""
        lapsed: dict[str, list[float]] = {}
        for _ in range(self._turns):
            self.wait()
            with timed(lapsed, "lapse_us"):
                self.lapse()
            with timed(lapsed, "again_us"):
                self.dispatch()
                self.send()
        self._broker.events.take()
        for name, seconds in lapsed.items():
            spent.setdefault(name, []).append(sum(seconds) / (self._turns * self.held))


def _one(message: Message) -> int:
    return 1
