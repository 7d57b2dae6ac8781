"""Each command that a page shows is one: its words and options are parsed, and nothing is run."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from artemis_py.cli.main import COMMANDS, command_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_COMMAND = re.compile(
    r"(?:^|[|&;(]|\w=\S+ |timeout \d )\s*(?:\.venv/bin/|/opt/[\w/-]+/bin/)?artemis-py "
    r"((?:[^|&;#)\n\"']|\"[^\"]*\"|'[^']*')*)"
)
_ITSELF = {"help", "--version", "COMMAND", "__complete"}


def commands_in(text: str) -> list[list[str]]:
    """The words of each command in the blocks for a shell, without where its output goes."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = [one for line in lines for one in _COMMAND.findall(re.sub(r"(^|\s)#.*", "", line))]
    split = [shlex.split(re.sub(r"\s\d?>+\s*\S+", "", re.sub(r"\$\w+", "1", one))) for one in found]
    return [[word for word in words if word not in ("…", "...")] for words in split]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_of_a_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for line in commands_in(page.read_text("utf-8")):
        name, *rest = line or ["help"]
        if name in _ITSELF:
            continue
        if name not in COMMANDS:
            wrong.append(f"{line}: there is no command {name}")
            continue
        parser = argparse.ArgumentParser(prog=name)
        command_of(name).add_arguments(parser)
        try:
            parser.parse_args(rest)
        except SystemExit as end:
            if end.code:
                wrong.append(f"{line}: {capsys.readouterr().err.splitlines()[-1]}")
    assert wrong == []


def test_a_command_that_is_none_is_found() -> None:
    text = "```sh\nFOO=1 artemis-py send orders 'a | b' --ttl 5 > out | artemis-py nonsense x  # artemis-py no\n```\n"
    assert commands_in(text) == [["send", "orders", "a | b", "--ttl", "5"], ["nonsense", "x"]]
