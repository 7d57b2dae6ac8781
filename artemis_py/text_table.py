"""The one printer of tables for people: columns as wide as their texts, and on a terminal no wider than that.

Rich knows how wide letters are, and where to break. It is imported when there is a table to print, because that takes a
tenth of a second, and most commands print none.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from artemis_py.terminal_output import escaped, say_made

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_WIDE: Final = 10_000
"""Where no person reads, no line is broken or cut."""
_CUT_WIDTH_MIN: Final = 8


class Column(NamedTuple):
    """A column. Without any heading a table has no line of them. ``is_number``: to the right, and never broken.
    ``is_cut``: what is too long is cut, and not broken into lines.
    """

    heading: str = ""
    is_number: bool = False
    is_cut: bool = False
    style: str = ""


class Cell(NamedTuple):
    """A text with a style of Rich, such as ``bold``. Several texts are lines one below the other."""

    text: str | Sequence[str]
    style: str = ""


Row = Sequence[str | Cell]


def print_table(columns: Sequence[Column], rows: Iterable[Row], *, indent: int = 0) -> None:
    """Print a table on standard output, ``indent`` blanks from the left; in colour, and as wide as that, on a terminal
    only.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    console.width -= indent
    for line in _lines(console, table_of(columns, rows)):
        say_made(" " * indent + line)


def text_of(columns: Sequence[Column], rows: Iterable[Row], width: int = _WIDE, *, has_colours: bool = False) -> str:
    """A table of at most this width as text, without a line end after its last line."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        color_system="standard" if has_colours else None,
        force_terminal=has_colours,
        no_color=False,
    )
    return "\n".join(_lines(console, table_of(columns, rows)))


def _lines(console: Console, table: Table) -> list[str]:
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def table_of(columns: Sequence[Column], rows: Iterable[Row]) -> Table:
    """The table as Rich has it, to be a part of something larger."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None,
        show_header=any(column.heading for column in columns),
        header_style="bold",
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for column in columns:
        table.add_column(
            Text(escaped(column.heading)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="ellipsis" if column.is_cut else "fold",
            min_width=_CUT_WIDTH_MIN if column.is_cut else None,
            style=column.style,
        )
    for row in rows:
        table.add_row(*[_text(cell, column) for cell, column in zip(row, columns, strict=True)])
    return table


def _text(cell: str | Cell, column: Column) -> Text:
    from rich.text import Text

    text, style = cell if isinstance(cell, Cell) else (cell, "")
    lines = [text] if isinstance(text, str) else text
    return Text("\n".join(map(escaped, lines)), style, no_wrap=column.is_cut or None)
