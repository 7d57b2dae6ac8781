"""How many journal records a second recovery reads (promised: 200,000). The best of three runs counts."""

from __future__ import annotations

import gc
import random
from time import process_time

import pytest

from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.recovery import recover
from tests.sim.disk import SimDisk
from tests.sim.prepared import QUEUE, QUEUE_ID, commit, kept_ids, message, open_journal

RECORDS_PER_S_MIN = 100_000
"""Half of what a machine that does nothing else must reach, so that a busy one does not fail."""
MESSAGES = 50_000
LIVE = 10_000
PER_BATCH = 1000


@pytest.fixture(scope="module")
def disk() -> SimDisk:
    """Messages of 1 KiB, most of them acknowledged ten at a time. The first stays, and with it all files."""
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk, JournalSettings(compact_files_min=0))
    journal.records.queue_changed(dict(QUEUE))
    body = bytes(1024)
    held = []
    journal.records.published(message(MESSAGES + 1, body), [QUEUE_ID], 0)
    for number in range(1, MESSAGES + 1):
        one = message(number, body)
        journal.records.published(one, [QUEUE_ID], 0)
        held.append(one)
        if len(held) == 10 and number <= MESSAGES - LIVE:
            journal.records.settled(QUEUE_ID, held, "acked")
            held.clear()
        if number % PER_BATCH == 0:
            commit(journal, committer)
    commit(journal, committer)
    return disk


def test_recovery_reads_fast_enough(disk: SimDisk, capsys: pytest.CaptureFixture[str]) -> None:
    best_s, count = float("inf"), 0
    gc.disable()
    try:
        for _ in range(3):
            started_s = process_time()
            recovered = recover(disk)
            best_s = min(best_s, process_time() - started_s)
            count = recovered.record_count
            assert recovered.damages == []
            assert count > MESSAGES
            assert len(kept_ids(recovered)) == LIVE + 1
    finally:
        gc.enable()
    with capsys.disabled():
        print(f"\nrecovery: {count / best_s:,.0f} records/s of {count:,}")
    assert count / best_s >= RECORDS_PER_S_MIN
