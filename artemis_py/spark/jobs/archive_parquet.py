"""An archive as Parquet files in a directory, changed so that a kill at any point neither loses nor duplicates
anything::

    messages/date=2026-01-31/address=orders/batch=<broker>-<from>-<to>/part-….parquet     what readers see
    events/…
    _archive/staging-…/…     what is being written, by one process; of no value without move.json

A step is decided by ``move.json`` (``archive_store``), which says which directories move from staging to where. Names
that begin with an underscore are passed over by readers of Parquet.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from artemis_py.spark.jobs.archive_store import OWN, Archive, Files, sync_tree
from artemis_py.spark.jobs.archived import archive_schema
from artemis_py.spark.jobs.source import TIME_COLUMNS, JobError
from artemis_py.spark.log.log import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_BYTES: Final = 64 * 1024**2
"""A directory whose files are smaller than this on average is worth compacting."""
_ROWS_PER_FILE: Final = 5_000_000


class ParquetArchive(Archive):
    """In a directory."""

    FORMAT: ClassVar = 1

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), root / OWN, Files())
        self._root = root
        # Of this process alone: when another one was killed, its Java may go on writing for a moment.
        self._staging = self._own / f"staging-{uuid.uuid4().hex}"

    def open(self) -> None:
        """Also removes what killed processes left in staging."""
        super().open()
        for staging in self._own.glob("staging-*"):
            self._files.remove(staging)

    def add(
        self,
        broker: str,
        lsn: int,
        tables: Sequence[str],
        rows: Callable[[str, int], DataFrame],
        mark: Mark,
        check: Callable[[], None],
    ) -> dict[str, int]:
        """Writes Parquet by date and address."""
        from pyspark.sql import functions as F

        counts: dict[str, int] = {}

        def write(staging: Path) -> None:
            for table in tables:
                frame = rows(table, self.archived_lsn(broker))
                _write(frame.withColumn("date", F.to_date(TIME_COLUMNS[table])), ["date", "address"], staging / table)
                counts[table] = _rows_in(staging / table)
            check()

        self.add_files(broker, lsn, write, mark)
        return counts

    def add_files(self, broker: str, lsn: int, write: Callable[[Path], None], mark: Mark | None = None) -> None:
        """Archives the log after ``archived_lsn(broker)`` up to ``lsn``, where ``mark`` identifies it. ``write`` writes
        it into the given directory, as ``<table>/date=…/address=…/*.parquet``.
        """
        first = self.archived_lsn(broker) + 1
        self._files.remove(self._staging)
        self._staging.mkdir(parents=True)
        write(self._staging)
        _clear(self._staging)
        sync_tree(self._staging)
        name = f"batch={_safe(broker)}-{first:016}-{lsn:016}"
        moves = [[str(leaf), str(leaf / name)] for leaf in _leaves(self._staging)]
        self._decide({"staging": self._staging.name, "moves": moves, "swaps": []}, broker, lsn, mark)

    def compact(
        self, spark: SparkSession, tables: Sequence[str], before_ms: int, on_step: Callable[[str], None]
    ) -> int:
        """All batches of each address and earlier date into one."""
        before = datetime.fromtimestamp(before_ms / 1000, UTC).date().isoformat()
        compacted = 0
        for table in tables:
            for date, partitions in self.small_partitions(table, before).items():
                on_step(f"compacting {table} of {date}: {len(partitions)} addresses")
                self.merge(partitions, lambda into, which: _merge(spark, into, which))
                compacted += len(partitions)
        return compacted

    def small_partitions(self, table: str, before: str | None = None) -> dict[str, list[Path]]:
        """Partitions worth compacting, by date (``2026-01-31``; only before ``before``): directories of one address
        with several small batches.
        """
        found: dict[str, list[Path]] = {}
        for day in sorted((self._root / table).glob("date=*")):
            date = day.name.removeprefix("date=")
            if before is not None and date >= before:
                continue
            for partition in sorted(day.glob("address=*")):
                files = list(partition.glob("batch=*/*.parquet"))
                batches = {file.parent for file in files}
                size_bytes = sum(file.stat().st_size for file in files)
                if len(batches) > 1 and size_bytes < len(files) * SMALL_BYTES:
                    found.setdefault(date, []).append(partition)
        return found

    def merge(self, partitions: Sequence[Path], write: Callable[[Path, Sequence[Path]], None]) -> None:
        """Replaces the batches of each partition by one batch. ``write`` gets a new directory and the partitions
        (``<table>/date=…/address=…``), and writes ``address=…/*.parquet`` of the same names into it.
        """
        self._files.remove(self._staging)
        write(self._staging, partitions)
        _clear(self._staging)
        swaps: list[list[str]] = []
        for partition in partitions:
            batches = sorted(path.name for path in partition.glob("batch=*"))
            name = "batch=compacted-" + hashlib.sha256("\n".join(batches).encode()).hexdigest()[:16]
            made = self._staging / partition.name
            inside = made.with_name(f"made-{len(swaps)}")
            inside.mkdir()
            made.rename(inside / name)
            inside.rename(made)
            swaps.append([partition.name, str(partition.relative_to(self._root)), name])
        sync_tree(self._staging)
        self._decide({"staging": self._staging.name, "moves": [], "swaps": swaps})

    def vacuum(self, tables: Sequence[str]) -> int:
        """Raises JobError: only a table with versions has files that it no longer needs."""
        raise JobError(f"{self._place} is an archive as Parquet, which has nothing to vacuum; leave out --vacuum")

    def size_bytes(self, tables: Sequence[str]) -> int:
        """Of all Parquet files."""
        return sum(path.stat().st_size for table in tables for path in (self._root / table).rglob("*.parquet"))

    def _carry_out(self, move: Mapping[str, Any]) -> None:
        staging = self._own / move["staging"]
        for old, new in move["moves"]:
            staged, place = staging / old, self._root / new
            if staged.is_dir():
                self._files.move(staged, place)
        for made, target, name in move["swaps"]:
            staged, place = staging / made, self._root / target
            if not (place / name).is_dir():
                self._files.swap(staged, place)
        self._files.remove(staging)


