"""Readers of tables that sum up a broker's log."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.aggregate import Aggregate, state_batch
from artemis_py.spark.decode.digest import Counts, Digest, counted, digest_of, joined, nothing, pages_of, told_counts
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.log.log import Listing, Log, Segment
from artemis_py.spark.read.addresses import warn_of_unknown
from artemis_py.spark.read.options import ReadOptions, read_options
from artemis_py.spark.read.pieces import piece
from artemis_py.spark.read.plan import (
    Range,
    Share,
    asked,
    bounded,
    depths_told_lsn,
    learn_queues,
    opened,
    settled_listing,
    shares,
)
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.reading import Names, Wanted
from artemis_py.spark.tables.schema import arrow_schema, spark_schema
from artemis_py.storage.format import codec, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE: Final = 1 << 62


class AggregateReader(DataSourceReader):
    """A table that Spark cannot assemble from parts: one task for each broker, except for tables that can be split by
    time (``metrics``) and digests.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._table = _SPANS.get(options.table, options.table)

    def partitions(self) -> list[InputPartition]:
        """The tasks. Raises PipelineError."""
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        listings: list[Listing] = []
        for broker, (_, log) in logs.items():
            wanted = replace(bounded(Wanted(), options, broker, list(logs)), lsn_min=0, time_ms_max=_until(options))
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            if self._table == "metrics" and options.starting_ms is not None:
                before_ms = options.starting_ms // options.interval_ms * options.interval_ms
                wanted = replace(wanted, lsn_min=depths_told_lsn(log, listing, before_ms))
            names = learn_queues(Names(), listing)
            for one in shares(log.location, listing, wanted, names, _WHOLE, of_messages=False):
                found += self._tasks(one, log, listing)
        warn_of_unknown(options, listings)
        return found

    def _tasks(self, share: Share, log: Log, listing: Listing) -> Iterator[InputPartition]:
        """Of one broker."""
        options = self._options
        if self._table == "metrics":
            yield from _time_shares(share, log, listing, options.interval_ms, options.partition_bytes)
            return
        whole = _queue_share(share, listing) if self._table == "queues" else share
        if options.table not in _SPANS:
            yield whole
            return
        yield from _spans_of(whole, partial(piece, log=log, options=options), options.partition_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if not isinstance(partition, Share):
            return
        options = self._options
        schema = arrow_schema(options.table, options.columns)
        with closing(partition.location.open()) as log:
            read = partial(piece, log=log, options=options)
            if isinstance(partition, _Span):
                yield _span_batch(partition, options.table, log.broker, read, schema)
                return
            if isinstance(partition, _TimeShare):
                yield self._metrics(partition, log, schema)
                return
            if isinstance(partition, _QueueShare):
                fold, last_ms = _held(partition, read)
            else:
                fold, last_ms = _of_pages(partition, log, options), 0
            as_of_ms = options.as_of_ms or last_ms
            yield state_batch(options.table, fold, log.broker, as_of_ms, schema, asked(options).takes)

    def _metrics(self, share: _TimeShare, log: Log, schema: pa.Schema) -> pa.RecordBatch:
        options = self._options
        series = Series(options.interval_ms)
        for one in share.ranges:
            found = piece(one, log, options)
            if found is not None:
                series.take(found, share.wanted.records(found))
        series.begin_at(options.starting_ms)
        series.keep_between(share.begin_ms, share.end_ms)
        if options.subscribes:
            series.keep(asked(options).takes, share.names)
        return series.batch(schema, log.broker, share.names)


def _of_pages(share: Share, log: Log, options: ReadOptions) -> Aggregate:
    fold = Aggregate()
    for one in share.ranges:
        found = piece(one, log, options)
        if found is not None:
            fold.take(pages_of(found, share.wanted.records(found)))
    return fold


def _until(options: ReadOptions) -> int | None:
    """The end time of a sum."""
    return options.ending_ms if options.as_of_ms is None else options.as_of_ms


# ---- contents of queues ----------------------------------------------------------------------------------------------
#
# Works out the content of queues from as little of the log as possible.
#
# Each segment of a log with retention records the queue depths at its beginning (DEPTHS). A sum from some segment on
# can only miss earlier messages, never contain too many. So if the sum is as deep as recorded, it is exact, and nothing
# before that segment matters. Earlier counts are in the indexes of surveyed segments; other segments are counted.


_FIRST: Final = 2
_TIMES: Final = 4
"""How many segments to sum up at first, and by what factor to extend if they are not enough."""
_Read = Callable[[Range], Walk | None]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a segment's index provides, so that it need not be read. ``counts`` None: the counts must be read."""

    number: int
    last_ms: int
    counts: Mapping[str, Sequence[int]] | None
    queues: Sequence[Mapping[str, Any]]


class _QueueShare(Share):
    """The input of the table ``queues``."""

    def __init__(self, share: Share, known: list[_Known], *, may_begin_later: bool) -> None:
        super().__init__(share.location, share.ranges, share.wanted, share.packs)
        self.known = known
        self.may_begin_later = may_begin_later

    def bytes_from(self, begin: int) -> int:
        """How many bytes there are to read from one of its segments on."""
        return sum(one.end - one.begin for one in _ranges(self, self.known[begin:]))


def _queue_share(share: Share, listing: Listing) -> _QueueShare:
    """A share with the data of its segments' indexes. If a clock was set back or a segment is missing, there is no
    reliable order: then everything is summed up.
    """
    numbers = {one.segment for one in share.ranges}
    segments = [segment for segment in listing.segments if segment.number in numbers]
    first, last = segments[0].number, segments[-1].number
    is_plain = last - first + 1 == len(segments) and all(_is_whole(one, share.wanted) for one in segments[:-1])
    known = [
        _Known(
            one.number, one.last_ms or 0, one.counts if _is_whole(one, share.wanted) and is_plain else None, one.queues
        )
        for one in segments
    ]
    return _QueueShare(share, known, may_begin_later=is_plain)


def _is_whole(segment: Segment, wanted: Wanted) -> bool:
    """Is everything in it wanted?"""
    lsn_max, time_ms_max = wanted.lsn_max, wanted.time_ms_max
    if wanted.lsn_min > segment.first_lsn or (lsn_max is not None and segment.last_lsn > lsn_max):
        return False
    return time_ms_max is None or (segment.last_ms is not None and segment.last_ms <= time_ms_max)


def _held(share: _QueueShare, read: _Read) -> tuple[Aggregate, int]:
    """The content of the queues at the end of the wanted range, and its time."""
    found = _told_from(share, read, None)
    assert found is not None
    fold, last_ms, begin = found
    before = _told_before(share, begin, read)
    early = Aggregate()
    early.take(before)
    early.queues = {number: fields for number, fields in early.queues.items() if number not in fold.deleted}
    fold.queues = early.queues | fold.queues
    for queue, counts in early.counts.items():
        fold.counts[queue] = counts.and_those(fold.counts.get(queue))
    return fold, max(last_ms, before.last_ms)


def _told_from(share: _QueueShare, read: _Read, bytes_max: int | None) -> tuple[Aggregate, int, int] | None:
    """What was added up from the first of the last segments that tell what the queues hold, the highest time, and which
    of the share's segments that is; 0 when nothing less than all of them does. None when more than ``bytes_max`` would
    have to be read.
    """
    count = len(share.known)
    begin = max(0, count - _FIRST) if share.may_begin_later else 0
    while bytes_max is None or share.bytes_from(begin) <= bytes_max:
        fold = Aggregate()
        last_ms = _add_up(share, begin, fold, read)
        if fold.is_exact or not begin:
            return fold, last_ms, begin
        taken = (count - begin) * _TIMES
        begin = 0 if taken * _TIMES > count else count - taken
    return None


def _told_before(share: _QueueShare, begin: int, read: _Read) -> Digest:
    """Which queues the log named before one of the segments, and what came to them and went. What the indexes
    do not have of that is read.
    """
    before = share.known[:begin]
    parts = [nothing()]
    for one in _ranges(share, [known for known in before if known.counts is None]):
        found = read(one)
        if found is not None:
            parts.append(counted(found, share.wanted.records(found)))
    whole = joined(parts)
    last: object = None
    for known in before:
        whole.last_ms = max(whole.last_ms, known.last_ms)
        for queue, counts in told_counts(known.counts or {}):
            whole.counts.setdefault(queue, Counts()).add(counts)
        if known.queues is not last:  # as most segments tell of the same ones
            whole.queues += [_told(fields) for fields in known.queues]
        last = known.queues
    return whole


def _told(fields: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Of a queue, and was it deleted?"""
    return {name: value for name, value in fields.items() if name != "deleted"}, bool(fields.get("deleted"))


def _ranges(share: _QueueShare, known: Sequence[_Known]) -> Iterator[Range]:
    numbers = {one.number for one in known}
    return (one for one in share.ranges if one.segment in numbers)


def _add_up(share: _QueueShare, begin: int, fold: Aggregate, read: _Read) -> int:
    """Take in the segments from one on; returns the highest time."""
    last_ms = 0
    for one in _ranges(share, share.known[begin:]):
        found = read(one)
        if found is None:
            continue
        wanted = share.wanted.records(found)
        last_ms = max(last_ms, int(found.times_ms[wanted].max(initial=0)))
        order = np.arange(len(found.places))
        taken = 0
        for record in np.flatnonzero(wanted & (found.kinds == records.DEPTHS)).tolist():
            if begin:  # where all is added up, nobody asks whether that is exact
                fold.take(digest_of(found, wanted & (order >= taken) & (order <= record)))
                fold.compare(codec.decode_depths(found.payload(record)))
                taken = record + 1
        fold.take(digest_of(found, wanted & (order >= taken)))
    return last_ms


# ---- time spans ------------------------------------------------------------------------------------------------------
#
# Splits the table ``metrics`` into time spans: each task makes the rows of its own intervals.
#
# A task starts with a segment that begins before its first interval and records the queue depths, as each segment of a
# log with retention does. So it needs nothing before that, and the segment in which two tasks meet is read by both.


class _TimeShare(Share):
    """The part of one log that a task reads, and its intervals: those that begin from ``begin_ms`` on and before
    ``end_ms``; None: no bound.
    """

    def __init__(self, share: Share, segments: list[Segment], begin_ms: int | None, end_ms: int | None) -> None:
        numbers = {one.number for one in segments}
        ranges = [one for one in share.ranges if one.segment in numbers]
        super().__init__(share.location, ranges, share.wanted, share.packs)
        self.begin_ms = begin_ms
        self.end_ms = end_ms


def _time_shares(share: Share, log: Log, listing: Listing, interval_ms: int, share_bytes: int) -> list[_TimeShare]:
    """The tasks that read one log; a single one if the segments' times are not in order."""
    numbers = {one.segment for one in share.ranges}
    segments = [one for one in listing.segments if one.number in numbers]
    if not all((one.last_ms or 0) <= (behind.first_ms or 0) for one, behind in pairwise(segments)):
        return [_TimeShare(share, segments, None, None)]
    found: list[_TimeShare] = []
    begin, begin_ms, filled = 0, None, 0
    for place, one in enumerate(segments):
        time_ms = (one.first_ms or 0) // interval_ms * interval_ms
        if filled >= share_bytes and (begin_ms is None or time_ms > begin_ms):
            before = sum(one.blocks[0][2] < time_ms for one in segments[begin:place])
            meeting = _meeting(segments[begin : begin + before], log, listing, time_ms)
            if meeting is not None:
                found.append(_TimeShare(share, segments[begin : begin + before], begin_ms, time_ms))
                begin, begin_ms = begin + meeting, time_ms
                filled = sum(each.size_bytes for each in segments[begin:place])
        filled += one.size_bytes
    found.append(_TimeShare(share, segments[begin:], begin_ms, None))
    return found


def _meeting(segments: list[Segment], log: Log, listing: Listing, time_ms: int) -> int | None:
    """Which of the segments, all of which begin before a time, is the last one that says before it how deep the queues
    are; None: none of them does.
    """
    told_lsn = depths_told_lsn(log, listing, time_ms)
    return next((place for place, one in enumerate(segments) if one.first_lsn == told_lsn), None)


# ---- spans of a log --------------------------------------------------------------------------------------------------
#
# Sums up the tables ``queues`` and ``pages`` with many tasks: each makes a digest of a span of the log, and one per
# broker joins them. The tasks of a data source are independent (as of Spark 4.3), so a table that sums up a log needs
# one task per log. Here Spark groups the results of many tasks.


_SPANS: Final = {"queue-spans": "queues", "page-spans": "pages"}
"""Tables of digests, and the tables made from them."""


class _Span(Share):
    """The part of one log that a task reads, and the task's number. ``early`` describes the log before it."""

    def __init__(self, share: Share, ranges: list[Range], number: int, early: Digest) -> None:
        super().__init__(share.location, ranges, share.wanted, share.packs)
        self.number = number
        self.early = early


def _spans_of(share: Share, read: _Read, share_bytes: int) -> list[_Span]:
    """The tasks that read one log. If the end of the log and the indexes determine the content of the queues, they read
    only that; the search goes back as far as one task would read.
    """
    begin, early = 0, nothing()
    if isinstance(share, _QueueShare):
        found = _told_from(share, read, share_bytes)
        if found is not None and all(one.counts is not None for one in share.known[: found[2]]):
            begin = found[2]
            early = _told_before(share, begin, read)
        first = share.known[begin].number
        ranges = [one for one in share.ranges if one.segment >= first]
    else:
        ranges = share.ranges
    spans: list[_Span] = []
    taken: list[Range] = []
    for place, one in enumerate(ranges):
        taken.append(one)
        if sum(part.end - part.begin for part in taken) >= share_bytes or place == len(ranges) - 1:
            spans.append(_Span(share, taken, len(spans), early))
            taken, early = [], nothing()
    return spans


def _span_batch(span: _Span, table: str, broker: str, read: _Read, schema: pa.Schema) -> pa.RecordBatch:
    """The row of one span. Where a restarted broker gives the numbers of dropped pages again, another digest begins:
    in one alone nobody could tell whose messages a page had when it was purged.
    """
    make = digest_of if _SPANS[table] == "queues" else pages_of
    parts = [span.early]
    dropped: set[tuple[int, int]] = set()
    for one in span.ranges:
        found = read(one)
        if found is None:
            continue
        more = make(found, span.wanted.records(found))
        if dropped.isdisjoint(more.opened_pages()):
            parts[-1] = joined([parts[-1], more])
        else:
            parts.append(more)
            dropped.clear()
        dropped.update(more.dropped_pages())
    row = {"broker": broker, "span": span.number, "digest": pickle.dumps(parts, pickle.HIGHEST_PROTOCOL)}
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names}], schema=schema)


