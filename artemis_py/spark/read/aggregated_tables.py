"""Readers of tables that sum up a broker's log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.aggregate import Aggregate, state_batch
from artemis_py.spark.decode.digest import pages_of
from artemis_py.spark.log.log import Listing, Log, Segment
from artemis_py.spark.read.addresses import warn_of_unknown
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.pieces import piece
from artemis_py.spark.read.plan import (
    Share,
    asked,
    bounded,
    depths_told_lsn,
    learn_queues,
    opened,
    settled_listing,
    shares,
)
from artemis_py.spark.read.queue_contents import QueueShare, held, queue_share
from artemis_py.spark.read.spans import SPANS, Span, span_batch, spans_of
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.reading import Names, Wanted
from artemis_py.spark.tables.schema import arrow_schema

_WHOLE: Final = 1 << 62


class AggregateReader(DataSourceReader):
    """A table that Spark cannot assemble from parts: one task for each broker, except for tables that can be split by
    time (``metrics``) and digests.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._table = SPANS.get(options.table, options.table)

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
        if options.table not in SPANS:
            yield whole
            return
        yield from spans_of(whole, partial(piece, log=log, options=options), options.partition_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if not isinstance(partition, Share):
            return
        options = self._options
        schema = arrow_schema(options.table, options.columns)
        with closing(partition.location.open()) as log:
            read = partial(piece, log=log, options=options)
            if isinstance(partition, Span):
                yield span_batch(partition, options.table, log.broker, read, schema)
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
