"""Answers of a broker as tables: ``cli/answer_tables.py``. No terminal reads them here, so no line is cut."""

from __future__ import annotations

import pytest

from artemis_py.cli import answer_tables
from artemis_py.management.operations.dead_letters import DEAD_LETTERS
from artemis_py.management.operations.queues import QUEUES

LETTER = {
    "queue": "graves", "originalQueue": "jobs", "originalAddress": "jobs", "cause": "max_deliveries", "count": 40,
    "size": 99, "retried": 0, "first": 1_700_000_000_000, "last": 1_700_000_000_000,
}  # fmt: skip


def test_a_list_inside_is_a_table_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """With the columns and the dates that it has as a list."""
    answer_tables.print_fields({"count": 40, "groups": [LETTER]}, None, inside={"groups": DEAD_LETTERS})
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]
    assert lines[0] == ["count", "40"]
    assert lines[1] == ["queue", "originalQueue", "originalAddress", "cause", "count", "last"]
    assert lines[2][:5] == ["graves", "jobs", "jobs", "max_deliveries", "40"]
    assert lines[2][5].startswith("2023-11-1")
    answer_tables.print_fields({"count": 0, "groups": []}, None, inside={"groups": DEAD_LETTERS})
    assert capsys.readouterr().out.split() == ["count", "0"]


def test_a_change_tells_what_it_was_about(capsys: pytest.CaptureFixture[str]) -> None:
    """The few fields of a list, and those that somebody has changed; not all forty."""
    row = dict.fromkeys(QUEUES.fields, 0)
    answer_tables.print_changed(row, QUEUES, ["queue", "max-consumers", "ring-size"])
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [name for name in QUEUES.fields if name in {*QUEUES.brief, "maxConsumers", "ringSize"}]
    assert len(names) < len(QUEUES.fields) / 3
