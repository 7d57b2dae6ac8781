"""Answers of a broker as a person likes to read them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from artemis_py.management.listing import EPOCH_MS, NUMBER, AnyKind, Field
from artemis_py.terminal_output import BOLD, escaped, painter, say
from artemis_py.text_table import Cell, Column, print_table
from artemis_py.units import DATE_MAX_MS

_NOTHING: Final = "-"


def print_list(kind: AnyKind, answer: Mapping[str, Any]) -> None:
    """A page of a list as a table, and how many there are besides."""
    rows: Sequence[Mapping[str, Any]] = answer["data"]
    if rows:
        _print_rows(kind, rows)
    say(_footer(kind, answer, len(rows)))


def _print_rows(kind: AnyKind, rows: Sequence[Mapping[str, Any]]) -> None:
    dates = {name for name in rows[0] if kind.fields[name].unit == EPOCH_MS}
    print_table(
        [Column(name, is_number=kind.fields[name].type == NUMBER) for name in rows[0]],
        [[_cell(value, EPOCH_MS if name in dates else "") for name, value in row.items()] for row in rows],
    )


def _footer(kind: AnyKind, answer: Mapping[str, Any], shown_count: int) -> str:
    count = answer["count"]
    if shown_count == count:
        return f"{count:,} {kind.one if count == 1 else kind.several}" if count else f"no {kind.several}"
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
    rows: list[tuple[str, Cell, str]] = []
    for name, value in answer.items():
        if name in inside:
            continue
        field = None if kind is None else kind.fields.get(name)
        if field is None:
            rows.append((name, _cell(value, units.get(name, "")), ""))
        else:
            rows.append((name, _cell(value, field.unit), field.sentence))
    print_table([Column(style="bold"), Column(), Column(style="dim")], rows)
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


def _cell(value: Any, unit: str = "") -> Cell:
    if value is None:
        return Cell(_NOTHING)
    if isinstance(value, dict):
        return Cell([f"{name}: {one}" for name, one in value.items()] or _NOTHING)
    if isinstance(value, list):
        has_parts = any(isinstance(one, dict) for one in value)
        items = [_item(one) for one in value]
        return Cell((items if has_parts else ", ".join(items)) or _NOTHING)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if unit == EPOCH_MS:
        return Cell(_date(value))
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return Cell(f"{text} {unit}" if unit and isinstance(value, int) and value >= 0 else text)


def _date(when_ms: int) -> str:
    """In the time of whoever reads it; 0 is no date."""
    when_s = min(when_ms, DATE_MAX_MS) / 1000
    return f"{datetime.fromtimestamp(when_s).astimezone():%Y-%m-%d %H:%M:%S}" if when_ms > 0 else _NOTHING


def _item(value: Any) -> str:
    """One of several things: its fields that say something."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{name} {each}" for name, each in value.items() if each not in (None, ""))


# ---- reasons ---------------------------------------------------------------------------------------------------------
#
# Reasons as a person reads them: the word and the sentence, the setting with its line, and what helps.


def print_reasons(answer: Mapping[str, Any]) -> None:
    """A paragraph for each reason."""
    rows: Sequence[Mapping[str, Any]] = answer["data"]
    paint = painter(sys.stdout)
    told: set[tuple[str, str]] = set()
    for place, row in enumerate(rows):
        if place:
            say()
        about = f"{escaped(row['about'])}: " if row["about"] else ""
        say(f"{paint(BOLD, row['reason'])}  {about}{escaped(row['sentence'])}")
        if row["setting"]:
            say(f"  setting  {row['setting']} = {escaped(row['value'])}  ({escaped(row['place'])})")
        if row["remedy"] and (row["reason"], row["remedy"]) not in told:
            say(f"  remedy   {escaped(row['remedy'])}")
        told.add((row["reason"], row["remedy"]))
