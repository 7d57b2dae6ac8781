"""login.config is read as Java reads it; what Java refuses is refused with its line."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.config.problems import Problems
from artemis_py.errors import ConfigError
from artemis_py.security.login_config import LoginConfig, parse_login_config

PROPERTIES = {"user": "ann", "empty": "", "a.b-c": "x", "nested": "${user}"}


def parsed(text: str) -> LoginConfig:
    """Reads a text. Raises ConfigError."""
    problems = Problems()
    found = parse_login_config(text, "login.config", PROPERTIES, problems)
    if problems.has_errors:
        raise ConfigError(problems.found)
    return found


def refusal(text: str) -> str:
    """The only reason why a text is refused."""
    with pytest.raises(ConfigError) as refused:
        parsed(text)
    (problem,) = refused.value.problems
    return str(problem)


def options(text: str) -> dict[str, str]:
    """The options of the one module in a domain."""
    (entry,) = parsed(f"d {{ m.M required\n{text}; }};").domains["d"]
    return dict(entry.options)


def test_domains_modules_flags_and_options() -> None:
    found = parsed(
        """/* first */ one { // the domain
            a.First required debug=true key="a value; with } and //";
            a.Second SUFFICIENT
               x.y-z_$*=a12;
        };
        "two domains" { };"""
    )  # fmt: skip
    first, second = found.domains["one"]
    assert (first.class_name, first.flag, first.origin.line) == ("a.First", "required", 2)
    assert first.options == {"debug": "true", "key": "a value; with } and //"}
    assert (second.flag, second.options, second.option_origins["x.y-z_$*"].line) == (
        "sufficient",
        {"x.y-z_$*": "a12"},
        4,
    )
    assert found.domains["two domains"] == ()
    assert "a value" not in repr(first)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"${user}"', "ann"),
        ("${user}", None),  # { and } are no part of a word
        ('"x${a.b-c}y${user}"', "xxyann"),
        ('"${nested}"', "${user}"),  # what was inserted is not looked at again
        ('"${/}etc"', "/etc"),
        ('"${{user}}${user}"', "${{user}}ann"),
        ('"${user"', "${user"),
        ('""', ""),
        (r'"a\tb\"c\\d\101\7\q"', 'a\tb"c\\dA\x07q'),
        (r'"\477"', "'7"),
        ('"a\\\nb"', "a\nb"),
        ('"a\n', "a"),  # a string ends with its line
    ],
)
def test_values(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(ConfigError):
            options(f"key={text}")
    else:
        assert options(f"key={text}") == {"key": value}


def test_the_last_of_two_values_counts() -> None:
    assert options("a=b a=c") == {"a": "c"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("d {\n m.M needed; };", "2: unknown flag; found 'needed'; allowed: required, requisite, sufficient, optional"),
        ("d { m.M required\n a=b }", "2: an option, or ; after the last one is expected here; found '}'"),
        ("d { m.M required a; };", "1: = is expected here; found ';'"),
        ("d { m.M required a=; };", "1: the value of a is expected here; found ';'"),
        ("d { m.M required; }", "1: ; is expected here; found 'the end of the file'"),
        ("d { m.M required; }\n;\n{", "3: the name of a domain is expected here; found '{'"),
        ("d", "1: { is expected here; found 'the end of the file'"),
        ("d {};\n\nd {};", "3: the domain d is in the file twice; Java refuses such a file"),
        ("d { m.M required\n a=10; };", "2: what begins with a digit"),
        ("d { m.M required a='b'; };", "1: strings are written in"),
        ('d { m.M required\n\n a="${nobody}"; };', "3: a refers to ${nobody}, which has no value"),
        ('d { m.M required a="${empty}"; };', "1: a becomes empty"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, reason: str) -> None:
    assert refusal(text).startswith(f"login.config:{reason}")


def test_a_comment_ends_with_the_file() -> None:
    assert parsed("d { }; /* open").domains == {"d": ()}


def test_a_single_slash_begins_a_comment() -> None:
    assert parsed("d { }; / anything ' at \" all").domains == {"d": ()}
    assert refusal("d { m.M required a=/etc/passwd;\n};").startswith("login.config:2: the value of a is expected")


def test_a_word_out_of_place_is_not_shown_it_may_be_a_password() -> None:
    assert "hunter2" not in refusal("d { m.M required password hunter2; };")
    assert "hunter2" not in refusal("d { m.M required password=x hunter2; };")


def test_the_domain_other_stands_in() -> None:
    found = parsed("other { m.M required; }; empty { }; own { m.N required; };")
    assert [found.modules_of(name)[0].class_name for name in ("own", "other", "unknown", "empty")] == [
        "m.N", "m.M", "m.M", "m.M",
    ]  # fmt: skip
    assert parsed("own { m.N required; };").modules_of("unknown") == ()


PIECES = st.sampled_from(
    ["d", "m.M", "required", "Optional", "{", "}", ";", "=", '"', '"a b"', "\\", "/", "//", "/*", "*/", "\n", " ", "'",
     "${user}", '"${', "}", "10", "-", ".", "\x00", "\x85", "é", "日", "\r\n", "debug=true"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        parsed(text)
