"""Values for clients of Jolokia: limits, inner paths, and JSON in pieces, so that no answer is in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from artemis_py.management.artemis.java import Items, RowsInText, compact_json
from artemis_py.management.jolokia.request import Options

Item = TypeVar("Item")
_ITEMS_PER_PIECE: Final = 50


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """An object, made while it is sent, some entries at a time."""

    pieces: Iterator[list[tuple[str, Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A value that is JSON already, because many entries share it."""

    text: str


def limited(value: Any, options: Options, depth: int = 0) -> Any:
    """The value with shorter lists, and what lies too deep as a text. ``depth`` is how deep the value itself lies."""
    if not options.depth_max and not options.collection_size_max:
        return value
    if not isinstance(value, dict | list):
        return value
    if options.depth_max and depth >= options.depth_max:
        return "1"
    if isinstance(value, list):
        return [limited(one, options, depth + 1) for one in value[: options.collection_size_max or None]]
    entries = islice(value.items(), options.collection_size_max or None)
    return {name: limited(one, options, depth + 1) for name, one in entries}


def inner(value: Any, path: Sequence[str]) -> Any:
    """What a path leads to; None if there is nothing. ``*`` goes through all entries, and keeps those that go on."""
    for place, part in enumerate(path):
        if part == "*" and isinstance(value, dict):
            rest = path[place + 1 :]
            inside = {name: inner(one, rest) for name, one in value.items()}
            return {name: one for name, one in inside.items() if one is not None}
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def json_pieces(value: Any, options: Options) -> Iterator[str]:
    """A value as JSON, in pieces of bounded size."""
    if isinstance(value, RowsInText):
        yield '"'
        for piece in value.pieces:
            yield compact_json(piece)[1:-1]
        yield '"'
    elif isinstance(value, Entries):
        yield from _entries(value, options)
    elif isinstance(value, Items):
        yield from _items(value, options)
    elif isinstance(value, list) and len(value) > _ITEMS_PER_PIECE:
        yield from json_pieces(Items(in_pieces(value)), options)
    elif isinstance(value, Encoded):
        yield value.text
    else:
        yield compact_json(limited(value, options))


def in_pieces(values: Sequence[Item], size: int = _ITEMS_PER_PIECE) -> Iterator[list[Item]]:
    """Some values at a time. They are let go one after the other: to free very many at once takes milliseconds."""
    left = list(values)
    del values
    left.reverse()
    while left:
        some = left[: -size - 1 : -1]
        del left[-size:]
        yield some


def _entries(entries: Entries, options: Options) -> Iterator[str]:
    texts: list[str] = []
    separator = "{"
    for piece in _cut(entries.pieces, options):
        for name, value in piece:
            texts.append(f"{separator}{compact_json(name)}:")
            separator = ","
            if isinstance(value, Entries | Items):
                yield "".join(texts)
                yield from json_pieces(value, Options())
                texts = []
            else:
                texts.append(value.text if isinstance(value, Encoded) else compact_json(limited(value, options, 1)))
        yield "".join(texts)
        texts = []
    yield "{}" if separator == "{" else "}"


def _cut(pieces: Iterator[list[Any]], options: Options) -> Iterator[list[Any]]:
    left = options.collection_size_max
    if not left:
        yield from pieces
        return
    for piece in pieces:
        yield piece[:left]
        left -= len(piece[:left])
        if not left:
            return


def _items(items: Items, options: Options) -> Iterator[str]:
    yield "["
    separator = ""
    for piece in _cut(items.pieces, options):
        if piece:
            yield separator + ",".join(compact_json(limited(one, options, 1)) for one in piece)
            separator = ","
    yield "]"
