"""Links in the documents and the help of the Makefile; each rule is also shown a bad example."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.sources import ROOT, project_files, shown, text_files
from tests.tidy.documents import (
    anchors,
    broken_links,
    missing_citations,
    missing_modules,
    pages_of_the_site,
    targets_without_help,
)


def test_links_lead_somewhere() -> None:
    documents = [path for path in project_files() if path.suffix == ".md" and not shown(path).startswith("tests/")]
    assert [text for path in documents for text in broken_links(path, path.read_text("utf-8"))] == []


def test_documents_that_are_cited_are_here() -> None:
    named = {shown(path): path for path in text_files() if path.suffix in (".py", ".md")}
    texts = {name: path.read_text("utf-8") for name, path in named.items() if not name.startswith("tests/tidy/")}
    assert [found for name, text in texts.items() for found in missing_citations(ROOT, name, text)] == []


def test_modules_of_the_map_are_here() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Where things are")[2].partition("\n## ")[0]
    assert text.count("\n| `") > 20
    assert missing_modules(ROOT / "artemis_py", text) == []


def test_each_page_has_its_place_in_the_site() -> None:
    listed = pages_of_the_site((ROOT / "mkdocs.yml").read_text("utf-8"))
    hook = (ROOT / "tools" / "site_hook.py").read_text("utf-8")
    from_outside = re.findall(r'^    "[A-Z]+\.md": "([\w-]+\.md)",$', hook, re.MULTILINE)
    assert from_outside
    assert sorted(listed) == sorted([*from_outside, *(path.name for path in (ROOT / "docs").glob("*.md"))])


def test_make_help_lists_every_target() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets_without_help(makefile) == []
    shown_help = subprocess.run(["make", "-C", str(ROOT), "help"], check=True, capture_output=True, text=True).stdout
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY:")).split()[1:]
    assert [target for target in phony if f"make {target} " not in shown_help] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n", "utf-8")
    path = tmp_path / "README.md"
    fine = "[a](there.md) [b](there.md#a-heading-with-code) [c](https://example.org/x) `[d](not.md)`\n"
    assert broken_links(path, fine + "```\n[e](no.md)\n```\n") == []
    broken = "[a](gone.md) ![b](gone.png) [c](there.md#nothing)"
    assert broken_links(path, broken) == [
        "README.md: gone.md does not exist",
        "README.md: gone.png does not exist",
        "README.md: there.md#nothing: no such heading",
    ]


def test_a_citation_of_what_is_not_here_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").touch()
    fine = "docs/there.md, log.md and https://example.org/docs/gone.md"
    assert missing_citations(tmp_path, "x.py", fine) == []
    assert missing_citations(tmp_path, "x.py", "fine\n(reference/rows.md, section 2)\n") == [
        "x.py:2: reference/rows.md is not in the project"
    ]


def test_a_module_of_the_map_that_is_not_here_is_found(tmp_path: Path) -> None:
    for path in ("core/broker.py", "server/tls/context.py", "server/http/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    fine = "| `core/` `server/` | `broker` (its parts) · `http` |\n| `server/…/` | `tls/`: `context` |\n"
    assert missing_modules(tmp_path, fine) == []
    for row in ("`core/` | `broker` · `context`", "`a.py` `core/` | `broker` (`context`)"):
        assert missing_modules(tmp_path, f"| {row} |\n") == [f"{row.split(' |')[0]}: context is not there"]


def test_anchors_are_spelled_as_readers_link_them() -> None:
    assert anchors("# Five minutes: a tour\n## `check FILE`\n## Twice\n## Twice\n") == {
        "five-minutes-a-tour",
        "check-file",
        "twice",
        "twice-1",
    }


def test_a_page_of_the_site_is_found() -> None:
    configuration = "docs_dir: docs\nnav:\n  - Start:\n      - index.md\n      - a-b.md\n"
    assert pages_of_the_site(configuration) == ["index.md", "a-b.md"]


def test_a_target_without_help_is_found() -> None:
    assert targets_without_help("run: .venv ## start\nsecret: .venv\n\techo\nVENV := .venv\nname:=x\n") == ["secret"]
