"""Placeholders in the text of a file."""

from __future__ import annotations

import pytest

from artemis_py.config.xml.source import RESCANS_MAX, substitute
from tests.kit.documents import document, load_core, problems_of


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a ${x} b", "a 1 b"),
        ("${x}${x}", "11"),
        ("${ x }", "1"),
        ("${x:2}", "1"),
        ("${missing:2}", "2"),
        ("${missing: a : b }", "a : b"),
        ("${missing:}", ""),
        ("${missing}", ""),
        ("${missing:${x}}", "1"),
        ("${missing:${other:3}}", "3"),
        ("${nested}", "<1>"),
        ("$x $ {x} }", "$x $ {x} }"),
        ("${x", "${x"),
        ("${x} ${x", "1 ${x"),
        ("<!-- ${x} -->", "<!-- 1 -->"),
    ],
)
def test_values_and_defaults(text: str, result: str) -> None:
    assert substitute(text, {"x": "1", "nested": "<${x}>"}).text == result


@pytest.mark.parametrize("properties", [{"a": "${a}"}, {"a": "x${b}", "b": "${c}", "c": "${a}"}, {"a": "${z:${a}}"}])
def test_a_value_that_leads_back_to_itself_is_an_error(properties: dict[str, str]) -> None:
    substituted = substitute("one\n${a}\n", properties)
    assert [(line, "refers to itself" in message) for line, message in substituted.errors] == [(2, True)]


def test_a_name_may_stand_twice_side_by_side() -> None:
    substituted = substitute("${a}${a}", {"a": "${b}", "b": "1"})
    assert (substituted.text, substituted.errors) == ("11", [])


def test_growth_without_end_is_an_error() -> None:
    doubling = {f"v{level}": f"${{v{level + 1}}}" * 2 for level in range(40)}
    substituted = substitute("${v0}", doubling)
    assert [message for _, message in substituted.errors] == ["the placeholders make the text too long"]
    assert substitute("${a}" * 1000, {"a": "x" * 100_000}).errors
    assert RESCANS_MAX < 2**40


def test_lines_are_those_of_the_file() -> None:
    substituted = substitute("1\n${a}\n3\n${b:\n}\n6${c}\n7", {"a": "x\ny\nz", "c": "\n"})
    lines = dict(zip(substituted.text.split("\n"), substituted.lines, strict=True))
    assert {name: lines[name] for name in ("1", "x", "y", "z", "3", "7")} == {
        "1": 1, "x": 2, "y": 2, "z": 2, "3": 3, "7": 7,
    }  # fmt: skip


def test_placeholders_inside_a_value_do_not_count_as_lines_of_the_file() -> None:
    substituted = substitute("1\n${a}\n3", {"a": "x${b:\n}${c:\n\n}y"})
    assert (substituted.text, list(substituted.lines)) == ("1\nxy\n3", [1, 2, 3])


def test_unset_names_are_warned_of_once_and_outside_comments_only() -> None:
    substituted = substitute("<!-- ${one} -->\n${two}${two}\n<!-- \n --> ${three} ${two}", {})
    assert [line for line, _ in substituted.warnings] == [2, 4]


def test_an_unclosed_placeholder_is_warned_of() -> None:
    substituted = substitute("\n${x", {})
    assert [(line, message[:4]) for line, message in substituted.warnings] == [(2, "'${'")]


def test_the_environment_answers() -> None:
    assert load_core("<name>${BROKER_NAME:unnamed}</name>", {"BROKER_NAME": "green"}).name == "green"
    assert load_core("<name>${BROKER_NAME:unnamed}</name>").name == "unnamed"


def test_a_value_may_bring_elements() -> None:
    assert load_core("${MORE}", {"MORE": "<name>inside</name>"}).name == "inside"


def test_a_value_with_an_ampersand_is_named_when_it_breaks_the_file() -> None:
    found = [str(problem) for problem in problems_of("<name>\n${PASSWORD}</name>", {"PASSWORD": "a&b"})]
    assert any(text.startswith("broker.xml:4:") and "${PASSWORD}" in text for text in found)


def test_lines_of_elements_survive_values_with_line_breaks() -> None:
    core = "<!-- ${LONG} -->\n<name>x</name>\n<max-disk-usage>101</max-disk-usage>"
    (problem,) = [each for each in problems_of(core, {"LONG": "1\n2\n3"}) if each.severity == "error"]
    assert problem.line == 5
    assert document(core).split("\n")[4].startswith("<max-disk-usage>")


def test_a_placeholder_over_many_lines_does_not_fill_the_screen() -> None:
    found = [str(problem) for problem in problems_of("<name>${x\n" + "<y/>\n" * 1000 + "}</name>")]
    assert found
    assert all("\n" not in text and len(text) < 600 for text in found)
