"""Delta tables, in a directory or an object store, without a jar: tasks write and read their Parquet files with
pyarrow, and the process that plans commits them with deltalake.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from artemis_py.errors import PipelineError
from artemis_py.spark.jobs.archive_store import sync_files
from artemis_py.spark.jobs.source import JobError, is_url

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

_LOG: Final = "_delta_log"
_WRITTEN: Final = "path string, bytes bigint, rows bigint, partition array<string>"
_ROWS_PER_BATCH: Final = 10_000
_BATCH_BYTES: Final = 32 * 1024**2
_TASK_BYTES: Final = 64 * 1024**2
"""So much of its files is read by a task."""
_READ_FEATURES: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_COLOURS: Final = re.compile(r"\x1b\[\d*m")
_OF_STORE: Final = "Error performing "
"""What deltalake says of a request to a store that failed, also where its error is one of Delta."""
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]")


class File(NamedTuple):
    """One data file of a table."""

    path: str
    """Below the table."""
    size_bytes: int
    rows: int
    partition: dict[str, Any]
    """The values of the columns by which the table is partitioned."""


def require_delta() -> None:
    """Raise PipelineError if the extra ``delta`` is not installed."""
    if find_spec("deltalake") is None:
        raise PipelineError(
            "deltalake missing: run in a checkout of artemis_py: pip install '.[spark,delta]' (or with the path of its "
            "wheel instead of the dot)"
        )


@dataclass(frozen=True, slots=True)
class DeltaPlace:
    """Where a Delta table is, or may be: a directory, or a URL such as ``s3://bucket/orders``. ``options`` are those of
    deltalake for its store; what they lack comes from the environment (``AWS_ACCESS_KEY_ID`` …). Picklable: tasks get
    it. Methods raise JobError with what deltalake says.
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict)

    def exists(self) -> bool:
        """Is there a table?"""
        if not is_url(self.url):
            return (Path(self.url) / _LOG).is_dir()
        require_delta()
        from deltalake import DeltaTable

        with store_errors(self.url):
            return bool(DeltaTable.is_deltatable(self.url, dict(self.options)))

    def open(self) -> DeltaTable:
        """The newest version of the table."""
        require_delta()
        from deltalake import DeltaTable

        with store_errors(self.url):
            return DeltaTable(self.url, storage_options=dict(self.options))

    def files_system(self) -> FileSystem:
        """The files below it."""
        require_delta()
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        with store_errors(self.url):
            return PyFileSystem(DeltaStorageHandler(self.url, dict(self.options)))

    # ---- writing ---------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, partition_by: Sequence[str], settings: Mapping[str, str]) -> None:
        """Makes the table, or adds the columns that the one there lacks."""
        require_delta()
        from deltalake import DeltaTable, Schema

        wanted = Schema.from_arrow(schema)
        if not self.exists():
            if not is_url(self.url):
                Path(self.url).mkdir(parents=True, exist_ok=True)
            with store_errors(self.url):
                DeltaTable.create(
                    self.url,
                    wanted,
                    mode="ignore",
                    partition_by=list(partition_by),
                    configuration=dict(settings),
                    storage_options=dict(self.options),
                )
            self._sync_log(-1)
        table = self.open()
        there = {one.name for one in table.schema().fields}
        more = [one for one in wanted.fields if one.name not in there]
        if more:
            before = table.version()
            with store_errors(self.url):
                table.alter.add_columns(more)
            self._sync_log(before)

    def write(self, frame: DataFrame, partition_by: Sequence[str]) -> list[File]:
        """Tasks write the rows of a frame, in its order, into new files, which no reader sees before they are
        committed. Rows of one partition must follow each other within a task.
        """
        rows = frame.mapInArrow(partial(_write, self, tuple(partition_by)), _WRITTEN).collect()
        files = [File(row[0], row[1], row[2], dict(zip(partition_by, row[3], strict=True))) for row in rows]
        self._sync(one.path for one in files)
        return files

    def commit(self, files: Iterable[File], app: str, version: int, told: Mapping[str, Any]) -> None:
        """Shows files to readers, and the version of an application with them: all or nothing, and not beside another
        process that commits one of the same application. ``told`` stands in the table's history.
        """
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction

        now_ms = time.time_ns() // 1_000_000
        added = [
            AddAction(one.path, one.size_bytes, one.partition, now_ms, True, json.dumps({"numRecords": one.rows}))
            for one in files
        ]
        table = self.open()
        before = table.version()
        with store_errors(self.url):
            table.create_write_transaction(
                list(added),
                mode="append",
                schema=table.schema(),
                partition_by=table.metadata().partition_columns,
                commit_properties=CommitProperties(dict(told), app_transactions=[Transaction(app, version)]),
            )
        self._sync_log(before)

    def compact(self, column: str, before: str) -> int:
        """Merges the small files of each partition with a lower value in this column. Returns the number of
        partitions.
        """
        from deltalake import WriterProperties

        table = self.open()
        version, there = table.version(), {one.path for one in self._files(table)}
        with store_errors(self.url):
            done = table.optimize.compact(
                [(column, "<", before)], writer_properties=WriterProperties(compression="ZSTD")
            )
            table.update_incremental()
        self._sync(one.path for one in self._files(table) if one.path not in there)
        self._sync_log(version)
        return int(done["partitionsOptimized"])

    def vacuum(self) -> int:
        """Removes files that no version of the last week has (``delta.deletedFileRetentionDuration``), and those that
        killed tasks left behind. Returns their number.
        """
        table = self.open()
        with store_errors(self.url):
            return len(table.vacuum(dry_run=False, full=True))

    def _sync(self, paths: Iterable[str]) -> None:
        if not is_url(self.url):
            sync_files(Path(self.url), paths)

    def _sync_log(self, before: int) -> None:
        """deltalake does not sync what it writes: here all versions after this one are, and their checkpoints."""
        if is_url(self.url):
            return
        names = ["_last_checkpoint"]
        for version in range(before + 1, self.open().version() + 1):
            names += [f"{version:020}.json", f"{version:020}.checkpoint.parquet"]
        self._sync(f"{_LOG}/{name}" for name in names if (Path(self.url) / _LOG / name).exists())

    # ---- reading ---------------------------------------------------------------------------------

    def transaction_version(self, app: str) -> int | None:
        """The version that ``commit`` last wrote for an application; None without a table, or where there is none."""
        if not self.exists():
            return None
        table = self.open()
        with store_errors(self.url):
            return table.transaction_version(app)

    def files(self) -> list[File]:
        """The data files."""
        return self._files(self.open())

    def _files(self, table: DeltaTable) -> list[File]:
        with store_errors(self.url):  # a table reads of its log what it needs, not all when it is opened
            told = pa.table(table.get_add_actions()).to_pylist()
        return [
            File(unquote(one["path"]), one["size_bytes"], one["num_records"], one.get("partition") or {})
            for one in told
        ]

    def frame(self, spark: SparkSession, columns: Sequence[str] | None = None) -> DataFrame:
        """These columns, or all, of the version that is there now."""
        from pyspark.sql.pandas.types import from_arrow_schema

        table = self.open()
        features = set(table.protocol().reader_features or ()) - _READ_FEATURES
        if features:
            raise JobError(
                f"{self.url} has {', '.join(sorted(features))}, which files read one by one do not show; let its "
                "owner write it without, or name a copy as Parquet"
            )
        whole = pa.schema(table.schema().to_arrow())
        unknown = [name for name in columns or () if name not in whole.names]
        if unknown:
            raise JobError(f"{self.url} has no column {unknown[0]}; it has {', '.join(whole.names)}")
        schema = whole if columns is None else pa.schema([whole.field(name) for name in columns])
        of_tasks = shares(self._files(table))
        told = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        numbers = spark.range(0, len(of_tasks), 1, max(1, len(of_tasks)))
        return numbers.mapInArrow(partial(_read, self, of_tasks, schema), told)


