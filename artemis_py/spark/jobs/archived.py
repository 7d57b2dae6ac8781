"""An archive as the input of jobs and programs, as Parquet or as Delta tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.spark.jobs.source import TIME_COLUMNS, JobError, Source, Span, is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.delta import DeltaPlace

PARQUET: Final = 1
DELTA: Final = "delta-1"
"""What ``_archive/state.json`` calls the layouts."""


def hour_of(at_ms: int) -> str:
    """The value of the column ``hour``, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H}"


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
        """Reads Parquet files; dates or hours outside the time span are skipped."""
        wanted = dict.fromkeys((*columns, TIME_COLUMNS[name]))
        return self._frame(spark, name, list(wanted)).select(*columns)

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """The same rows with all columns."""
        return self._frame(spark, name, None)

    def _frame(self, spark: SparkSession, name: str, columns: Sequence[str] | None) -> DataFrame:
        found = self._of_delta(spark, name, columns) if self._is_delta() else self._of_parquet(spark, name)
        return self.span.cut(found, TIME_COLUMNS[name])

    def _is_delta(self) -> bool:
        return layout_of(self.directory) == DELTA

    def _delta(self, name: str) -> DeltaPlace:
        from artemis_py.spark.jobs.delta import DeltaPlace

        return DeltaPlace(f"{self.directory}/{name}", self.storage)

    def _of_delta(self, spark: SparkSession, name: str, columns: Sequence[str] | None) -> DataFrame:
        place = self._delta(name)
        if not place.exists():
            raise self._lacks(name)
        first = None if self.span.from_ms is None else hour_of(self.span.from_ms)
        last = None if self.span.to_ms is None else hour_of(self.span.to_ms)

        def keeps(partition: Mapping[str, Any]) -> bool:
            hour = partition["hour"] or ""
            return (
                (not self.addresses or partition["address"] in self.addresses)
                and (first is None or hour >= first)
                and (last is None or hour <= last)
            )

        return place.frame(spark, columns, keeps)

    def _of_parquet(self, spark: SparkSession, name: str) -> DataFrame:
        from pyspark.sql import functions as F

        where = Path(self.directory) / name
        if not where.is_dir():
            raise self._lacks(name)
        frame = spark.read.schema(archive_schema(spark, where)).parquet(str(where))
        if self.addresses:
            frame = frame.where(F.col("address").isin(*self.addresses))
        for bound, is_kept in ((self.span.from_ms, "__ge__"), (self.span.to_ms, "__le__")):
            if bound is not None:
                day = F.lit(datetime.fromtimestamp(bound / 1000, UTC).date())
                frame = frame.where(getattr(F.col("date"), is_kept)(day))
        return frame

    def _lacks(self, name: str) -> JobError:
        return JobError(f"{self.directory} has no table {name}; artemis-py pipeline archive writes it")


def archive_schema(spark: SparkSession, where: Path) -> str:
    """The columns of an archived table. The address is a text also where all addresses look like numbers."""
    files = next(where.glob("date=*/address=*/batch=*/*.parquet"), None)
    if files is None:
        raise JobError(f"{where} has no Parquet files yet; let artemis-py pipeline archive finish")
    inside = spark.read.parquet(str(files)).schema
    fields = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in inside)
    return f"{fields}, date date, address string, batch string"
