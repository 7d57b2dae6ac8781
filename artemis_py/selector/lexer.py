"""Selector text to tokens.

Names are letters, digits, ``_`` and ``$``, not beginning with a digit, and are case-sensitive; with the prefix
``hyphenated_props:`` also ``-``. Any other name is in double quotes, with ``""`` for a quote in it. Keywords are
recognised in any letter case. Texts are in single quotes with ``''`` for a quote in them. Numbers are decimal,
hexadecimal (``0x1F``) or octal (``017``), each with or without a final ``L``, or floating-point (``1.5``, ``5.``,
``.5``, ``1E-3``). ``-- …`` to the end of the line and ``/* … */`` are comments.

Unlike Artemis, it accepts letters of any alphabet in names, quoted names with ``hyphenated_props:``, ``L`` after octal
and hexadecimal numbers, integers of any size, and a line comment at the very end of the text.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn, final

from artemis_py.errors import SelectorError

INTEGER_BITS_MAX: Final = 4096
"""The maximum size of an integer."""

KEYWORDS: Final = frozenset(
    {
        "NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "TRUE", "FALSE", "NULL", "XPATH", "XQUERY",
    }
)  # fmt: skip

NAME: Final = "a name"
TEXT: Final = "a text"
NUMBER: Final = "a number"
END: Final = "the end"

_TOKENS: Final = r"""
    (?P<blank>(?:[ \t\n\r\f]+|--[^\n\r]*|/\*.*?\*/)+)
  | (?P<comment>/\*)
  | (?P<name>{name})
  | (?P<quoted>"[^"]*(?:""[^"]*)*")
  | (?P<text>'[^']*(?:''[^']*)*')
  | (?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<hex>0[xX][0-9a-fA-F]+[lL]?)
  | (?P<integer>[0-9]+[lL]?)
  | (?P<operator><>|<=|>=|[=<>+\-*/%(),])
"""
_STRICT: Final = re.compile(_TOKENS.replace("{name}", r"[^\W\d][\w$]*|\$[\w$]*"), re.VERBOSE | re.DOTALL)
_HYPHENATED: Final = re.compile(_TOKENS.replace("{name}", r"[^\W\d][\w$-]*|\$[\w$-]*"), re.VERBOSE | re.DOTALL)

_OTHER_LANGUAGES: Final = {
    "!=": "'<>'",
    "==": "'='",
    "&&": "AND",
    "||": "OR",
    "!": "NOT",
}


@final
class Token:
    """``kind`` is a keyword in upper case, an operator, or one of NAME, TEXT, NUMBER, END.

    ``value`` is the name, the text without quotes or the number; None for all others. ``image`` is the token as
    written, ``offset`` where it begins in the selector.
    """

    __slots__ = ("kind", "value", "image", "offset")

    def __init__(self, kind: str, value: str | int | float | None, image: str, offset: int) -> None:
        self.kind: Final = kind
        self.value: Final = value
        self.image: Final = image
        self.offset: Final = offset


def fail(message: str, text: str, offset: int) -> NoReturn:
    """Raise SelectorError with the line and column of ``offset``."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    raise SelectorError(message, line, column)


def tokens(text: str, start: int, hyphenated: bool) -> list[Token]:
    """Split ``text`` from ``start`` on into tokens, the last one of kind END. Raises SelectorError."""
    pattern = _HYPHENATED if hyphenated else _STRICT
    found: list[Token] = []
    offset = start
    while offset < len(text):
        match = pattern.match(text, offset)
        if match is None:
            _refuse(text, offset)
        kind = str(match.lastgroup)
        if kind != "blank":
            found.append(_token(kind, match.group(), text, offset, found))
        offset = match.end()
    found.append(Token(END, None, "", offset))
    return found


def _token(kind: str, image: str, text: str, offset: int, before: list[Token]) -> Token:
    if kind == "operator":
        if image == "=" and before and before[-1].image == "=" and before[-1].offset == offset - 1:
            fail("'==' is not an operator; write '='", text, offset - 1)
        return Token(image, None, image, offset)
    if kind == "comment":
        fail("a comment is not closed, '*/' expected", text, offset)
    if kind == "name":
        keyword = image.upper()
        if keyword in KEYWORDS and image.isascii():
            return Token(keyword, None, image, offset)
        return Token(NAME, image, image, offset)
    if kind == "quoted":
        return Token(NAME, image[1:-1].replace('""', '"'), image, offset)
    if kind == "text":
        return Token(TEXT, image[1:-1].replace("''", "'"), image, offset)
    if before and before[-1].kind == NUMBER and before[-1].offset + len(before[-1].image) == offset:
        fail(f"'{before[-1].image}{image}' is not a number", text, before[-1].offset)
    return Token(NUMBER, _number(kind, image, text, offset), image, offset)


def _number(kind: str, image: str, text: str, offset: int) -> int | float:
    try:
        if kind == "float":
            return float(image)
        digits = image.rstrip("lL")
        number = int(digits, 16 if kind == "hex" else 8 if digits.startswith("0") else 10)
    except ValueError:
        if image.startswith("0"):
            fail(f"{image!r} is not a number: a leading 0 means octal", text, offset)
        fail(f"a number of {len(image):,} digits is too long", text, offset)
    if number.bit_length() > INTEGER_BITS_MAX:
        fail(f"a number of {len(image):,} digits is too long", text, offset)
    return number


def _refuse(text: str, offset: int) -> NoReturn:
    """Raise SelectorError for a place where no token begins."""
    rest = text[offset : offset + 2]
    if rest[0] == "'":
        fail('a text is not closed, "\'" expected', text, offset)
    if rest[0] == '"':
        fail("a name is not closed, '\"' expected", text, offset)
    for written in (rest, rest[0]):
        if written in _OTHER_LANGUAGES:
            fail(f"{written!r} is not an operator; write {_OTHER_LANGUAGES[written]}", text, offset)
    if rest[0] in ".:":
        fail(f"a name with {rest[0]!r} in it must be in double quotes", text, offset)
    fail(f"unexpected character {rest[0]!r}", text, offset)
