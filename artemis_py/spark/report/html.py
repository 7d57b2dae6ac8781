"""A result as one HTML file that needs nothing else: no script, no network, light or dark as the reader likes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from artemis_py.spark.jobs.result import Plot, Result, Table, Text
from artemis_py.spark.report.svg import plot_svg
from artemis_py.spark.report.units import NUMBERS, escaped, shown, time_shown

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1c2330; --faint: #667085; --rule: #dfe3ea; --card: #fff;
  --c0: #2563eb; --c1: #d9480f; --c2: #0f8a5f; --c3: #9333ea; --c4: #b45309; --c5: #0891b2; --c6: #be185d;
  --c7: #52525b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e9ef; --faint: #98a2b3; --rule: #303743;
  --card: #1b2027; --c0: #7aa7ff; --c1: #ff9466; --c2: #4fd1a1; --c3: #c69bff; --c4: #f0b757; --c5: #5fd4ea;
  --c6: #ff8ac0; --c7: #b4bac4; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
.when, .missing, .none { color: var(--faint); margin: 0; }
dl { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; }
dl div { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; padding: .6rem 1rem; }
dt { color: var(--faint); font-size: .85rem; } dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { padding: .4rem .8rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { color: var(--faint); font-weight: 600; white-space: nowrap; } tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } td { overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; padding: 1rem; overflow-x: auto;
  font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
figure { margin: 0; padding: .8rem; background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; }
svg { display: block; width: 100%; height: auto; } .grid { stroke: var(--rule); }
.mark { fill: var(--faint); font-size: 12px; }
.end { text-anchor: end; } .middle { text-anchor: middle; } .bar { fill: var(--c0); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: .4rem 0 0; padding: 0;
  font-size: .85rem; }
.swatch { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin-right: .4rem; }
.note { border-left: 3px solid var(--c4); padding-left: .8rem; margin: .5rem 0; }
"""
_COLOURS: Final = "".join(
    f".line.c{number} {{ stroke: var(--c{number}); }} .dot.c{number} {{ fill: var(--c{number}); }} "
    f".swatch.c{number} {{ background: var(--c{number}); }}\n"
    for number in range(8)
)


def as_html(result: Result, made: datetime) -> str:
    """The whole page. ``made`` is when the job ran, UTC."""
    title = escaped(result.title)
    facts = "".join(
        f"<div><dt>{escaped(column.title)}</dt><dd>{escaped(shown(column.kind, value))}</dd></div>"
        for column, value in result.facts
    )
    when = time_shown(made.astimezone(UTC).replace(microsecond=0))
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="when">artemis-py pipeline {escaped(result.job)}, {when} UTC</p>',
        f"<dl>{facts}</dl>" if facts else "",
        *(f'<p class="note">{escaped(note)}</p>' for note in result.notes),
        *map(_plot, result.plots),
        *map(_text, result.texts),
        *map(_table, result.tables),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}{_COLOURS}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _plot(plot: Plot) -> str:
    return f"<h2>{escaped(plot.title)}</h2><figure>{plot_svg(plot)}</figure>"


def _text(text: Text) -> str:
    return f"<h2>{escaped(text.title)}</h2><pre>{escaped(text.body)}</pre>"


def _table(table: Table) -> str:
    title = f"<h2>{escaped(table.title)}</h2>"
    if not table.rows:
        return f'{title}<p class="none">nothing</p>'
    classes = [' class="number"' if column.kind in NUMBERS else "" for column in table.columns]
    heads = "".join(
        f"<th{css}>{escaped(column.title)}</th>" for column, css in zip(table.columns, classes, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{css}>{escaped(shown(column.kind, value))}</td>"
            for column, css, value in zip(table.columns, classes, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    missing = f'<p class="missing">and {table.missing:,} more, in Parquet</p>' if table.missing else ""
    return (
        f'{title}<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{missing}'
    )
