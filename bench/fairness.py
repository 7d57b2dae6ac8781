"""Section ``fairness``: what a leased message costs by fairness model and number of subscriptions.

All queues of a model are measured in turns in one process, in CPU time, so that a busy machine disturbs all alike. The
table has medians; each ratio is the median of the ratios of the turns.
"""

from __future__ import annotations

import itertools
import random
import statistics
from dataclasses import dataclass
from typing import Any, Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from bench.bare_queue import BareQueue, Spent, head_of, timed, without_collector
from bench.part import Extent, Part, Say, Table

DEPTH: Final = 100_000
SUBSCRIPTIONS: Final = (1, 100, 1_000)
MODELS: Final = ("fast", "round-robin", "proportional")
BACKLOG: Final = 10
_MOVED: Final = 10_000
"""How many messages one measurement moves, or as many as all backlogs hold."""
_SINGLE: Final = 2_000
_LEASE_MS: Final = 60_000
_PLENTY: Final = 1 << 50
_STEPS: Final = ("arrive", "dispatch", "lease", "acknowledge")
_EXPIRY: Final = ("expire", "again")
_ALONE: Final = "alone"
Costs = dict[int, Spent]
"""Seconds of each step for each message, of each round, by the number of subscriptions."""


class LeasedQueue(BareQueue):
    """A queue with leases, ``depth`` ready messages, and subscriptions whose backlogs are full; and steps that move
    some of its messages. Messages arrive ten at a time, however many subscriptions there are.
    """

    def __init__(self, depth: int, consumers: int, model: str, backlog: int = BACKLOG) -> None:
        attributes: dict[str, Any] = {
            "fairness_model": model, "lease_period": _LEASE_MS, "max_per_subscription_backlog": backlog,
            "max_delivery_attempts": -1,
        }  # fmt: skip
        super().__init__(attributes, BACKLOG)
        self._head = head_of()
        self._random = random.Random(depth)
        self.depth = depth
        self._backlog = backlog
        self.consumers = [self._with_room() for _ in range(consumers)]
        self.held = backlog * consumers
        """What all backlogs hold."""
        self._turns = max(_MOVED // self.held, 1)
        self.arrive(depth + self.held)
        self.dispatch()
        self.send()

    def _with_room(self) -> Consumer:
        consumer = self.join(self._backlog)
        consumer.room_bytes = _PLENTY
        self.queue.wake(consumer)
        return consumer

    # ---- steps -----------------------------------------------------------------------------------

    def arrive(self, count: int) -> None:
        """So many messages come, a few at a time."""
        self.publish(self.messages([self._head] * count))

    def dispatch(self) -> None:
        """Consumers with room are given messages."""
        self.queue.dispatch(self.now_ms)

    def send(self) -> None:
        """As a session writes what consumers were given."""
        queue = self.queue
        for consumer in self.broker.take_outgoing():
            consumer.listed = False
            entries, consumer.outbox = consumer.outbox, []
            queue.sent(consumer, entries)

    def acknowledge(self, consumer: Consumer, count: int) -> None:
        """A consumer acknowledges the first of what it has, one by one (as a session does)."""
        entries: list[Entry] = []
        for message_id in list(itertools.islice(consumer.held, count)):
            entries.append(consumer.let_go(message_id))
        self.queue.acknowledge(consumer, entries)
        if consumer.parked:
            self.queue.wake(consumer)

    def acknowledge_all(self) -> None:
        """All consumers acknowledge all that they have."""
        for consumer in self.consumers:
            self.acknowledge(consumer, self._backlog)

    def wait(self) -> None:
        """Let a lease period pass."""
        self.now_ms += _LEASE_MS
        self.broker.host.log.now_ms = self.now_ms

    def expire(self) -> None:
        """End the leases that are over."""
        self.queue.end_leases(self.now_ms)

    def one_more(self, consumer: Consumer) -> None:
        """A consumer acknowledges a message, another message comes, and it gets one."""
        self.acknowledge(consumer, 1)
        self.arrive(1)
        self.dispatch()
        self.send()

    # ---- measuring -------------------------------------------------------------------------------

    def measure(self, spent: Spent) -> None:
        """Seconds per message of each step; the queue is as deep as before when it is done."""
        turn: Spent = {}
        for _ in range(self._turns):
            with timed(turn, "acknowledge"):
                self.acknowledge_all()
            with timed(turn, "arrive"):
                self.arrive(self.held)
            with timed(turn, "dispatch"):
                self.dispatch()
            with timed(turn, "lease"):
                self.send()
        for name, seconds in turn.items():
            spent.setdefault(name, []).append(sum(seconds) / (self._turns * self.held))
        some = [self._random.choice(self.consumers) for _ in range(_SINGLE)]
        single: Spent = {}
        with timed(single, _ALONE):
            for consumer in some:
                self.one_more(consumer)
        spent.setdefault(_ALONE, []).append(single[_ALONE][0] / _SINGLE)
        self._have_leases_expire(spent)
        assert self.queue.contents.order.count == self.depth
        assert self.queue.contents.counters.held_count == self.held

    def _have_leases_expire(self, spent: Spent) -> None:
        """All leases end, as often as it takes, and the messages are leased again."""
        expired: Spent = {}
        for _ in range(self._turns):
            self.wait()
            with timed(expired, "expire"):
                self.expire()
            with timed(expired, "again"):
                self.dispatch()
                self.send()
        self.broker.events.take()
        for name, seconds in expired.items():
            spent.setdefault(name, []).append(sum(seconds) / (self._turns * self.held))


def measure(model: str, depth: int, rounds: int) -> Costs:
    """A queue for each number of subscriptions, by turns."""
    queues = {subscriptions: LeasedQueue(depth, subscriptions, model) for subscriptions in SUBSCRIPTIONS}
    found: Costs = {subscriptions: {} for subscriptions in SUBSCRIPTIONS}
    with without_collector():
        for _ in range(rounds):
            for subscriptions, queue in queues.items():
                queue.measure(found[subscriptions])
    for spent in found.values():
        spent["together"] = _sums(spent, _STEPS)
        spent["with an expiry"] = _sums(spent, (*_STEPS, *_EXPIRY))
    return found


def _sums(spent: Spent, names: tuple[str, ...]) -> list[float]:
    return [sum(some) for some in zip(*[spent[name] for name in names], strict=True)]


def rows_of(model: str, found: Costs) -> list[list[str]]:
    """The rows of a model, of the fewest and of the most subscriptions; the last is compared with the first."""
    first = found[min(found)]
    rows = []
    for subscriptions in sorted({min(found), max(found)}):
        spent = found[subscriptions]
        row = [model, f"{subscriptions:,}"]
        for names in ((_ALONE, *_STEPS, "together"), (*_EXPIRY, "with an expiry")):
            pairs = zip(spent[names[-1]], first[names[-1]], strict=True)
            row += [f"{statistics.median(spent[name]) * 1e6:.2f}" for name in names]
            row.append(f"{statistics.median(one / other for one, other in pairs):.2f}")
        rows.append(row)
    return rows


@dataclass
class Fairness(Part):
    """All models."""

    rows: list[list[str]]

    def tables(self) -> list[Table]:
        """One row for each model and number of subscriptions."""
        head = ["µs per message", "subscriptions", _ALONE, *_STEPS, "together", "to one subscription"]
        head += [*_EXPIRY, "with an expiry", "to one subscription"]
        return [Table([head, *self.rows])]

    def page_tables(self) -> list[Table]:
        """Each model with the most subscriptions."""
        [table] = self.tables()
        last = {row[0]: row for row in self.rows}
        return [Table([table.rows[0], *last.values()])]

    def as_json(self) -> object:
        """The same cells."""
        return self.rows


def measure_fairness(extent: Extent, say: Say) -> Fairness:
    """Every model with every number of subscriptions, on a queue of one depth."""
    depth = extent.messages or (DEPTH // 10 if extent.quick else DEPTH)
    rows: list[list[str]] = []
    for model in MODELS:
        say(f"fairness: {model}")
        rows += rows_of(model, measure(model, depth, 2 * extent.rounds + 1))
    return Fairness(rows)
