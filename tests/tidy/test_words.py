"""Documents, help texts, docstrings and the console say it in the field's words; the rule also has bad examples."""

from __future__ import annotations

import re

import pytest

from artemis_py.cli.main import COMMANDS
from tests.kit.commands import parsers_of
from tests.kit.sources import ROOT, project_files, shown
from tests.tidy.words import OF_MESSAGES, docstrings_of, messages_of, phrases_in, prose_of


def test_documents() -> None:
    pages = [path for path in project_files() if path.suffix == ".md" and not shown(path).startswith("tests/")]
    assert [found for path in pages for found in phrases_in(shown(path), prose_of(path.read_text("utf-8")))] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts(name: str) -> None:
    texts = [COMMANDS[name][1], *(one.format_help() for one in parsers_of(name).values())]
    assert [found for text in texts for found in phrases_in(f"artemis-py {name} --help", text)] == []


def test_console() -> None:
    files = [path for path in (ROOT / "artemis_py" / "console").rglob("*") if path.suffix in (".js", ".html")]
    assert files
    texts = {path: re.sub(r"^\s*(//|/?\*).*$", "", path.read_text("utf-8"), flags=re.MULTILINE) for path in files}
    assert [found for path, text in texts.items() for found in phrases_in(shown(path), text)] == []


def test_docstrings() -> None:
    modules = [path for path in project_files() if path.suffix == ".py" and shown(path).startswith("artemis_py/")]
    texts = {shown(path): docstrings_of(path.read_text("utf-8")) for path in modules}
    assert [found for name, text in texts.items() for found in phrases_in(name, text)] == []


def test_messages() -> None:
    """Errors, questions, lines of the log: all texts in the code of the broker and its commands."""
    modules = [path for path in project_files() if path.suffix == ".py" and shown(path).startswith("artemis_py/")]
    found = [
        phrase
        for path in modules
        if "spark" not in path.parts
        for line, text in messages_of(path.read_text("utf-8"))
        for phrase in phrases_in(f"{shown(path)}:{line}", text, OF_MESSAGES)
    ]
    assert found == []


def test_a_message_is_found() -> None:
    code = 'def f(a):\n    """This is no JSON."""\n    raise ValueError(f"{a} is no JSON: " + "all are told")\n'
    found = [one for line, text in messages_of(code) for one in phrases_in(f"x.py:{line}", text, OF_MESSAGES)]
    assert [one.partition("; say")[0] for one in found] == ["x.py:3:1: 'is no J'", "x.py:3:1: 'are told'"]


def test_a_docstring_is_found() -> None:
    code = '"""One."""\n\n\nclass A:\n    """Two."""\n\n    b = "at last"\n    """At last."""\n'
    [found] = phrases_in("x.py", docstrings_of(code))
    assert found.endswith("'At last'; say: finally")


@pytest.mark.parametrize(
    "text",
    [
        "At last Grafana starts.",
        "They are gone,\nand no dead letters.",
        "One is\ntold.",
        "It refuses nobody.",
        "A restart has it again.",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    [found] = phrases_in("x.md", f"First.\n{text}\n")
    assert found.startswith("x.md:2: ")


def test_code_is_no_prose() -> None:
    assert phrases_in("x.md", prose_of("`at last` is fine\n```\nat last\n```\n")) == []
