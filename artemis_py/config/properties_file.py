"""Reads files of properties: Java's ``.properties`` format, and JSON whose nested names are joined by dots."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from artemis_py.config.problems import Problems
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.xml.source import load_text

_DEFAULT_FILTER: Final = r".*\.(json|properties)"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_HALF: Final = re.compile("[\ud800-\udfff]")
_KEY_END: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)


class LogicalLine(NamedTuple):
    """One key with its value, both still escaped. It stands on the lines ``first`` to ``last``, which count from 1."""

    key: str
    value: str
    first: int
    last: int


class Property(NamedTuple):
    """One key with its value. The key is not split; ``line`` counts from 1 and is 0 if unknown."""

    key: str
    value: str
    origin: Origin


def expand_paths(paths: list[str], problems: Problems) -> list[str]:
    """Return the files that ``paths`` name. Each path may be a comma-separated list. A folder means every
    ``.properties`` and ``.json`` file in it, by name, or those whose whole name ``?filter=REGEX`` matches (Artemis
    manual, "Broker Properties"). An unreadable folder is an error.
    """
    files: list[str] = []
    for path in (each.strip() for listed in paths for each in _between_commas(listed)):
        folder, _, query = path.partition("/?")
        if query or os.path.isdir(path) or path.endswith("/"):
            files.extend(_files_in(folder.removesuffix("/") + "/", query, problems))
        elif path:
            files.append(path)
    return files


def _between_commas(listed: str) -> list[str]:
    """Split a list at its commas; the name of an existing file with a comma stays whole."""
    return [listed] if os.path.exists(listed) else listed.split(",")


def _files_in(folder: str, query: str, problems: Problems) -> list[str]:
    wanted = query.removeprefix("filter=") if query.startswith("filter=") else _DEFAULT_FILTER
    if query and not query.startswith("filter="):
        problems.error(Origin(folder, 0), f"?{query} has no meaning here", allowed="?filter=REGEX")
    try:
        matches = re.compile(wanted).fullmatch
        names = sorted(os.listdir(folder))
    except re.error as error:
        problems.error(Origin(folder, 0), f"the filter is not a regular expression: {error}", value=wanted)
        return []
    except OSError as error:
        problems.error(Origin(folder, 0), f"{folder} cannot be read: {error.strerror or error}")
        return []
    return [folder + name for name in names if matches(name)]


def read_properties(path: str, problems: Problems) -> list[Property]:
    """Return the properties of a file in its order. An unreadable file is an error."""
    text = load_text(path, Origin(path, 0), problems)
    if text is None:
        return []
    if path.endswith(".json"):
        found = _read_json(path, text, problems)
    else:
        found = [
            Property(unescape(line.key), unescape(line.value), Origin(path, line.first)) for line in logical_lines(text)
        ]
    return [
        each._replace(key=_whole(each.key, each, problems), value=_whole(each.value, each, problems)) for each in found
    ]


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in a text of Java's ``.properties`` format; of two with one name the last counts."""
    return {unescape(each.key): unescape(each.value) for each in logical_lines(text)}


def _whole(text: str, given: Property, problems: Problems) -> str:
    """Join two escapes of one character (a surrogate pair, as Java writes it); half a pair is an error."""
    if _HALF.search(text) is None:
        return text
    whole = joined(text)
    if whole.count("\ufffd") > text.count("\ufffd"):
        problems.error(
            given.origin, (f"property {given.key} has an escape for half of a surrogate pair"), allowed="a pair"
        )
    return whole


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Yield each key with its value, as Java's ``Properties`` splits a text whose lines end with ``\n``."""
    pending, first = "", 0
    rows = text.split("\n")
    for number, raw in enumerate(rows, 1):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            first = 0
            continue
        first = first or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield LogicalLine(*_split_key(pending + line), first, number)
        pending, first = "", 0
    if first:
        yield LogicalLine(*_split_key(pending), first, len(rows))


def _split_key(line: str) -> tuple[str, str]:
    found = _KEY_END.match(line)
    key = found[0] if found else ""
    rest = line[len(key) :].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return key, rest


def unescape(text: str) -> str:
    """Return a key or value of a logical line as it is meant; half of a surrogate pair stays half."""
    return _ESCAPE.sub(lambda each: chr(int(each[1], 16)) if each[1] else _ESCAPES.get(each[2], each[2]), text)


def joined(text: str) -> str:
    """Join the two halves of a character that Java escapes as a pair; a half that is alone becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _read_json(path: str, text: str, problems: Problems) -> list[Property]:
    import json

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "values are nested too deeply" if isinstance(error, RecursionError) else str(error)
        problems.error(Origin(path, getattr(error, "lineno", 0)), f"not valid JSON: {reason}")
        return []
    if not isinstance(data, dict):
        problems.error(Origin(path, 1), "the outermost value must be an object")
        return []
    return [Property(key, value, Origin(path, 0)) for key, value in _flatten(data)]


def _flatten(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        segment = f'"{name}"' if "." in name and not name.startswith('"') else name
        key = f"{prefix}.{segment}" if prefix else segment
        if isinstance(value, dict):
            yield from _flatten(value, key)
        elif isinstance(value, list):
            yield key, ",".join(_json_text(each) for each in value)
        else:
            yield key, _json_text(value)


def _json_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
