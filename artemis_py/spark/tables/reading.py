"""What tables need to make rows from pieces of the log."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from artemis_py.config.wildcards import WildcardIndex
from artemis_py.errors import PipelineError
from artemis_py.message import COPIED_QUEUE
from artemis_py.spark.decode.columns import Mask, Numbers, any_of
from artemis_py.spark.decode.published import Published
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.log.log import Log, Segment

_FOR_EVER: Final = (1 << 63) - 1
_QUEUE: Final = b"_AMQ_ORIG_QUEUE"


class Sample(NamedTuple):
    """What is known of one message of a log without having read it. Another log has another message there."""

    lsn: int
    message_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rows that a query wants, as far as the source can tell: bounds included, None for no bound.

    ``time`` refers to batches, ``timestamp`` to messages; epoch milliseconds.
    """

    lsn_min: int = 0
    lsn_max: int | None = None
    time_ms_min: int | None = None
    time_ms_max: int | None = None
    timestamp_ms_min: int | None = None
    timestamp_ms_max: int | None = None
    addresses: frozenset[str] | None = None
    """One of these; None: any."""
    subscribed: frozenset[str] | None = None
    """One of these, or one that ``pattern`` matches; None: any."""
    pattern: str | None = None
    prefixes: tuple[str, ...] = ()
    """Prefixes that an address must all have."""
    message_ids: frozenset[int] | None = None
    """One of these; None: any."""
    original_ids: frozenset[int] | None = None
    """Copies of one of these; None: any. It only excludes segments."""
    since: Mapping[str, int] | None = None
    """For these addresses, messages published at this time or later."""
    until: Mapping[str, int] | None = None
    """For these addresses, messages published at this time or earlier."""
    headers: frozenset[bytes] = frozenset()
    """Only messages with all of these headers, written by the broker."""
    lsns: Numbers | None = field(default=None, compare=False)
    """Only records with one of these lsns, in order; None: any."""
    of_copies: bool = False
    """Are these the lsns of copies made by compaction, and not of publications?"""
    sample: Sample | None = None
    """A message that is in the log, if this is the right one; None: unknown."""

    def between(self, lsn_min: int, lsn_max: int) -> Wanted:
        """The same, limited to these offsets."""
        return replace(self, lsn_min=lsn_min, lsn_max=lsn_max)

    def takes(self, address: str) -> bool:
        """May a message to this address be wanted?"""
        if self.addresses is not None and address not in self.addresses:
            return False
        if not all(address.startswith(prefix) for prefix in self.prefixes):
            return False
        if self.subscribed is None or address in self.subscribed:
            return True
        return self.pattern is not None and _matches(self.pattern, address)

    def has_between(self, low: int, behind: int) -> bool:
        """May a record be wanted that has an lsn from ``low`` on and below ``behind``?"""
        if behind <= self.lsn_min or (self.lsn_max is not None and low > self.lsn_max):
            return False
        if self.lsns is None:
            return True
        first = int(np.searchsorted(self.lsns, low))
        return first < len(self.lsns) and int(self.lsns[first]) < behind

    @property
    def takes_all(self) -> bool:
        """Are messages to every address wanted, at any time?"""
        is_any = self.addresses is None and self.subscribed is None
        return is_any and self.since is None and self.until is None and not self.prefixes

    def takes_of(self, address: str, first_ms: int, last_ms: int) -> bool:
        """May a message to this address, published between two times, be wanted?"""
        since, until = (self.since or {}).get(address, first_ms), (self.until or {}).get(address, last_ms)
        return since <= last_ms and until >= first_ms

    def taken(self, codes: Numbers, addresses: Sequence[str | None], times_ms: Numbers) -> Mask:
        """Which rows are wanted. ``codes`` are indexes into ``addresses``, in which None means no address."""
        takes = np.array([address is not None and self.takes(address) for address in addresses], np.bool_)
        mask: Mask = takes[codes]
        if self.since is not None:
            begins_ms = np.array([self.since.get(address or "", 0) for address in addresses], np.int64)
            mask &= times_ms >= begins_ms[codes]
        if self.until is not None:
            ends_ms = np.array([self.until.get(address or "", _FOR_EVER) for address in addresses], np.int64)
            mask &= times_ms <= ends_ms[codes]
        return mask

    def records(self, found: Walk) -> Mask:
        """Which records of a walk may be wanted, by lsn and time."""
        mask = found.within(self.lsn_min, self.lsn_max)
        if self.lsns is not None:
            mask &= np.isin(found.lsns, self.lsns)
        if self.time_ms_min is not None:
            mask &= found.times_ms >= self.time_ms_min
        if self.time_ms_max is not None:
            mask &= found.times_ms <= self.time_ms_max
        return mask

    def of_ids(self, numbers: Numbers) -> Mask:
        """Which of these message numbers are wanted."""
        found: Mask = np.isin(numbers, np.array(sorted(self.message_ids or ()), np.int64))
        return found

    def check_sample(self, published: Published) -> None:
        """Raises PipelineError when a message of the log is another one than it should be."""
        if self.sample is None:
            return
        here = published.number("lsn") == self.sample.lsn
        found = zip(published.number("id")[here].tolist(), published.number("timestamp_ms")[here].tolist(), strict=True)
        if any(one != self.sample[1:] for one in found):
            raise PipelineError(
                f"the message at offset {self.sample.lsn} is another one in the log than on the queue: options url and "
                "stompUrl must lead to the same broker"
            )

    def messages(self, published: Published) -> Published:
        """Which messages are wanted, by timestamp and address."""
        mask = np.ones(len(published), np.bool_)
        if self.timestamp_ms_min is not None:
            mask &= published.number("timestamp_ms") >= self.timestamp_ms_min
        if self.timestamp_ms_max is not None:
            mask &= published.number("timestamp_ms") <= self.timestamp_ms_max
        if not self.takes_all and len(published):
            mask &= self.taken(*published.addresses, published.found.times_ms[published.records])
        if self.message_ids is not None:
            mask &= self.of_ids(published.number("id"))
        for name in self.headers:
            codes, blocks = published.heads
            mask &= any_of(blocks, [name + b":"])[codes] & published.copied(COPIED_QUEUE if name == _QUEUE else 0)
        return published.narrowed(mask)


