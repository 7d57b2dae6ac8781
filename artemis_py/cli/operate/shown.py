"""Answers of a broker as a person likes to read them: tables on a terminal, and the same without lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from artemis_py.management.lists.field import EPOCH_MS, NUMBER, AnyKind, Field
from artemis_py.shown import escaped, say
from artemis_py.units import DATE_MAX_MS

_WIDE: Final = 10_000
"""Where no person reads, no line is broken or cut."""
_NOTHING: Final = "-"


def print_list(kind: AnyKind, answer: Mapping[str, Any]) -> None:
    """A page of a list as a table, and how many there are besides."""
    rows: Sequence[Mapping[str, Any]] = answer["data"]
    if rows:
        _print_rows(kind, rows)
    say(_footer(kind, answer, len(rows)))


def print_texts(columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> None:
    """A table of texts; of each column its title, and whether it has numbers."""
    table = _table()
    for title, is_number in columns:
        table.add_column(Text(title), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(escaped(text)) for text in row])
    _console().print(table)


def _print_rows(kind: AnyKind, rows: Sequence[Mapping[str, Any]]) -> None:
    table = _table()
    for name in rows[0]:
        is_number = kind.fields[name].type == NUMBER
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        dates = {name for name in row if kind.fields[name].unit == EPOCH_MS}
        table.add_row(*[_cell(value, EPOCH_MS if name in dates else "") for name, value in row.items()])
    _console().print(table)


def _footer(kind: AnyKind, answer: Mapping[str, Any], shown_count: int) -> str:
    count = answer["count"]
    if shown_count == count:
        return f"{count:,} {kind.one if count == 1 else kind.several}" if count else f"no {kind.one}"
    pages = -(-count // answer["size"])
    return f"{shown_count:,} of {count:,} {kind.several}: page {answer['page']} of {pages} (--page, --size)"


def print_fields(
    answer: Mapping[str, Any],
    kind: AnyKind | None,
    also: Sequence[Field[Any]] = (),
    inside: Mapping[str, AnyKind] = MappingProxyType({}),
) -> None:
    """One thing: a line for each of its fields, with what it means. ``also`` has fields that are of no kind, and
    ``inside`` the kinds of lists, which are tables of their own below.
    """
    units = {field.name: field.unit for field in also}
    table = _table(has_head=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in answer.items():
        if name in inside:
            continue
        field = None if kind is None else kind.fields.get(name)
        if field is None:
            table.add_row(Text(name), _cell(value, units.get(name, "")))
        else:
            table.add_row(Text(name), _cell(value, field.unit), Text(field.sentence, "dim"))
    _console().print(table)
    for name, its_kind in inside.items():
        if answer.get(name):
            say()
            _print_rows(its_kind, [{each: row[each] for each in its_kind.brief} for row in answer[name]])


def print_changed(answer: Mapping[str, Any], kind: AnyKind, given: Sequence[str]) -> None:
    """What became of a thing that was changed: the fields that a list shows, and those that arguments ``given`` with
    these names have set.
    """
    wanted = {*kind.brief, *map(_camel_case, given)}
    print_fields({name: value for name, value in answer.items() if name in wanted}, kind)


def _camel_case(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(map(str.capitalize, others))


def _table(*, has_head: bool = True) -> Table:
    return Table(box=box.SIMPLE_HEAD if has_head else None, show_header=has_head, pad_edge=False, show_edge=False)


def _cell(value: Any, unit: str = "") -> Text:
    if value is None:
        return Text(_NOTHING)
    if isinstance(value, dict):
        return Text("\n".join(f"{escaped(str(name))}: {escaped(str(one))}" for name, one in value.items()) or _NOTHING)
    if isinstance(value, list):
        has_parts = any(isinstance(one, dict) for one in value)
        return Text(("\n" if has_parts else ", ").join(escaped(_item(one)) for one in value) or _NOTHING)
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if unit == EPOCH_MS:
        return Text(_date(value))
    text = f"{value:,}" if isinstance(value, int) else escaped(str(value))
    return Text(f"{text} {unit}" if unit and isinstance(value, int) and value >= 0 else text)


def _date(when_ms: int) -> str:
    """In the time of whoever reads it; 0 is no date."""
    when_s = min(when_ms, DATE_MAX_MS) / 1000
    return f"{datetime.fromtimestamp(when_s).astimezone():%Y-%m-%d %H:%M:%S}" if when_ms > 0 else _NOTHING


def _item(value: Any) -> str:
    """One of several things: its fields that say something."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{name} {each}" for name, each in value.items() if each not in (None, ""))


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)
