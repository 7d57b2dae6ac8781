"""Round marks for axes, for values and for times."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from artemis_py.spark.jobs.result import BYTES, COUNT, MS, RATE, SECONDS

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_STEPS_S: Final = (
    1, 2, 5, 10, 15, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY,
)  # fmt: skip
_SCALES: Final[dict[str, tuple[tuple[float, float, str], ...]]] = {
    MS: ((2 * 3_600_000, 3_600_000, " h"), (120_000, 60_000, " min"), (2_000, 1000, " s"), (0, 1, " ms")),
    SECONDS: ((2 * _HOUR, _HOUR, " h"), (2 * _MINUTE, _MINUTE, " min"), (0, 1, " s")),
    BYTES: ((1024**3, 1024**3, " GiB"), (1024**2, 1024**2, " MiB"), (1024, 1024, " KiB"), (0, 1, " B")),
    RATE: ((0, 1, "/s"),),
}
"""By kind: from which highest value on, so much is one of this unit."""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers from ``low`` to at least ``high``."""
    span = max(high - low, 1e-9)
    raw = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.floor(low / step)
    last = math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def value_marks(kind: str, highest: float) -> list[tuple[float, str]]:
    """Values from 0 to at least the highest, with labels in one unit; counts are whole numbers."""
    scales = _SCALES.get(kind, ((0, 1, ""),))
    _, scale, unit = next(one for one in scales if highest >= one[0])
    marks = ticks(0.0, highest / scale or 1.0)
    if kind == COUNT and marks[-1] < len(marks):
        marks = [float(number) for number in range(math.ceil(highest or 1.0) + 1)]
    step = marks[1] - marks[0]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(mark * scale, f"{mark:,.{digits}f}{unit}") for mark in marks]


def time_marks(left_s: float, right_s: float, count: int = 6) -> list[tuple[float, str]]:
    """About ``count`` round times between two, in UTC; the date where a day begins."""
    step = next((step for step in _STEPS_S if (right_s - left_s) / step <= count), _STEPS_S[-1])
    first = math.ceil(left_s / step) * step
    moments = [first + index * step for index in range(int((right_s - first) // step) + 1)]
    return [(moment, _clock(moment, step)) for moment in moments]


def _clock(moment_s: float, step_s: int) -> str:
    moment = datetime.fromtimestamp(moment_s, UTC)
    if step_s >= _DAY:
        return f"{moment:%Y-%m-%d}"
    if moment_s % _DAY == 0:
        return f"{moment:%m-%d}"
    return f"{moment:%H:%M:%S}" if step_s < _MINUTE else f"{moment:%H:%M}"
