"""An archive as two Delta tables, in a directory or an object store, that other engines read as they are::

    messages/address=orders/hour=2026-01-31T10/part-….parquet   and messages/_delta_log, which says what is there
    events/…

A step is decided by ``move.json`` (``archive_store``), which has the files of both tables; no reader sees them before
they are committed. Each commit has the lsn of its log as the version of a transaction, so it is done once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from artemis_py.spark.jobs.archive_store import MOVE, OWN, Archive, Files
from artemis_py.spark.jobs.archived import DELTA, hour_of
from artemis_py.spark.jobs.delta import DeltaPlace, File, store_errors
from artemis_py.spark.jobs.source import TIME_COLUMNS, JobError, is_url
from artemis_py.spark.log.log import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITIONS: Final = ("address", "hour")
_SETTINGS: Final = {"delta.logRetentionDuration": "interval 7 days"}
"""A continuous archive commits more often than most; the default is thirty days."""


class Written(NamedTuple):
    """The files of a table's next rows."""

    after: int | None
    """What ``DeltaArchive.done`` said before they were read."""
    files: Sequence[File]


class DeltaArchive(Archive):
    """In a directory, or in an object store by its URL, where no lock is: there a second job fails when it commits."""

    FORMAT: ClassVar = DELTA

    def __init__(self, place: str, storage: Mapping[str, str]) -> None:
        self._storage = dict(storage)
        files = ObjectFiles(DeltaPlace(place, storage)) if is_url(place) else Files()
        super().__init__(place, Path(OWN) if is_url(place) else Path(place) / OWN, files)

    def table(self, name: str) -> DeltaPlace:
        """Where a table is."""
        return DeltaPlace(f"{self._place}/{name}", self._storage)

    def add(
        self,
        broker: str,
        lsn: int,
        tables: Sequence[str],
        rows: Callable[[str, int], DataFrame],
        mark: Mark,
        check: Callable[[], None],
    ) -> dict[str, int]:
        """Writes Parquet by address and hour. Each table goes on where its own transactions end: one of them can be
        behind, where another job interfered.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import to_arrow_schema

        written: dict[str, Written] = {}
        for table in tables:
            place, done = self.table(table), self.done(broker, table)
            frame = rows(table, self.archived_lsn(broker) if done is None else done)
            hours = frame.withColumn("hour", F.date_format(TIME_COLUMNS[table], "yyyy-MM-dd'T'HH"))
            place.create(to_arrow_schema(hours.schema, timezone="UTC"), _PARTITIONS, _SETTINGS)
            ordered = hours.repartition(*_PARTITIONS).sortWithinPartitions(*_PARTITIONS, "broker", "offset")
            written[table] = Written(done, place.write(ordered, _PARTITIONS))
        check()
        self.add_files(broker, lsn, written, mark)
        return {table: sum(one.rows for one in part.files) for table, part in written.items()}

    def done(self, broker: str, table: str) -> int | None:
        """Up to which lsn of this broker's log a table says it is; None: it has none of it."""
        return self.table(table).transaction_version(_app(broker))

    def add_files(self, broker: str, lsn: int, written: Mapping[str, Written], mark: Mark) -> None:
        """Commits what was written for each table, which exists."""
        commits = {
            table: {"broker": broker, "from": part.after, "to": lsn, "log": mark, "files": part.files}
            for table, part in written.items()
        }
        self._decide({"commits": commits}, broker, lsn, mark)

    def _carry_out(self, move: Mapping[str, Any]) -> None:
        for table, step in move["commits"].items():
            done = self.done(step["broker"], table)
            if done == step["to"]:
                continue
            if done != step["from"]:
                # Its rows are there in part, and the next step reads those that are not.
                self._files.remove(self._own / MOVE)
                raise JobError(
                    f"another job archives into {self._place}, too: {table} is at lsn {done}, and this step began at "
                    f"{step['from']}. Let only one of them go on; the next run continues where each table is"
                )
            told = {name: step[name] for name in ("broker", "from", "to", "log")}
            files = [File(*one) for one in step["files"]]
            self.table(table).commit(files, _app(step["broker"]), step["to"], {"artemis-py": told})

    def compact(
        self, spark: SparkSession, tables: Sequence[str], before_ms: int, on_step: Callable[[str], None]
    ) -> int:
        """The files of each address and earlier hour into larger ones."""
        compacted = 0
        for table in self._made(tables):
            on_step(f"compacting {table}")
            compacted += self.table(table).compact("hour", hour_of(before_ms))
        return compacted

    def vacuum(self, tables: Sequence[str]) -> int:
        """Removes files of old versions and of killed steps."""
        return sum(self.table(table).vacuum() for table in self._made(tables))

    def size_bytes(self, tables: Sequence[str]) -> int:
        """Of the files of the newest version."""
        return sum(one.size_bytes for table in self._made(tables) for one in self.table(table).files())

    def _made(self, tables: Sequence[str]) -> list[str]:
        return [table for table in tables if self.table(table).exists()]


def _app(broker: str) -> str:
    """The application of its transactions."""
    return f"artemis-py/{broker}"


class ObjectFiles(Files):
    """Those of an object store, which replaces each at once, and has no locks and no directories."""

    def __init__(self, place: DeltaPlace) -> None:
        self._url = place.url
        self._system = place.files_system()

    def lock(self, path: Path) -> IO[bytes] | None:
        """There is none."""
        del path
        return None

    def write(self, path: Path, value: object) -> None:
        """Replaces an object by JSON."""
        data = json.dumps(value, indent=1).encode()
        # With room for all in its buffer: deltalake takes bytes, and without a buffer it is handed something else.
        with (
            store_errors(self._url),
            self._system.open_output_stream(str(path), buffer_size=len(data) + 1) as stream,
        ):
            stream.write(data)

    def read(self, path: Path) -> Any:
        """The JSON of an object; None when there is none."""
        with store_errors(self._url):
            try:
                with self._system.open_input_file(str(path)) as stream:
                    return json.loads(stream.read())
            except FileNotFoundError:
                return None

    def remove(self, path: Path) -> None:
        """Removes an object."""
        with store_errors(self._url):
            self._system.delete_file(str(path))
