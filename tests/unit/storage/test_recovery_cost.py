"""What a start costs: so many lines of Python for each journal record, however long the journal is. ``make bench``
measures how fast that is (its row ``recovery``).
"""

from __future__ import annotations

import pytest

from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import Recovered, recover
from tests.kit.core import lines_run
from tests.kit.crash.prepared import QUEUE_ID, begin, commit, kept_ids, message

PER_BATCH = 500
LINES_MAX = 115
"""For one record; 106 were counted."""


def lines_per_record(messages: int) -> float:
    """Of messages of 1 KiB, four of five acknowledged, ten at a time. The first stays, and with it all files."""
    disk, journal, committer = begin(JournalSettings(compact_files_min=0))
    body = bytes(1024)
    held = []
    journal.records.published(message(messages + 1, body), [QUEUE_ID], 0)
    for number in range(1, messages + 1):
        one = message(number, body)
        journal.records.published(one, [QUEUE_ID], 0)
        held.append(one)
        if len(held) == 10 and number <= messages * 4 // 5:
            journal.records.settled(QUEUE_ID, held, "acked")
            held.clear()
        if number % PER_BATCH == 0:
            commit(journal, committer)
    commit(journal, committer)
    found: list[Recovered] = []
    lines = lines_run(lambda: found.append(recover(disk)))
    (recovered,) = found
    assert recovered.damages == []
    assert recovered.record_count > messages
    assert len(kept_ids(recovered)) == messages // 5 + 1
    return lines / recovered.record_count


@pytest.mark.interpreted
def test_a_record_costs_the_same_in_a_long_journal() -> None:
    short, long = lines_per_record(1_000), lines_per_record(10_000)
    assert long <= 1.1 * short
    assert long <= LINES_MAX
