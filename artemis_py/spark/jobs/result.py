"""The result of a job: a few rows that fit on a screen, and DataFrames with everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from artemis_py.terminal_output import as_json

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row

TEXT: Final = "text"
COUNT: Final = "count"
BYTES: Final = "bytes"
MS: Final = "ms"
TIME: Final = "time"
"""A datetime, UTC."""

NUMBERS: Final = frozenset({COUNT, BYTES, MS})
"""Kinds that stand at the right of their column."""
ROWS_SHOWN_MAX: Final = 1000
"""The maximum number of collected rows of a table; the DataFrame has the rest."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in the DataFrame, its heading, and the unit of its values."""

    name: str
    title: str
    kind: str = TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for people. ``count`` is the total number; None: only these. ``printed_max`` are printed; None: all."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[Any, ...]]
    count: int | None = None
    printed_max: int | None = 40

    @property
    def missing(self) -> int:
        """How many rows were not collected."""
        return 0 if self.count is None else max(0, self.count - len(self.rows))


@dataclass(slots=True)
class Result:
    """The result of one job. ``facts`` are single named values; ``notes`` are sentences that the reader needs to
    interpret the rest.
    """

    job: str
    title: str
    facts: Sequence[tuple[Column, Any]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    exit_code: int = 0
    """Of the command: 1 for a check that found something."""

    def as_json(self) -> str:
        """One object: ``job``, ``facts`` by name, ``tables`` by name as lists of objects, ``notes``.
        Times are ISO 8601 in UTC; ``missing`` is the number of omitted rows by table.
        """
        tables = {
            table.name: [
                {column.name: value for column, value in zip(table.columns, row, strict=True)} for row in table.rows
            ]
            for table in self.tables
        }
        value = {
            "job": self.job,
            "facts": {column.name: fact for column, fact in self.facts},
            "tables": tables,
            "notes": list(self.notes),
            "missing": {table.name: table.missing for table in self.tables if table.missing},
        }
        return as_json(value, indent=2, default=_plain)

    def write_parquet(self, directory: Path) -> None:
        """Writes each frame to a directory of its name, which is replaced."""
        for name, frame in self.frames.items():
            frame.write.mode("overwrite").parquet(str((directory / name).absolute()))

    def table(self, name: str) -> Table:
        """The table of this name. Raises KeyError."""
        return {table.name: table for table in self.tables}[name]

    def fact(self, name: str) -> Any:
        """The value of the fact of this name. Raises KeyError."""
        return {column.name: value for column, value in self.facts}[name]


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def shown(kind: str, value: Any) -> str:
    """One value for people, by the unit of its column; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, datetime):  # UTC, to the second, or to the millisecond if that is not zero
        text = f"{value:%Y-%m-%d %H:%M:%S}"
        return f"{text}.{value.microsecond // 1000:03}" if value.microsecond else text
    if isinstance(value, str):
        return value
    return f"{value:,}" if kind not in _UNITS else _scaled(value, _UNITS[kind])


_UNITS: Final = {
    BYTES: ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")),
    MS: ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")),
}
"""By kind: so much is one of this unit."""


def _scaled(value: int, units: Sequence[tuple[int, str]]) -> str:
    """A number in the largest unit of which it has at least two, with one digit behind the point."""
    scale, unit = next((one for one in units if value >= 2 * one[0]), units[-1])
    return f"{value:,} {unit}" if scale == 1 else f"{value / scale:,.1f} {unit}"


def in_utc(row: Row) -> dict[str, Any]:
    """A collected row by column, with times in UTC: Spark returns them in the machine's time zone, without a zone."""
    return {name: _value(value) for name, value in row.asDict().items()}


def _value(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def collected(name: str, title: str, columns: Sequence[Column], frame: DataFrame) -> Table:
    """The first rows of a sorted frame as a table; counts the rest if there are more."""
    rows = [
        tuple(map(_value, row)) for row in frame.select(*[column.name for column in columns]).take(ROWS_SHOWN_MAX + 1)
    ]
    if len(rows) <= ROWS_SHOWN_MAX:
        return Table(name, title, columns, rows)
    return Table(name, title, columns, rows[:ROWS_SHOWN_MAX], frame.count())
