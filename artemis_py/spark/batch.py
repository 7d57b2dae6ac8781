"""``spark.read.format("artemis")``: plans once, then tasks read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.errors import PipelineError
from artemis_py.spark.addresses import AddressReader
from artemis_py.spark.columns import Numbers
from artemis_py.spark.enough import let_readers_go
from artemis_py.spark.excerpt import excerpt_of
from artemis_py.spark.filters import Pushed
from artemis_py.spark.fold import Fold
from artemis_py.spark.holdings import QueueShare, held, queue_share
from artemis_py.spark.log import GoneError, Listing, Log
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
from artemis_py.spark.subscription import warn_of_unknown
from artemis_py.spark.tables.events import event_batches
from artemis_py.spark.tables.messages import message_batches
from artemis_py.spark.tables.metrics import Series
from artemis_py.spark.tables.state import ROWS, batch_of
from artemis_py.spark.walk import Piece, Walk, walk
from artemis_py.storage import codec

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from artemis_py.storage.scan import Damage

BATCHES: Final = {"messages": message_batches, "events": event_batches}
"""What makes the rows of the tables whose rows stand in the log one by one."""
_logger = logging.getLogger(__name__)


def reader(options: ReadOptions) -> DataSourceReader:
    """The reader of the table that the options name."""
    if options.table == "addresses":
        return AddressReader(options)
    return RowReader(options) if options.table in BATCHES else FoldReader(options)


class Pushing:
    """What Spark calls as ``pushFilters``, in a session in which it does and in one in which it does not.

    Where ``spark.sql.python.filterPushdown.enabled`` is false, as it is by default, Spark refuses a reader whose
    ``pushFilters`` is not its own one, and looks for that at ``__func__``. Such a session reads all of the log and
    applies the filters itself.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, pushed: Pushed) -> None:
        self._pushed = pushed

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Every filter narrows what is read as far as it can, and Spark applies it again."""
        for one in filters:
            self._pushed.narrow(one)
            yield one


class RowReader(DataSourceReader):
    """Tables whose rows stand in the log one by one. Spark makes it anew in several processes: nothing is opened before
    ``partitions``.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed = Pushed(options.table)
        self.pushFilters = Pushing(self._pushed)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        """A share of the log for each task. Raises PipelineError."""
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        listings: list[Listing] = []
        for broker, (place, log) in logs.items():
            wanted = self._pushed.applied(bounded(asked(options), options, broker, list(logs)), broker)
            if wanted is None:
                continue
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            names = learn_queues(Names(), listing)
            of_messages = options.table == "messages"
            found += shares(place, listing, wanted, names, options.partition_bytes, of_messages=of_messages)
        warn_of_unknown(options, listings)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one share."""
        return read_share(partition, self._options)


class FoldReader(DataSourceReader):
    """Tables whose rows sum up a broker's log: one task for each broker. What ``queues`` reads of it depends on how far
    back the oldest message lies that is still there.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """A task for each broker, which reads its log from the beginning; for metrics from a time on, from where a
        segment before it tells how deep the queues were. Raises PipelineError.
        """
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        listings: list[Listing] = []
        for broker, (place, log) in logs.items():
            wanted = replace(bounded(Wanted(), options, broker, list(logs)), lsn_min=0, time_ms_max=_until(options))
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            if options.table == "metrics" and options.starting_ms is not None:
                before_ms = options.starting_ms // options.interval_ms * options.interval_ms
                wanted = replace(wanted, lsn_min=depths_told_lsn(log, listing, before_ms))
            names = learn_queues(Names(), listing)
            planned = shares(place, listing, wanted, names, _WHOLE, of_messages=False)
            found += [queue_share(one, listing) for one in planned] if options.table == "queues" else planned
        warn_of_unknown(options, listings)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one broker."""
        if not isinstance(partition, Share):
            return
        options = self._options
        schema = arrow_schema(options.table, options.columns)
        with closing(partition.place.open()) as log:
            broker = log.broker
            if isinstance(partition, QueueShare):
                fold, last_ms = held(partition, lambda one: piece(one, log, options))
                yield self._state(fold, broker, options.as_of_ms or last_ms, schema)
                return
            fold, series = Fold(), Series(options.interval_ms)
            last_ms = 0
            for one in partition.ranges:
                found = piece(one, log, options)
                if found is None:
                    continue
                wanted = partition.wanted.records(found)
                (series if options.table == "metrics" else fold).take(found, wanted)
                last_ms = max(last_ms, int(found.times_ms[wanted].max(initial=0)))
        if options.table == "metrics":
            series.begin_at(options.starting_ms)
            if options.subscribes:
                series.keep(asked(options).takes, partition.names)
            yield series.batch(schema, broker, partition.names)
        else:
            yield self._state(fold, broker, options.as_of_ms or last_ms, schema)

    def _state(self, fold: Fold, broker: str, as_of_ms: int, schema: pa.Schema) -> pa.RecordBatch:
        takes = asked(self._options).takes
        rows = ROWS[self._options.table](fold, broker, as_of_ms)
        return batch_of((row for row in rows if takes(row["address"])), schema)


_WHOLE: Final = 1 << 62


def _until(options: ReadOptions) -> int | None:
    """The time at which a sum ends."""
    return options.ending_ms if options.as_of_ms is None else options.as_of_ms


def read_share(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of what one task reads. Raises PipelineError for what is gone or damaged, unless losses are allowed."""
    if not isinstance(partition, Share):  # Spark's stand-in for an empty list
        return
    let_readers_go()
    names = partition.names
    schema = arrow_schema(options.table, options.columns)
    with closing(partition.place.open()) as log:
        for one in partition.ranges:
            part = _excerpt(one, log, partition.wanted, options) or _whole(one, log, options)
            if part is None:
                continue
            found, positions = part
            reading = Reading(
                found, positions, one.segment, log, names, partition.wanted, schema, options.include_body,
                options.rows_max, options.fails_on_loss,
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


def piece(one: Range, log: Log, options: ReadOptions) -> Walk | None:
    """The records of a part of a segment. Raises PipelineError for what is gone or damaged, unless losses are allowed;
    then there may be none.
    """
    try:
        data = log.read(one.segment, one.begin, one.end, one.name)
    except GoneError as error:
        if options.fails_on_loss:
            raise PipelineError(f"{error}; {WITH_LOSS}") from None
        _logger.warning("%s; its rows are left out", error)
        return None
    damages: list[Damage] = []
    found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
    check_planned(one, found)
    check_whole(one, data, damages, options)
    return found


WITH_LOSS: Final = "with failOnDataLoss=false it is left out"


def check_planned(one: Range, found: Walk) -> None:
    """Are these the bytes that were planned? A piece begins with the batch of which the index told. Raises
    PipelineError for those of another log, which came to this place since.
    """
    if not len(found.places) or found.places[0]:  # nothing, or damage: told elsewhere
        return
    if found.kinds[0] != codec.BATCH or found.times_ms[0] != one.time_ms:
        raise PipelineError(
            f"segment {one.segment} is not the one that was planned: the log was replaced, or an older copy restored,"
            " while it was read; read it again"
        )


def check_whole(one: Range, data: bytes, damages: list[Damage], options: ReadOptions) -> None:
    """Are all the bytes there, and undamaged? Raises PipelineError, or says so in the log where losses are allowed."""
    problems = [str(damage) for damage in damages]
    if len(data) < one.end - one.begin:
        problems.append(f"segment {one.segment} ends at byte {one.begin + len(data)}, before {one.end}")
    for problem in problems:
        if options.fails_on_loss:
            raise PipelineError(f"{problem}; {WITH_LOSS}")
        _logger.warning("%s; what cannot be read is left out", problem)
