"""The running journal: what becomes durable together, which settings sync, and that disk use follows what lives."""

from __future__ import annotations

import random

import pytest

from artemis_py.storage.journal import Journal, JournalSettings, segment_name, segment_number
from artemis_py.storage.recovery import recover
from tests.sim.committer import SteppedCommitter
from tests.sim.disk import SimDisk
from tests.sim.prepared import QUEUE, QUEUE_ID, commit, kept_ids, message, open_journal

BODY = bytes(500)


def _open(settings: JournalSettings | None = None) -> tuple[SimDisk, Journal, SteppedCommitter]:
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk, settings)
    journal.queue_changed(dict(QUEUE))
    return disk, journal, committer


def test_what_gathers_during_a_sync_is_the_next_batch() -> None:
    _, journal, committer = _open()
    journal.seal()
    last = 0
    for number in range(1, 101):
        last = journal.published(message(number), [QUEUE_ID], 0)
        journal.seal()
    assert journal.durable_lsn == 0
    commit(journal, committer)
    assert journal.durable_lsn >= last
    assert (journal.batches, journal.syncs) == (2, 2)


def test_a_small_batch_is_made_durable_at_once_when_nobody_else_waits() -> None:
    _, journal, committer = _open()
    commit(journal, committer)
    journal.inline = True
    lsn = journal.published(message(1), [QUEUE_ID], 0)
    journal.seal()
    assert journal.durable_lsn >= lsn
    assert committer.idle


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("non_transactional", [True, False])
def test_each_kind_of_write_syncs_as_its_setting_says(transactional: bool, non_transactional: bool) -> None:
    settings = JournalSettings(
        file_bytes=65536, sync_transactional=transactional, sync_non_transactional=non_transactional
    )
    _, journal, committer = _open(settings)
    commit(journal, committer)
    before = journal.syncs
    journal.published(message(1), [QUEUE_ID], 0)
    commit(journal, committer)
    assert journal.syncs - before == non_transactional
    before = journal.syncs
    journal.begin_group(transactional=True)
    journal.published(message(2), [QUEUE_ID], 0)
    journal.published(message(3), [QUEUE_ID], 0)
    journal.end_group()
    commit(journal, committer)
    assert journal.syncs - before == transactional


def test_disk_use_follows_what_lives() -> None:
    """A message in every hundred stays for long: compaction gathers them, and the files between go."""
    settings = JournalSettings(file_bytes=8192, compact_files_min=5, compact_percentage=30)
    disk, journal, committer = _open(settings)
    staying: list[int] = []
    files_max = 0
    for number in range(1, 5001):
        one = message(number, BODY)
        journal.published(one, [QUEUE_ID], 0)
        if number % 100 == 0 and len(staying) < 20:
            staying.append(number)
        else:
            journal.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
        files_max = max(files_max, len(disk.names()))
    assert files_max <= 12, "20 living messages of 600 bytes are two files"
    disk.crash()
    assert kept_ids(recover(disk)) == staying


def test_without_compaction_only_dead_files_at_the_beginning_go() -> None:
    disk, journal, committer = _open(JournalSettings(file_bytes=2048, compact_files_min=0))
    stays = message(1, BODY)
    journal.published(stays, [QUEUE_ID], 0)
    for number in range(2, 50):
        one = message(number, BODY)
        journal.published(one, [QUEUE_ID], 0)
        journal.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
    assert len(disk.names()) > 10
    assert segment_name(1) in disk.names()
    journal.settled(QUEUE_ID, [stays], "acked")
    commit(journal, committer)
    journal.published(message(50), [QUEUE_ID], 0)
    commit(journal, committer)
    assert len(disk.names()) <= 2


def test_a_batch_larger_than_a_file_is_whole_in_one() -> None:
    disk, journal, committer = _open(JournalSettings(file_bytes=1000, compact_files_min=0))
    for number in range(1, 20):
        journal.published(message(number, BODY), [QUEUE_ID], 0)
    commit(journal, committer)
    disk.crash()
    assert kept_ids(recover(disk)) == list(range(1, 20))


def test_numbers_of_dead_messages_are_not_given_again() -> None:
    disk, journal, committer = _open(JournalSettings(file_bytes=300, compact_files_min=0))
    for number in range(1, 20):
        one = message(number)
        journal.message_id = number
        journal.published(one, [QUEUE_ID], 0)
        journal.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
    disk.crash()
    kept = recover(disk).index.keepsake()
    assert (kept.messages, kept.message_id) == ({}, 19)


def test_other_files_are_no_segments() -> None:
    assert segment_number(segment_name(17)) == 17
    for name in ("artemis-journal-17.log", "quarantined-" + segment_name(1), "server.lock", segment_name(1) + "x"):
        assert segment_number(name) is None


def test_many_bindings_do_not_keep_the_journal_busy() -> None:
    """Bindings that fill a file made it go with the next batch, and were written again: by every batch."""
    disk, journal, committer = _open(JournalSettings(file_bytes=4096, compact_files_min=2))
    for number in range(40):
        journal.queue_changed({**QUEUE, "id": 10 + number, "name": f"queue {number}"})
    before = journal.last_lsn
    for _ in range(50):
        journal.published(message(1, BODY), [QUEUE_ID], 0)
        journal.settled(QUEUE_ID, [message(1)], "acked")
        commit(journal, committer)
    assert journal.last_lsn - before < 50 * 20, "not all 41 bindings with every batch"
    assert sum(segment.written_bytes for segment in journal.segments) < 60_000
    assert len(recover(disk).index.queues) == 41
