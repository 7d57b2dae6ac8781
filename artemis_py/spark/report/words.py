"""Text inside a page, with the places where a line may end: between the words of a name, never inside of one."""

from __future__ import annotations

import re
from typing import Final

from artemis_py.spark.report.units import escaped

WHOLE_MAX: Final = 12
"""Words up to so many characters (a time, a short name) are never broken."""
WORD_MAX: Final = 32
"""A word of more characters that has nothing to break it at is broken anywhere, else it would push a table off the
screen.
"""
_WORD: Final = re.compile(r"\S+")
_DATE: Final = re.compile(r"\W*\d{4}-\d\d-\d\d\W*", re.ASCII)
_JOINTS: Final = re.compile(
    r"(?<=[./_:,;@=&?|+~\\·-])(?<!\d[.,])(?=[^\s./_:,;@=&?|+~\\·-])"
    r"|(?<=[.,])(?=[^\W\d_])"
    r"|(?<=[a-z0-9])(?=[A-Z])"
)
"""Not within numbers with a dot in them: the address of a client stays whole."""


def broken(text: str) -> str:
    """A text as part of a page. Words of more than ``WHOLE_MAX`` characters may be broken behind dots, slashes,
    underscores and the like, and before the capitals of a camel's humps.
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
