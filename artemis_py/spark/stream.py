"""``spark.readStream.format("artemis")``: offsets are places in the log, so a range of them always has the same rows.

One process of Spark's plans a query as long as it runs; the methods that touch a log are called there alone, but for
``read``. An offset is ``{"<broker>": lsn}``: everything up to and including it has been planned. Under ``#from`` it
tells where its batch begins: Spark forgets where the first batch of a query began, and asks for the initial offset
again when that batch has to run again, which by then may be another one. What retention took before it was read is
counted under ``#lost`` where losses are allowed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from artemis_py.errors import PipelineError
from artemis_py.spark.batch import read_share
from artemis_py.spark.log import Listing, Log, Place
from artemis_py.spark.options import ReadOptions
from artemis_py.spark.plan import asked, learn_queues, opened, shares, start_lsn
from artemis_py.spark.reading import Names, Wanted
from artemis_py.spark.walk import Piece, walk
from artemis_py.storage import codec

if TYPE_CHECKING:
    from artemis_py.storage.scan import Damage

LOST: Final = "#lost"
FROM: Final = "#from"
_REFRESHES_PER_TTL: Final = 4
_CURSORS_LSNS_MAX: Final = 64
"""So little that is new is looked at before it becomes a batch."""
_logger = logging.getLogger(__name__)
Offset = dict[str, Any]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes it in several processes: nothing is opened before an offset is asked for."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._logs: dict[str, tuple[Place, Log]] = {}
        self._names: dict[str, Names] = {}
        self._target: dict[str, int] | None = None
        """Where a run with ``availableNow`` ends."""
        self._cursors: dict[str, tuple[int, float]] = {}
        """What was told to each broker, and when."""
        self._cursors_alone: dict[str, tuple[int, int]] = {}
        """Between which lsns of each there is nothing but cursors that moved."""

    # ---- offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:
        """Where a new query begins."""
        logs = self._opened()
        return {broker: start_lsn(log, self._options, list(logs)) for broker, (_, log) in logs.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options allow in one batch."""
        options = self._options
        if options.offsets_max is not None:
            return ReadMaxRows(options.offsets_max)
        return ReadAllAvailable() if options.bytes_max is None else ReadMaxBytes(options.bytes_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next batch goes. Raises PipelineError when something behind ``start`` is gone."""
        end: Offset = {}
        begins: dict[str, int] = {}
        lost: dict[str, int] = dict(start.get(LOST, {}))
        listings = {broker: log.listing(self._begin(start, broker)) for broker, (_, log) in self._opened().items()}
        room = _Room(self._options, limit, len(listings))
        for broker, listing in listings.items():
            begin = self._begin(start, broker)
            gone = listing.first_lsn - 1 - begin
            if gone > 0:
                if broker in start:
                    self._lose(broker, begin, listing)
                    lost[broker] = lost.get(broker, 0) + gone
                begin = listing.first_lsn - 1
            begins[broker] = begin
            top = listing.end_lsn
            if self._target is not None:
                top = min(top, self._target.get(broker, top))
            if self._is_cursors_alone(broker, listing, begin, top):
                top = begin
            end[broker] = max(begin, room.end_of(listing, begin, top))
            self._keep_cursor(broker, begin)
        if all(start.get(broker) == lsn for broker, lsn in end.items()):
            return start
        return {**end, FROM: begins, **({LOST: lost} if lost else {})}

    def _is_cursors_alone(self, broker: str, listing: Listing, begin: int, top: int) -> bool:
        """Is what is new nothing but cursors that moved? This query's own one writes a record when a batch is done, and
        that must not be the next batch.
        """
        if self._options.cursor is None or not 0 < top - begin <= _CURSORS_LSNS_MAX:
            return False
        if self._cursors_alone.get(broker) == (begin, top):
            return True
        place, log = self._opened()[broker]
        wanted = Wanted().between(begin + 1, top)
        for share in shares(place, listing, wanted, Names(), self._options.partition_bytes, of_messages=False):
            for one in share.ranges:
                damages: list[Damage] = []
                data = log.read(one.segment, one.begin, one.end)
                found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
                if damages or not np.isin(found.kinds[wanted.records(found)], (codec.BATCH, codec.CURSOR)).all():
                    return False
        self._cursors_alone[broker] = begin, top
        return True

    def reportLatestOffset(self) -> Offset:
        """How far the logs go, for the query's progress."""
        return {broker: log.listing(1 << 62).end_lsn for broker, (_, log) in self._opened().items()}

    def prepareForTriggerAvailableNow(self) -> None:
        """The run ends at what there is now."""
        self._target = {broker: log.listing(1 << 62).end_lsn for broker, (_, log) in self._opened().items()}

    def _begin(self, start: Mapping[str, Any], broker: str) -> int:
        """A broker that came to the options later is read from its beginning."""
        self._check_brokers(start)
        return int(start.get(broker, 0))

    def _check_brokers(self, offset: Mapping[str, Any]) -> None:
        for broker in offset:
            if broker not in (FROM, LOST) and broker not in self._opened():
                raise PipelineError(
                    f"the query's checkpoint is of broker {broker}, and there is {', '.join(self._opened())}: name it"
                    " with option broker, or start with a new checkpoint"
                )

    def _lose(self, broker: str, begin: int, listing: Listing) -> None:
        gone = f"offsets {begin + 1} to {listing.first_lsn - 1} of broker {broker}"
        if self._options.fails_on_loss:
            raise PipelineError(
                f"{gone} are not in the log any more: retention has removed them before this query read them. Keep more"
                " (journal-retention-directory), name a cursor, or go on without them with failOnDataLoss=false"
            )
        _logger.warning("%s are lost: retention has removed them; they are counted under %s", gone, LOST)

    # ---- batches ---------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of one batch. It is the same batch however often it is planned. Raises PipelineError."""
        self._check_brokers(end)
        begins = end.get(FROM, start)
        found: list[InputPartition] = []
        for broker, (place, log) in self._opened().items():
            begin, top = int(begins.get(broker, 0)), int(end.get(broker, 0))
            self._move_cursor(broker, begin)
            if top > begin:
                found += self._shares(place, log, begin, top)
        return found

    def _shares(self, place: Place, log: Log, begin: int, top: int) -> list[InputPartition]:
        listing = log.listing(begin)
        if listing.end_lsn < top:
            raise PipelineError(
                f"the log of broker {log.broker} ends at offset {listing.end_lsn}, and this query has planned up to"
                f" {top}: it is another log, or an older copy; start with a new checkpoint"
            )
        if listing.first_lsn > begin + 1:
            self._lose(log.broker, begin, listing)
        names = self._learned(log, listing)
        options = self._options
        wanted = asked(options).between(begin + 1, top)
        of_messages = options.table == "messages"
        return [*shares(place, listing, wanted, names, options.partition_bytes, of_messages=of_messages)]

    def _learned(self, log: Log, listing: Listing) -> Names:
        """Queues are named where they were made: before a query's first batch all indexes are looked at once."""
        names = self._names.get(log.broker)
        if names is None:
            names = self._names[log.broker] = Names()
            listing = log.listing()
        return learn_queues(names, listing)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_share(partition, self._options)

    # ---- cursors ---------------------------------------------------------------------------------

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is done: the brokers may forget it."""
        for broker in self._opened():
            if broker in end:
                self._move_cursor(broker, int(end[broker]))

    def _move_cursor(self, broker: str, lsn: int) -> None:
        if self._options.cursor is None or self._cursors.get(broker, (-1, 0.0))[0] >= lsn:
            return
        self._tell_cursor(broker, lsn)

    def _keep_cursor(self, broker: str, begin: int) -> None:
        """A query that finds nothing new still needs what it has not read, and a new one what it will read."""
        known = self._cursors.get(broker)
        if known is None:
            self._move_cursor(broker, begin)
        elif time.monotonic() - known[1] > self._options.cursor_ttl_s / _REFRESHES_PER_TTL:
            self._tell_cursor(broker, known[0])

    def _tell_cursor(self, broker: str, lsn: int) -> None:
        assert self._options.cursor is not None
        self._opened()[broker][1].set_cursor(self._options.cursor, lsn, self._options.cursor_ttl_s)
        self._cursors[broker] = lsn, time.monotonic()

    def _opened(self) -> dict[str, tuple[Place, Log]]:
        if not self._logs:
            self._logs = opened(self._options)
        return self._logs


class _Room:
    """How much one batch may take of each log; the brokers share it evenly."""

    def __init__(self, options: ReadOptions, limit: ReadLimit, brokers: int) -> None:
        is_limited = not isinstance(limit, ReadAllAvailable)
        self._offsets = _share(options.offsets_max, brokers) if is_limited else None
        self._bytes = _share(options.bytes_max, brokers) if is_limited else None

    def end_of(self, listing: Listing, begin: int, top: int) -> int:
        """The last lsn of a batch that begins behind ``begin`` and ends at ``top`` or before."""
        if self._offsets is not None:
            top = min(top, begin + self._offsets)
        return top if self._bytes is None else min(top, _lsn_at(listing, begin, self._bytes))


def _share(whole: int | None, parts: int) -> int | None:
    return None if whole is None else max(1, whole // max(1, parts))


def _lsn_at(listing: Listing, begin: int, size_bytes: int) -> int:
    """The lsn about so many bytes behind another one: within a block lsns are taken to be equally long."""
    left = float(size_bytes)
    lsn = begin
    for segment in listing.segments:
        ends = [(offset, low) for offset, low, _ in segment.blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
        for (offset, low, _), (end, behind) in zip(segment.blocks, ends, strict=True):
            if behind - 1 <= begin:
                continue
            bytes_per_lsn = max(1.0, (end - offset) / max(1, behind - low))
            first = max(low, begin + 1)
            taken = (behind - first) * bytes_per_lsn
            if taken >= left:
                return max(begin + 1, first - 1 + int(left / bytes_per_lsn))
            left -= taken
            lsn = behind - 1
    return lsn
