"""Keeps passwords out of messages, wherever a file has them and however badly it is written.

It hides too much rather than too little. Every pattern looks at a bounded piece of text from each place, so the cost is
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "****"
LOOKED_AT_MAX: Final = 4096
"""How many characters of a text must be searched before a part of it is shown: no password is longer."""

_SECRET: Final = r"(?:passw|passc|passp|pwd)"
_QUOTED: Final = r""""[^"]*"?|'[^']*'?"""
_PARAMETER: Final = re.compile(
    rf"""(?i)((?:(?:{_SECRET}|secret|token)[\w.-]{{0,64}}|\bpass)\s{{0,8}}=\s{{0,8}})"""
    rf"""((?:{_QUOTED})[^\s<>/;&,)]*|(?:[^;&<\n]|&[#\w]{{1,16}};)+)"""
)
"""Includes what directly follows a quoted value: the quote may be part of the password. A character written as
``&#64;`` does not end a value.
"""
_ELEMENT: Final = re.compile(rf"(?i)(<[\w:.-]{{0,64}}{_SECRET}[^<>]{{0,256}}(?<!/)>)((?:[^<]|<(?!/))+)")
"""Everything up to the end tag, including CDATA sections and comments."""
_TAG: Final = re.compile(rf"<(?:[^<>\"']|{_QUOTED})+")
_VALUE: Final = re.compile(rf"""(?i)(\bvalue\s{{0,8}}=\s{{0,8}})((?:{_QUOTED})[^\s<>/]*|[^\s<>]+)""")
_USER_INFO: Final = re.compile(r"""(//[^/\s"<>:]{0,256}:|:thin:[^/\s"<>]{0,256}/)((?:[^"<>@]{0,1024}+@)+)""")
"""Up to the last ``@``, whatever precedes it: that may be exactly what is wrong with the URI."""
_NAME: Final = re.compile(rf"""(?i){_SECRET}[\w.'"-]{{0,64}}""")
_KEY: Final = re.compile(rf"""(?i)(?:{_SECRET}|secret|token|\bpass\b)[\w.'"-]{{0,64}}""")
_LINE: Final = re.compile(r"[^\n]+")
_ROWS_BEFORE: Final = 20
_LOOKED_BEYOND_MAX: Final = 1024
"""How many characters after a line are searched for the name of the value in it."""


def masked(text: str) -> str:
    """Return the text with every password hidden: in URIs, parameters, attributes and elements. The lines stay."""
    text = _USER_INFO.sub(lambda found: f"{found[1]}{_hidden(found[2][:-1])}@", text)
    text = _PARAMETER.sub(_hide_value, text)
    text = _ELEMENT.sub(_hide_value, text)
    return _TAG.sub(_mask_value, text)


def masked_line(rows: Sequence[str], number: int) -> str:
    """Return a line of a file, counted from 1, with every password hidden, even if its name is on a line before or
    after. In a properties file, everything after the name of a password is hidden.
    """
    row = rows[number - 1].strip()[:LOOKED_AT_MAX]
    if not _is_xml(rows):
        return _masked_property(rows, number, row)
    before = "\n".join(each[-LOOKED_AT_MAX:] for each in rows[max(0, number - 1 - _ROWS_BEFORE) : number - 1])
    before = before[-LOOKED_AT_MAX:]
    behind = "\n".join(each[:_LOOKED_BEYOND_MAX] for each in rows[number : number + _ROWS_BEFORE])
    text = masked(f"{before}\n{row}\n{behind[:_LOOKED_BEYOND_MAX]}")
    return text.split("\n")[before.count("\n") + 1].strip()


def _masked_property(rows: Sequence[str], number: int, row: str) -> str:
    """A line of a properties or JSON file; it may continue the line before."""
    first = number - 1
    while first > max(0, number - 1 - _ROWS_BEFORE) and rows[first - 1].rstrip().endswith(("\\", ":")):
        first -= 1
    before = "".join(each.strip()[:LOOKED_AT_MAX].removesuffix("\\") for each in rows[first : number - 1])
    name = _KEY.search(before + row)
    return masked(row) if name is None else f"{row[: max(name.end() - len(before), 0)]} {MASK}".lstrip()


def names_a_secret(message: str) -> bool:
    """Is a message about a setting whose value must not be shown?"""
    return _NAME.search(message) is not None


def _mask_value(tag: re.Match[str]) -> str:
    """Hide the value in a tag that has the name of a password in another attribute: ``<property key="password"
    value="…"/>``.
    """
    return _VALUE.sub(_hide_value, tag[0]) if names_a_secret(tag[0]) else tag[0]


def _hide_value(found: re.Match[str]) -> str:
    return found[1] + _hidden(found[2])


def _hidden(text: str) -> str:
    """Return a mask for each line of a text that must not be shown."""
    return _LINE.sub(MASK, text)


def _is_xml(rows: Sequence[str]) -> bool:
    return next((row.lstrip("\ufeff \t\r") for row in rows if row.strip()), "").startswith("<")
