"""Tables that are there already as a source for jobs, and what jobs return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from artemis_py.spark.jobs.source import TIME_COLUMNS, Source, Span

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass
class Frames(Source):
    """Tables that are there already."""

    tables: dict[str, DataFrame]
    span: Span = field(default_factory=Span)

    def check(self) -> None:
        """They are here."""

    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """From memory."""
        return self.span.cut(self.tables[name], TIME_COLUMNS[name]).select(*columns)


@dataclass
class Counted(Frames):
    """Counts how many rows of each table are read."""

    rows: dict[str, Accumulator[int]] = field(default_factory=dict)

    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """From memory, past a counter."""
        frame, rows = super().table(spark, name, columns), self.rows[name]

        def counted(row: Row) -> Row:
            rows.add(1)
            return row

        return spark.createDataFrame(frame.rdd.map(counted), frame.schema)


def rows_of(table: object) -> list[dict[str, object]]:
    """A result's table as dictionaries."""
    names = [column.name for column in table.columns]  # type: ignore[attr-defined]
    return [dict(zip(names, row, strict=True)) for row in table.rows]  # type: ignore[attr-defined]
