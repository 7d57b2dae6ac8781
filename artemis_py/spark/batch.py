"""``spark.read.format("artemis")``: plans once, then tasks read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.errors import PipelineError
from artemis_py.spark.filters import Pushed
from artemis_py.spark.fold import Fold
from artemis_py.spark.log import GoneError, Log
from artemis_py.spark.options import ReadOptions
from artemis_py.spark.plan import (
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
from artemis_py.spark.reading import Names, Reading, Wanted
from artemis_py.spark.schema import arrow_schema
from artemis_py.spark.tables.events import event_batches
from artemis_py.spark.tables.messages import message_batches
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.state import ROWS, batch_of
from artemis_py.spark.walk import Piece, Walk, walk

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from artemis_py.storage.scan import Damage

_BATCHES: Final = {"messages": message_batches, "events": event_batches}
_logger = logging.getLogger(__name__)


def reader(options: ReadOptions) -> DataSourceReader:
    """The reader of the table that the options name."""
    return RowReader(options) if options.table in _BATCHES else FoldReader(options)


class RowReader(DataSourceReader):
    """Tables whose rows stand in the log one by one. Spark makes it anew in several processes: nothing is opened before
    ``partitions``.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed = Pushed(options.table)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Every filter narrows what is read as far as it can, and Spark applies it again."""
        for one in filters:
            self._pushed.narrow(one)
            yield one

    def partitions(self) -> list[InputPartition]:
        """A share of the log for each task. Raises PipelineError."""
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        for broker, (place, log) in logs.items():
            wanted = self._pushed.applied(bounded(asked(options), options, broker, list(logs)), broker)
            if wanted is None:
                continue
            listing = settled_listing(log, wanted)
            names = learn_queues(Names(), listing)
            of_messages = options.table == "messages"
            found += shares(place, listing, wanted, names, options.partition_bytes, of_messages=of_messages)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one share."""
        return read_share(partition, self._options)


class FoldReader(DataSourceReader):
    """Tables whose rows sum up a broker's log: one task for each broker."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """A task for each broker, which reads its log from the beginning; for metrics from a time on, from where a
        segment before it tells how deep the queues were. Raises PipelineError.
        """
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        for broker, (place, log) in logs.items():
            wanted = replace(bounded(Wanted(), options, broker, list(logs)), lsn_min=0, time_ms_max=_until(options))
            listing = settled_listing(log, wanted)
            if options.table == "metrics" and options.starting_ms is not None:
                before_ms = options.starting_ms // options.interval_ms * options.interval_ms
                wanted = replace(wanted, lsn_min=depths_told_lsn(log, listing, before_ms))
            names = learn_queues(Names(), listing)
            found += shares(place, listing, wanted, names, _WHOLE, of_messages=False)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one broker."""
        if not isinstance(partition, Share):
            return
        options = self._options
        schema = arrow_schema(options.table, options.columns)
        fold, series = Fold(), Series(options.interval_ms)
        last_ms = 0
        with closing(partition.place.open()) as log:
            for _, found in pieces(partition, log, options):
                wanted = partition.wanted.records(found)
                (series if options.table == "metrics" else fold).take(found, wanted)
                last_ms = max(last_ms, int(found.times_ms[wanted].max(initial=0)))
            broker = log.broker
        takes = asked(options).takes
        if options.table == "metrics":
            series.begin_at(options.starting_ms)
            if options.subscribes:
                series.keep(takes, partition.names)
            yield series.batch(schema, broker, partition.names)
        else:
            rows = ROWS[options.table](fold, broker, options.as_of_ms or last_ms)
            yield batch_of((row for row in rows if takes(row["address"])), schema)


_WHOLE: Final = 1 << 62


def _until(options: ReadOptions) -> int | None:
    """The time at which a sum ends."""
    return options.ending_ms if options.as_of_ms is None else options.as_of_ms


def read_share(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of what one task reads. Raises PipelineError for what is gone or damaged, unless losses are allowed."""
    if not isinstance(partition, Share):  # Spark's stand-in for an empty list
        return
    names = partition.names
    schema = arrow_schema(options.table, options.columns)
    with closing(partition.place.open()) as log:
        for one, found in pieces(partition, log, options):
            reading = Reading(
                found, one.begin, one.segment, log, names, partition.wanted, schema, options.include_body,
                options.rows_max, options.fails_on_loss,
            )  # fmt: skip
            yield from _BATCHES[options.table](reading)


def pieces(share: Share, log: Log, options: ReadOptions) -> Iterator[tuple[Range, Walk]]:
    """The records of what a task reads, piece by piece. Raises PipelineError for what is gone or damaged, unless losses
    are allowed.
    """
    for one in share.ranges:
        try:
            data = log.read(one.segment, one.begin, one.end)
        except GoneError as error:
            if options.fails_on_loss:
                raise PipelineError(f"{error}; {WITH_LOSS}") from None
            _logger.warning("%s; its rows are left out", error)
            continue
        damages: list[Damage] = []
        found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
        check_whole(one, data, damages, options)
        yield one, found


WITH_LOSS: Final = "with failOnDataLoss=false it is left out"


def check_whole(one: Range, data: bytes, damages: list[Damage], options: ReadOptions) -> None:
    """Are all the bytes there, and undamaged? Raises PipelineError, or says so in the log where losses are allowed."""
    problems = [str(damage) for damage in damages]
    if len(data) < one.end - one.begin:
        problems.append(f"segment {one.segment} ends at byte {one.begin + len(data)}, before {one.end}")
    for problem in problems:
        if options.fails_on_loss:
            raise PipelineError(f"{problem}; {WITH_LOSS}")
        _logger.warning("%s; what cannot be read is left out", problem)
