"""Names of beans and patterns of names, as Java writes and matches them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random

import pytest

from artemis_py.management.artemis.beans import BadNameError, matcher_of, parse_name, quote, unquote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("orders", '"orders"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a*b?", r'"a\*b\?"'),
        ("a\nb", r'"a\nb"'),
        ("", '""'),
    ],
)
def test_what_is_quoted_comes_back(text: str, quoted: str) -> None:
    assert quote(text) == quoted
    assert unquote(quoted) == text


def test_each_text_is_a_value() -> None:
    for text in ("a,b", "a=b", "a:b", "ä", "a b", "*", '",x="', "\\", "?", "x\n"):
        name = parse_name(f"d:k={quote(text)},l=1")
        assert unquote(name.properties["k"]) == text
        assert not name.is_pattern
        assert matcher_of(name.properties["k"]).fullmatch(quote(text))


def test_the_order_means_nothing() -> None:
    one, other = parse_name('d:b="1",a=2'), parse_name('d:a=2,b="1"')
    assert one.properties == other.properties
    assert one.canonical == other.canonical == 'd:a=2,b="1"'


@pytest.mark.parametrize("text", ["d:a=*", 'd:a="x*"', "d:a=1,*", "d:*", "*:a=1", "d?:a=1", 'd:a="?"', "d:*,a=1"])
def test_patterns(text: str) -> None:
    assert parse_name(text).is_pattern


@pytest.mark.parametrize("text", ['d:a="\\*"', "d:a=1", r'd:a="\?"'])
def test_names_that_are_no_patterns(text: str) -> None:
    assert not parse_name(text).is_pattern


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("*", '"orders"', True),
        ('"*"', '"orders"', True),
        ('"o*"', '"orders"', True),
        ('"o*"', '"jobs"', False),
        ('"orders"', '"orders"', True),
        ("orders", '"orders"', False),
        ('"?rders"', '"orders"', True),
        (r'"\*"', '"orders"', False),
        (r'"\*"', r'"\*"', True),
        ("ac*", "acceptors", True),
        ('"a.b"', '"axb"', False),
    ],
)
def test_what_a_pattern_matches(pattern: str, value: str, matches: bool) -> None:
    assert (matcher_of(pattern).fullmatch(value) is not None) == matches


@pytest.mark.parametrize(
    "text",
    ["", "d", "d:", "d:a", "d:a=", "d:a=1,", "d:a=1,a=2", 'd:a="x', 'd:a="x"y', "d:=1", 'd:a="\\x"', "d:,"],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(BadNameError, match="Invalid object name"):
        parse_name(text)


def test_a_pattern_of_many_asterisks_takes_no_time() -> None:
    """With a way back from each asterisk it would take more than the age of the world."""
    pattern, name = "*a" * 40 + "b", "a" * 4_000
    assert matcher_of(pattern).fullmatch(name) is None
    assert matcher_of(f'"{pattern}"').fullmatch(f'"{name}"') is None
    assert matcher_of(pattern).fullmatch(f"{name}b")


@pytest.mark.parametrize("seed", range(20))
def test_patterns_match_as_those_of_shells(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        pattern = "".join(random.choices("ab*?", k=random.randint(0, 6)))
        text = "".join(random.choices("ab", k=random.randint(0, 6)))
        assert (matcher_of(pattern).fullmatch(text) is not None) == fnmatchcase(text, pattern), (pattern, text)
