"""The result of a job: a few rows that fit on a screen, plots, and DataFrames with everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

TEXT: Final = "text"
COUNT: Final = "count"
BYTES: Final = "bytes"
MS: Final = "ms"
SECONDS: Final = "s"
RATE: Final = "rate"
"""Per second."""
SHARE: Final = "share"
"""Between 0 and 1."""
TIME: Final = "time"
"""A datetime, UTC."""

ZERO: Final = "zero"
GAP: Final = "gap"
JOINED: Final = "joined"
"""What a plot shows for an interval without a point: zero, a gap, or a straight line."""

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
    """Rows for people. ``count`` is the total number; None: only these."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[Any, ...]]
    count: int | None = None

    @property
    def missing(self) -> int:
        """How many rows were not collected."""
        return 0 if self.count is None else max(0, self.count - len(self.rows))


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: its name, and (time in epoch seconds or a number, value) in order."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over time, or named bars."""

    title: str
    kind: str
    """Unit of the values, as of a column."""
    series: Sequence[Series] = ()
    bars: Sequence[tuple[str, float]] = ()
    interval_s: int = 0
    """The distance between two points of a series; 0: there are no intervals."""
    between: str = GAP
    """``ZERO``, ``GAP`` or ``JOINED``."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text to read or copy: a text diagram, a fragment of XML."""

    name: str
    title: str
    body: str


@dataclass(slots=True)
class Result:
    """The result of one job. ``facts`` are single named values; ``notes`` are sentences that the reader needs to
    interpret the rest.
    """

    job: str
    title: str
    facts: Sequence[tuple[Column, Any]] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()
    texts: Sequence[Text] = ()
    notes: Sequence[str] = ()
    frames: Mapping[str, DataFrame] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """The table of this name. Raises KeyError."""
        return {table.name: table for table in self.tables}[name]

    def fact(self, name: str) -> Any:
        """The value of the fact of this name. Raises KeyError."""
        return {column.name: value for column, value in self.facts}[name]


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


def lines(rows: Sequence[tuple[str, float, float]], series_max: int = 8) -> list[Series]:
    """Series of (name, x, y): those with the largest sums, the largest first, each in the order of x."""
    points: dict[str, list[tuple[float, float]]] = {}
    for name, x, y in rows:
        points.setdefault(name, []).append((x, y))
    by_size = sorted(points, key=lambda name: (-sum(y for _, y in points[name]), name))
    return [Series(name, sorted(points[name])) for name in by_size[:series_max]]
