"""Table ``metrics``: counts of messages into and out of each queue per interval, and its depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artemis_py.spark.decode.columns import Mask, Numbers, by_number, constant, numbers, times
from artemis_py.spark.decode.digest import ACKED, EXPIRED, REPLACED, SUPERSEDED
from artemis_py.spark.decode.event_columns import ARRIVALS, DELIVERED, SETTLED, Facts, facts_of
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.tables.reading import Names, unknown_name
from artemis_py.storage.format import codec, records

_DEAD: Final = [SETTLED + records.REASONS.index(name) for name in ("killed", "dead", "cancelled")]
_COUNTED: Final[dict[str, list[int]]] = {
    "published": [*ARRIVALS],
    "delivered": [DELIVERED],
    "acked": [ACKED],
    "expired": [EXPIRED],
    "dead": _DEAD,
    "replaced": [REPLACED, SUPERSEDED],
}


@dataclass
class Series:
    """Collects the rows of one broker: one for each queue and interval with events."""

    interval_ms: int
    rows: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    """By queue and start of the interval."""
    _depths: dict[int, int] = field(default_factory=dict)
    _known: set[int] = field(default_factory=set)
    """Messages whose arrival is in the log; not kept once it records queue depths."""
    _is_told: bool = False

    def take(self, found: Walk, wanted: Mask) -> None:
        """Add the wanted records of the next piece."""
        facts = facts_of(found, wanted)
        facts = facts.chosen(facts.queue > 0)
        begin = 0
        for record in np.flatnonzero(wanted & (found.kinds == records.DEPTHS)).tolist():
            behind = int(np.searchsorted(facts.record, record))
            self._count(found, facts.chosen(np.arange(begin, behind)))
            told = {one.queue_id: one.count for one in codec.decode_depths(found.payload(record))}
            self._depths = told
            self._is_told = True
            self._known.clear()
            begin = behind
        self._count(found, facts.chosen(np.arange(begin, len(facts))))

    def _count(self, found: Walk, facts: Facts) -> None:
        if not len(facts):
            return
        buckets = found.times_ms[facts.record] // self.interval_ms * self.interval_ms
        turns = np.cumsum(found.kinds == records.BATCH)[facts.record]
        changes = self._changes(facts)
        order = np.argsort(facts.queue, kind="stable")
        facts, buckets, changes, turns = facts.chosen(order), buckets[order], changes[order], turns[order]
        changes = _displaced(facts, turns, changes)
        before = np.array([self._depths.get(queue, 0) for queue in facts.queue.tolist()], np.int64)
        begins = np.flatnonzero(np.diff(facts.queue, prepend=-1))
        running = np.cumsum(changes)
        offsets = np.repeat((running - changes)[begins], np.diff(np.append(begins, len(facts))))
        depths = before + running - offsets
        self._add_rows(facts, buckets, depths, depths - changes)
        for end in np.append(begins[1:], len(facts)).tolist():
            self._depths[int(facts.queue[end - 1])] = int(depths[end - 1])

    def _changes(self, facts: Facts) -> Numbers:
        """By how much each of them changes the depth of its queue."""
        came = np.isin(facts.kind, ARRIVALS)
        went = facts.kind >= SETTLED
        if not self._is_told:
            self._known.update(facts.message[came].tolist())
            went &= np.array([message in self._known for message in facts.message.tolist()], np.bool_)
        changes: Numbers = np.where(came, 1, np.where(went, -facts.count, 0))
        return changes

    def _add_rows(self, facts: Facts, buckets: Numbers, depths: Numbers, before: Numbers) -> None:
        begins = np.flatnonzero((np.diff(facts.queue, prepend=-1) != 0) | (np.diff(buckets, prepend=-1) != 0))
        counted = {
            name: _sums(np.where(np.isin(facts.kind, kinds), facts.count, 0), begins)
            for name, kinds in _COUNTED.items()
        }
        came = np.isin(facts.kind, _COUNTED["published"])
        counted["bytesIn"] = _sums(np.where(came, facts.size_bytes, 0), begins)
        ends = np.append(begins[1:], len(facts)) - 1
        highest = np.maximum.reduceat(np.maximum(depths, before), begins)
        for place, (queue, bucket) in enumerate(
            zip(facts.queue[begins].tolist(), buckets[begins].tolist(), strict=True)
        ):
            row = self.rows.setdefault((queue, bucket), {"depthMax": 0})
            for name, values in counted.items():
                row[name] = row.get(name, 0) + int(values[place])
            row["depthEnd"] = int(depths[ends[place]])
            row["depthMax"] = max(row["depthMax"], int(highest[place]))

    def begin_at(self, time_ms: int | None) -> None:
        """Skip intervals that end before this time."""
        if time_ms is not None:
            self.rows = {key: row for key, row in self.rows.items() if key[1] + self.interval_ms > time_ms}

    def keep_between(self, begin_ms: int | None, end_ms: int | None) -> None:
        """Keep only intervals that begin from the first time on and before the second."""
        self.rows = {
            key: row
            for key, row in self.rows.items()
            if (begin_ms is None or key[1] >= begin_ms) and (end_ms is None or key[1] < end_ms)
        }

    def keep(self, takes: Callable[[str], bool], names: Names) -> None:
        """Skip queues of other addresses."""
        kept = {queue for queue, address in names.queue_addresses().items() if takes(address)}
        self.rows = {key: row for key, row in self.rows.items() if key[0] in kept}

    def batch(self, schema: pa.Schema, broker: str, names: Names) -> pa.RecordBatch:
        """The rows in the order of queues and times."""
        keys = sorted(self.rows)
        queues = np.array([queue for queue, _ in keys], np.int64)
        made = {
            "broker": constant(broker, len(keys), pa.string()),
            "address": by_number(queues, names.queue_addresses(), pa.string()),
            "queue": by_number(queues, names.queue_names(), pa.string(), unknown_name),
            "bucket": times(np.array([bucket for _, bucket in keys], np.int64)),
        }
        for name in ("depthEnd", "depthMax", "bytesIn", *_COUNTED):
            made[name] = numbers(np.array([self.rows[key][name] for key in keys], np.int64), pa.int64())
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)


def _displaced(facts: Facts, turns: Numbers, changes: Numbers) -> Numbers:
    """The changes without those that cancel each other: the log has an arrival and then what it displaced, but
    the queue never held both. ``facts`` are in the order of queues and, within one, of the log. Within a turn so many
    of the last arrivals are left out as were displaced, and those.
    """
    gone = np.isin(facts.kind, (REPLACED, SUPERSEDED)) & (changes == -1)
    if not gone.any():
        return changes
    came = changes > 0
    begins = np.flatnonzero((np.diff(facts.queue, prepend=-1) != 0) | (np.diff(turns, prepend=-1) != 0))
    sizes = np.diff(np.append(begins, len(facts)))
    came_in, gone_in = (np.repeat(_sums(which.astype(np.int64), begins), sizes) for which in (came, gone))
    came_rank, gone_rank = (_ranks(which, begins, sizes) for which in (came, gone))
    pairs = np.minimum(came_in, gone_in)
    cancelled = (came & (came_rank > came_in - pairs)) | (gone & (gone_rank <= pairs))
    return np.where(cancelled, 0, changes)


def _ranks(which: Mask, begins: Numbers, sizes: Numbers) -> Numbers:
    """How many of them there are in a run, up to and including each."""
    counts = np.cumsum(which)
    ranks: Numbers = counts - np.repeat((counts - which)[begins], sizes)
    return ranks


def _sums(values: NDArray[Any], begins: Numbers) -> Numbers:
    sums: Numbers = np.add.reduceat(values, begins)
    return sums
