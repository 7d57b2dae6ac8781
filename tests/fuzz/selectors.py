"""Selectors: any text compiles or is refused with its place, and what compiles has a value for any headers."""

from __future__ import annotations

import random

from artemis_py.errors import SelectorError
from artemis_py.selector import CLIENT_LIMITS, Selector, compile_selector
from artemis_py.selector.evaluate import Value
from tests.fuzz.fuzzing import Fuzzer, Input, outcome_of

WORDS = (
    "a", "b", '"b c"', "_x1", "$d", "JMSPriority", "AMQPriority", "'x'", "''", "'it''s'", "'%_'", "'5'", "5", "0x1F",
    "011", "7L", "1.5", ".5", "2.", "1E2", "1e400", "9223372036854775808", "(", ")", ",", "+", "-", "*", "/", "%", "=",
    "<>", "<", "<=", ">", ">=", "AND", "OR", "NOT", "not", "BETWEEN", "LIKE", "ESCAPE", "'!'", "IN", "IS", "TRUE",
    "FALSE", "NULL", "XPATH", "--", "/*", "*/", "'", '"', ".", "!", "\n", "é", "\0", "😀",
    "convert_string_expressions:", "hyphenated_props:", "no_hyphenated_props:", "a-b",
)  # fmt: skip
CONDITIONS = (
    "a = 'x'", "a <> 5", "a < 1.5", "a IS NULL", "a IS NOT NULL", "a LIKE 'x%'", "a NOT LIKE '!%%' ESCAPE '!'",
    "a IN ('x', 'y')", "a NOT IN ('x')", "a BETWEEN 1 AND 5", "a + b * 2 = 3", "-a > 0", "a % 0 = 1", "b", "TRUE",
    "a / 0 IS NULL", "'5' = a",
)  # fmt: skip
HEADERS: tuple[dict[str, Value], ...] = (
    {},
    dict.fromkeys(("a", "b", "b c", "$d", "a-b", "AMQPriority"), "x"),
    dict.fromkeys(("a", "b", "b c", "$d", "a-b", "AMQPriority"), 5),
    {"a": 1.5, "b": True, "AMQPriority": -1},
    {"a": "5", "b": "true", "$d": None},
    {"a": 2**63 - 1, "b": -(2**63)},
    {"a": float("inf"), "b": float("nan")},
)
TOKENS = tuple(word.encode() for word in (*WORDS, *CONDITIONS, " ", " AND ", " OR ", "NOT ", "((((((((((", "'%a%_'"))


def text(rng: random.Random) -> bytes:
    """A condition, or a soup of words."""
    if rng.random() < 0.3:
        return rng.choice(("", " ")).join(rng.choice(WORDS) for _ in range(rng.randrange(14))).encode()
    made = rng.choice(CONDITIONS)
    for _ in range(rng.randrange(5)):
        other = rng.choice(CONDITIONS)
        made = rng.choice((f"{made} AND {other}", f"{other} OR {made}", f"({made})", f"NOT ({made})", f"NOT {made}"))
    return (rng.choice(("", "", "", "convert_string_expressions:", "hyphenated_props:")) + made).encode()


def judge(one: Input) -> str:
    """Compiles or is refused; has one value, never an error; its negation is not true as well."""
    given = one.data.decode("utf-8", ("replace", "surrogateescape")[one.choice & 1])
    try:
        selector = compile_selector(given, CLIENT_LIMITS)
    except SelectorError as refusal:
        error: SelectorError | None = refusal
    else:
        error = None
    if error is not None:
        assert 1 <= error.line <= given.count("\n") + 1, f"line {error.line}"
        assert 1 <= error.column <= len(given) + 1, f"column {error.column}"
        assert str(error).isprintable(), "an error that is not a line of text"
        return outcome_of(error)
    values = [_value(selector, headers) for headers in HEADERS]
    assert values == [_value(compile_selector(given), headers) for headers in HEADERS], "another value the second time"
    negation = _negated(given)
    if negation is not None:
        both = [value and _value(negation, headers) for value, headers in zip(values, HEADERS, strict=True)]
        assert not any(both), "true, and its negation as well"
    return "".join("FT"[value] for value in values) + " " + " ".join(sorted(selector.identifiers))[:20]


def _value(selector: Selector, headers: dict[str, Value]) -> bool:
    value = selector.matches(headers.get)
    assert value is True or value is False
    return value


def _negated(given: str) -> Selector | None:
    """What is true where the selector is false; None where a comment or a prefix is in the way."""
    if ":" in given or "--" in given or "/*" in given:
        return None
    try:
        return compile_selector(f"NOT ({given}\n)")
    except SelectorError as error:
        if "nest" in error.reason or "at most" in error.reason:
            return None
        raise AssertionError(f"it compiles, NOT of it does not: {error}") from error


SELECTORS = Fuzzer("selectors", text, lambda _: judge, TOKENS)
