"""Chooses the default length of intervals by the span of the log, so that a short log is not a single bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from artemis_py.spark.jobs.source import Source

INTERVALS_MAX: Final = 120
"""The maximum number of intervals in a plot: more cannot be distinguished."""
DEFAULT_S: Final = 60
"""The default if a source does not know its span."""
_STEPS_S: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip


def interval_for(span_s: float) -> int:
    """The shortest round interval, in seconds, of which at most ``INTERVALS_MAX`` cover this span."""
    return next((step for step in _STEPS_S if span_s <= step * INTERVALS_MAX), _days(span_s))


def interval_of(source: Source, interval_s: int | None) -> int:
    """The requested interval, else one that suits the source's time range."""
    if interval_s is not None:
        return interval_s
    times = source.times_ms()
    return DEFAULT_S if times is None else interval_for((times[1] - times[0]) / 1000)


def _days(span_s: float) -> int:
    return 86_400 * (1 + int(span_s // (86_400 * INTERVALS_MAX)))
