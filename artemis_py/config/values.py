"""Converts the text of a setting to its value, by Artemis' lexical rules."""

from __future__ import annotations

from typing import Any, Final

from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    CHOICE,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    PERIOD,
    TEXT,
    Setting,
)
from artemis_py.units import LONG_MAX, LONG_MIN, parse_bytes, parse_decimal, parse_long, parse_ms

_ALLOWED: Final = {
    INT: "a whole number from -2147483648 to 2147483647, without a unit",
    LONG: "a whole number of 64 bits, without a unit",
    DOUBLE: "a number such as 1.5",
    BYTES: "a number of bytes, alone or with K, M or G (powers of 1024)",
    PERIOD: "a number of milliseconds, or a number with ms, s, m, h or d",
}


class ValueTextError(Exception):
    """A text is not a valid value of its setting; ``allowed`` says what is."""

    def __init__(self, allowed: str) -> None:
        super().__init__(allowed)
        self.allowed = allowed


def parse_value(row: Setting, text: str, *, is_attribute: bool = False) -> Any:
    """Return the value that ``text`` means for the setting ``row``.

    Texts of elements are trimmed; those of attributes and words of a choice are not. As in Artemis, a boolean is true
    if it reads ``true`` in any letter case and false otherwise: ``1`` and an empty element are false. Raises
    ValueTextError.
    """
    if row.kind == BOOLEAN:
        return text.strip().lower() == "true"
    if row.kind == CHOICE:
        if text not in row.choices:
            raise ValueTextError(", ".join(row.choices))
        return text
    if row.kind in (TEXT, LIST):
        value = text if is_attribute else text.strip()
        if row.check is not None and not row.check.accepts(len(value.strip())):
            raise ValueTextError(row.check.allowed)
        return value
    number = _parse_number(row.kind, text.strip())
    if row.check is not None and not row.check.accepts(number):
        raise ValueTextError(row.check.allowed)
    return number


def _parse_number(kind: str, text: str) -> int | float:
    try:
        if kind == BYTES:
            return parse_bytes(text)
        if kind == PERIOD:
            return parse_ms(text)
        if kind == DOUBLE:
            return parse_decimal(text)
        value = parse_long(text)
    except ValueError:
        raise ValueTextError(_ALLOWED[kind]) from None
    low, high = (-INT_MAX - 1, INT_MAX) if kind == INT else (LONG_MIN, LONG_MAX)
    if not low <= value <= high:
        raise ValueTextError(_ALLOWED[kind])
    return value


def doubtful_boolean(text: str) -> bool:
    """Return whether a boolean passes the XSD but may not mean what its author thinks: ``1`` or empty."""
    return text.strip() in ("1", "")
