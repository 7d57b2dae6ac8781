"""Section ``depth``: what a message costs on a queue that holds a thousand, a hundred thousand and a million.

Each type of queue is measured at each depth in a process of its own: ``python -m bench.deep_queues TYPE MESSAGES``
prints what each operation costs, as JSON.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from artemis_py.core.consumer import UNLIMITED, Consumer
from artemis_py.errors import PerfError
from artemis_py.message import Head, Message
from artemis_py.perf.result import MILLION
from bench.bare_queue import NAME, START_MS, BareQueue, Spent, head_of, timed, without_collector
from bench.own import ROOT
from bench.part import VERDICTS, Extent, Part, Say, Table

DEPTHS: Final = (1_000, 100_000, 1_000_000)
SAMPLE: Final = 1_000
"""How many messages one measurement moves, if the queue has that many."""
ROUNDS: Final = 20
_BATCH: Final = 50
_NEVER_MS: Final = 1 << 50
_LIMIT_S: Final = 600.0
_FLAT: Final = 1.5
"""How much dearer a message may be at the greatest depth where the depth should not matter: a thousand messages are in
the processor's caches, a million are not.
"""
OPERATIONS: Final = (
    "arrive", "dispatch", "release", "acknowledge", "expire", "arrive and evict", "arrive and replace", "passed over",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueType:
    """``attributes`` are those of its configuration. ``searches``: does a message look for its place? ``grouped``: are
    its messages of groups?
    """

    title: str
    attributes: Mapping[str, Any]
    searches: bool = False
    grouped: bool = False


TYPES: Final[Mapping[str, QueueType]] = {
    "plain": QueueType(title="plain queue", attributes={}),
    "standard": QueueType(title="standard queue", attributes={"queue_type": "standard"}),
    "priority": QueueType(title="priority queue, 3 levels", attributes={"priority_levels": 3}, searches=True),
    "sorted": QueueType(title="sorted queue", attributes={"sort_key": "key"}, searches=True),
    "last-value": QueueType(
        title="last-value queue", attributes={"queue_type": "lvq", "last_value_key": "key"}, searches=True
    ),
    "groups": QueueType(title="sticky groups", attributes={"group_type": "STANDARD"}, grouped=True),
    "shared-groups": QueueType(title="shared groups", attributes={"group_type": "SHARED_GROUPS"}, grouped=True),
}

# ---- queues with messages --------------------------------------------------------------------------------------------


class Filled(BareQueue):
    """A queue with ``depth`` messages, whose priorities are from 0 to 9, and whose keys all differ, in random order."""

    def __init__(self, depth: int, attributes: Mapping[str, Any]) -> None:
        super().__init__(dict(attributes), _BATCH)
        self._depth = depth
        self._keys = itertools.count()
        self._random = random.Random(depth)
        self._heads = [head_of(priority=priority) for priority in range(10)]
        self._keyed = "sort_key" in attributes or "last_value_key" in attributes
        self._replaces = "last_value_key" in attributes
        self.sample = min(SAMPLE, depth)
        self.publish(self._fresh(depth))

    def _fresh(self, count: int, expires_ms: int = _NEVER_MS, keys: Sequence[str] | None = None) -> list[Message]:
        if not self._keyed:
            return self.messages([self._random.choice(self._heads) for _ in range(count)], expires_ms)
        named = keys or [f"{self._random.getrandbits(32):08x}-{next(self._keys)}" for _ in range(count)]
        heads = [head_of(("key", key), priority=self._random.randrange(10)) for key in named]
        return self.messages(heads, expires_ms)

    def measure(self, spent: Spent) -> None:
        """Move ``sample`` messages through each part; the queue is as deep as before when it is done."""
        queue, sample = self.queue, self.sample
        fresh = self._fresh(sample, START_MS + 10)
        with timed(spent, "arrive"):
            self.publish(fresh)
        with timed(spent, "expire"):
            queue.expire_due(START_MS + 10)
        consumer = self.join()
        consumer.room_bytes = sample
        queue.wake(consumer)
        with timed(spent, "dispatch"):
            queue.dispatch(START_MS)
        entries = consumer.let_go_all()
        assert len(entries) == sample
        with timed(spent, "release"):
            queue.release(consumer, entries, failed=False, now_ms=START_MS)
        self.leave(consumer)
        self.broker.queue_operations.set_ring_size(NAME, self._depth)
        fresh = self._fresh(sample)
        with timed(spent, "arrive and evict"):
            self.publish(fresh)
        self.broker.queue_operations.set_ring_size(NAME, UNLIMITED)
        if self._replaces:
            newer = self._fresh(sample, keys=[message.head.properties["key"] for message in fresh])
            with timed(spent, "arrive and replace"):
                self.publish(newer)
        assert queue.message_count == self._depth


def costs_of_entries(depth: int, attributes: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds per message, the median of all measurements: to arrive, to be dispatched, to come back, to expire,
    to be given up by a ring, and on a last-value queue to be replaced.
    """
    filled = Filled(depth, attributes)
    spent: Spent = {}
    with without_collector():
        for _ in range(ROUNDS):
            filled.measure(spent)
    return {name: statistics.median(seconds) * MILLION / filled.sample for name, seconds in spent.items()}


