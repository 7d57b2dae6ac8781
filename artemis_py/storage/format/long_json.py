"""Decodes long JSON a little at a time, so that other threads of the interpreter have their turn in between. ``json``
lets nobody else run until it is done, which takes many ms for the index of a segment that describes 10,000 queues.
"""

from __future__ import annotations

import json
from json import JSONDecoder
from typing import Any, Final

AT_ONCE_BYTES: Final = 64 << 10
_DEPTH: Final = 2
"""So deep it goes by itself; what is inside of that is short."""
_decode: Final = JSONDecoder().raw_decode


def loads(text: bytes) -> Any:
    """The same as ``json.loads`` for what was written without spaces. Raises ValueError."""
    if len(text) <= AT_ONCE_BYTES:
        return json.loads(text)
    shown = text.decode()
    try:
        value, end = _value(shown, 0, _DEPTH)
    except IndexError:
        raise ValueError("the text is incomplete") from None
    if shown[end:].strip():
        raise ValueError("more follows the end")
    return value


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """A value and where it ends. Raises ValueError and IndexError."""
    begin = text[at]
    if depth == 0 or begin not in "[{":
        return _decode(text, at)
    found_list: list[Any] = []
    found: dict[str, Any] = {}
    close = "]" if begin == "[" else "}"
    at += 1
    while text[at] != close:
        if begin == "[":
            value, at = _value(text, at, depth - 1)
            found_list.append(value)
        else:
            name, at = _decode(text, at)
            if text[at] != ":":
                raise ValueError("a colon is missing")
            found[name], at = _value(text, at + 1, depth - 1)
        if text[at] == ",":
            at += 1
        elif text[at] != close:
            raise ValueError("a comma is missing")
    return (found_list if begin == "[" else found), at + 1
