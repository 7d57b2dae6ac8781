"""``spark.read.format("artemis").option("archive", …)``: an archive as Parquet or as Delta tables, read as the log is.
Dates, hours and addresses that nobody wants are not opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.columns import Mask, Numbers
from artemis_py.spark.jobs import delta
from artemis_py.spark.jobs.archive_store import OWN, STATE, Files
from artemis_py.spark.jobs.archived import DELTA, hour_of, layout_of
from artemis_py.spark.jobs.delta import DeltaPlace, File, store_errors
from artemis_py.spark.jobs.source import TIME_COLUMNS, JobError, is_url
from artemis_py.spark.read.batch import Pushing
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import asked, lsn_of
from artemis_py.spark.tables.filters import Pushed
from artemis_py.spark.tables.reading import Wanted
from artemis_py.spark.tables.schema import arrow_schema
from artemis_py.spark.workers import let_readers_go

_NO_ADDRESS: Final = "__HIVE_DEFAULT_PARTITION__"
_FOR_EVER: Final = (1 << 63) - 1


class Share(InputPartition):
    """The files that a task reads."""

    def __init__(self, files: Sequence[File], wanted: Wanted) -> None:
        super().__init__(None)
        self.files = files
        self.wanted = wanted


class ArchiveReader(DataSourceReader):
    """Reads ``messages``, ``events`` or ``addresses``."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.archive is not None
        self._options = options
        self._table = "messages" if options.table == "addresses" else options.table
        self._place = options.archive.rstrip("/")
        self._pushed = Pushed(self._table)
        if options.table != "addresses":
            self.pushFilters = Pushing(self._pushed)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        """Files for each task. Raises JobError where there is no archive."""
        self._check_brokers()
        wanted = self._pushed.narrowed(asked(self._options))
        files = [one for one in self._files() if _has(one.partition, wanted)]
        shares = [files] if self._options.table == "addresses" else delta.shares(files, self._options.partition_bytes)
        return [Share(share, wanted) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if not isinstance(partition, Share):  # Spark's stand-in for an empty list
            return
        let_readers_go()
        if self._options.table == "addresses":
            yield self._addresses(partition)
            return
        wanted = partition.wanted
        schema = arrow_schema(self._table, self._options.columns)
        # What decides which rows are wanted is read, too.
        names = dict.fromkeys((*schema.names, "offset", "broker", "address", TIME_COLUMNS[self._table], "timestamp"))
        whole = arrow_schema(self._table, list(names))
        left_out = () if self._options.include_body else ("value",)
        for batch in self._batches(partition.files, whole, left_out):
            mask = self._mask(batch, wanted)
            if mask.any():
                yield batch.filter(pa.array(mask)).select(schema.names)

    # ---- files -----------------------------------------------------------------------------------

    def _files(self) -> list[File]:
        layout = layout_of(self._place)
        if layout == DELTA:
            delta.require_delta()
            place = DeltaPlace(self._where, self._options.storage)
            if place.exists():
                return place.files()
        elif layout is not None:
            return [_file(path, Path(self._where)) for path in Path(self._where).glob("date=*/*/*/*.parquet")]
        if is_url(self._place) or layout is not None:
            raise JobError(f"{self._place} has no table {self._table}; artemis-py pipeline archive writes it")
        raise JobError(f"{self._place} is not an archive; artemis-py pipeline archive makes one")

    def _batches(
        self, files: Sequence[File], schema: pa.Schema, left_out: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these files below the table."""
        if layout_of(self._place) == DELTA:
            with store_errors(self._where):
                system = DeltaPlace(self._where, self._options.storage).files_system()
                yield from delta.read_files(system, files, schema, self._options.rows_max, left_out)
            return
        from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

        system = SubTreeFileSystem(str(Path(self._where).absolute()), LocalFileSystem())
        yield from delta.read_files(system, files, schema, self._options.rows_max, left_out)

    def _check_brokers(self) -> None:
        """Raises PipelineError for offsets of a broker that the archive does not have."""
        for option, offsets in (("startingOffsets", self._options.starting), ("endingOffsets", self._options.ending)):
            if not isinstance(offsets, str):
                for broker in offsets:
                    lsn_of(offsets, broker, [*self._brokers()], option)

    def _brokers(self) -> Mapping[str, int]:
        """Up to which lsn the archive has the log of each broker."""
        if is_url(self._place):
            from artemis_py.spark.jobs.archive_delta import ObjectFiles

            state = ObjectFiles(DeltaPlace(self._place, self._options.storage)).read(Path(OWN, STATE))
        else:
            state = Files().read(Path(self._place, OWN, STATE))
        return {} if state is None else state["brokers"]

    @property
    def _where(self) -> str:
        return f"{self._place}/{self._table}"

    # ---- rows ------------------------------------------------------------------------------------

    def _mask(self, batch: pa.RecordBatch, wanted: Wanted) -> Mask:
        """Which rows the options select. Conditions of Spark only narrow it, and Spark applies them again."""
        times_ms = _epoch_ms(batch.column(TIME_COLUMNS[self._table]))
        addresses = pa.array(batch.column("address")).dictionary_encode()
        codes = addresses.indices.fill_null(len(addresses.dictionary)).to_numpy(zero_copy_only=False)
        mask: Mask = np.ones(batch.num_rows, np.bool_)
        if not wanted.takes_all:
            mask &= wanted.taken(codes, [*addresses.dictionary.to_pylist(), None], times_ms)
        mask &= (times_ms >= (wanted.time_ms_min or 0)) & (times_ms <= _or_for_ever(wanted.time_ms_max))
        offsets = batch.column("offset").to_numpy(zero_copy_only=False)
        mask &= (offsets >= wanted.lsn_min) & (offsets <= _or_for_ever(wanted.lsn_max))
        for bounds, begins in ((self._options.starting, True), (self._options.ending, False)):
            for broker, lsn in {} if isinstance(bounds, str) else bounds.items():
                outside = offsets <= lsn if begins else offsets > lsn
                mask &= ~(outside & pc.equal(batch.column("broker"), broker).fill_null(False).to_numpy(False))
        return mask

    def _addresses(self, share: Share) -> pa.RecordBatch:
        """Each address of each broker once. Only an end needs the columns that say which rows are before it."""
        names = ["broker", "address"]
        has_end = share.wanted.time_ms_max is not None or not isinstance(self._options.ending, str)
        schema = arrow_schema("messages", [*names, "offset", TIME_COLUMNS["messages"]] if has_end else names)
        found: set[tuple[str, str]] = set()
        for batch in self._batches(share.files, schema):
            rows = batch.filter(pa.array(self._mask(batch, share.wanted))) if has_end else batch
            found.update(zip(*_distinct(rows.select(names)).to_pydict().values(), strict=True))
        rows = [{"broker": broker, "address": address} for broker, address in sorted(found)]
        return pa.RecordBatch.from_pylist(rows, schema=arrow_schema("addresses", self._options.columns))


def _file(path: Path, where: Path) -> File:
    """A file of a table as Parquet. Spark writes what a name of a directory cannot have as ``%`` and two digits."""
    date, address, *_ = path.relative_to(where).parts
    name = unquote(address.removeprefix("address="))
    partition = {"date": date.removeprefix("date="), "address": None if name == _NO_ADDRESS else name}
    return File(path.relative_to(where).as_posix(), path.stat().st_size, 0, partition)


def _has(partition: Mapping[str, Any], wanted: Wanted) -> bool:
    """May a file of this date or hour, and address, have rows that are wanted?"""
    address = partition["address"]
    if not wanted.takes_all and (address is None or not wanted.takes(address)):
        return False
    when = partition.get("hour") or partition.get("date")
    if when is None:
        return True
    first, last = (None if at_ms is None else hour_of(at_ms) for at_ms in (wanted.time_ms_min, wanted.time_ms_max))
    return (first is None or when >= first[: len(when)]) and (last is None or when <= last[: len(when)])


def _epoch_ms(column: pa.Array) -> Numbers:
    found: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return found


def _or_for_ever(number: int | None) -> int:
    return _FOR_EVER if number is None else number


def _distinct(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([])