def _write(frame: DataFrame, keys: list[str], where: Path) -> None:
    """One file for each partition, unless that would be a very long one; rows in the order of the log."""
    ordered = frame.repartition(*keys).sortWithinPartitions(*keys, "broker", "offset")
    ordered.write.option("maxRecordsPerFile", _ROWS_PER_FILE).partitionBy(*keys).parquet(str(where))


def _merge(spark: SparkSession, into: Path, partitions: Sequence[Path]) -> None:
    """One table and date: all batches of each partition into one."""
    table = partitions[0].parent.parent
    schema = archive_schema(spark, table)
    frame = spark.read.schema(schema).option("basePath", str(table)).parquet(*map(str, partitions))
    _write(frame.drop("batch", "date"), ["address"], into)


def _rows_in(where: Path) -> int:
    """As the files' own footers tell: so each was read once after it was written."""
    from pyarrow import parquet

    return sum(parquet.read_metadata(path).num_rows for path in where.rglob("*.parquet"))


def _clear(staging: Path) -> None:
    """What Spark noted beside its files goes."""
    for folder, _, names in os.walk(staging):
        for name in names:
            if not name.endswith(".parquet") or name.startswith((".", "_")):
                (Path(folder) / name).unlink()


def _leaves(staging: Path) -> list[Path]:
    """``<table>/date=…/address=…`` with files in it, relative to the directory."""
    return sorted({path.parent.relative_to(staging) for path in staging.glob("*/date=*/address=*/*.parquet")})


def _safe(text: str) -> str:
    """A broker's name as part of a directory's name."""
    return "".join(letter if letter.isalnum() or letter in "_." else f"%{ord(letter):02X}" for letter in text)