def added_up(spark: SparkSession, table: str, given: Mapping[str, str]) -> DataFrame:
    """One of the tables, in two steps of Spark. Raises PipelineError for invalid options."""
    options = {**given, "table": table}
    columns = read_options(options).columns
    spans = next(name for name, of in _SPANS.items() if of == table)
    rest = {name: text for name, text in given.items() if name.lower() not in ("table", "columns")}
    rows = spark.read.format("artemis").options(**rest, table=spans).load()

    def made(found: pa.Table) -> pa.Table:
        return rows_of_broker(options, found)

    return rows.groupBy("broker").applyInArrow(made, spark_schema(table, columns))


def rows_of_broker(given: Mapping[str, str], rows: pa.Table) -> pa.Table:
    """The rows of one broker from the rows of its spans."""
    options = read_options(given)
    fold, last_ms = Aggregate(), 0
    for one in _digests(rows):
        fold.take(one)
        last_ms = max(last_ms, one.last_ms)
    schema = arrow_schema(options.table, options.columns)
    broker: str = rows["broker"][0].as_py()
    batch = state_batch(options.table, fold, broker, options.as_of_ms or last_ms, schema, asked(options).takes)
    return pa.Table.from_batches([batch])


def _digests(rows: pa.Table) -> Iterator[Digest]:
    numbers: list[int] = rows["span"].to_pylist()
    for place in sorted(range(len(numbers)), key=numbers.__getitem__):
        yield from pickle.loads(rows["digest"][place].as_py())
