"""The page of benchmarks: every table of figures is of one run, and a table of another one is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.errors import PerfError
from bench import document
from bench.__main__ import PAGES, PARTS

SECTIONS = [name for name in PARTS if name not in PAGES]

_TABLE = re.compile(r"^(\|.*\|)\n\|[ :|-]+\|$", re.MULTILINE)


def problems(page: str, readme: str) -> list[str]:
    """What of a page is not of one run."""
    stamps = document.stamps(page)
    found = [f"no section {name}" for name in (document.RUN, *SECTIONS) if name not in stamps]
    found += [f"unknown section {name}" for name in stamps if name not in (document.RUN, *SECTIONS)]
    stamps |= document.stamps(readme)
    run = stamps.get(document.RUN, "")
    found += [f"{name} is of another run: {stamp}" for name, stamp in stamps.items() if stamp != run]
    if run and f"{run}. " not in page:
        found.append("the run is not named")
    found += [f"a table that no run writes: {head}" for head in _TABLE.findall(document.by_hand(page))]
    return found


def page(stamp: str, **others: str) -> str:
    """A page whose sections have a stamp, some of them another."""
    sections = [f"<!-- run: begin, {stamp} -->\n{stamp}. 2 rounds.\n<!-- run: end -->"]
    for name in SECTIONS:
        table = "| a | b |\n| :-- | --: |\n| x | 1 |"
        sections.append(f"<!-- {name}: begin, {others.get(name, stamp)} -->\n{table}\n<!-- {name}: end -->")
    return "\n\n".join(sections)


def readme(stamp: str) -> str:
    return f"<!-- speed: begin, {stamp} -->\n- **Fast**\n<!-- speed: end -->"


def test_the_page_is_of_one_run() -> None:
    assert problems(document.DOCUMENT.read_text("utf-8"), document.README.read_text("utf-8")) == []


def test_a_page_of_its_own_says_of_which_run_it_is() -> None:
    for name, file in PAGES.items():
        text = file.read_text("utf-8")
        [(found, stamp)] = document.stamps(text).items()
        assert (found, "artemis_py " in stamp, _TABLE.findall(document.by_hand(text))) == (name, True, [])


def test_a_table_of_another_day_is_found() -> None:
    assert problems(page("today"), readme("today")) == []
    assert problems(page("today", goals="yesterday"), readme("today")) == ["goals is of another run: yesterday"]
    assert problems(page("today"), readme("yesterday")) == ["speed is of another run: yesterday"]
    assert problems(page("today").replace("today. ", "once. "), readme("today")) == ["the run is not named"]


def test_a_table_by_hand_is_found() -> None:
    by_hand = "\n\n| before | now |\n| --: | --: |\n| 2 | 1 |\n"
    assert problems(page("today") + by_hand, readme("today")) == ["a table that no run writes: | before | now |"]


def test_sections_are_those_that_are_measured() -> None:
    unknown = page("today").replace("goals:", "aims:")
    assert problems(unknown, readme("today")) == ["no section goals", "unknown section aims"]


def test_a_section_is_replaced_with_its_stamp(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- goals: begin -->\n  <!-- goals: end -->\nafter\n", "utf-8")
    for stamp, body in (("today", "a table"), ("tomorrow", "another")):
        document.write("goals", stamp, body, file)
        expected = f"before\n<!-- goals: begin, {stamp} -->\n{body}\n  <!-- goals: end -->\nafter\n"
        assert file.read_text("utf-8") == expected


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("mine", "utf-8")
    with pytest.raises(PerfError, match=r"page\.md lacks the marks"):
        document.write("goals", "today", "", file)
    assert file.read_text("utf-8") == "mine"


def test_the_stamp_names_day_build_and_machine() -> None:
    day, build, machine = document.stamp().split(", ", 2)
    assert re.fullmatch(r"\d+ [A-Z][a-z]+ \d{4}", day)
    assert re.fullmatch(r"artemis_py \S+ of ([0-9a-f]{8}|no commit)( with changes)? \((compiled|interpreted)\)", build)
    assert " cores of " in machine
