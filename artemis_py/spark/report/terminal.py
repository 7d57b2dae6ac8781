"""A result as text: facts, tables cut to the terminal's width, notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from artemis_py.spark.jobs.result import Result, Table
from artemis_py.spark.report.units import NUMBERS, printable, shown
from artemis_py.table import Column, text_of

_ROWS_MAX: Final = 40

Paint = Callable[[str, str], str]
"""Takes a colour's code and a text (``artemis_py.cli.colour.painter``)."""
_BOLD: Final = "1"
_CYAN: Final = "36"
_YELLOW: Final = "33"


def as_text(result: Result, width: int, paint: Paint, rows_max: int = _ROWS_MAX) -> str:
    """The whole result; further rows of a table are only counted."""
    parts = [paint(_BOLD, result.title)]
    if result.facts:
        parts.append(
            "\n".join(f"  {column.title}: {printable(shown(column.kind, value))}" for column, value in result.facts)
        )
    parts += [f"{paint(_CYAN, text.title)}\n\n{printable(text.body.rstrip(), kept=chr(10))}" for text in result.texts]
    parts += [_table(table, width, paint, rows_max) for table in result.tables]
    if result.notes:
        parts.append("\n".join(paint(_YELLOW, f"note: {note}") for note in result.notes))
    return "\n\n".join(parts) + "\n"


def _table(table: Table, width: int, paint: Paint, rows_max: int) -> str:
    title = paint(_CYAN, table.title)
    if not table.rows:
        return f"{title}\n  nothing"
    places = [index for index in range(len(table.columns)) if _says_something(table, index)]
    heads = [table.columns[index] for index in places]
    columns = [Column(head.title, is_number=head.kind in NUMBERS, is_cut=head.kind not in NUMBERS) for head in heads]
    cells = [
        [printable(shown(head.kind, row[index])) for head, index in zip(heads, places, strict=True)]
        for row in table.rows[:rows_max]
    ]
    head, *lines = text_of(columns, cells, width - 2).splitlines()
    lines.insert(0, paint(_BOLD, head))
    rest = len(table.rows) - len(cells) + table.missing
    if rest:
        lines.append(f"… and {rest:,} more; --html, --parquet and --json show them")
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _says_something(table: Table, index: int) -> bool:
    """A column without a value is left out, and so is the broker's name where there is only one."""
    values = {row[index] for row in table.rows}
    if table.columns[index].name == "broker":
        return len(values) > 1
    return any(value not in (None, "") for value in values)
