"""``spark.read.format("artemis")``: plans once, then tasks read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.log.log import GoneError, Log
from artemis_py.spark.read.addresses import AddressReader, warn_of_unknown
from artemis_py.spark.read.aggregated_tables import AggregateReader
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.pieces import check_planned, excerpt_of, piece
from artemis_py.spark.read.plan import (
    Extract,
    Range,
    Share,
    asked,
    bounded,
    learn_queues,
    opened,
    settled_listing,
    tasks,
)
from artemis_py.spark.tables.events import event_batches
from artemis_py.spark.tables.filters import Pushed
from artemis_py.spark.tables.messages import message_batches
from artemis_py.spark.tables.reading import Names, Reading, Wanted
from artemis_py.spark.tables.schema import arrow_schema
from artemis_py.spark.workers import let_readers_go

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

BATCHES: Final = {"messages": message_batches, "events": event_batches}
"""Functions that make the rows of tables whose rows are single records of the log."""


def reader(options: ReadOptions) -> DataSourceReader:
    """The reader of the table that the options name."""
    if options.table == "addresses":
        return AddressReader(options)
    return RowReader(options) if options.table in BATCHES else AggregateReader(options)


class Pushing:
    """The ``pushFilters`` of a reader, for sessions with and without filter pushdown.

    If ``spark.sql.python.filterPushdown.enabled`` is false, as by default, Spark refuses a reader with its own
    ``pushFilters``, which it detects by ``__func__``. Such a session reads the whole log and applies the filters
    itself.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, pushed: Pushed) -> None:
        self._pushed = pushed

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Every filter narrows the reading as far as possible, and Spark applies it again."""
        for one in filters:
            self._pushed.narrow(one)
            yield one


class RowReader(DataSourceReader):
    """Reads tables whose rows are single records of the log. Spark creates it in several processes: nothing is opened
    before ``partitions``.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed = Pushed(options.table)
        self.pushFilters = Pushing(self._pushed)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        """A share of the log for each task. Raises PipelineError."""
        options = self._options
        logs = opened(options)
        found: list[Extract] = []
        for broker, (_, log) in logs.items():
            wanted = self._pushed.applied(bounded(asked(options), options, broker, list(logs)), broker)
            if wanted is None:
                continue
            listing = settled_listing(log, wanted, options)
            found.append(Extract(log.location, listing, wanted, learn_queues(Names(), listing)))
        warn_of_unknown(options, [one.listing for one in found])
        return [*chain.from_iterable(tasks(found, options, is_repeatable=False))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one share."""
        return read_share(partition, self._options)


def read_share(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one task. Raises PipelineError for removed or damaged data, unless losses are allowed."""
    if not isinstance(partition, Share):  # Spark's stand-in for an empty list
        return
    let_readers_go()
    with closing(partition.location.open()) as log:
        for one in partition.ranges:
            yield from read_range(one, log, partition, options)


def read_range(one: Range, log: Log, share: Share, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one part of a share. Raises PipelineError as ``read_share`` does."""
    part = _excerpt(one, log, share.wanted, options) or _whole(one, log, options)
    if part is None:
        return
    found, positions = part
    schema = arrow_schema(options.table, options.columns)
    reading = Reading(
        found, positions, one.segment, log, share.names, share.wanted, schema, options.include_body, options.rows_max,
        options.fails_on_loss,
    )  # fmt: skip
    yield from BATCHES[options.table](reading)


_Part = tuple[Walk, Callable[[Numbers], Numbers]]
"""Records, and from places among them to offsets in the file."""


def _excerpt(one: Range, log: Log, wanted: Wanted, options: ReadOptions) -> _Part | None:
    """The messages that can be wanted alone; None: all of it has to be read."""
    if options.table != "messages":
        return None
    try:
        found = excerpt_of(log, one, wanted)
    except GoneError:  # told when it is read
        return None
    if found is None:
        return None
    check_planned(one, found.found)
    return found.found, found.positions


def _whole(one: Range, log: Log, options: ReadOptions) -> _Part | None:
    found = piece(one, log, options)
    return None if found is None else (found, lambda places: places + one.begin)
