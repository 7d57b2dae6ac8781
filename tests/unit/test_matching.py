"""Matches of settings: the table of pairs, the table of orders, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.config.matching import Repository, WildcardSyntax, check_match, has_wildcard, setting_matches
from artemis_py.errors import MatchError
from tests.kit.core import lines_run

DOT = WildcardSyntax()
SLASH = WildcardSyntax(delimiter="/")
ANY_GREATER = WildcardSyntax(any_words=">")
SINGLE_QUESTION = WildcardSyntax(single_word="?")

# match, address, applies; what Artemis does, with the departures that the module's docstring states marked
PAIRS = [
    ("#", "a", True),
    ("#", "a.b.c", True),
    ("#", "", True),
    ("*", "a", True),
    ("*", "a.b", False),
    ("*", "", False),
    ("a", "a", True),
    ("a", "A", False),
    ("a.b", "aXb", False),
    ("a.#", "a", True),
    ("a.#", "a.b", True),
    ("a.#", "a.b.c", True),
    ("a.#", "ab", False),
    ("a.#", "ab.c", False),
    ("a.#", "a.", False),
    ("a.#", "a..b", True),
    ("a#", "a", True),
    ("a#", "a.b", True),
    ("a#", "ab", False),
    ("a.b#", "a.b.c", True),
    ("a.b#", "a.bc", False),
    ("a.*", "a", False),
    ("a.*", "a.b", True),
    ("a.*", "a.b.c", False),
    ("a.*", "a.", False),
    ("a.*", "a..b", False),
    ("a.*", "ab", False),
    ("*.b", "a.b", True),
    ("*.b", ".b", False),
    ("*.b", "b", False),
    ("*.b", "a.a.b", False),
    ("a.*.c", "a.b.c", True),
    ("a.*.c", "a.c", False),
    ("a.*.c", "a..c", False),
    ("a.*.#", "a", False),
    ("a.*.#", "a.b", True),
    ("a.*.#", "a.b.c", True),
    ("*.#", "a", True),
    ("*.#", "a.b", True),
    ("*.*", "a.b", True),
    ("*.*", "a", False),
    ("a.**", "a.b", False),
    ("a*", "ab", True),
    ("a*", "a", False),
    ("a*", "abc.d", False),
    ("*a", "ba", True),
    ("a.b*", "a.bc", True),
    ("a.*b", "a.xb", True),
    ("*#", "a.b", True),
    ("$sys.#", "$sys", True),
    ("$sys.#", "$sys.x", True),
    ("a$b.*", "a$b.c", True),
    ("a+b.*", "a+b.c", True),  # departure: Artemis leaves + live
    ("a+b.*", "aab.c", False),  # departure
    ("q[1].*", "q[1].x", True),  # departure: Artemis leaves [ ] live
    ("q[1].*", "q1.x", False),  # departure
    ("q[1", "q[1", True),  # departure: Artemis refuses it
    ("a\\*.b", "a*.b", False),
    ("a\\*.b", "a\\*.b", True),
    ("a.#", "a.*", True),
    ("a.*", "a.#", True),
    ("a.#", "a::q", False),
]

OTHER_SYNTAXES = [
    (SLASH, "a/#", "a", True),
    (SLASH, "a/*", "a/b.c", True),
    (SLASH, "a.#", "a.b", False),
    (ANY_GREATER, "a.>", "a", True),
    (ANY_GREATER, "a.#", "a.b", False),
    (SINGLE_QUESTION, "a.?", "a.b", True),
]

REFUSED = ["#.b", "a.#.c", "#.#", "##", "a.##", "#.x", "#*", "\\#x", "a.#.b", "(a.#)"]

# the text of a match Artemis cannot compile, or gives a meaning of its own
ODD_NAMES = ["a{b}", "q[1", "(a", "a)", "+a", "?a", "a\\q", "a|b", "^a$", "a{2}"]


def order(entries: str, address: str, syntax: WildcardSyntax = DOT, markers: str | None = None) -> list[str]:
    repository = Repository([(match, match) for match in entries.split()], syntax, literal_match_markers=markers)
    found = repository.candidates(address)
    assert all(match == value for match, value in found)
    return [match for match, _ in found]


def test_pairs_of_match_and_address() -> None:
    for match, address, applies in PAIRS:
        assert setting_matches(match, address) is applies, (match, address)
        assert order(match, address) == ([match] if applies else []), (match, address)


@pytest.mark.parametrize(("syntax", "match", "address", "applies"), OTHER_SYNTAXES)
def test_other_wildcard_characters(syntax: WildcardSyntax, match: str, address: str, applies: bool) -> None:
    assert setting_matches(match, address, syntax) is applies


@pytest.mark.parametrize("match", REFUSED)
def test_nothing_may_follow_any_words(match: str) -> None:
    with pytest.raises(MatchError, match="must be the last character"):
        check_match(match)
    with pytest.raises(MatchError):
        Repository([(match, 1)])


def test_the_refusal_says_what_follows_and_what_to_write() -> None:
    with pytest.raises(MatchError) as refused:
        check_match("a.#.c")
    assert str(refused.value) == (
        "match 'a.#.c': '#' must be the last character, but '.c' follows it; use '*' for a single word in the middle"
    )


@pytest.mark.parametrize("name", ODD_NAMES)
def test_characters_of_regular_expressions_are_text(name: str) -> None:
    entries = f"{name} {name}.* {name}.#"
    assert order(entries, name) == [name, f"{name}.#"]
    assert order(entries, f"{name}.x") == [f"{name}.*", f"{name}.#"]
    assert order(f"{name}.*", "a.x") == []


EIGHT = "# a.# b.# a.b.# b.c.# a.b.c.# a.b.*.d a.b.c.*"
SEVENTH = "a.b.c.d.e.f a.b.c.d.e.* a.*.*.*.*.* *.b.c.d.*.f *.b.*.d.*.f a.b.c.d.e.#"
DOCS = "a.b.# a.b.d.# #"

ORDERS = [
    ("1", "# a.# a.* a.b", "a.b", "a.b a.* a.# #"),
    ("2", "# a.# a.* a.b", "a", "a.# #"),
    ("2", "# a.# a.* a.b", "a.b.c", "a.# #"),
    ("2", "# a.# a.* a.b", "z", "#"),
    ("3", "foo.* foo.0.#", "foo.0", "foo.* foo.0.#"),
    ("4", EIGHT, "a.b.c.d", "a.b.c.* a.b.*.d a.b.c.# a.b.# a.# #"),
    ("5", EIGHT, "a.b.c", "a.b.c.# a.b.# a.# #"),
    ("5", EIGHT, "z", "#"),
    ("6", DOCS, "a.b.dabc", "a.b.# #"),
    ("6", DOCS, "a.b.d", "a.b.d.# a.b.# #"),
    ("6", DOCS, "a.babc", "#"),
    ("7", SEVENTH, "a.b.x.d.x.f", "a.*.*.*.*.* *.b.*.d.*.f"),
    ("7", SEVENTH, "x.b.c.d.e.f", "*.b.c.d.*.f *.b.*.d.*.f"),
    (
        "7",
        SEVENTH,
        "a.b.c.d.e.f",
        "a.b.c.d.e.f a.b.c.d.e.* a.*.*.*.*.* *.b.c.d.*.f *.b.*.d.*.f a.b.c.d.e.#",
    ),
    ("8", "a.* *.b", "a.b", "a.* *.b"),
    ("9", "*.*.c a.*.*", "a.b.c", "a.*.* *.*.c"),
    ("10", "a.*.c.* a.b.*.d", "a.b.c.d", "a.b.*.d a.*.c.*"),
    ("11", "*.bbbbbbbbbbbb.# a.#", "a.bbbbbbbbbbbb.c", "*.bbbbbbbbbbbb.# a.#"),
    ("12", "a.b.c.d.e.# *.*.*.*.*.*", "a.b.c.d.e.f", "*.*.*.*.*.* a.b.c.d.e.#"),
    ("13", "a.x* a.xy*", "a.xyz", "a.x* a.xy*"),
    ("13", "a.x* a.*", "a.xyz", "a.x* a.*"),
    ("16", "a.# a#", "a.b", "a.# a#"),
]


@pytest.mark.parametrize(("row", "entries", "address", "expected"), ORDERS)
def test_order_of_candidates(row: str, entries: str, address: str, expected: str) -> None:
    assert order(entries, address) == expected.split()
    backwards = " ".join(reversed(entries.split()))
    assert order(backwards, address) == expected.split()


@pytest.mark.parametrize("delimiter", ["_", "/"])
def test_row_6_with_other_delimiters(delimiter: str) -> None:
    syntax = WildcardSyntax(delimiter=delimiter)
    entries = DOCS.replace(".", delimiter)
    for address, expected in (("a.b.dabc", "a.b.# #"), ("a.b.d", "a.b.d.# a.b.# #"), ("a.babc", "#")):
        assert order(entries, address.replace(".", delimiter), syntax) == expected.replace(".", delimiter).split()


@pytest.mark.parametrize(
    ("address", "expected"),
    [("a.#", "(a.#) a.* a.# #"), ("a.b", "a.b a.* a.# #"), ("(a.#)", "#")],
)
def test_row_14_literal_markers(address: str, expected: str) -> None:
    assert order("# (a.#) a.# a.* a.b", address, markers="()") == expected.split()


@pytest.mark.parametrize("name", ["(a", "a)"])
def test_one_marker_alone_is_text(name: str) -> None:
    assert order(f"{name} a", name, markers="()") == [name]


def test_row_15_plain_match_before_literal_one() -> None:
    assert order("(a.b) a.b #", "a.b", markers="()") == ["a.b", "(a.b)", "#"]


def test_row_20_slash_delimiter() -> None:
    assert order("a/# a.# a/b.c", "a/b.c", SLASH) == ["a/b.c", "a/#"]
    assert order("a/# a.# a/b.c", "a.b", SLASH) == []


def test_ties_with_any_words_are_decided_by_words_then_by_text() -> None:
    assert order("a.*.# a.b.# *.b.# *.*.#", "a.b.c") == ["a.b.#", "a.*.#", "*.b.#", "*.*.#"]
    assert order("*a.# a*.#", "aba.x") == ["*a.#", "a*.#"]


def test_markers_do_not_lift_the_rule_on_any_words() -> None:
    check_match("(a.#)", literal_match_markers="()")
    with pytest.raises(MatchError):
        check_match("(a.#.b)", literal_match_markers="()")


@pytest.mark.parametrize("markers", ["", "(", "(()"])
def test_markers_are_two_characters(markers: str) -> None:
    with pytest.raises(MatchError, match="two characters"):
        Repository([("a", 1)], literal_match_markers=markers)


def test_a_match_of_one_marker_or_none_is_plain_text() -> None:
    assert order("| #", "|", markers="||") == ["|", "#"]
    repository = Repository([("", "empty"), ("||", "enclosed")], literal_match_markers="||")
    assert repository.candidates("") == [("", "empty"), ("||", "enclosed")]


def test_same_match_replaces_the_earlier_one() -> None:
    entries = [("a.#", 1), ("a", 1), ("(a)", 1), ("a.#", 2), ("a", 2), ("(a)", 2)]
    repository = Repository(entries, literal_match_markers="()")
    assert repository.candidates("a") == [("a", 2), ("(a)", 2), ("a.#", 2)]


def test_exact_finds_plain_matches_only() -> None:
    repository = Repository([("a::q", 1), ("a.#", 2)])
    assert repository.exact("a::q") == 1
    assert repository.exact("a.#") is None
    assert repository.exact("a::r") is None


@pytest.mark.parametrize(
    ("match", "wild"),
    [
        ("a.b", False),
        ("*", True),
        ("*a\\", True),
        ("a.#", True),
        ("a\\*.b", False),
        ("a\\#", False),
        ("\\*.*", True),
        ("", False),
    ],
)
def test_what_has_a_wildcard(match: str, wild: bool) -> None:
    assert has_wildcard(match) is wild


def test_a_wildcard_after_a_backslash_is_text_beside_a_real_one() -> None:
    assert order("a\\*.*", "a\\*.x") == ["a\\*.*"]
    assert order("a\\*.*", "ab.x") == []
    assert order("a\\*.*", "a\\b.x") == []
    assert order("*.a\\", "b.a\\") == ["*.a\\"]
    assert order("*.\\#", "a.\\#") == ["*.\\#"]
    assert order("*.\\#", "a") == []


def test_line_breaks_match_single_words_but_not_any_words() -> None:
    assert setting_matches("a.*", "a.x\ny")
    assert not setting_matches("a.#", "a.x\ny")
    assert setting_matches("#", "a.x\ny")


@pytest.mark.parametrize("text", ["", "..", "ab"])
def test_wildcard_characters_are_single(text: str) -> None:
    with pytest.raises(MatchError, match="exactly one character"):
        WildcardSyntax(delimiter=text)


def test_wildcard_characters_differ() -> None:
    with pytest.raises(MatchError, match="differ"):
        WildcardSyntax(any_words="*")


def _applies(match: str, address: str) -> bool:
    """The rule told character by character: the slow way, to compare with."""
    if match == "#":
        return True
    if match == "":
        return address == ""
    if match == ".#":
        return address == "" or (address[0] == "." and len(address) > 1)
    if match[0] == "*":
        return any(
            "." not in address[:end] and _applies(match[1:], address[end:]) for end in range(1, len(address) + 1)
        )
    return address[:1] == match[0] and _applies(match[1:], address[1:])


@given(st.text("ab.*", max_size=7), st.sampled_from(["", "#"]), st.text("ab.", max_size=8))
def test_matching_equals_the_rule_told_slowly(head: str, tail: str, address: str) -> None:
    match = head + tail
    if tail and head.endswith("."):
        expected = _applies(head[:-1] + ".#", address)
    elif tail and head:
        expected = _applies(head + ".#", address)
    else:
        expected = _applies(match, address)
    assert setting_matches(match, address) is expected
    assert ([found for found, _ in Repository([(match, None)]).candidates(address)] == [match]) is expected


def test_many_wildcards_in_a_word_stay_cheap() -> None:
    match = "*a" * 60 + "*b.#"
    assert not setting_matches(match, "a" * 5_000 + ".x")
    assert lines_run(lambda: setting_matches(match, "a" * 5_000 + ".x")) < 40_000
