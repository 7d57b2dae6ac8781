"""Plots as SVG inside a page: no script, no network; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from artemis_py.spark.jobs.result import Plot, Series
from artemis_py.spark.report.units import escaped, shown

_WIDTH: Final = 860
_HEIGHT: Final = 260
_LEFT: Final = 76
_RIGHT: Final = 16
_TOP: Final = 12
_BOTTOM: Final = 30
_LONE_S: Final = 60.0
_BAR_HEIGHT: Final = 20
_BAR_LEFT: Final = 280
COLOURS: Final = 8
"""The style sheet has so many, as classes ``c0`` and on."""


def plot_svg(plot: Plot) -> str:
    """An ``svg`` element, and the legend of its lines."""
    if plot.bars:
        return _bars(plot)
    series = [each for each in plot.series if each.points]
    return _lines(plot, series) if series else "<p>nothing to plot</p>"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from ``low`` on to at or above ``high``, about so many of them."""
    span = max(high - low, 1e-9)
    raw = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.floor(low / step)
    last = math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _lines(plot: Plot, series: Sequence[Series]) -> str:
    xs = [x for each in series for x, _ in each.points]
    left, right = min(xs), max(xs)
    if left == right:  # a lone moment stands in the middle
        left, right = left - _LONE_S, right + _LONE_S
    span = right - left
    marks = ticks(0.0, max(y for each in series for _, y in each.points) or 1.0)
    top = marks[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (x - left) / span * (_WIDTH - _LEFT - _RIGHT)
        return across, _TOP + (1 - y / top) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escaped(plot.title)}">']
    for mark in marks:
        y = at(left, mark)[1]
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text = escaped(shown(plot.kind, int(mark) if mark == int(mark) else mark))
        parts.append(f'<text class="mark end" x="{_LEFT - 8}" y="{y + 4:.1f}">{text}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = at(left + span * share, 0)[0]
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        label = _time(left + span * share, span)
        parts.append(f'<text class="mark {anchor}" x="{x:.1f}" y="{_HEIGHT - 8}">{label}</text>')
    for number, each in enumerate(series):
        parts.append(_line(each, number, [at(x, y) for x, y in each.points], plot.kind))
    parts.append("</svg>")
    legend = "".join(
        f'<li><span class="swatch c{number % COLOURS}"></span>{escaped(each.name)}</li>'
        for number, each in enumerate(series)
    )
    return "".join(parts) + f'<ul class="legend">{legend}</ul>'


def _line(series: Series, number: int, places: Sequence[tuple[float, float]], kind: str) -> str:
    colour = f"c{number % COLOURS}"
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    line = f'<polyline class="line {colour}" points="{path}"/>'
    if len(places) > 120:
        return line
    name = escaped(series.name)
    dots = (
        f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{name}, {_time(at, 0)}: '
        f"{escaped(shown(kind, value))}</title></circle>"
        for (x, y), (at, value) in zip(places, series.points, strict=True)
    )
    return line + "".join(dots)


def _time(epoch_s: float, span_s: float) -> str:
    moment = datetime.fromtimestamp(epoch_s, UTC)
    return (
        f"{moment:%Y-%m-%d}"
        if span_s > 4 * 86400
        else f"{moment:%m-%d %H:%M}"
        if span_s > 86400
        else f"{moment:%H:%M:%S}"
    )


def _bars(plot: Plot) -> str:
    most = max(value for _, value in plot.bars) or 1.0
    height = len(plot.bars) * _BAR_HEIGHT + 8
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escaped(plot.title)}">']
    for place, (name, value) in enumerate(plot.bars):
        y = 4 + place * _BAR_HEIGHT
        width = value / most * (_WIDTH - _BAR_LEFT - 110)
        cut = name if len(name) <= 42 else name[:41] + "…"
        parts.append(
            f'<text class="mark end" x="{_BAR_LEFT - 8}" y="{y + 13}">'
            f"<title>{escaped(name)}</title>{escaped(cut)}</text>"
        )
        parts.append(
            f'<rect class="bar" x="{_BAR_LEFT}" y="{y}" width="{max(width, 1):.1f}" height="{_BAR_HEIGHT - 4}"/>'
        )
        text = escaped(shown(plot.kind, int(value) if value == int(value) else value))
        parts.append(f'<text class="mark" x="{_BAR_LEFT + width + 6:.1f}" y="{y + 13}">{text}</text>')
    parts.append("</svg>")
    return "".join(parts)
