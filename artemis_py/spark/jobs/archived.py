"""An archive as the input of jobs and programs, as Parquet or as Delta tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.spark.jobs.source import DATE_MAX_MS, TIME_COLUMNS, JobError, Source, Span, is_url
from artemis_py.spark.shared_options import STORAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.delta import DeltaPlace

PARQUET: Final = 1
DELTA: Final = "delta-1"
"""What ``_archive/state.json`` calls the layouts."""


def hour_of(at_ms: int) -> str:
    """The value of the column ``hour``, in UTC."""
    return f"{datetime.fromtimestamp(min(at_ms, DATE_MAX_MS) / 1000, UTC):%Y-%m-%dT%H}"


def layout_of(place: Path | str) -> int | str | None:
    """Parquet or Delta; None: nothing is archived yet. In an object store there is only Delta."""
    if is_url(place):
        return DELTA
    try:
        return json.loads((Path(place) / "_archive" / "state.json").read_text("utf-8"))["format"]  # type: ignore[no-any-return]
    except (FileNotFoundError, NotADirectoryError):
        return None


@dataclass(frozen=True, slots=True)
class ArchiveTables(Source):
    """An archive made by the job ``archive``: a directory, or the URL of one in an object store, with options of
    deltalake for it in ``storage``.
    """

    directory: Path | str
    span: Span = field(default_factory=Span)
    addresses: tuple[str, ...] = ()
    """Only these addresses; empty: all."""
    storage: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Checks that the archive exists."""
        if self._is_delta():
            from artemis_py.spark.jobs.delta import require_delta

            require_delta()
            is_there = any(self._delta(name).exists() for name in TIME_COLUMNS)
        else:
            is_there = (Path(self.directory) / "_archive").is_dir()
        if not is_there:
            raise JobError(f"{self.directory} is not an archive; artemis-py pipeline archive makes one")

    def extent(self) -> str:
        """The first and the last date, or hour."""
        if self._is_delta():
            places = [place for place in map(self._delta, TIME_COLUMNS) if place.exists()]
            parts = sorted({hour for place in places for one in place.files() if (hour := one.partition["hour"])})
        else:
            parts = sorted(day.name.removeprefix("date=") for day in Path(self.directory).glob("*/date=*"))
        return f"the archive, which goes from {parts[0]} to {parts[-1]}" if parts else "the archive, which is empty"

    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """Reads with the data source ``artemis``, which opens no files of other addresses, dates and hours."""
        wanted = dict.fromkeys((*columns, TIME_COLUMNS[name]))
        return self._frame(spark, name, columns=",".join(wanted)).select(*columns)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """The same rows with all columns."""
        return self._frame(spark, name, includeHeaders="true")

    def _frame(self, spark: SparkSession, name: str, **more: str) -> DataFrame:
        if not (self._delta(name).exists() if self._is_delta() else (Path(self.directory) / name).is_dir()):
            raise JobError(f"{self.directory} has no table {name}; artemis-py pipeline archive writes it")
        options = {"archive": str(self.directory), "table": name, **more}
        options |= {f"{STORAGE}{key}": text for key, text in self.storage.items()}
        if self.addresses:
            options["subscribe"] = ",".join(self.addresses)
        if self.span.from_ms is not None:
            options["startingTimestamp"] = str(self.span.from_ms)
        if self.span.to_ms is not None:
            options["endingTimestamp"] = str(self.span.to_ms)
        frame = spark.read.format("artemis").options(**options).load()
        return self.span.cut(frame, TIME_COLUMNS[name])

    def _is_delta(self) -> bool:
        return layout_of(self.directory) == DELTA

    def _delta(self, name: str) -> DeltaPlace:
        from artemis_py.spark.jobs.delta import DeltaPlace

        return DeltaPlace(f"{self.directory}/{name}", self.storage)


def archive_schema(spark: SparkSession, where: Path) -> str:
    """The columns of an archived table. The address is a text also where all addresses look like numbers."""
    files = next(where.glob("date=*/address=*/batch=*/*.parquet"), None)
    if files is None:
        raise JobError(f"{where} has no Parquet files yet; let artemis-py pipeline archive finish")
    inside = spark.read.parquet(str(files)).schema
    fields = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in inside)
    return f"{fields}, date date, address string, batch string"
