"""Requests of Jolokia and their options, from the path of a GET or the JSON of a POST."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

from artemis_py.management.artemis.java import JavaError, illegal
from artemis_py.management.artemis.object_names import BadNameError, ObjectName, parse_name

# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """The options; 0 is no limit."""

    depth_max: int = 0
    collection_size_max: int = 0
    ignores_errors: bool = False
    has_request: bool = True
    is_canonical: bool = True
    uses_cache: bool = False
    mime_type: str = ""

    def changed(self, values: Mapping[str, Any]) -> Options:
        """The options, changed by those in ``values``."""
        changes = {name: convert(values[known]) for known, (name, convert) in _KNOWN.items() if known in values}
        return replace(self, **changes)


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _flag(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


_KNOWN: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "maxDepth": ("depth_max", _number),
    "maxCollectionSize": ("collection_size_max", _number),
    "ignoreErrors": ("ignores_errors", _flag),
    "includeRequest": ("has_request", _flag),
    "canonicalNaming": ("is_canonical", _flag),
    "listCache": ("uses_cache", _flag),
    "mimeType": ("mime_type", str),
}


READ: Final = "read"
WRITE: Final = "write"
EXEC: Final = "exec"
SEARCH: Final = "search"
LIST: Final = "list"
VERSION: Final = "version"
_OF_BEANS: Final = frozenset({READ, WRITE, EXEC, SEARCH})
_TYPES: Final = _OF_BEANS | {LIST, VERSION}
_ESCAPED: Final = re.compile(r"!(.)", re.DOTALL)
_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class JolokiaRequest:
    """One request. ``attributes`` are None for all; ``is_one``: is one of them asked for, and not a list with one?
    ``path`` leads into the value. ``is_url``: is all of it in the URL?
    """

    type: str
    mbean: ObjectName | None = None
    attributes: tuple[str, ...] | None = None
    is_one: bool = False
    operation: str = ""
    arguments: Sequence[Any] | None = None
    value: Any = None
    path: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    is_url: bool = False

    @property
    def name(self) -> ObjectName:
        """The name of the bean, which all types have that are about beans."""
        assert self.mbean is not None
        return self.mbean

    def echo(self) -> dict[str, Any]:
        """The request as it was understood; tools match answers with requests by it."""
        echo: dict[str, Any] = {}
        if self.path:
            echo["path"] = "/".join(re.sub("[!/]", lambda one: f"!{one[0]}", part) for part in self.path)
        if self.mbean is not None:
            echo["mbean"] = self.mbean.canonical
        if self.attributes is not None:
            echo["attribute"] = self.attributes[0] if self.is_one else list(self.attributes)
        if self.arguments:
            echo["arguments"] = list(self.arguments)
        echo["type"] = self.type
        if self.operation:
            echo["operation"] = self.operation
        if self.type == WRITE:
            echo["value"] = self.value
        return echo


def of_path(path: str, options: Options) -> JolokiaRequest:
    """The request of a GET; ``path`` is what follows the base, percent-encoded. Raises JavaError."""
    type, *rest = _segments(path)
    if not type:
        return JolokiaRequest(VERSION, options=options)
    parts = [unquote(part) for part in rest]
    if type in (LIST, VERSION):
        return JolokiaRequest(type, path=_plain(parts), options=options)
    if type not in _TYPES:
        raise _unknown(type)
    least = {READ: 1, SEARCH: 1, EXEC: 2, WRITE: 3}[type]
    if len(parts) < least:
        raise illegal(f"Invalid arguments in pathinfo /{path[:_SHOWN_MAX]} for command {type.upper()}")
    name = _name(_unescaped(parts[0]))
    if type == READ:
        attributes = tuple(filter(None, parts[1].split(","))) if len(parts) > 1 else ()
        asked = tuple(map(_unescaped, attributes)) or None
        return JolokiaRequest(
            READ, name, asked, is_one=asked is not None and len(asked) == 1, path=_plain(parts[2:]), options=options
        )
    if type == EXEC:
        arguments = [_argument(part) for part in parts[2:]]
        operation = _unescaped(parts[1])
        return JolokiaRequest(EXEC, name, operation=operation, arguments=arguments, options=options, is_url=True)
    if type == WRITE:
        value = _argument(parts[2])
        return JolokiaRequest(WRITE, name, (_unescaped(parts[1]),), True, value=value, options=options)
    return JolokiaRequest(SEARCH, name, options=options)


def of_json(sent: Mapping[str, Any], options: Options) -> JolokiaRequest:
    """The request of a JSON object; ``options`` are those of the query. Raises JavaError."""
    config = sent.get("config")
    if isinstance(config, Mapping):
        options = options.changed(config)
    type = str(sent.get("type") or "").lower()
    if not type:
        raise illegal("No type given")
    if type not in _TYPES:
        raise _unknown(type)
    path = sent.get("path")
    parts = _plain(_segments(path)) if isinstance(path, str) and path else ()
    if type not in _OF_BEANS:
        return JolokiaRequest(type, path=parts, options=options)
    name = sent.get("mbean")
    if not isinstance(name, str):
        raise illegal("Object name can not be null")
    asked = sent.get("attribute")
    attributes = None if asked is None else (asked,) if isinstance(asked, str) else _texts(asked)
    arguments = sent.get("arguments")
    operation = sent.get("operation")
    if type == EXEC and not isinstance(operation, str):
        raise illegal("No operation given")
    if arguments is not None and not isinstance(arguments, list):
        raise illegal("arguments must be a list")
    return JolokiaRequest(
        type,
        _name(name),
        (attributes or None) if type in (READ, WRITE) else None,
        is_one=isinstance(asked, str),
        operation=operation if type == EXEC and isinstance(operation, str) else "",
        arguments=arguments if type == EXEC else None,
        value=sent.get("value"),
        path=parts,
        options=options,
    )


def _texts(asked: Any) -> tuple[str, ...]:
    if not isinstance(asked, list) or not all(isinstance(one, str) for one in asked):
        raise illegal("attribute must be a text or a list of texts")
    return tuple(asked)


def _unknown(type: str) -> JavaError:
    return illegal(f"No type with name {type[:_SHOWN_MAX]!r} exists; there are {', '.join(sorted(_TYPES))}")


def _name(text: str) -> ObjectName:
    try:
        return parse_name(text)
    except BadNameError as error:
        raise illegal(str(error)) from None


def _segments(path: str) -> list[str]:
    """The parts between slashes; a slash behind an exclamation mark belongs to its part."""
    parts, start, place = [], 0, 0
    while place < len(path):
        if path[place] == "!":
            place += 1
        elif path[place] == "/":
            parts.append(path[start:place])
            start = place + 1
        place += 1
    return [*parts, path[start:]]


def _plain(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(_unescaped(part) for part in parts if part)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _argument(part: str) -> str | None:
    if part == "[null]":
        return None
    return "" if part == '""' else _unescaped(part)
