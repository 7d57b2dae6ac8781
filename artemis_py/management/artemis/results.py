"""Answers of operations as Artemis' beans return them: many lists are JSON in a text, with texts as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from artemis_py.management.artemis.signatures import Signature
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Download, Lines, Result

_HUMP: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")


@dataclass(frozen=True, slots=True, eq=False)
class RowsInText:
    """A text that has rows as JSON, made while it is sent."""

    pieces: Iterator[str]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list, made while it is sent, some values at a time."""

    pieces: Iterator[list[Any]]


def value_of(signature: Signature, result: Result) -> Any:
    """The answer: a value of JSON, ``Items`` or ``RowsInText``."""
    returns, key = signature.returns, signature.key
    if returns == "void":
        return None
    if isinstance(result, Selection):
        if returns.startswith("["):
            return Items(result.rows())
        if returns == "java.lang.String":
            return RowsInText(_list(result) if key == "data" else _page(result))
        return result.count
    answer: Any = result if key is None or isinstance(result, Download | Lines) else result[key]
    if returns == "boolean":
        return True if key is None else bool(answer)
    if returns == "java.lang.String" and not isinstance(answer, str):
        return compact_json(
            {_kebab(name): value for name, value in answer.items()} if isinstance(answer, dict) else answer
        )
    return answer


def _kebab(name: str) -> str:
    """A name as Artemis writes it in the JSON of a queue: ``max-consumers``."""
    return _HUMP.sub(lambda hump: f"-{hump[0].lower()}", name)


def _page(selection: Selection[Any]) -> Iterator[str]:
    yield '{"data":['
    separator = ""
    for rows in selection.rows():
        yield separator + ",".join(compact_json({name: text_of(value) for name, value in row.items()}) for row in rows)
        separator = ","
    yield f"],{compact_json({'count': selection.count, **selection.extra})[1:]}"


def _list(selection: Selection[Any]) -> Iterator[str]:
    yield "["
    separator = ""
    for rows in selection.rows():
        yield separator + ",".join(compact_json(selection.kind.as_artemis(row)) for row in rows)
        separator = ","
    yield "]"


def compact_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(value: Any) -> str:
    """A value as a text, as Java writes it; empty for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