@lru_cache(maxsize=4096)
def _matches(pattern: str, address: str) -> bool:
    patterns = WildcardIndex()
    patterns.add(pattern)
    return bool(patterns.matching(address))


Named = dict[int, dict[str, Any]]


@dataclass(slots=True)
class Names:
    """The names of the log's numbers. Queues are described where they were created, sessions and consumers in each
    segment that names them.
    """

    queues: Named = field(default_factory=dict)
    sessions: Named = field(default_factory=dict)
    consumers: Named = field(default_factory=dict)

    def learn(self, segment: Segment) -> None:
        """Add the names in an index."""
        self.learn_queues(segment)
        self.sessions.update({fields["id"]: dict(fields) for fields in segment.sessions})
        self.consumers.update({fields["id"]: dict(fields) for fields in segment.consumers})

    def learn_queues(self, segment: Segment) -> None:
        """Add only queues. Deleted queues keep their names, because earlier records mention them."""
        for fields in segment.queues:
            if not fields.get("deleted"):
                self.queues[fields["id"]] = {"name": fields["name"], "address": fields["address"]}

    def queue_names(self) -> dict[int, str]:
        """Names by number."""
        return {number: fields["name"] for number, fields in self.queues.items()}

    def queue_addresses(self) -> dict[int, str]:
        """Addresses by queue number."""
        return {number: fields["address"] for number, fields in self.queues.items()}


def packed(*parts: Named) -> bytes:
    """Names packed to be sent with each task."""
    return zlib.compress(json.dumps(parts).encode(), 1)


@lru_cache(maxsize=64)
def unpacked(*packs: bytes) -> Names:
    """Unpack names: queues, sessions and consumers in this order. Not to be changed: tasks share them."""
    parts = [part for pack in packs for part in json.loads(zlib.decompress(pack))]
    return Names(*({int(number): fields for number, fields in part.items()} for part in parts))


def unknown_name(number: int) -> str:
    """The placeholder for a queue whose name is no longer in the log."""
    return f"#{number}"


@dataclass(slots=True)
class Reading:
    """One piece of the log being turned into rows."""

    found: Walk
    positions: Callable[[Numbers], Numbers]
    """Maps places in the piece to offsets in its file."""
    segment: int
    log: Log
    names: Names
    wanted: Wanted
    schema: pa.Schema
    include_body: bool
    rows_max: int
    fails_on_loss: bool

    def columns(self, makers: Mapping[str, Any], source: Any) -> pa.RecordBatch:
        """A batch of the wanted columns, each from its own function."""
        arrays = [makers[name](source) for name in self.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def shares(self, count: int) -> Iterator[slice]:
        """The rows in parts of ``rows_max``."""
        for begin in range(0, count, self.rows_max):
            yield slice(begin, min(count, begin + self.rows_max))
