"""Readers of tables that sum up a broker's log."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.aggregate import Aggregate, state_batch
from artemis_py.spark.decode.digest import Digest, digest_of, joined, nothing, pages_of
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
from artemis_py.spark.read.queue_contents import QueueShare, Read, held, queue_share, told_before, told_from
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.reading import Names, Wanted
from artemis_py.spark.tables.schema import arrow_schema, spark_schema

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
            yield from time_shares(share, log, listing, options.interval_ms, options.partition_bytes)
            return
        whole = queue_share(share, listing) if self._table == "queues" else share
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
            if isinstance(partition, TimeShare):
                yield self._metrics(partition, log, schema)
                return
            if isinstance(partition, QueueShare):
                fold, last_ms = held(partition, read)
            else:
                fold, last_ms = _of_pages(partition, log, options), 0
            as_of_ms = options.as_of_ms or last_ms
            yield state_batch(options.table, fold, log.broker, as_of_ms, schema, asked(options).takes)

    def _metrics(self, share: TimeShare, log: Log, schema: pa.Schema) -> pa.RecordBatch:
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


# ---- time spans ------------------------------------------------------------------------------------------------------
#
# Splits the table ``metrics`` into time spans: each task makes the rows of its own intervals.
#
# A task starts with a segment that begins before its first interval and records the queue depths, as each segment of a
# log with retention does. So it needs nothing before that, and the segment in which two tasks meet is read by both.


class TimeShare(Share):
    """The part of one log that a task reads, and its intervals: those that begin from ``begin_ms`` on and before
    ``end_ms``; None: no bound.
    """

    def __init__(self, share: Share, segments: list[Segment], begin_ms: int | None, end_ms: int | None) -> None:
        numbers = {one.number for one in segments}
        ranges = [one for one in share.ranges if one.segment in numbers]
        super().__init__(share.location, ranges, share.wanted, share.packs)
        self.begin_ms = begin_ms
        self.end_ms = end_ms


def time_shares(share: Share, log: Log, listing: Listing, interval_ms: int, share_bytes: int) -> list[TimeShare]:
    """The tasks that read one log; a single one if the segments' times are not in order."""
    numbers = {one.segment for one in share.ranges}
    segments = [one for one in listing.segments if one.number in numbers]
    if not all((one.last_ms or 0) <= (behind.first_ms or 0) for one, behind in pairwise(segments)):
        return [TimeShare(share, segments, None, None)]
    found: list[TimeShare] = []
    begin, begin_ms, filled = 0, None, 0
    for place, one in enumerate(segments):
        time_ms = (one.first_ms or 0) // interval_ms * interval_ms
        if filled >= share_bytes and (begin_ms is None or time_ms > begin_ms):
            before = sum(one.blocks[0][2] < time_ms for one in segments[begin:place])
            meeting = _meeting(segments[begin : begin + before], log, listing, time_ms)
            if meeting is not None:
                found.append(TimeShare(share, segments[begin : begin + before], begin_ms, time_ms))
                begin, begin_ms = begin + meeting, time_ms
                filled = sum(each.size_bytes for each in segments[begin:place])
        filled += one.size_bytes
    found.append(TimeShare(share, segments[begin:], begin_ms, None))
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


def _spans_of(share: Share, read: Read, share_bytes: int) -> list[_Span]:
    """The tasks that read one log. If the end of the log and the indexes determine the content of the queues, they read
    only that; the search goes back as far as one task would read.
    """
    begin, early = 0, nothing()
    if isinstance(share, QueueShare):
        found = told_from(share, read, share_bytes)
        if found is not None and all(one.counts is not None for one in share.known[: found[2]]):
            begin = found[2]
            early = told_before(share, begin, read)
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


def _span_batch(span: _Span, table: str, broker: str, read: Read, schema: pa.Schema) -> pa.RecordBatch:
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
