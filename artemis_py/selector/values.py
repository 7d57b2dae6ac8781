"""The operators on two values, neither of which is NULL.

A value is a text, a number or a boolean. Values of different kinds are never equal and never in order; this module
decides what counts as a number under ``convert_string_expressions:``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Number: TypeAlias = int | float
"""Both are named, although type checkers accept an int as a float: a compiler would convert it."""
InOrder: TypeAlias = Callable[[Number | str, Number | str], bool]

INTEGER_BITS_MAX: Final = 4096
TEXT_LENGTH_MAX: Final = 65_536
"""The maximum length of a computed text: otherwise a short selector could create expensive texts."""
INTEGER_LENGTH_MAX: Final = 1024
"""A longer text is read as a floating-point number, in time linear in its length."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number_of(value: Value) -> Number | None:
    """Return a number as it is, None for everything else: booleans are not numbers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None


def number_in(value: Value) -> Number | None:
    """Return a number as it is, or a text as a decimal number; None for everything else."""
    if not isinstance(value, str):
        return number_of(value)
    if _NUMBER.fullmatch(value) is None:
        return None
    if len(value) > INTEGER_LENGTH_MAX:
        return float(value)
    try:
        return int(value)
    except ValueError:  # not an integer
        return float(value)


def _boolean_in(value: Value) -> bool | None:
    """Return a boolean as it is, or the texts 'true' and 'false' in any letter case as booleans; None for everything
    else.
    """
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower()) if len(value) <= len("false") else None
    return value if isinstance(value, bool) else None


def are_equal(left: Value, right: Value) -> bool:
    """``=`` between values as they are."""
    if type(left) is type(right):
        return left == right
    first, second = number_of(left), number_of(right)
    return first is not None and second is not None and first == second


def are_equal_converted(left: Value, right: Value) -> bool:
    """``=`` that converts a text next to a number or boolean; two texts stay texts."""
    if type(left) is type(right):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        truth, other = _boolean_in(left), _boolean_in(right)
        return truth is not None and truth is other
    first, second = number_in(left), number_in(right)
    return first is not None and second is not None and first == second


def are_ordered(left: Value, right: Value, in_order: InOrder) -> bool:
    """``<`` and similar operators on two numbers or two texts; texts are ordered by their characters."""
    if isinstance(left, str):
        return isinstance(right, str) and in_order(left, right)
    first, second = number_of(left), number_of(right)
    return first is not None and second is not None and in_order(first, second)


def are_ordered_converted(left: Value, right: Value, in_order: InOrder) -> bool:
    """``<`` and similar operators that treat texts which look like numbers as numbers."""
    first, second = number_in(left), number_in(right)
    if first is not None and second is not None:
        return in_order(first, second)
    return isinstance(left, str) and isinstance(right, str) and in_order(left, right)


def bounded(number: Number) -> Number | None:
    """A computed number; None for an integer that is too large."""
    return None if isinstance(number, int) and number.bit_length() > INTEGER_BITS_MAX else number


def saturated(number: Number) -> Number:
    """A computed number; an integer that is too large is infinite."""
    if not isinstance(number, int) or number.bit_length() <= INTEGER_BITS_MAX:
        return number
    return math.inf if number > 0 else -math.inf


def joined(left: str, right: Value) -> str | None:
    """``+`` with a text on its left; None if the result is too long."""
    text = ("true" if right else "false") if isinstance(right, bool) else str(right)
    return left + text if len(left) + len(text) <= TEXT_LENGTH_MAX else None


def remainder(left: Number, right: Number) -> Number:
    """``%``: the sign is that of ``left``. Raises ZeroDivisionError or ValueError where there is no result."""
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) % abs(right)
        return -size if left < 0 else size
    return math.fmod(left, right)
