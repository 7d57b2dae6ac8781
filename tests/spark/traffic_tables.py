"""The tables of simulated traffic as a source for jobs, and what its ledger says, worked out with plain loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from artemis_py.spark.jobs.source import TIME_COLUMNS, Source, Span
from tests.spark.traffic import Life, Sent, SimulatedTraffic

if TYPE_CHECKING:
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


class Counted(Frames):
    """Counts how often all rows of a table are read."""

    def __init__(self, spark: SparkSession, tables: dict[str, DataFrame]) -> None:
        super().__init__(tables)
        self._rows = {name: spark.sparkContext.accumulator(0) for name in tables}

    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """From memory, past a counter."""
        frame, rows = super().table(spark, name, columns), self._rows[name]

        def counted(row: Row) -> Row:
            rows.add(1)
            return row

        return spark.createDataFrame(frame.rdd.map(counted), frame.schema)

    def passes(self) -> dict[str, float]:
        """For each table."""
        return {name: rows.value / self.tables[name].count() for name, rows in self._rows.items()}


def lives(world: SimulatedTraffic, queue: str) -> Iterator[tuple[Sent, Life]]:
    """Every message of a queue with what the queue did with it."""
    for message in world.sent:
        if queue in message.lives:
            yield message, message.lives[queue]


def all_lives(world: SimulatedTraffic) -> Iterator[tuple[Sent, str, Life]]:
    """Every message in every queue."""
    for message in world.sent:
        for queue, life in message.lives.items():
            yield message, queue, life


def percentile(values: Sequence[int], share: float) -> int | None:
    """The least value at or below which this share of all values lies."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def rows_of(table: object) -> list[dict[str, object]]:
    """A result's table as dictionaries."""
    names = [column.name for column in table.columns]  # type: ignore[attr-defined]
    return [dict(zip(names, row, strict=True)) for row in table.rows]  # type: ignore[attr-defined]
