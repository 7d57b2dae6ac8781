"""Finds consumers that acknowledge less than ``slow-consumer-threshold`` (Artemis manual, "Detecting Slow Consumers").

Nothing is counted for each message: what a consumer was sent is added up where its frames are written, and what it has
settled is that without what it holds. Every ``slow-consumer-check-period`` both are compared with the time before.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, final

from artemis_py.config.settings import AddressSettings
from artemis_py.core import notifications
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import CONSUMER_SLOW
from artemis_py.core.notification_fields import tell_consumer
from artemis_py.core.notifications import Fields
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.tasks import Task
from artemis_py.terminal_output import many

KILL: Final = "KILL"
SLOW: Final = "slow-consumer"
"""The reason in the event, in the words of ``core/queue/why.py``."""
_MS: Final = 1_000
_SPANS_S: Final = {
    "MESSAGES_PER_SECOND": 1,
    "MESSAGES_PER_MINUTE": 60,
    "MESSAGES_PER_HOUR": 3_600,
    "MESSAGES_PER_DAY": 86_400,
}
_MEASURED: Final = ("reason", "settled", "span_ms", "held", "threshold", "unit", "policy", "why")
"""Fields of the notification, besides those of the consumer."""
_LOOKS_PER_UNIT: Final = 4


class Slow(NamedTuple):
    """A consumer that must be disconnected, and the error for its client."""

    consumer: Consumer
    reason: str


@final
class _Watch:
    """One queue: when it was last looked at, and what had come until then."""

    __slots__ = ("added", "is_enough", "place", "queue_id", "since_ms", "span_ms")

    def __init__(self, queue: Queue, steady_ms: int) -> None:
        self.queue_id = queue.id
        self.since_ms = steady_ms
        self.added = queue.contents.counters.added
        self.place = 0
        """How many consumers the current look has seen."""
        self.span_ms = 0
        self.is_enough = False
        """Had the queue enough for all of its consumers in that time?"""


def settled_count(consumer: Consumer) -> int:
    """How many messages a consumer has settled, or given back, since it attached."""
    return consumer.statistics.delivered_count - len(consumer.held)


@final
class SlowConsumers(Task):
    """Looks at the queues that have a threshold and a consumer. ``queues`` are all queues, by number."""

    def __init__(self, host: QueueHost, queues: dict[int, Queue]) -> None:
        self._host = host
        self._queues = queues
        self._watches: dict[int, _Watch] = {}
        self.alarms = host.clock.alarms()
        """When queues are looked at, by their numbers."""
        self._ready: deque[_Watch] = deque()
        self.done = True
        self.killed: list[Slow] = []
        """Consumers whose connections must be closed; whoever closes them takes them out."""

    def note_consumer(self, queue: Queue, consumer: Consumer, now_ms: int) -> None:
        """A consumer has attached, and what it settles counts from now on; or the settings have changed, and a shorter
        period counts at once.
        """
        settings = queue.address.settings
        if consumer.browses or settings.slow_consumer_threshold <= 0:
            return
        watch = self._watches.get(queue.id)
        if watch is None:
            watch = self._watches[queue.id] = _Watch(queue, self._host.clock.steady_ms(now_ms))
        elif queue.id not in self.alarms.times:
            return  # it is being looked at
        self.alarms.set_by(queue.id, watch.since_ms + _period_ms(settings))

    def run(self, now_ms: int) -> None:
        """Begin the looks that are due."""
        while self.alarms.due:
            watch = self._watches.get(self.alarms.take())
            if watch is not None:
                self._ready.append(watch)
        if self._ready and self.done:
            self._host.agenda.add(self)

    def work(self, budget: Budget, now_ms: int) -> bool:
        while self._ready:
            if self._look(self._ready[0], budget, now_ms):
                self._ready.popleft()
            if budget.is_spent:
                break
        return not self._ready

    def break_off(self, now_ms: int) -> bool:
        """A look has failed: the queue is not watched any more."""
        if self._ready:
            self._watches.pop(self._ready.popleft().queue_id, None)
        return bool(self._ready)

    def _look(self, watch: _Watch, budget: Budget, now_ms: int) -> bool:
        """Look at some consumers of a queue. Returns True when all were seen."""
        queue = self._queues.get(watch.queue_id)
        budget.spend(1)
        if queue is None or not queue.taker_count or queue.address.settings.slow_consumer_threshold <= 0:
            self._watches.pop(watch.queue_id, None)
            return True
        settings = queue.address.settings
        steady_ms = self._host.clock.steady_ms(now_ms)
        if not watch.place:
            _begin(watch, queue, steady_ms)
        count = max(budget.left, 1) * _LOOKS_PER_UNIT
        some = queue.distribution.consumers[watch.place : watch.place + count]
        budget.spend(len(some) // _LOOKS_PER_UNIT)
        watch.place += len(some)
        for consumer in some:
            settled = settled_count(consumer)
            seen, consumer.statistics.settled_before = consumer.statistics.settled_before, settled
            if consumer.browses or seen < 0 or not watch.is_enough or consumer.closed:
                continue  # the first look only begins to measure
            if (settled - seen) * _MS < _threshold(settings) * watch.span_ms:
                self._found(queue, consumer, settled - seen, watch.span_ms)
        if watch.place < queue.consumer_count:
            return False
        watch.place = 0
        watch.since_ms, watch.added = steady_ms, queue.contents.counters.added
        self.alarms.set(watch.queue_id, steady_ms + _period_ms(settings))
        return True

    def _found(self, queue: Queue, consumer: Consumer, settled: int, span_ms: int) -> None:
        settings, reader = queue.address.settings, consumer.reader
        threshold, unit = settings.slow_consumer_threshold, settings.slow_consumer_threshold_measurement_unit
        text = (
            f"it settled {many(settled, 'message')} in {span_ms / _MS:g} s, and slow-consumer-threshold is "
            f"{threshold} {unit}"
        )
        fields: dict[str, str | int] = {
            "reason": SLOW,
            "consumer": consumer.id,
            "connection": reader.connection,
            **reader.who,
            "settled": settled,
            "span_ms": span_ms,
            "held": len(consumer.held),
            "threshold": threshold,
            "unit": unit,
            "policy": settings.slow_consumer_policy,
            "consumers": queue.taker_count,
            "why": text,
        }
        self._host.note_event(CONSUMER_SLOW, queue.reference, fields, kind=str(consumer.id))
        if self._host.notifications.is_heard:
            measured: Fields = {name: fields[name] for name in _MEASURED}
            tell_consumer(self._host.notifications, notifications.CONSUMER_SLOW, queue, consumer, measured)
        if settings.slow_consumer_policy == KILL:
            told = (
                f"Connection closed: consumer {consumer.id} of queue {queue.name} is slow: {text}. "
                "slow-consumer-policy is KILL; acknowledge faster, or lower the threshold"
            )
            self.killed.append(Slow(consumer, told))


def _begin(watch: _Watch, queue: Queue, steady_ms: int) -> None:
    """A look begins: had the queue enough for each consumer to reach the threshold? If not, nobody is to blame."""
    watch.span_ms = max(steady_ms - watch.since_ms, 1)
    wanted = _threshold(queue.address.settings) * watch.span_ms * queue.taker_count
    came = queue.contents.counters.added - watch.added
    watch.is_enough = came * _MS >= wanted or queue.message_count * _MS >= wanted


def _threshold(settings: AddressSettings) -> float:
    """Messages per second."""
    return settings.slow_consumer_threshold / _SPANS_S[settings.slow_consumer_threshold_measurement_unit]


def _period_ms(settings: AddressSettings) -> int:
    return settings.slow_consumer_check_period * _MS
