"""Passwords do not get into messages, wherever a file has them, and however badly it is written.

Rather too much is hidden than too little. Every pattern looks at a bounded piece of text from each place, so the cost
grows with the length of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "****"
LOOKED_AT_MAX: Final = 4096
"""How much of a text need be looked at before a part of it is shown, in characters: no password is as long."""

_SECRET: Final = r"(?:passw|passc|passp|pwd)"
_PARAMETER: Final = re.compile(
    rf"""(?i)((?:{_SECRET}|secret|token)[\w.-]{{0,64}}\s{{0,8}}=\s{{0,8}})("[^"]*"?|'[^']*'?|[^;&<\n]+)"""
)
_ELEMENT: Final = re.compile(rf"(?i)(<[\w:.-]{{0,64}}{_SECRET}[^<>]{{0,256}}>)[^<]+")
_TAG: Final = re.compile(r"<[^<>]+")
_VALUE: Final = re.compile(r"""(?i)(\bvalue\s{0,8}=\s{0,8})("[^"]*"?|'[^']*'?)""")
_USER_INFO: Final = re.compile(r"""(//[^/@\s:'"<>?]{0,256}:)[^\s'"<>?]{0,1024}@""")
_NAME: Final = re.compile(rf"""(?i){_SECRET}[\w.'"-]{{0,64}}""")
_LINES_BEFORE: Final = 20


def masked(text: str) -> str:
    """Return the text with every password in it hidden: in URIs, parameters, attributes and elements."""
    text = _USER_INFO.sub(rf"\1{MASK}@", text)
    text = _PARAMETER.sub(rf"\1{MASK}", text)
    text = _ELEMENT.sub(rf"\1{MASK}", text)
    return _TAG.sub(_mask_value, text)


def masked_line(rows: Sequence[str], number: int) -> str:
    """Return a line of a file, counted from 1, as it can be shown: every password in it hidden, also one whose name
    stands on a line before. In a file of properties all behind the name of a password is hidden.
    """
    row = rows[number - 1].strip()[:LOOKED_AT_MAX]
    if not _is_xml(rows):
        name = _NAME.search(row)
        return masked(row) if name is None else f"{row[: name.end()]} {MASK}"
    before = "\n".join(each[-LOOKED_AT_MAX:] for each in rows[max(0, number - 1 - _LINES_BEFORE) : number - 1])
    tag = before[before.rfind("<") :] if "<" in before else ""
    text, mark, rest = row.partition("<")
    if text and names_a_secret(tag) and not tag.startswith("</"):
        text = MASK
    return masked(text + mark + rest)


def names_a_secret(message: str) -> bool:
    """Is a message about a setting of which the value must not be shown?"""
    return _NAME.search(message) is not None


def _mask_value(tag: re.Match[str]) -> str:
    """Hide the value in a tag that says the name of a password elsewhere: ``<property key="password" value="…"/>``."""
    return _VALUE.sub(rf"\1{MASK}", tag[0]) if names_a_secret(tag[0]) else tag[0]


def _is_xml(rows: Sequence[str]) -> bool:
    return next((row.lstrip("\ufeff \t\r") for row in rows if row.strip()), "").startswith("<")
