"""Random trees, written as text and parsed back, have the value that a plain reading of the rules gives them."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from artemis_py.selector import compile_selector
from tests.unit.test_selector_cost import like_by_regex

# A tree is a tuple whose first item names its kind; the kinds are those of `_write` and `_value`.
Tree = tuple[Any, ...]

NAMES = ["a", "b", "c", "$d", "e e"]
TEXTS = ["", "x", "it's", "5", "-1.5", "true", "False", "x%_"]
NUMBERS = {"0": 0, "3": 3, "7L": 7, "0x10": 16, "011": 9, "1.5": 1.5, ".5": 0.5, "2.": 2.0, "1E2": 100.0}
ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
BLANKS = [" ", "  ", "\n", "\t", " /* AND */ ", " -- 'x\n"]
LEVELS = {"or": 1, "and": 2, "not": 3, "=": 4, "<>": 4, "null": 4, "between": 5, "like": 5, "in": 5}
LEVELS |= dict.fromkeys(ORDERS, 5) | {"+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "negative": 8}

_name = st.sampled_from(NAMES).map(lambda name: ("name", name))
_text = st.sampled_from(TEXTS).map(lambda text: ("text", text))
_number = st.sampled_from(sorted(NUMBERS)).map(lambda image: ("number", image))


def _calculated(operands: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.tuples(st.sampled_from("+-*/%"), operands, operands) | st.tuples(st.just("negative"), operands)


_values = st.recursive(_name | _number | _text, _calculated, max_leaves=4)
_ordered = st.recursive(_name | _number, _calculated, max_leaves=3)
_simple_conditions = (
    st.sampled_from(["TRUE", "FALSE", "NULL"]).map(lambda word: ("word", word))
    | _name
    | st.tuples(st.sampled_from(["=", "<>"]), _values, _values)
    | st.tuples(st.sampled_from(sorted(ORDERS)), _ordered, _ordered)
    | st.tuples(st.just("between"), _ordered, _ordered, _ordered, st.booleans())
    | st.tuples(st.just("in"), _name, st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), st.booleans())
    | st.tuples(st.just("like"), _values, st.text("x5%_!", max_size=4), st.booleans())
    | st.tuples(st.just("null"), _values, st.booleans())
)
_conditions = st.recursive(
    _simple_conditions,
    lambda parts: (
        st.tuples(st.just("not"), parts)
        | st.tuples(st.sampled_from(["and", "or"]), parts, parts)
        | st.tuples(st.sampled_from(["=", "<>"]), parts, parts).filter(lambda tree: ("word", "NULL") not in tree)
        | st.tuples(st.just("null"), parts, st.booleans())
    ),
    max_leaves=10,
)
_headers = st.dictionaries(
    st.sampled_from(NAMES), st.sampled_from([*TEXTS, 0, 3, -7, 1.5, True, False, None]), max_size=len(NAMES)
)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write(tree: Tree, level_min: int, rng: random.Random) -> list[str]:
    """The tokens of a tree, in parentheses where it binds looser than ``level_min``, and sometimes elsewhere."""
    kind, level = tree[0], LEVELS.get(tree[0], 9)
    negation = ["NOT"] if tree[-1] is True else []
    match kind:
        case "name":
            written = [tree[1] if tree[1].replace("$", "x").isidentifier() else f'"{tree[1]}"']
        case "text":
            written = [_quoted(tree[1])]
        case "number" | "word":
            written = [tree[1]]
        case "negative":
            written = ["-", *_write(tree[1], 8, rng)]
        case "not":
            written = ["NOT", *_write(tree[1], 3, rng)]
        case "between":
            low, high = _write(tree[2], 6, rng), _write(tree[3], 6, rng)
            written = [*_write(tree[1], 6, rng), *negation, "BETWEEN", *low, "AND", *high]
        case "in":
            texts = [token for text in tree[2] for token in (",", _quoted(text))]
            written = [*_write(tree[1], 6, rng), *negation, "IN", "(", *texts[1:], ")"]
        case "like":
            written = [*_write(tree[1], 6, rng), *negation, "LIKE", _quoted(tree[2]), "ESCAPE", _quoted("!")]
        case "null":
            written = [*_write(tree[1], 4, rng), "IS", *negation, "NULL"]
        case _:
            left_min = 6 if kind in ORDERS else level
            written = [*_write(tree[1], left_min, rng), kind.upper(), *_write(tree[2], level + 1, rng)]
    while level < level_min or rng.random() < 0.1:
        level = 9
        written = ["(", *written, ")"]
    return written


def _number_of(value: Any, convert: bool) -> Any:
    if convert and isinstance(value, str):
        value = {"5": 5, "-1.5": -1.5}.get(value)
    return None if isinstance(value, (bool, str)) else value


def _same(left: Any, right: Any, convert: bool) -> Any:
    if convert and isinstance(left, bool) != isinstance(right, bool):
        words = {"true": True, "False": False}
        left, right = words.get(left, left), words.get(right, right)
    if isinstance(left, bool) or isinstance(right, bool) or (isinstance(left, str) and isinstance(right, str)):
        return type(left) is type(right) and left == right
    numbers = [_number_of(left, convert), _number_of(right, convert)]
    return None not in numbers and numbers[0] == numbers[1]


def _in_order(left: Any, right: Any, order: str, convert: bool) -> bool | None:
    if left is None or right is None:
        return None
    numbers: list[Any] = [_number_of(left, convert), _number_of(right, convert)]
    if None in numbers:
        if not (isinstance(left, str) and isinstance(right, str)):
            return False
        numbers = [left, right]
    smaller, equal = bool(numbers[0] < numbers[1]), bool(numbers[0] == numbers[1])
    return {"<": smaller, "<=": smaller or equal, ">": not smaller and not equal, ">=": not smaller}[order]


def _calculate(kind: str, left: Any, right: Any, convert: bool) -> Any:
    first, second = _number_of(left, convert), _number_of(right, convert)
    if left is None or right is None:
        return None
    if first is None or second is None:
        if kind == "+" and isinstance(left, str):
            return left + (str(right).lower() if isinstance(right, bool) else str(right))
        return None
    if kind in "/%" and second == 0:
        return None
    if kind == "/":
        return first / second
    if kind == "%":
        result = math.fmod(first, second)
        return result if isinstance(first, float) or isinstance(second, float) else int(result)
    return {"+": first + second, "-": first - second, "*": first * second}[kind]


def _value(tree: Tree, headers: dict[str, Any], convert: bool) -> Any:
    """The value of a value, or TRUE, FALSE, None of a condition."""
    kind = tree[0]
    match kind:
        case "name":
            return headers.get(tree[1])
        case "text":
            return tree[1]
        case "number" | "word":
            return {**NUMBERS, "TRUE": True, "FALSE": False, "NULL": None}[tree[1]]
        case "negative":
            number = _number_of(_value(tree[1], headers, convert), convert)
            return None if number is None else -number
        case "+" | "-" | "*" | "/" | "%":
            left, right = (_value(part, headers, convert) for part in tree[1:])
            return _calculate(kind, left, right, convert)
        case "=" | "<>":
            left, right = (_value(part, headers, convert) for part in tree[1:])
            return None if left is None or right is None else _same(left, right, convert) is (kind == "=")
        case "<" | "<=" | ">" | ">=":
            left, right = (_value(part, headers, convert) for part in tree[1:])
            return _in_order(left, right, kind, convert)
        case "not" | "and" | "or":
            return _logic(kind, [_truth(part, headers, convert) for part in tree[1:]])
    value, negated = _value(tree[1], headers, convert), tree[-1]
    match kind:
        case "null":
            return (value is None) is not negated
        case "in":
            return (value in tree[2]) is not negated if isinstance(value, str) else None
        case "like":
            return (
                None
                if value is None
                else (isinstance(value, str) and like_by_regex(tree[2], "!", value)) is not negated
            )
    low, high = (_value(part, headers, convert) for part in tree[2:4])
    orders = ("<", ">") if negated else (">=", "<=")
    parts = [_in_order(value, low, orders[0], convert), _in_order(value, high, orders[1], convert)]
    return _logic("or" if negated else "and", parts)


def _truth(tree: Tree, headers: dict[str, Any], convert: bool) -> bool | None:
    value = _value(tree, headers, convert)
    return None if value is None else _same(value, True, convert)


def _logic(kind: str, parts: list[bool | None]) -> bool | None:
    if kind == "not":
        return None if parts[0] is None else not parts[0]
    decisive = kind == "or"
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


@given(_conditions, _headers, st.booleans(), st.integers(0, 2**32))
def test_parsed_tree_has_the_value_of_the_tree(tree: Tree, headers: dict[str, Any], convert: bool, style: int) -> None:
    rng = random.Random(style)
    tokens = [token.lower() if token.isupper() and rng.random() < 0.3 else token for token in _write(tree, 1, rng)]
    text = "".join(token + rng.choice(BLANKS) for token in tokens)
    prefix = "convert_string_expressions:" if convert else ""
    expected = _truth(tree, headers, convert)
    assert compile_selector(prefix + text).matches(headers.get) is (expected is True), text
    negation = f"{prefix}NOT ({text})"
    assert compile_selector(negation).matches(headers.get) is (expected is False), text
