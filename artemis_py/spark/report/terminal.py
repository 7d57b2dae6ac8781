"""A result as text: facts, tables cut to the terminal's width, notes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

from artemis_py.spark.jobs.result import Result, Table
from artemis_py.spark.report.units import NUMBERS, printable, shown

_GAP: Final = "  "
_ROWS_MAX: Final = 40
_WIDTH_MIN: Final = 8
"""The minimum width to which a text column is cut on a narrow terminal."""

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
    columns = [index for index in range(len(table.columns)) if _says_something(table, index)]
    kinds = [table.columns[index].kind for index in columns]
    cells = [
        [printable(shown(kind, row[index])) for kind, index in zip(kinds, columns, strict=True)]
        for row in table.rows[:rows_max]
    ]
    heads = [table.columns[index].title for index in columns]
    widths = [max(map(text_width, column)) for column in zip(heads, *cells, strict=True)]
    _narrow(widths, kinds, width - 2)
    lines = [_line(heads, widths, kinds)]
    lines[0] = paint(_BOLD, lines[0])
    lines += [_line(row, widths, kinds) for row in cells]
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


def _narrow(widths: list[int], kinds: Sequence[str], room: int) -> None:
    """Takes from the widest column of texts until the line fits, or no column of texts has anything left to give."""
    while sum(widths) + len(_GAP) * (len(widths) - 1) > room:
        texts = [place for place, kind in enumerate(kinds) if kind not in NUMBERS and widths[place] > _WIDTH_MIN]
        if not texts:
            return
        widths[max(texts, key=lambda place: widths[place])] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[str]) -> str:
    return _GAP.join(_cell(*each) for each in zip(cells, widths, kinds, strict=True))


def _cell(text: str, width: int, kind: str) -> str:
    if text_width(text) > width:
        text = _cut(text, width - 1) + "…"
    blanks = " " * (width - text_width(text))
    return blanks + text if kind in NUMBERS else text + blanks


def _cut(text: str, width: int) -> str:
    while text_width(text) > width:
        text = text[:-1]
    return text


def text_width(text: str) -> int:
    """How many places a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_char_width(character) for character in text)


def _char_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
