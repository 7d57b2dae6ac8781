"""Names of beans (``domain:key=value,…``) and patterns of such names, as Java's ObjectName has them.

The order of the properties means nothing. A value in quotes has ``\\"``, ``\\\\``, ``\\*``, ``\\?`` and ``\\n`` for
these characters. In a pattern, ``*`` and ``?`` stand for other characters, also inside quotes, and ``,*`` at the end
allows further properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "*": "\\*", "?": "\\?", "\n": "\\n"}
_QUOTED_CHARACTERS: Final = re.compile(r'["\\*?\n]')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_KEY: Final = re.compile(r"([^=,:*?]+)=")
_VALUE: Final = re.compile(r'"(?:[^"\\\n]|\\["\\*?n])*"|[^",=:\n"]*')
_TOKEN: Final = re.compile(r"\\.|.", re.DOTALL)
_ANY: Final = "*"
_ONE: Final = {"?": "."}


class BadNameError(ValueError):
    """A text is no name of a bean; the message says why, in the words of Java."""


def quote(text: str) -> str:
    """A value in quotes."""
    return '"' + _QUOTED_CHARACTERS.sub(lambda match: _ESCAPES[match[0]], text) + '"'


def unquote(value: str) -> str:
    """What a value stands for; one without quotes stands for itself."""
    if len(value) < 2 or not value.startswith('"'):
        return value
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], value[1:-1])


@dataclass(frozen=True)
class ObjectName:
    """A name, or a pattern of names. ``properties`` have their values as they are written, with quotes, in the order in
    which they were given. ``is_open``: may a bean have further properties?
    """

    domain: str
    properties: Mapping[str, str]
    is_open: bool = False

    @cached_property
    def is_pattern(self) -> bool:
        """Does it stand for several names?"""
        return self.is_open or _has_wildcard(self.domain) or any(map(has_wildcard, self.properties.values()))

    @property
    def canonical(self) -> str:
        """The text with the properties in the order of the alphabet."""
        parts = [f"{key}={value}" for key, value in sorted(self.properties.items())]
        return f"{self.domain}:{','.join([*parts, '*'] if self.is_open else parts)}"


def parse_name(text: str) -> ObjectName:
    """The name. Raises BadNameError."""
    domain, colon, rest = text.partition(":")
    if not colon or not rest:
        raise BadNameError("Invalid object name. Key properties cannot be empty")
    if rest == "*":
        return ObjectName(domain, {}, is_open=True)
    properties: dict[str, str] = {}
    place, is_open = 0, False
    while True:
        if rest.startswith("*", place) and rest[place + 1 : place + 2] in ("", ","):
            is_open, end = True, place + 1
        else:
            key = _KEY.match(rest, place)
            value = key and _VALUE.match(rest, key.end())
            if key is None or value is None or not value[0]:
                raise BadNameError(f"Invalid object name. {rest[place : place + 100]!r} is not a key=value")
            if key[1] in properties:
                raise BadNameError(f"Invalid object name. It has {key[1]!r} twice")
            properties[key[1]] = value[0]
            end = value.end()
        if end == len(rest):
            return ObjectName(domain, properties, is_open)
        if rest[end] != ",":
            raise BadNameError(f"Invalid object name. There must be a comma before {rest[end : end + 100]!r}")
        place = end + 1


def has_wildcard(value: str) -> bool:
    """Does a value stand for several?"""
    return _has_wildcard(_ESCAPED.sub("", value) if value.startswith('"') else value)


def _has_wildcard(text: str) -> bool:
    return "*" in text or "?" in text


def matcher_of(value: str) -> re.Pattern[str]:
    """What the values match that a pattern's value stands for, all with their quotes. The text behind an asterisk is
    looked for once, at its first place: so the time to match does not grow with a power of the asterisks.
    """
    tokens = _TOKEN.findall(value) if value.startswith('"') else list(value)
    parts = [""]
    for token in tokens:
        if token == _ANY:
            parts.append("")
        else:
            parts[-1] += _ONE.get(token) or re.escape(token)
    first, *others = parts
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    between = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{between}.*{last}", re.DOTALL)