def shares(files: Iterable[File], task_bytes: int = _TASK_BYTES) -> list[list[File]]:
    """What each task reads; files of one partition beside each other."""
    found: list[list[File]] = []
    room = 0
    for one in sorted(files, key=itemgetter(0)):
        if room < one.size_bytes or not found:
            found.append([])
            room = task_bytes
        found[-1].append(one)
        room -= one.size_bytes
    return found


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """What deltalake says, in one line and without its colours, and where to look if it is the store."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as problem:
        text = " ".join(_COLOURS.sub("", str(problem)).replace("↳", "").split())
        if is_url(url) and (isinstance(problem, OSError) or _OF_STORE in text):
            text += ". Look whether the store answers, and accepts its login and the options of storage"
        raise JobError(f"{url}: {text}") from problem


# ---- in tasks --------------------------------------------------------------------------------------------------------
# Files are opened and read in one thread: a Python that ends while a thread of pyarrow asks for bytes is aborted.


def _write(
    place: DeltaPlace, partition_by: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A file for each partition, which is reported when it is whole."""
    from pyarrow.parquet import ParquetWriter

    with store_errors(place.url):
        files = place.files_system()
        for values, run in groupby(_runs(batches, partition_by), itemgetter(0)):
            parts = map(itemgetter(1), run)
            first = next(parts)
            folder = "/".join(
                f"{name}={_ODD.sub('_', str(value))}" for name, value in zip(partition_by, values, strict=True)
            )
            path = f"{folder}/part-{uuid.uuid4().hex}.parquet"
            rows = 0
            with (
                files.open_output_stream(path) as stream,
                ParquetWriter(stream, first.schema, compression="zstd") as writer,
            ):
                for part in chain((first,), parts):
                    writer.write_batch(part)
                    rows += part.num_rows
            size_bytes = files.get_file_info(path).size
            yield pa.RecordBatch.from_pylist(
                [{"path": path, "bytes": size_bytes, "rows": rows, "partition": list(values)}],
                pa.schema(
                    {"path": pa.string(), "bytes": pa.int64(), "rows": pa.int64(), "partition": pa.list_(pa.string())}
                ),
            )


