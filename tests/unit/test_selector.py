"""Selectors: what matches, what is refused and where, and that no input does worse than be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from artemis_py.errors import SelectorError
from artemis_py.selector import BROKER_LIMITS, compile_selector
from artemis_py.selector.evaluate import Value
from artemis_py.selector.grammar import MAX_NESTING
from tests.kit.core import lines_run

HEADERS: dict[str, Value] = {
    "name": "James",
    "foo": "_foo",
    "quote": "'In God We Trust'",
    "percent": "100%",
    "lines": "a\nb",
    "signs": "!#$&()*+,-./:;<=>?@[\\]^`{|}~",
    "age": "21",
    "half": "0.5",
    "big": "9",
    "bigger": "10",
    "flag": "true",
    "loud": "TRUE",
    "off": "False",
    "empty": "",
    "a.b": "dotted",
    'a"b': "quoted",
    "content-type": "text",
    "größe": "XL",
    "$x_1": "dollar",
    "rank": 123,
    "version": 2,
    "zero": 0,
    "ratio": 1.5,
    "yes": True,
    "no": False,
    "AMQPriority": 4,
    "huge": 2**1100,
}


def matches(text: str, headers: Mapping[str, Value] = HEADERS) -> bool:
    return compile_selector(text).matches(headers.get)


def truth(text: str) -> bool | None:
    """TRUE, FALSE or unknown, seen from outside: NOT of FALSE matches, NOT of unknown does not."""
    negation = f"NOT ({text}\n)"  # the line break ends a comment
    if matches(text):
        assert not matches(negation)
        return True
    return False if matches(negation) else None


TRUE = [
    "name = 'James'",
    "'James' = name",
    "name <> 'Bob'",
    "rank > 100 AND rank < 200",
    "rank >= 123 AND rank <= 123",
    "rank between 100 and 150",
    "rank not between 200 and 300",
    "rank BETWEEN version AND version * 100",
    "rank + 2 = 125",
    "125 = (rank + 2)",
    "rank - version = 121",
    "rank * version = 246",
    "rank / version = 61.5",
    "version / 2 = 1",
    "-7 / 2 = -3.5",
    "7 % 3 = 1 AND -7 % 3 = -1 AND 7 % -3 = 1 AND -7 % -3 = -1",
    "5.5 % 2 = 1.5 AND -5.5 % 2 = -1.5",
    "2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20",
    "10 - 4 - 3 = 3 AND 100 / 10 / 5 = 2",
    "- -version = 2 AND +version = 2 AND -version = -2 AND -(version + 1) = -3",
    "name + '!' = 'James!' AND name + 5 = 'James5' AND name + yes = 'Jamestrue'",
    "name IN ('Bob', 'James')",
    "name NOT IN ('Bob', 'Alice')",
    "dummy IS NULL",
    "Name IS NULL",
    "name IS NOT NULL",
    "(dummy = 1) IS NULL AND (name = 'James') IS NOT NULL",
    "1.0 < 1.1 AND 1. < 1.1 AND .1 < .5 AND 1.E1 < 1.1E1 AND 4E-10 < 5E-10 AND 4e+10 < 5E+10",
    "0x1f = 31 AND 0XFF = 255 AND 017 = 15 AND 0 = 0.0 AND 5L = 5l AND 0x10L = 16",
    "9223372036854775807 + 1 = 9223372036854775808",
    "9007199254740993 % 2 = 1",
    "quote = '''In God We Trust'''",
    "\"a.b\" = 'dotted'",
    '"a""b" = \'quoted\'',
    "größe = 'XL'",
    "$x_1 = 'dollar'",
    "yes AND NOT no AND yes = TRUE AND no = FALSE AND yes <> no",
    "TRUE AND NOT FALSE",
    "(rank > 100) = TRUE",
    "rank > 100 = TRUE",
    "NOT name = 'Bob'",
    "NOT name = 'Bob' AND rank = 123",
    "NOT NOT yes",
    "no AND no OR yes",
    "yes OR no AND no",
    "name = 'James' -- a comment at the end",
    "-- first\nname = /* in ** between */ 'James' -- x\r AND yes",
    "name='James'and(rank=123)or\tno",
    "flag = 'true'",
    "AMQPriority >= 4",
    "big > bigger",
    "rank <> 'a' AND name <> 1 AND yes <> 1 AND yes <> 'true'",
    "huge > 1 AND huge > 1.5 AND huge + 1 > huge",
]

FALSE = [
    "name = 'james'",
    "name IS NULL",
    "rank > 124",
    "age > 18",
    "age < 99",
    "age = 21",
    "age BETWEEN 1 AND 99",
    "age NOT BETWEEN 1 AND 9",
    "flag",
    "flag = TRUE",
    "yes = 1",
    "yes = 'true'",
    "yes < no",
    "rank LIKE '%'",
    "no",
    "1 = 2",
    "'1' = 1",
]

UNKNOWN = [
    "dummy",
    "NULL",
    *[f"dummy {operator} 1" for operator in ("=", "<>", "<", "<=", ">", ">=")],
    *[f"1 {operator} dummy" for operator in ("=", "<>", "<", "<=", ">", ">=")],
    "dummy = 'a'",
    "dummy LIKE 'a'",
    "dummy NOT LIKE 'a'",
    "dummy IN ('a')",
    "dummy NOT IN ('a')",
    "rank IN ('123')",
    "rank NOT IN ('a')",
    "dummy BETWEEN 1 AND 2",
    "dummy NOT BETWEEN 1 AND 2",
    "rank BETWEEN dummy AND 200",
    "rank NOT BETWEEN dummy AND 200",
    *[f"dummy {operator} 2 = 0" for operator in "+-*/%"],
    *[f"2 {operator} dummy = 0" for operator in "+-*/%"],
    "-dummy = 0",
    "name + dummy = 'JamesNone'",
    "-name = 0",
    "name - 1 = 0",
    "1 + name = 0",
    "yes + 1 = 2",
    "TRUE + 1 = 2",
    "NULL + 1 = 1",
    "rank / 0 = 1",
    "rank % 0 = 1",
    "ratio / 0.0 = 1",
    "ratio % 0.0 = 1",
    "1E999 % 2 = 1",
    "huge / 2 = 1",
    "huge + 0.5 = 1",
]


@pytest.mark.parametrize(("texts", "result"), [(TRUE, True), (FALSE, False), (UNKNOWN, None)])
def test_true_false_and_unknown(texts: list[str], result: bool | None) -> None:
    assert [text for text in texts if truth(text) is not result] == []


def test_between_decides_by_one_bound_when_the_other_is_unknown() -> None:
    assert truth("rank BETWEEN 200 AND dummy") is False
    assert truth("rank NOT BETWEEN 200 AND dummy") is True


LETTERS: dict[str, bool | None] = {"T": True, "F": False, "U": None}


@pytest.mark.parametrize(
    ("operator", "rows"),
    [("AND", {"T": "TFU", "F": "FFF", "U": "UFU"}), ("OR", {"T": "TTT", "F": "TFU", "U": "TUU"})],
)
def test_three_valued_tables(operator: str, rows: dict[str, str]) -> None:
    texts = {"T": "yes", "F": "no", "U": "dummy"}
    for left, row in rows.items():
        for right, result in zip("TFU", row, strict=True):
            assert truth(f"{texts[left]} {operator} {texts[right]}") is LETTERS[result], (left, operator, right)


@pytest.mark.parametrize(
    ("text", "pattern", "escape", "fits"),
    [
        ("abc", "abc", None, True),
        ("abc", "ab", None, False),
        ("abc", "a_c", None, True),
        ("abc", "a__c", None, False),
        ("abc", "%", None, True),
        ("", "%", None, True),
        ("", "", None, True),
        ("", "_", None, False),
        ("abc", "a%", None, True),
        ("abc", "%c", None, True),
        ("abc", "%b%", None, True),
        ("abc", "a%b%c", None, True),
        ("abc", "a%c%b", None, False),
        ("ab", "ab%b", None, False),
        ("aba", "ab%ba", None, False),
        ("bcd", "%b%", None, True),
        ("abab", "%ab%ab%", None, True),
        ("ab", "%ab%ab%", None, False),
        ("aba", "%ab%ba%", None, False),
        ("abab", "a%ab", None, True),
        ("xaXbxaYb", "%a_b%a_b", None, True),
        ("xaXb", "%a_b%a_b", None, False),
        ("a\nb", "a_b", None, True),
        ("a\nb", "a%b", None, True),
        ("ABC", "abc", None, False),
        ("a.c", "a.c", None, True),
        ("abc", "a.c", None, False),
        ("[a]+(b)*^$\\", "[a]+(b)*^$\\", None, True),
        ("100%", "100!%", "!", True),
        ("1000", "100!%", "!", False),
        ("_a", "!_%", "!", True),
        ("ba", "!_%", "!", False),
        ("!a", "!!a", "!", True),
        ("!a", "!a", "!", True),
        ("a!", "a!", "!", True),
        ("a_", "a\\_", "\\", True),
        ("ab", "a\\_", "\\", False),
        ("a_", "a__", "_", True),
        ("ab", "a__", "_", False),
        ("xa_", "%a%_", "%", True),
        ("xa%", "%a%%", "%", True),
        ("xay", "%a%%", "%", False),
        ("it's", "it's", None, True),
    ],
)
def test_like(text: str, pattern: str, escape: str | None, fits: bool) -> None:
    quoted = pattern.replace("'", "''")
    clause = f"v LIKE '{quoted}'" + (f" ESCAPE '{escape}'" if escape else "")
    assert matches(clause, {"v": text}) is fits
    assert matches(clause.replace("LIKE", "NOT LIKE"), {"v": text}) is not fits


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("age > 18", True),
        ("18 < age", True),
        ("age = 21", True),
        ("age = 21.0", True),
        ("age <> 21", False),
        ("age BETWEEN 1 AND 99", True),
        ("age NOT BETWEEN 1 AND 9", True),
        ("half < 1", True),
        ("half = .5", True),
        ("age + 1 = 22", True),
        ("age + half = 21.5", True),
        ("-age = -21", True),
        ("age * 2 - 2 = 40", True),
        ("name > 18", False),
        ("name = 18", False),
        ("name + '!' = 'James!'", True),
        ("name - 1 = 0", None),
        ("empty = 0", False),
        ("AMQPriority = '4'", True),
        ("AMQPriority = 'x'", False),
        ("bigger > big", True),
        ("name > foo", False),
        ("age = '21'", True),
        ("age = '21.0'", False),
        ("flag", True),
        ("loud", True),
        ("flag = TRUE", True),
        ("TRUE = flag", True),
        ("flag = FALSE", False),
        ("off", False),
        ("off = FALSE", True),
        ("off = TRUE", False),
        ("name = FALSE", False),
        ("name", False),
        ("yes = 1", False),
        ("dummy > 1", None),
    ],
)
def test_convert_string_expressions(text: str, result: bool | None) -> None:
    prefix = "convert_string_expressions:"
    assert matches(prefix + text) is (result is True)
    assert matches(f"{prefix}NOT ({text})") is (result is False)


@pytest.mark.parametrize("written", ["1_0", " 10", "10 ", "١٠", "0x0a", "10L", "1e", ".", "+", "NaN", "Infinity"])
def test_what_is_no_decimal_number_is_not_converted(written: str) -> None:
    assert not matches("convert_string_expressions:v > 0 OR v <= 0 OR v = 10", {"v": written})


@pytest.mark.parametrize(("written", "value"), [("+5", "5"), ("-5", "-5"), ("5.", "5"), (".5", ".5"), ("5e-1", ".5")])
def test_decimal_numbers_are_converted(written: str, value: str) -> None:
    assert matches(f"convert_string_expressions:v = {value}", {"v": written})


def test_a_number_of_very_many_digits_is_still_a_number() -> None:
    assert matches("convert_string_expressions:v > 1E300", {"v": "9" * 5_000})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("hyphenated_props:content-type = 'text'", True),
        ("hyphenated_props:rank -23 = 100", True),
        ("hyphenated_props:\"content-type\" = 'text'", True),
        ("hyphenated_props:convert_string_expressions:content-type = 'text' AND age = 21", True),
        ("convert_string_expressions:hyphenated_props:content-type = 'text' AND age = 21", True),
        ("convert_string_expressions:no_convert_string_expressions:age = 21", False),
        ("no_convert_string_expressions:convert_string_expressions:age = 21", True),
        ("hyphenated_props:no_hyphenated_props:rank-version = 121", True),
        (" convert_string_expressions: hyphenated_props:\nage = 21", True),
    ],
)
def test_prefixes(text: str, result: bool) -> None:
    assert matches(text) is result


REFUSED = [
    ("", 1, 1, "selector: it is empty"),
    (" \n", 1, 1, "selector: it is empty"),
    ("prefix = 'x' AND", 1, 17, "selector: expected a name"),
    ("a = 0x" + "f" * 1025, 1, 5, "a number of 1,027 digits is too long"),
    ("  -- nothing", 1, 13, "expected a name"),
    ("name = ", 1, 8, "found the end of the selector"),
    ("= 'x'", 1, 1, "found '='"),
    ("name 'x'", 1, 6, "expected AND, OR or the end of the selector, found \"'x'\""),
    ("a = 1 AMD b = 2", 1, 7, "found 'AMD'"),
    ("a = b foo AND c = 'x'", 1, 7, "found 'foo'"),
    ("a !=\n 1", 1, 3, "'!=' is not an operator; write '<>'"),
    ("a == 1", 1, 3, "write '='"),
    ("a = 1 && b = 1", 1, 7, "write AND"),
    ("a = 1 || b = 1", 1, 7, "write OR"),
    ("!a", 1, 1, "write NOT"),
    ("a & b", 1, 3, "unexpected character '&'"),
    ("a\n  AND\n b ? 1", 3, 4, "unexpected character '?'"),
    ("convert_string_expressions:a !", 1, 30, "write NOT"),
    ("a.b = 1", 1, 2, "a name with '.' in it must be in double quotes"),
    ("a:b = 1", 1, 2, "a name with ':' in it must be in double quotes"),
    ("a = 'x", 1, 5, "a text is not closed"),
    ('"a', 1, 1, "a name is not closed"),
    ("a /* b", 1, 3, "a comment is not closed"),
    ("3+5", 1, 1, "a condition is expected here"),
    ("'x'", 1, 1, "a condition is expected here"),
    ("TRUE AND 3+5", 1, 10, "a condition is expected here"),
    ("a = 1 OR -b", 1, 10, "a condition is expected here"),
    ("NOT 5", 1, 5, "a condition is expected here"),
    ("(a = 1) + 2 = 3", 1, 1, "a value is expected here, found a condition"),
    ("2 * (a = 1) = 3", 1, 5, "a value is expected here"),
    ("-(a = 1) = 3", 1, 2, "a value is expected here"),
    ("(a = 1) LIKE 'x'", 1, 1, "a value is expected here"),
    ("a = NOT b", 1, 5, "found 'NOT'"),
    ("a NOT b", 1, 7, "expected BETWEEN, LIKE or IN after NOT"),
    ("a NOT = b", 1, 7, "expected BETWEEN, LIKE or IN after NOT"),
    ("a = NULL", 1, 5, "write IS NULL"),
    ("NULL <> a", 1, 1, "write IS NOT NULL"),
    ("a > 'x'", 1, 5, "for a text use '=', '<>', LIKE or IN"),
    ("'x' <= a", 1, 1, "for a text use"),
    ("a BETWEEN 'a' AND 'b'", 1, 11, "for a text use"),
    ("a BETWEEN 1 AND 'b'", 1, 17, "for a text use"),
    ("a > TRUE", 1, 5, "found a condition"),
    ("a > b > c", 1, 1, "found a condition"),
    ("a BETWEEN 1", 1, 12, "expected AND between the two bounds"),
    ("a BETWEEN 1 OR 2", 1, 13, "expected AND between the two bounds"),
    ("a IS 5", 1, 6, "expected NULL or NOT NULL"),
    ("a IS NOT 5", 1, 10, "expected NULL, found '5'"),
    ("a IN 'x'", 1, 6, "expected '('"),
    ("a IN ()", 1, 7, "expected a text in single quotes"),
    ("a IN (1)", 1, 7, "expected a text in single quotes"),
    ("a IN ('x' 'y')", 1, 11, "expected ',' or ')'"),
    ("a + 1 IN ('x')", 1, 1, "IN needs a name on its left"),
    ("a LIKE 5", 1, 8, "expected a text in single quotes"),
    ("a LIKE b", 1, 8, "expected a text in single quotes"),
    ("a LIKE 'x' ESCAPE 'xy'", 1, 19, "exactly one character"),
    ("a LIKE 'x' ESCAPE ''", 1, 19, "exactly one character"),
    ("(a = 1", 1, 7, "expected ')' or an operator"),
    ("a = 1)", 1, 6, "found ')'"),
    ("()", 1, 2, "found ')'"),
    ("upper(a) = 'X'", 1, 1, "a selector has no functions, found 'upper'"),
    ("(upper(a) = 'X')", 1, 2, "a selector has no functions"),
    ("XPATH '//a'", 1, 1, "XPATH is not supported"),
    ("a = 1 AND XQUERY '//a'", 1, 11, "XQUERY is not supported"),
    ("09 = 1", 1, 1, "means octal"),
    ("1.2.3 = a", 1, 1, "'1.2.3' is not a number"),
    ("5x = 1", 1, 2, "found 'x'"),
    ("between = 1", 1, 1, "found 'between'"),
    ("a = 1, b = 2", 1, 6, "found ','"),
    ("a = 1;", 1, 6, "unexpected character ';'"),
    ("9" * 5_000 + " = a", 1, 1, "a number of 5,000 digits is too long"),
]


@pytest.mark.parametrize(("text", "line", "column", "says"), REFUSED)
def test_refused_with_place_and_reason(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(SelectorError) as refused:
        compile_selector(text)
    assert says in str(refused.value)
    assert (refused.value.line, refused.value.column) == (line, column)


def test_a_minus_sign_in_a_name_means_subtraction_without_the_prefix() -> None:
    assert compile_selector("content-type = 'x'").identifiers == {"content", "type"}
    assert compile_selector("hyphenated_props:content-type = 'x'").identifiers == {"content-type"}


def test_identifiers_are_those_asked_for() -> None:
    selector = compile_selector("a = 'x' AND (\"b.c\" IN ('y') OR NOT d) AND e IS NULL AND a <> f + 1")
    assert selector.identifiers == {"a", "b.c", "d", "e", "f"}
    assert selector.text.startswith("a = 'x'")
    assert compile_selector("TRUE").identifiers == frozenset()


def test_keywords_are_names_only_in_quotes() -> None:
    assert compile_selector("\"and\" = 'x'").identifiers == {"and"}
    assert compile_selector("ıN = 'x'").identifiers == {"ıN"}


NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "a" + ")" * n,
    "not": lambda n: "NOT " * n + "a",
    "not in parentheses": lambda n: "NOT (" * n + "a" + ")" * n,
    "signs": lambda n: "- " * n + "a = 1",
    "sums": lambda n: "+".join(["a"] * n) + " = 1",
    "sums to the right": lambda n: "a + (" * n + "a" + ")" * n + " = 1",
    "equalities": lambda n: " = ".join(["a"] * n),
    "equalities to the right": lambda n: "a = (" * n + "a" + ")" * n,
    "is null": lambda n: "a" + " IS NULL" * n,
    "between": lambda n: "a BETWEEN b AND " * n + "c",
    "like": lambda n: "a = (a LIKE 'x' AND b = (" * n + "a" + "))" * n,
    "open": lambda n: "(" * n,
    "after many conditions": lambda n: "a AND " * n + "(" * n + "a" + ")" * n,
    "after many signs": lambda n: "a = -1 AND " * n + "(" * n + "a" + ")" * n,
}


@pytest.mark.parametrize("shape", NESTED)
@pytest.mark.parametrize("size", [MAX_NESTING, 2_000, 100_000])
def test_deep_nesting_is_refused_not_a_crash(shape: str, size: int) -> None:
    text = NESTED[shape](size + 1)
    with pytest.raises(SelectorError):
        compile_selector(text)


@pytest.mark.parametrize("shape", ["parentheses", "not", "signs", "sums", "is null"])
def test_nesting_within_the_limit_works(shape: str) -> None:
    compile_selector(NESTED[shape](MAX_NESTING - 3)).matches({"a": 1}.get)


def test_nesting_is_counted_exactly() -> None:
    parentheses, sums = NESTED["parentheses"], NESTED["sums"]
    for text in (parentheses(MAX_NESTING - 1), sums(MAX_NESTING - 1)):
        compile_selector(text)
    for text in (parentheses(MAX_NESTING), sums(MAX_NESTING)):
        with pytest.raises(SelectorError, match="nested deeper than 100 levels"):
            compile_selector(text)


def test_chains_of_and_and_or_are_not_nesting() -> None:
    many = " OR ".join(f"a = '{number}'" for number in range(4_000))
    assert len(many) < BROKER_LIMITS.bytes_max
    assert matches(many, {"a": "3999"})
    assert not matches(many, {"a": "4000"})
    assert not matches(many.replace("OR", "AND"), {"a": "3999"})


def test_length_is_limited() -> None:
    condition = "a = 'x'"
    assert matches(condition + " " * (BROKER_LIMITS.bytes_max - len(condition)), {"a": "x"})
    with pytest.raises(SelectorError, match="65,537 bytes, at most 65,536"):
        compile_selector(condition + " " * (BROKER_LIMITS.bytes_max + 1 - len(condition)))


@pytest.mark.parametrize(
    "pattern", ["%a" * 2_000 + "b", "%a%_" * 1_000 + "b", "%" * 5_000 + "b", "%" + "a" * 5_000 + "_b%"]
)
def test_like_does_not_explode(pattern: str) -> None:
    """What it costs inside calls: tests/unit/test_selector_cost.py."""
    selector = compile_selector(f"v LIKE '{pattern}'")
    assert not selector.matches({"v": "a" * 10_000}.get)
    assert lines_run(lambda: selector.matches({"v": "a" * 10_000}.get)) < 10_000


@pytest.mark.parametrize(
    "text", ["/*" * 30_000, "'" * 60_001, '"' * 60_001, "-" * 65_000, "/**/" * 16_000, "1e" * 30_000]
)
def test_strange_texts_are_refused_quickly(text: str) -> None:
    refused = partial(pytest.raises, SelectorError, compile_selector, text)
    assert lines_run(refused) < 5 * len(text)
