"""Every scenario of the lists that this directory answers for has a transcript or a test with its number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.queues.rows import RING

HERE = Path(__file__).parent
TRANSCRIPTS = sorted((HERE / "transcripts").rglob("*.stomp"))
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))

CHECKS = range(1, 31)
RING_SCENARIOS = [number for number in range(1, 27) if number != 19]
"""19 is about a restart."""
RING_ROWS = [row for row in RING if row not in ("R-18", "R-19")]
"""18 and 19 are about paging."""
QUEUE_SCENARIOS = (4, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20)


def numbered(prefix: str) -> set[int]:
    names = [path.stem for path in TRANSCRIPTS] + re.findall(r"def test_(\w+)", TESTS)
    return {int(found[1]) for name in names if (found := re.match(prefix + r"_(\d+)(_|$)", name))}


def test_all_checks() -> None:
    assert numbered("check") == set(CHECKS)


def test_all_ring_scenarios() -> None:
    assert numbered("ring") == set(RING_SCENARIOS)


@pytest.mark.parametrize("row", RING_ROWS)
def test_all_ring_rows(row: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in TRANSCRIPTS] + [path.stem for path in TRANSCRIPTS] + [TESTS]
    assert any(re.search(rf"{row}\b|{row.replace('-', '_')}_", text) for text in texts)


@pytest.mark.parametrize("number", QUEUE_SCENARIOS)
def test_all_queue_scenarios(number: int) -> None:
    assert any(re.search(rf"_{number:02}(_|$)", path.stem) for path in TRANSCRIPTS if path.parent.name == "queues")


def test_every_transcript_has_a_title() -> None:
    untitled = [path.name for path in TRANSCRIPTS if not re.match(r"title: \S", path.read_text(encoding="utf-8"))]
    assert not untitled
