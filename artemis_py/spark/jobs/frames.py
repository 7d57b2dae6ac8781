"""Expressions that several jobs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

ACCURACY: Final = 10_000
"""Accuracy of percentiles: exact up to this many values, beyond that off by at most one rank in this many."""


def at(event: str | Sequence[str], column: str | Column = "timestamp") -> Column:
    """The column's value in rows of these events, and null in others, for aggregation."""
    names = [event] if isinstance(event, str) else list(event)
    value = F.col(column) if isinstance(column, str) else column
    return F.when(F.col("event").isin(names), value)


def ms_between(earlier: str, later: str) -> Column:
    """Milliseconds from one timestamp to another."""
    return F.unix_millis(F.col(later)) - F.unix_millis(F.col(earlier))


def bucket(column: str, seconds: int) -> Column:
    """The beginning of a timestamp's interval of this many seconds."""
    return F.timestamp_seconds(F.floor(F.unix_seconds(F.col(column)) / seconds) * seconds)


def percentiles(column: str, shares: Sequence[float]) -> Column:
    """The percentiles of a column at these shares; null if it has no values."""
    return F.percentile_approx(column, [float(share) for share in shares], ACCURACY)
