"""Marks where lines in a page may break: between the words of a name, never inside one."""

from __future__ import annotations

import re
from typing import Final

from artemis_py.spark.report.units import escaped

WHOLE_MAX: Final = 12
"""Words up to this many characters (a time, a short name) are never broken."""
WORD_MAX: Final = 32
"""A longer word without a break point may be broken anywhere, since otherwise it would widen a table beyond the
screen.
"""
_WORD: Final = re.compile(r"\S+")
_DATE: Final = re.compile(r"\W*\d{4}-\d\d-\d\d\W*", re.ASCII)
_JOINTS: Final = re.compile(
    r"(?<=[./_:,;@=&?|+~\\·-])(?<!\d[.,])(?=[^\s./_:,;@=&?|+~\\·-])"
    r"|(?<=[.,])(?=[^\W\d_])"
    r"|(?<=[a-z0-9])(?=[A-Z])"
)
"""Not within numbers with a dot: the address of a client is not broken."""


def broken(text: str) -> str:
    """A text as part of a page. Words of more than ``WHOLE_MAX`` characters may be broken after dots, slashes,
    underscores and similar characters, and before capitals in camel case.
    """
    parts: list[str] = []
    at = 0
    for word in _WORD.finditer(text):
        parts += [escaped(text[at : word.start()]), _word(word[0])]
        at = word.end()
    parts.append(escaped(text[at:]))
    return "".join(parts)


def _word(word: str) -> str:
    if _DATE.fullmatch(word):  # a browser would break it at its hyphens
        return f'<span class="whole">{escaped(word)}</span>'
    if len(word) <= WHOLE_MAX:
        return escaped(word)
    pieces = _JOINTS.split(word)
    return "<wbr/>".join(
        f'<span class="endless">{escaped(piece)}</span>' if len(piece) > WORD_MAX else escaped(piece)
        for piece in pieces
    )
