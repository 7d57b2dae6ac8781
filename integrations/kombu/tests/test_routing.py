"""Filters of bindings, beside regular expressions for the same."""

from __future__ import annotations

import re

import pytest
from artemis_py_kombu.routing import KEY, filter_of

from artemis_py.selector import compile_selector

KEYS = [
    "a",
    "b",
    "a.b",
    "a.b.c",
    "x.a",
    "x.y.a",
    "a.x.b",
    "ab",
    "task_sent",
    "taskXsent",
    "task_sent.x",
    "taskXsent.x",
    "it's",
    "50%",
    "b\\c",
    "a.b.c.d",
]
PATTERNS = [
    "#",
    "*",
    "a",
    "a.b",
    "*.a",
    "a.*",
    "a.*.b",
    "*.*",
    "*.b.*",
    "task_sent",
    "task_sent.*",
    "it's",
    "50%.*",
    "b\\c",
]


def matches(condition: str, key: str) -> bool:
    return not condition or compile_selector(condition).matches(lambda name: key if name == KEY else None) is True


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_star_is_one_word(pattern: str) -> None:
    expected = re.compile(re.escape(pattern).replace(r"\*", r"[^.]+").replace(r"\#", ".*") + "$")
    condition = filter_of("topic", [pattern])
    assert [key for key in KEYS if matches(condition, key)] == [key for key in KEYS if expected.match(key)]


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        ("a.#", ["a", "a.b", "a.b.c", "a.x.b", "a.b.c.d"]),
        ("#.a", ["a", "x.a", "x.y.a"]),
        ("a.#.b", ["a.b", "a.x.b"]),
        ("#.b.#", ["b", "a.b", "a.b.c", "a.x.b", "a.b.c.d"]),
        ("task_sent.#", ["task_sent", "task_sent.x"]),
    ],
)
def test_any_number_of_words_is_also_none(pattern: str, keys: list[str]) -> None:
    assert [key for key in KEYS if matches(filter_of("topic", [pattern]), key)] == keys


def test_direct_and_fanout() -> None:
    assert [key for key in KEYS if matches(filter_of("direct", ["a", "it's"]), key)] == ["a", "it's"]
    assert filter_of("direct", ["a.*"]) == f"{KEY} = 'a.*'"
    assert filter_of("fanout", ["a"]) == ""
    assert filter_of("topic", ["a", "#"]) == ""


@pytest.mark.parametrize("pattern", ["*.a.#", "#.*", "#.a.#.b.#.c.#.d.#"])
def test_a_pattern_that_no_filter_can_say_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="bind several patterns"):
        filter_of("topic", [pattern])
