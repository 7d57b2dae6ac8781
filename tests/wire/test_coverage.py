"""Every scenario of the lists that this directory answers for has a transcript or a test with its number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.queues.rows import RING
from tests.wire.one_turn import WHOLE_TURNS_ONLY

pytestmark = WHOLE_TURNS_ONLY

HERE = Path(__file__).parent
TRANSCRIPTS = sorted((HERE / "transcripts").rglob("*.stomp"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in TRANSCRIPTS}
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))

CHECKS = range(1, 31)
RING_SCENARIOS = [number for number in range(1, 27) if number != 19]
"""19 is about a restart."""
RING_ROWS = [row for row in RING if row not in ("R-18", "R-19")]
"""18 and 19 are about paging."""
QUEUE_SCENARIOS = (4, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20)


@pytest.mark.parametrize(("prefix", "numbers"), [("check", CHECKS), ("ring", RING_SCENARIOS)])
def test_all_numbers(prefix: str, numbers: Iterable[int]) -> None:
    names = [path.stem for path in TRANSCRIPTS] + re.findall(r"def test_(\w+)", TESTS)
    found = [re.match(prefix + r"_(\d+)(_|$)", name) for name in names]
    assert {int(each[1]) for each in found if each} == set(numbers)


def test_all_ring_rows() -> None:
    texts = [*TEXTS.values(), *(path.stem for path in TEXTS), TESTS]
    patterns = {row: re.compile(rf"{row}\b|{row.replace('-', '_')}_") for row in RING_ROWS}
    assert [row for row, pattern in patterns.items() if not any(map(pattern.search, texts))] == []


@pytest.mark.parametrize("number", QUEUE_SCENARIOS)
def test_all_queue_scenarios(number: int) -> None:
    assert any(re.search(rf"_{number:02}(_|$)", path.stem) for path in TRANSCRIPTS if path.parent.name == "queues")


def test_every_transcript_has_a_title() -> None:
    assert [path.name for path, text in TEXTS.items() if not re.match(r"title: \S", text)] == []
