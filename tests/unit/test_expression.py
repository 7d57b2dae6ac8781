"""Expressions: a number made of headers; what is refused and where; and that no header makes one fail."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.errors import SelectorError
from artemis_py.selector import CLIENT_LIMITS, compile_expression
from artemis_py.selector.evaluate import Value
from artemis_py.selector.grammar import MAX_NESTING

HEADERS: dict[str, Value] = {
    "five": "5", "half": "0.5", "minus": "-2", "empty": "", "name": "James", "blank": " 5", "AMQPriority": 4,
    "long": "9" * 1000, "longer": "9" * 2000, "due-in": "7", "yes": True, "none": None,
}  # fmt: skip


def value(text: str) -> int | float | None:
    return compile_expression(text).value(HEADERS.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("five", 5),
        ("half", 0.5),
        ("minus", -2),
        ("AMQPriority", 4),
        ("7", 7),
        ("0x1F", 31),
        ("five + 1", 6),
        ("five + five", 10),
        ("five - AMQPriority", 1),
        ("five * 2 + 1", 11),
        ("2 * (five + 1)", 12),
        ("five / 2", 2.5),
        ("five % 3", 2),
        ("-five", -5),
        ("- (five - 7)", 2),
        ('"due-in" * 2', 14),
        ("hyphenated_props:due-in * 2", 14),
        ("five -- a comment", 5),
        ("name", None),
        ("blank", None),
        ("empty", None),
        ("yes", None),
        ("none", None),
        ("missing", None),
        ("missing + 1", None),
        ("name + 1", None),
        ("five / 0", None),
        ("five % 0", None),
        ("longer", math.inf),
        ("long * long", math.inf),
        ("- (long * long)", -math.inf),
        ("1e400", math.inf),
    ],
)
def test_values(text: str, expected: float | None) -> None:
    assert value(text) == expected


def test_texts_are_never_joined() -> None:
    """``'5' + '5'`` is 10 and not 55, and a text that is no number makes the whole unknown."""
    assert value("five + name") is None
    assert value("name + five") is None
    assert value("no_convert_string_expressions:five + five") == 10


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "it is empty"),
        ("  ", 1, "it is empty"),
        ("five +", 7, "expected a name, a number or '(', found the end of the expression"),
        ("five = 5", 6, "expected +, -, *, /, % or the end of the expression, found '='"),
        ("five > 5", 6, "expected +, -, *, /, % or the end of the expression, found '>'"),
        ("five AND six", 6, "found 'AND'"),
        ("five IS NULL", 6, "found 'IS'"),
        ("(five = 5)", 7, "expected ')' or an operator, found '='"),
        ("NOT five", 1, "expected a name, a number or '(', found 'NOT'"),
        ("'5'", 1, "expected a name, a number or '(', found \"'5'\""),
        ("5 + TRUE", 5, "found 'TRUE'"),
        ("NULL", 1, "found 'NULL'"),
        ("five * (2", 10, "expected ')' or an operator, found the end of the expression"),
        ("max(five)", 1, "an expression has no functions, found 'max' with '('"),
        ("five six", 6, "found 'six'"),
        ("2 # 3", 3, "unexpected character '#'"),
    ],
)
def test_refused_with_place_and_reason(text: str, column: int, says: str) -> None:
    with pytest.raises(SelectorError) as refused:
        compile_expression(text)
    assert (refused.value.line, refused.value.column) == (1, column)
    assert says in refused.value.reason


def test_the_limits_are_those_of_selectors() -> None:
    assert value("+".join(["1"] * MAX_NESTING)) == MAX_NESTING
    for text in ("+".join(["1"] * (MAX_NESTING + 1)), "(" * 101 + "1" + ")" * 101, "- " * 101 + "1"):
        with pytest.raises(SelectorError, match="nested deeper than 100 levels"):
            compile_expression(text)
    with pytest.raises(SelectorError, match="at most 8,192 are allowed"):
        compile_expression("a" * 8193, CLIENT_LIMITS)


def test_what_it_costs_grows_with_it() -> None:
    small, large = compile_expression("a"), compile_expression("+".join(["a"] * 80))
    assert (small.units, large.units) == (1, 1 + 159 // 4)
    assert small.units_per_kb < large.units_per_kb


@given(
    st.dictionaries(st.sampled_from("ab"), st.text() | st.integers() | st.floats() | st.booleans() | st.none()),
    st.sampled_from(["a", "a + b", "a - b", "a * b", "a / b", "a % b", "-a * (b - 1)", "a * a * a * a - b"]),
)
def test_whatever_stands_in_the_headers_it_is_a_number_or_none(headers: dict[str, Value], text: str) -> None:
    found = compile_expression(text).value(headers.get)
    assert found is None or (isinstance(found, (int, float)) and not isinstance(found, bool))
