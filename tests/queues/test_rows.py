"""Each row of the specification is a test that has its number in its name, or a transcript that has it in its title,
or rows.md says why not. So no row can be lost without somebody noticing.
"""

from __future__ import annotations

import re
from functools import cache

from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import settings_of
from tests.kit.sources import ROOT
from tests.queues.rows import AMPS, ARTEMIS, ATTRIBUTES, QPID, SUBTLETIES, SUBTLETIES_COUNT

_QPID_NUMBER = re.compile(r"_Q_(\d+)(?=_)")
_AMPS_NUMBER = re.compile(r"_A_(\d+)(?=_)")
_ARTEMIS_NUMBER = re.compile(r"_runtime_(\d+(?:_\d+)*)(?=_)")
_TRANSCRIPTS = ROOT / "tests" / "wire" / "transcripts"
_PAGE = ROOT / "tests" / "queues" / "rows.md"
_LINES = [line.split("|")[1:-1] for line in _PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
_EXPLAINED = {row.strip(): f"{what} {why}" for rows, what, why in _LINES[2:] for row in rows.split(",")}
"""The rows of which rows.md says why they have no test, or not in all they say, with what it says."""


@cache
def test_names() -> frozenset[str]:
    """The names of all tests of the project."""
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    return frozenset(name for text in texts for name in re.findall(r"^ *def (test_\w+)", text, re.MULTILINE))


test_names.__test__ = False  # type: ignore[attr-defined]


def test_the_lists_are_complete() -> None:
    assert list(QPID) == [f"Q-{number:02}" for number in range(1, 83)]
    assert list(AMPS) == [f"A-{number:02}" for number in range(1, 68)]
    assert [row for row in ARTEMIS if row.startswith("2.17.")] == [f"2.17.{number}" for number in range(1, 21)]


def test_each_row_of_qpid_is_a_test() -> None:
    tested = {f"Q-{number}" for name in test_names() for number in _QPID_NUMBER.findall(name)}
    assert sorted(set(QPID) - tested) == []
    assert sorted(tested - set(QPID)) == [], "tests are named after rows that there are not"


def test_each_row_of_amps_is_a_test() -> None:
    tested = {f"A-{number}" for name in test_names() for number in _AMPS_NUMBER.findall(name)}
    assert sorted(tested) == sorted(AMPS)


def test_each_scenario_of_artemis_is_a_test() -> None:
    found = [number.replace("_", ".") for name in test_names() for number in _ARTEMIS_NUMBER.findall(name)]
    titles = [path.read_text("utf-8").partition("\n")[0] for path in _TRANSCRIPTS.rglob("*.stomp")]
    found += [number.replace("/", ".") for title in titles for number in re.findall(r"\b2\.17/\d+", title)]
    assert sorted(set(ARTEMIS) - set(found)) == []
    assert sorted(number for number in found if number not in ARTEMIS and not number.startswith("2.1")) == []


def test_each_subtlety_is_shown_by_a_test_or_explained() -> None:
    numbers = {f"3.{number}" for number in range(1, SUBTLETIES_COUNT + 1)}
    named = {row for row in _EXPLAINED if row.startswith("3.")}
    assert set(SUBTLETIES) | named == numbers
    assert set(SUBTLETIES) & named == set()
    assert sorted(test for tests in SUBTLETIES.values() for test in tests if test not in test_names()) == []


def test_each_attribute_of_qpid_is_one_here_or_explained() -> None:
    ours = set(settings_of(QueueConfig))
    assert sorted(name for name in ATTRIBUTES.values() if name is not None and name not in ours) == []
    told = _PAGE.read_text("utf-8")
    assert [name for name, here in ATTRIBUTES.items() if here is None and f"`{name}`" not in told] == []


def test_what_is_explained_is_a_row() -> None:
    known = {*QPID, *AMPS, *ARTEMIS, "2.1", "2.4", *(f"3.{number}" for number in range(1, SUBTLETIES_COUNT + 1))}
    assert sorted(set(_EXPLAINED) - known) == []
    assert all(len(why.split()) > 5 for why in _EXPLAINED.values())
