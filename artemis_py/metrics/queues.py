"""What a scrape finds when it looks at queues: sums over all of them, how old messages are, and which consumers are
slow.

Nothing of this is counted while messages flow. A look costs as much as the queue has consumers, so it may stop anywhere
and continue later. Sums are of all queues, also of those whose address shows no metrics; those of what happened only
grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker
    from artemis_py.core.consumer import Consumer
    from artemis_py.core.queue.queue import Queue


_QUEUES_PER_STEP: Final = 2_000


class Totals(NamedTuple):
    """Messages of all queues: those there now, and those added and acknowledged since the start."""

    pending: int
    added: int
    acknowledged: int


class QueueTotals:
    """Counts in steps, so that a scrape of many queues need not do it in one go."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counted: Totals | None = None

    def count(self) -> Iterator[None]:
        """Count everything, a step at a time. A queue deleted meanwhile still counts once: what queues that are gone
        had is read first, together with the list of the others.
        """
        departed = self._broker.bindings.departed
        pending, added, acknowledged = 0, departed.added, departed.acknowledged
        queues = list(self._broker.queues.values())
        for start in range(0, len(queues), _QUEUES_PER_STEP):
            for queue in queues[start : start + _QUEUES_PER_STEP]:
                counters = queue.contents.counters
                pending += queue.message_count
                added += counters.added
                acknowledged += counters.acknowledged
            yield
        self._counted = Totals(pending, added, acknowledged)

    def take(self) -> Totals:
        """What was counted last, once; counts now if nothing was."""
        if self._counted is None:
            for _ in self.count():
                pass
        counted, self._counted = self._counted, None
        assert counted is not None
        return counted


LOOKS_PER_STEP: Final = 500
"""How many queues and consumers are looked at before the caller may do something else."""


class Look:
    """What was found at one queue. Ages are whole seconds since the arrival, 0 also when there is no such message."""

    __slots__ = ("_delivering_ms", "_now_ms", "age_s", "delivering_age_s", "full_count", "queue", "slow_count")

    def __init__(self, queue: Queue, now_ms: int) -> None:
        self.queue = queue
        self._now_ms = now_ms
        self._delivering_ms = 0
        self.age_s = 0
        """Of the oldest message: of those ready the first of each priority, of those in delivery the first of each
        consumer. Scheduled messages do not wait for a consumer, and those in pages come behind.
        """
        self.delivering_age_s = 0
        """Of the oldest message in delivery."""
        self.slow_count = 0
        """Consumers that take nothing although messages are ready: their client does not read or acknowledge."""
        self.full_count = 0
        """Consumers that hold as many messages as their backlog allows."""

    def add(self, consumers: Sequence[Consumer]) -> None:
        """Look at some of the queue's consumers."""
        waits = self.queue.contents.order.count > 0
        for consumer in consumers:
            held = next(iter(consumer.held.values()), None)
            if held is not None:
                self._delivering_ms = _earlier(self._delivering_ms, held.message.timestamp_ms)
                self.full_count += len(consumer.held) >= consumer.backlog_max
            if waits and not consumer.browses and not consumer.has_room:
                self.slow_count += 1

    def finish(self) -> None:
        """All consumers were looked at."""
        self.delivering_age_s = self._age_s(self._delivering_ms)
        self.age_s = self._age_s(_earlier(self._delivering_ms, self.queue.contents.oldest_ms()))

    def _age_s(self, since_ms: int) -> int:
        return max(self._now_ms - since_ms, 0) // 1000 if since_ms else 0


def _earlier(one_ms: int, other_ms: int) -> int:
    return min(one_ms, other_ms) if one_ms and other_ms else one_ms or other_ms


def look_at(queues: Sequence[Queue], now_ms: int) -> Iterator[list[Look]]:
    """Look at queues, in steps of about LOOKS_PER_STEP; a step may have finished none."""
    found: list[Look] = []
    spent = 0
    for queue in queues:
        look = Look(queue, now_ms)
        consumers = queue.distribution.consumers
        for start in range(0, len(consumers), LOOKS_PER_STEP):
            some = consumers[start : start + LOOKS_PER_STEP]
            look.add(some)
            spent += len(some)
            if spent >= LOOKS_PER_STEP:
                yield found
                found, spent = [], 0
        look.finish()
        found.append(look)
        spent += 1
        if spent >= LOOKS_PER_STEP:
            yield found
            found, spent = [], 0
    yield found