def _runs(
    batches: Iterable[pa.RecordBatch], partition_by: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Pieces whose rows are of one partition, without its columns."""
    for batch in batches:
        data = batch.drop_columns(list(partition_by))
        begin = 0
        for values, run in groupby(zip(*(batch.column(name).to_pylist() for name in partition_by), strict=True)):
            count = sum(1 for _ in run)
            yield values, data.slice(begin, count)
            begin += count


def _read(
    place: DeltaPlace, shares: Sequence[Sequence[File]], schema: pa.Schema, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of the shares with these numbers, of which a task has one."""
    with store_errors(place.url):
        files = place.files_system()
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            yield from read_files(files, shares[number], schema)


def read_files(
    system: FileSystem,
    files: Iterable[File],
    schema: pa.Schema,
    rows_max: int = _ROWS_PER_BATCH,
    left_out: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files below ``system``, at most ``rows_max`` at once. Columns that are ``left_out`` or that a
    file lacks are null.
    """
    from pyarrow.parquet import ParquetFile

    for one in files:
        with system.open_input_file(one.path) as stream:
            opened = ParquetFile(stream, pre_buffer=False)
            there = set(opened.schema_arrow.names) - one.partition.keys() - set(left_out)
            metadata = opened.metadata
            size_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
            count = max(1, min(rows_max, _BATCH_BYTES * metadata.num_rows // max(1, size_bytes)))
            inside = [name for name in schema.names if name in there]
            for batch in opened.iter_batches(count, columns=inside, use_threads=False):
                yield _completed(batch, schema, one.partition)


def _completed(batch: pa.RecordBatch, schema: pa.Schema, partition: Mapping[str, Any]) -> pa.RecordBatch:
    """All columns of the table: of its partition, and null where a file is older than a column."""
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name in batch.schema.names:
            columns.append(batch.column(name).cast(kind))
        elif partition.get(name) is not None:
            columns.append(pa.repeat(pa.scalar(partition[name]).cast(kind), batch.num_rows))
        else:
            columns.append(pa.nulls(batch.num_rows, kind))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