_PER_GROUP: Final = 5
_DEPTH_MIN: Final = 4 * _PER_GROUP
_PASSED_MIN: Final = 10_000


class Grouped(BareQueue):
    """A queue of which one half is one group, whose consumer is busy; the others are groups of five."""

    def __init__(self, depth: int, attributes: Mapping[str, Any]) -> None:
        super().__init__(dict(attributes), _BATCH)
        self._names = itertools.count()
        self.sample = min(SAMPLE, depth // 4)
        self.blocked_count = depth // 2
        self._busy = self.join()
        self._busy.room_bytes = 1
        self._arrive([_member("busy")] * (self.blocked_count + 1))
        self.queue.wake(self._busy)
        self.queue.dispatch(START_MS)
        assert len(self._busy.held) == 1
        heads = self._of_new_groups((depth - self.blocked_count) // _PER_GROUP)
        self._arrive(heads * _PER_GROUP)

    def _of_new_groups(self, count: int) -> list[Head]:
        return [_member(f"group-{next(self._names)}") for _ in range(count)]

    def _arrive(self, heads: Sequence[Head]) -> None:
        self.publish(self.messages(heads))

    def _serve(self, consumer: Consumer, count: int) -> None:
        consumer.room_bytes = count
        self.queue.wake(consumer)
        for _ in range(self.queue.contents.order.count // _PASSED_MIN + 1):  # a dispatch passes over so many at least
            self.queue.dispatch(START_MS)
            if not consumer.room_bytes:
                return
        raise PerfError("a consumer of a queue with groups did not get its messages")

    def park(self) -> None:
        """One message to another consumer: everything before it is passed over."""
        consumer = self.join()
        self._serve(consumer, 1)
        self.leave(consumer)

    def measure(self, spent: Spent) -> None:
        """Move ``sample`` messages through each part; the queue is as deep as before when it is done."""
        queue = self.queue
        consumer = self.join()
        with timed(spent, "dispatch"):
            self._serve(consumer, self.sample)
        entries = consumer.let_go_all()
        with timed(spent, "release"):
            queue.release(consumer, entries, failed=False, now_ms=START_MS)
        self._serve(consumer, self.sample)
        entries = consumer.let_go_all()
        with timed(spent, "acknowledge"):
            queue.acknowledge(consumer, entries)
        fresh = self._of_new_groups(self.sample)
        with timed(spent, "arrive"):
            self._arrive(fresh)
        self.leave(consumer)
        assert len(self._busy.held) == 1


def _member(group: str) -> Head:
    return head_of(("JMSXGroupID", group))


def costs_of_groups(depth: int, attributes: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds per message, the median of all measurements: to be dispatched past the blocked group, to come back,
    to be acknowledged, to arrive with a group of its own; and for each message of the blocked group, once, to be passed
    over. Raises PerfError for too few messages.
    """
    if depth < _DEPTH_MIN:
        raise PerfError(f"groups need more messages than {depth}: {_DEPTH_MIN} at least")
    grouped = Grouped(depth, attributes)
    spent: Spent = {}
    with without_collector():
        with timed(spent, "passed over"):
            grouped.park()
        for _ in range(ROUNDS):
            grouped.measure(spent)
    moved = {"passed over": grouped.blocked_count}
    return {
        name: statistics.median(seconds) * MILLION / moved.get(name, grouped.sample) for name, seconds in spent.items()
    }


def costs_us(name: str, depth: int) -> dict[str, float]:
    """What each operation costs on a type of queue. Raises PerfError."""
    type = TYPES[name]
    return (costs_of_groups if type.grouped else costs_of_entries)(depth, type.attributes)


# ---- the section -----------------------------------------------------------------------------------------------------


@dataclass
class Growth:
    """What each operation costs in µs on one type of queue, by depth."""

    name: str
    costs_us: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def type(self) -> QueueType:
        """The type of queue."""
        return TYPES[self.name]

    @property
    def ratio(self) -> float:
        """What all operations together cost at the greatest depth, in units of that at the smallest."""
        least, most = (sum(self.costs_us[depth].values()) for depth in (min(self.costs_us), max(self.costs_us)))
        return most / least

    @property
    def ratio_max(self) -> float:
        """What is promised: the same at every depth, or, where a place is searched for, within the logarithm."""
        if not self.type.searches:
            return _FLAT
        return max(_FLAT, math.log(max(self.costs_us)) / math.log(min(self.costs_us)))

    @property
    def met(self) -> bool:
        """Is it kept?"""
        return self.ratio <= self.ratio_max


@dataclass
class DeepQueues(Part):
    """All types of queues."""

    found: list[Growth]

    @property
    def missed(self) -> list[str]:
        """The promises that were not kept."""
        return [one.name for one in self.found if not one.met]

    def tables(self) -> list[Table]:
        """One for all that have the same operations, nearly."""
        return self._tables(_rows)

    def page_tables(self) -> list[Table]:
        """The same, of the greatest depth alone."""
        return self._tables(_deepest_rows)

    def _tables(self, rows: Callable[[Sequence[Growth]], list[list[str]]]) -> list[Table]:
        groups = [one for one in self.found if one.type.grouped]
        others = [one for one in self.found if not one.type.grouped]
        return [Table(rows(some)) for some in (others, groups) if some]

    def as_json(self) -> list[dict[str, Any]]:
        """Every figure."""
        return [{"type": one.name, "costs_us": one.costs_us, "ratio": one.ratio, "met": one.met} for one in self.found]


def measure_depths(extent: Extent, say: Say) -> DeepQueues:
    """Each type at each depth, so many rounds, each time in a new process. Raises PerfError when one fails."""
    depths, rounds = DEPTHS[:2] if extent.quick else DEPTHS, extent.rounds
    found = [Growth(name) for name in TYPES]
    for one in found:
        for depth in depths:
            say(f"depth: {one.type.title}, {depth:,} entries")
            told = [_measured_apart(one.name, depth) for _ in range(rounds)]
            one.costs_us[depth] = {name: statistics.median(costs[name] for costs in told) for name in told[0]}
    return DeepQueues(found)


def _measured_apart(name: str, depth: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.deep_queues", name, str(depth)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, cwd=ROOT)
    if done.returncode:
        raise PerfError(f"{name} at {depth:,}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def _rows(found: Sequence[Growth]) -> list[list[str]]:
    """Two rows for each type: at the smallest and at the greatest depth."""
    depths = list(found[0].costs_us)
    names = [name for name in OPERATIONS if any(name in one.costs_us[depths[0]] for one in found)]
    growth = f"together, {depths[-1]:,} : {depths[0]:,}"
    rows = [["µs per message", "entries", *names, growth, "target", ""]]
    for one in found:
        for depth in dict.fromkeys((depths[0], depths[-1])):
            last = depth == depths[-1]
            verdict = [f"{one.ratio:.2f}", f"≤ {one.ratio_max:.1f}", VERDICTS[one.met]]
            costs = one.costs_us[depth]
            cells = [f"{costs[name]:.2f}" if name in costs else "" for name in names]
            rows.append([one.type.title, f"{depth:,}", *cells, *(verdict if last else ["", "", ""])])
    return rows


def _deepest_rows(found: Sequence[Growth]) -> list[list[str]]:
    """One row for each type: at the greatest depth."""
    head, *rows = _rows(found)
    return [head, *{row[0]: row for row in rows}.values()]


if __name__ == "__main__":
    try:
        print(json.dumps(costs_us(sys.argv[1], int(sys.argv[2]))))
    except PerfError as error:
        sys.exit(str(error))
