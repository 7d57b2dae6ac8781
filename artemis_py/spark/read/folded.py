"""Readers of tables that sum up a broker's log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.digest import pages_of
from artemis_py.spark.decode.fold import Fold
from artemis_py.spark.log.log import Listing, Log
from artemis_py.spark.read.holdings import QueueShare, held, queue_share
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
from artemis_py.spark.read.spans import SPANS, Span, span_batch, spans_of
from artemis_py.spark.read.subscription import warn_of_unknown
from artemis_py.spark.read.times import TimeShare, time_shares
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.reading import Names, Wanted
from artemis_py.spark.tables.schema import arrow_schema
from artemis_py.spark.tables.state import state_batch

_WHOLE: Final = 1 << 62


class FoldReader(DataSourceReader):
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
        for broker, (location, log) in logs.items():
            wanted = replace(bounded(Wanted(), options, broker, list(logs)), lsn_min=0, time_ms_max=_until(options))
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            if self._table == "metrics" and options.starting_ms is not None:
                before_ms = options.starting_ms // options.interval_ms * options.interval_ms
                wanted = replace(wanted, lsn_min=depths_told_lsn(log, listing, before_ms))
            names = learn_queues(Names(), listing)
            for one in shares(location, listing, wanted, names, _WHOLE, of_messages=False):
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


def _of_pages(share: Share, log: Log, options: ReadOptions) -> Fold:
    fold = Fold()
    for one in share.ranges:
        found = piece(one, log, options)
        if found is not None:
            fold.take(pages_of(found, share.wanted.records(found)))
    return fold


def _until(options: ReadOptions) -> int | None:
    """The end time of a sum."""
    return options.ending_ms if options.as_of_ms is None else options.as_of_ms
