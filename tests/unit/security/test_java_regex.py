"""A regular expression means what it means in Java, or is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.security.login_modules import RegexError, compile_java, matches


@pytest.mark.parametrize(
    ("pattern", "name", "does"),
    [
        ("CN=Driver [0-9]+, OU=Fleet, O=.*", "CN=Driver 12, OU=Fleet, O=Shop", True),
        ("CN=Driver [0-9]+", "CN=Driver 12, OU=Fleet", False),  # all of it must match
        ("CN=\\d+", "CN=١٢", False),  # only ASCII digits, as in Java
        ("(?i)cn=a.*", "CN=A, OU=x", True),
        ("CN=(a|b), OU=(?:x|y)(?<!y)", "CN=b, OU=x", True),
        ("CN=(a)\\1", "CN=aa", True),
        ("CN=a{2,3}+", "CN=aaa", True),
        ("CN=[^,]*, O=Shop\\, Inc\\.", "CN=a, O=Shop, Inc.", True),
        ("CN=.*", "CN=a\r", False),  # a point is no end of a line in Java
        ("CN=.*", "CN=a\u2028b", False),
        ("CN=a$", "CN=a\n", False),
    ],
)
def test_what_matches(pattern: str, name: str, does: bool) -> None:
    assert matches(compile_java(pattern), name) is does


@pytest.mark.parametrize(
    "pattern",
    [
        "CN=\\p{Alpha}+", "\\Qa.b\\E", "[a-z&&[^x]]", "[a[bc]]", "[]a]", "(?<name>a)", "(?P<name>a)", "a(?i)b", "(?x)a",
        "\\h", "\\Z", "\\R", "a{,3}", "a{", "{1}", "\\x41", "\\0101", "\\bfoo", "(?#note)a", "a**", "(a", "*a", "a)",
        "x" * 5000, "\\", "[a", "[z-a]", "(?>a)", "[a--b]", "[a||b]", "(?-i)a", "\\é"[:1] + "k<n>",
    ],
)  # fmt: skip
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_java(pattern)


@given(st.text(alphabet="aA0 .^$|()[]{}*+?\\-,:=!<>&~#d1\n", max_size=20))
def test_any_text_is_compiled_or_refused(pattern: str) -> None:
    try:
        compile_java(pattern)
    except RegexError as error:
        refusal = str(error)
        assert refusal
