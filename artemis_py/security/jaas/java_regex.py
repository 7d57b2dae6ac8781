"""Java's regular expressions in a users file of certificates, as Python's.

Only what both read alike is accepted. Everything else is refused by name: a wrong guess would let somebody in.
"""

from __future__ import annotations

import re
from typing import Final

from artemis_py.errors import ArtemisError

_LENGTH_MAX: Final = 4096
_SAFE: Final = re.compile(
    r"""
    [^\\\[\](){}*+?|^$.]               # a character that stands for itself
    | [.^$|)]
    | \((?:\?(?::|=|!|<=|<!))?(?![?*+])  # a group, or a look around
    | [*+?][?+]?                       # how often: greedy, lazy or possessive
    | \{[0-9]{1,4}(?:,[0-9]{0,4})?\}[?+]?
    | \\(?:[dDwWsStnrf1-9]|[^A-Za-z0-9\s])
    | \[\^?(?:(?!--)(?:\\(?:[dDwWsStnrf]|[^A-Za-z0-9\s])|[^\\\[\]&|~]))+\]  # a set without operators
    """,
    re.VERBOSE,
)
_FLAGS: Final = re.compile(r"\(\?(i?)\)")
_LINE_ENDS: Final = re.compile("[\n\r\x85\u2028\u2029]")


class RegexError(ArtemisError):
    """A regular expression is none, or means something else in Java."""


def compile_java(pattern: str) -> re.Pattern[str]:
    """Return a pattern for :func:`matches`. Raises RegexError."""
    if len(pattern) > _LENGTH_MAX:
        raise RegexError(f"a regular expression may have {_LENGTH_MAX} characters")
    flags, place = re.ASCII, 0
    found = _FLAGS.match(pattern)
    if found is not None:
        flags |= re.IGNORECASE if found[1] else re.ASCII
        place = found.end()
    begin = place
    while place < len(pattern):
        found = _SAFE.match(pattern, place)
        if found is None:
            raise RegexError(f"from {pattern[place : place + 8]!r} on, Java and Python read it differently")
        place = found.end()
    try:
        return re.compile(pattern[begin:], flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexError(f"it is not a regular expression: {error}") from None


def matches(pattern: re.Pattern[str], text: str) -> bool:
    """Does the pattern match the whole text? A text of several lines never: what a point means differs there."""
    return _LINE_ENDS.search(text) is None and pattern.fullmatch(text) is not None
