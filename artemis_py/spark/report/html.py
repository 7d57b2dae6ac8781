"""A result as one self-contained HTML file: no script, no network, light or dark as the reader prefers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.spark.jobs.result import Column, Plot, Result, Table, Text
from artemis_py.spark.report.captions import PLOTS, TABLES
from artemis_py.spark.report.style import style_sheet
from artemis_py.spark.report.svg import plot_svg
from artemis_py.spark.report.units import NUMBERS, escaped, rate_shown, shown, time_shown, time_span, time_words
from artemis_py.spark.report.words import broken

_LONG_LINES: Final = 25
"""Longer texts come after the tables: texts to copy follow texts to read."""
_DENSE_ABOVE: Final = 10
"""Tables with more columns are set smaller, to fit a screen."""
_SAME_NAME: Final = "Each queue has the name of its address."


def as_html(result: Result, made: datetime) -> str:
    """The whole page. ``made`` is when the job ran, UTC."""
    title = escaped(result.title)
    facts = "".join(
        f"<div><dt>{escaped(column.title)}</dt><dd>{broken(shown(column.kind, value))}</dd></div>"
        for column, value in result.facts
    )
    when = time_shown(made.astimezone(UTC).replace(microsecond=0))
    parts = [
        f"<header><h1>{broken(result.title)}</h1>",
        f'<p class="when">artemis-py pipeline {escaped(result.job)}, {broken(when)} UTC. All times are UTC.</p>',
        "</header>",
        "<main>",
        f"<dl>{facts}</dl>" if facts else "",
        *(f'<p class="note">{broken(note)}</p>' for note in result.notes),
        *(_plot(result.job, plot) for plot in result.plots),
        *(_text(text) for text in result.texts if not _is_long(text)),
        *(_table(result.job, table) for table in result.tables),
        *(_text(text) for text in result.texts if _is_long(text)),
        "</main>",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style_sheet()}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _section(title: str, about: str, body: str) -> str:
    said = f'<p class="about">{broken(about)}</p>' if about else ""
    return f"<section><h2>{escaped(title)}</h2>{said}{body}</section>"


def _wide(title: str, body: str) -> str:
    """What may be wider than the screen: it scrolls within itself, by the keyboard, too."""
    return f'<div class="card wide" role="region" tabindex="0" aria-label="{escaped(title)}">{body}</div>'


def _plot(job: str, plot: Plot) -> str:
    about = PLOTS.get(job, "")
    if plot.bars:
        return _section(plot.title, about, _bars(plot))
    points = [x for series in plot.series for x, _ in series.points]
    if points:
        about = f"{about} {time_span(min(points), max(points) + plot.interval_s)}{_interval(plot.interval_s)}"
    drawn, _, legend = plot_svg(plot, f"{plot.title}. {about}".strip()).partition("<ul")
    below = f"<ul{legend}" if legend else ""
    figure = f'<figure class="wide" role="region" tabindex="0" aria-label="{escaped(plot.title)}">{drawn}</figure>'
    return _section(plot.title, about.strip(), f'<div class="card">{figure}{below}</div>')


def _interval(interval_s: int) -> str:
    if not interval_s:
        return "."
    return f", in intervals of {time_words(interval_s)}."


def _bars(plot: Plot) -> str:
    most = max(value for _, value in plot.bars) or 1.0
    items = "".join(
        f'<li><span class="name">{broken(name)}</span><span class="much">'
        f'<span class="bar" style="--share:{value / most:.4f}"></span>'
        f'<span class="value">{escaped(rate_shown(plot.kind, value))}</span></span></li>'
        for name, value in plot.bars
    )
    return f'<ol class="card bars" aria-label="{escaped(plot.title)}">{items}</ol>'


def _is_long(text: Text) -> bool:
    return text.body.count("\n") > _LONG_LINES


def _text(text: Text) -> str:
    return _section(text.title, "", _wide(text.title, f"<pre>{escaped(text.body)}</pre>"))


def _table(job: str, table: Table) -> str:
    about = TABLES.get((job, table.name), "")
    if not table.rows:
        return _section(table.title, about, '<p class="none">nothing</p>')
    places = shown_columns(table)
    if _is_same_name(table):
        about = f"{about} {_SAME_NAME}".strip()
    columns = [table.columns[place] for place in places]
    heads = "".join(f'<th scope="col"{_css(column)}>{escaped(column.title)}</th>' for column in columns)
    rows = "".join(
        f"<tr>{''.join(_cell(column, row[place]) for column, place in zip(columns, places, strict=True))}</tr>"
        for row in table.rows
    )
    missing = f'<p class="missing">and {table.missing:,} more, in Parquet</p>' if table.missing else ""
    dense = ' class="dense"' if len(columns) > _DENSE_ABOVE else ""
    body = f"<table{dense}><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return _section(table.title, about, _wide(table.title, body) + missing)


def shown_columns(table: Table) -> list[int]:
    """The columns with information: not those without values, nor a single broker, nor an address that always equals
    the queue's name.
    """
    hidden = {"address"} if _is_same_name(table) else set()
    texts = [column for column in table.columns if column.kind not in NUMBERS]
    if len(texts) > 1 and len(set(_values(table, "broker"))) == 1:
        hidden.add("broker")
    kept = [
        place
        for place, column in enumerate(table.columns)
        if column.title not in hidden and any(row[place] not in (None, "") for row in table.rows)
    ]
    return kept or list(range(len(table.columns)))


def _is_same_name(table: Table) -> bool:
    addresses, queues = _values(table, "address"), _values(table, "queue")
    return bool(addresses) and addresses == queues


def _values(table: Table, title: str) -> Sequence[Any]:
    place = next((place for place, column in enumerate(table.columns) if column.title == title), None)
    return [] if place is None else [row[place] for row in table.rows]


def _css(column: Column) -> str:
    return ' class="number"' if column.kind in NUMBERS else ""


def _cell(column: Column, value: Any) -> str:
    text = shown(column.kind, value)
    inside = escaped(text) if column.kind in NUMBERS else broken(text)
    return f"<td{_css(column)}>{inside}</td>"
