"""Routing by wildcards: the table of pairs, the index of patterns, and a tiny matcher beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex, is_wildcard
from tests.kit.core import lines_run

SLASH = WildcardSyntax(delimiter="/")
ANY_GREATER = WildcardSyntax(any_words=">")
SINGLE_QUESTION = WildcardSyntax(single_word="?")
ROUTING_OFF = WildcardSyntax(routing_enabled=False)

# pattern, address, routed; what Artemis does, with the clean rule (see the module) marked where Artemis strays
PAIRS = [
    ("#", "a", True),
    ("#", "a.b.c", True),
    ("#", "", True),
    ("*", "a", True),
    ("*", "a.b", False),
    ("*", "", True),
    ("a", "a", True),
    ("a", "A", False),
    ("a.b", "aXb", False),
    ("a.#", "a", True),
    ("a.#", "a.b", True),
    ("a.#", "a.b.c", True),
    ("a.#", "ab", False),
    ("a.#", "ab.c", False),
    ("a.#", "a.", True),
    ("a.#", "a..b", True),
    ("a#", "a", False),
    ("a#", "a.b", False),
    ("a#", "ab", False),
    ("a#", "a#", True),
    ("a.b#", "a.b.c", False),
    ("a.b#", "a.bc", False),
    ("a.*", "a", False),
    ("a.*", "a.b", True),
    ("a.*", "a.b.c", False),
    ("a.*", "a.", True),
    ("a.*", "a..b", False),
    ("a.*", "ab", False),
    ("*.b", "a.b", True),
    ("*.b", ".b", True),
    ("*.b", "b", False),
    ("*.b", "a.a.b", False),
    ("a.*.c", "a.b.c", True),
    ("a.*.c", "a.c", False),
    ("a.*.c", "a..c", True),
    ("a.*.#", "a", False),
    ("a.*.#", "a.b", True),
    ("a.*.#", "a.b.c", True),
    ("*.#", "a", True),
    ("*.#", "a.b", True),
    ("*.*", "a.b", True),
    ("*.*", "a", False),
    ("a.**", "a.b", False),
    ("a*", "ab", False),
    ("a*", "a", False),
    ("a*", "abc.d", False),
    ("*a", "ba", False),
    ("a.b*", "a.bc", False),
    ("a.*b", "a.xb", False),
    ("*#", "a.b", False),
    ("#.b", "b", True),
    ("#.b", "a.b", True),
    ("a.#.c", "a.c", True),
    ("a.#.c", "a.b.c", True),
    ("a.#.c", "a.b.b.c", True),
    ("#.#", "a.b", True),  # clean rule
    ("a.#.*", "a.b", True),  # clean rule
    ("a.#.#", "a", True),  # clean rule
    ("a.#.a.b", "a.b", False),  # clean rule
    ("a.#.a.b", "a.a.b", True),
    ("##", "a", False),
    ("a.##", "a.b", False),
    ("$sys.#", "$sys", True),
    ("$sys.#", "$sys.x", True),
    ("a$b.*", "a$b.c", True),
    ("a+b.*", "a+b.c", True),
    ("a+b.*", "aab.c", False),
    ("q[1].*", "q[1].x", True),
    ("q[1", "q[1", True),
    ("a\\*.b", "a*.b", False),
    ("a\\*.b", "a\\*.b", True),
    ("a.#", "a.*", True),
    ("a.*", "a.#", True),
    ("a.#", "a::q", False),
]


@pytest.mark.parametrize(("pattern", "address", "routed"), PAIRS)
def test_pair_of_pattern_and_address(pattern: str, address: str, routed: bool) -> None:
    index = WildcardIndex()
    index.add(pattern)
    assert index.matching(address) == ([pattern] if routed else [])


@pytest.mark.parametrize(
    ("syntax", "pattern", "address", "routed"),
    [
        (SLASH, "a/#", "a", True),
        (SLASH, "a/*", "a/b.c", True),
        (SLASH, "a.#", "a.b", False),
        (ANY_GREATER, "a.>", "a", True),
        (ANY_GREATER, "a.#", "a.b", False),
        (SINGLE_QUESTION, "a.?", "a.b", True),
    ],
)
def test_other_wildcard_characters(syntax: WildcardSyntax, pattern: str, address: str, routed: bool) -> None:
    index = WildcardIndex(syntax)
    index.add(pattern)
    assert index.matching(address) == ([pattern] if routed else [])


def test_without_wildcard_routing_every_pattern_is_plain_text() -> None:
    assert not is_wildcard("a.#", ROUTING_OFF)
    index = WildcardIndex(ROUTING_OFF)
    index.add("a.#")
    index.add("a.*")
    assert index.matching("a.b") == []
    assert index.matching("a.*") == ["a.*"]
    index.remove("a.*")
    assert index.matching("a.*") == []


@pytest.mark.parametrize(
    ("address", "wild"),
    [("a", False), ("*", True), ("a.#", True), ("#.b", True), ("a*", False), ("a.#b", False), ("a\\*", False)],
)
def test_what_is_a_wildcard_address(address: str, wild: bool) -> None:
    assert is_wildcard(address) is wild


def test_matches_come_in_the_order_of_their_text() -> None:
    index = WildcardIndex()
    for pattern in ("orders.*", "#", "*.eu", "orders.eu", "orders.#", "sales.#"):
        index.add(pattern)
    assert index.matching("orders.eu") == ["#", "*.eu", "orders.#", "orders.*", "orders.eu"]


def test_a_removed_pattern_leaves_the_others_and_no_branches() -> None:
    index = WildcardIndex()
    for pattern in ("a.*.c", "a.*", "a.*.#"):
        index.add(pattern)
    index.add("a.*")
    assert len(index) == 3
    index.remove("a.*")
    assert "a.*" not in index
    assert index.matching("a.b.c") == ["a.*.#", "a.*.c"]
    assert index.matching("a.b") == ["a.*.#"]
    index.remove("a.*.c")
    index.remove("a.*.#")
    assert index._root.is_empty()


def test_removing_what_is_not_there_is_an_error_and_changes_nothing() -> None:
    index = WildcardIndex()
    index.add("a.*.c")
    with pytest.raises(KeyError):
        index.remove("a.*")
    assert index.matching("a.b.c") == ["a.*.c"]


def test_many_any_words_wildcards_stay_cheap() -> None:
    pattern = ".".join(["#", "a"] * 40) + ".b"
    address = ".".join(["a"] * 400)
    index = WildcardIndex()
    index.add(pattern)
    assert index.matching(address) == []
    assert index.matching(address + ".b") == [pattern]
    assert lines_run(lambda: index.matching(address)) < 500_000


def _tiny(pattern: list[str], address: list[str]) -> bool:
    if not pattern:
        return not address
    if pattern[0] == "#":
        return any(_tiny(pattern[1:], address[taken:]) for taken in range(len(address) + 1))
    return bool(address) and pattern[0] in ("*", address[0]) and _tiny(pattern[1:], address[1:])


_pattern = st.lists(st.sampled_from(["a", "b", "", "*", "#", "a*", "##"]), min_size=1, max_size=5).map(".".join)
_address = st.lists(st.sampled_from(["a", "b", "", "a*"]), min_size=1, max_size=6).map(".".join)


@given(st.lists(_pattern, max_size=8), st.lists(_pattern, max_size=4), st.lists(_address, min_size=1, max_size=4))
def test_index_equals_a_tiny_matcher(added: list[str], removed: list[str], addresses: list[str]) -> None:
    index = WildcardIndex()
    for pattern in added:
        index.add(pattern)
    for pattern in set(removed) & set(added):
        index.remove(pattern)
    kept = sorted(set(added) - set(removed))
    for address in addresses:
        expected = [pattern for pattern in kept if _tiny(pattern.split("."), address.split("."))]
        assert index.matching(address) == expected
