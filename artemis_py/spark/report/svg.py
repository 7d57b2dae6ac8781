"""Draws lines over time as SVG inside a page: no script, no network; the page's style sheet sets colours and dashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from artemis_py.spark.jobs.result import JOINED, ZERO, Plot, Series
from artemis_py.spark.report.axes import time_marks, value_marks
from artemis_py.spark.report.units import escaped, rate_shown
from artemis_py.spark.report.words import broken

_WIDTH: Final = 1000
_HEIGHT: Final = 290
_LEFT: Final = 80
_RIGHT: Final = 36
_TOP: Final = 12
_BOTTOM: Final = 34
_LONE_S: Final = 60.0
_DOTS_MAX: Final = 400
_RING: Final = 3.0
COLOURS: Final = 8
"""The number of colours in the style sheet, as classes ``c0`` and so on, each with its own dashes, so that overlapping
lines are all visible.
"""

Point = tuple[float, float]


def plot_svg(plot: Plot, label: str = "") -> str:
    """An ``svg`` element and the legend of its lines. ``label`` describes it in words."""
    series = [each for each in plot.series if each.points]
    if not series:
        return '<p class="none">nothing to plot</p>'
    return _lines(plot, series, label or plot.title) + _legend(series)


def runs(series: Series, between: str, step_s: float) -> list[list[tuple[float, float]]]:
    """The pieces in which a series is drawn. An interval without a value is 0 for counts (``ZERO``) and a gap for
    unknown values (``GAP``).
    """
    found: list[list[tuple[float, float]]] = [[]]
    for x, y in series.points:
        before = found[-1][-1][0] if found[-1] else x
        if step_s and between != JOINED and x - before > 1.5 * step_s:
            if between == ZERO:
                found[-1] += [(before + step_s, 0.0), (x - step_s, 0.0)]
            else:
                found.append([])
        found[-1].append((x, y))
    return found


def equals(series: Sequence[Series]) -> list[str]:
    """For each series the name of the first one with the same values, or nothing."""
    first: dict[tuple[tuple[float, float], ...], str] = {}
    return ["" if (name := first.setdefault(tuple(one.points), one.name)) == one.name else name for one in series]


def _lines(plot: Plot, series: Sequence[Series], label: str) -> str:
    xs = [x for each in series for x, _ in each.points]
    left, right = min(xs), max(xs)
    if left == right:  # a lone moment stands in the middle
        left, right = left - _LONE_S, right + _LONE_S
    span = right - left
    marks = value_marks(plot.kind, max(y for each in series for _, y in each.points))
    top = marks[-1][0]

    def at(x: float, y: float) -> Point:
        across = _LEFT + (x - left) / span * (_WIDTH - _LEFT - _RIGHT)
        return across, _TOP + (1 - y / top) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escaped(label)}">']
    for value, text in marks:
        y = at(left, value)[1]
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="mark end" x="{_LEFT - 8}" y="{y + 4:.1f}">{escaped(text)}</text>')
    foot = _HEIGHT - _BOTTOM
    for moment, text in time_marks(left, right):
        x = at(moment, 0)[0]
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{foot}" y2="{foot + 5}"/>')
        parts.append(f'<text class="mark middle" x="{x:.1f}" y="{foot + 20}">{text}</text>')
    crowd: Counter[Point] = Counter()
    for number, each in enumerate(series):
        parts += _line(plot, each, number, at, crowd)
    return "".join([*parts, "</svg>"])


def _line(plot: Plot, series: Series, number: int, at: object, crowd: Counter[Point]) -> list[str]:
    assert callable(at)
    colour = f"c{number % COLOURS}"
    parts = []
    for run in runs(series, plot.between, plot.interval_s):
        places = [at(x, y) for x, y in run]
        if len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline class="line {colour}" points="{path}"/>')
        else:  # nothing leads to it: it is seen by itself, as a ring around those that are there already
            x, y = places[0]
            ring = _RING * (1 + crowd[places[0]])
            crowd[places[0]] += 1
            parts.append(f'<circle class="ring {colour}" cx="{x:.1f}" cy="{y:.1f}" r="{ring:.1f}"/>')
    if len(series.points) > _DOTS_MAX:
        return parts
    name = escaped(series.name)
    for moment, value in series.points:
        x, y = at(moment, value)
        told = f"{name}, {_moment(moment)}: {escaped(rate_shown(plot.kind, value))}"
        parts.append(f'<circle class="spot" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{told}</title></circle>')
    return parts


def _moment(epoch_s: float) -> str:
    return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M:%S}"


def _legend(series: Sequence[Series]) -> str:
    items = []
    for number, (each, same) in enumerate(zip(series, equals(series), strict=True)):
        sample = f'<svg class="sample" viewBox="0 0 34 10" aria-hidden="true">{_sample(number)}</svg>'
        note = f' <span class="same">(as {broken(same)})</span>' if same else ""
        items.append(f"<li>{sample}<span>{broken(each.name)}{note}</span></li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _sample(number: int) -> str:
    return f'<polyline class="line c{number % COLOURS}" points="1,5 33,5"/>'
