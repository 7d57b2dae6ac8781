"""The running journal: what becomes durable together, which settings sync, and that disk use follows what lives."""

from __future__ import annotations

import random

import pytest

from artemis_py.message import Account
from artemis_py.paged_messages import Page, PagedMessage, PageShare
from artemis_py.storage.format.codec import encode_page_grew
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.names import segment_name, segment_number
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.journal.index_files import beside_segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, begin, commit, kept_ids, message, open_journal, publish
from tests.kit.disk import SimDisk

BODY = bytes(500)


def test_what_gathers_during_a_sync_is_the_next_batch() -> None:
    _, journal, committer = begin()
    journal.seal()
    last = 0
    for number in range(1, 101):
        last = journal.records.published(message(number), [QUEUE_ID], 0)
        journal.seal()
    assert journal.durable_lsn == 0
    commit(journal, committer)
    assert journal.durable_lsn >= last
    assert (journal.batches, journal.syncs) == (2, 2)


def test_a_small_batch_is_made_durable_at_once_when_nobody_else_waits() -> None:
    _, journal, committer = begin()
    commit(journal, committer)
    journal.inline = True
    lsn = journal.records.published(message(1), [QUEUE_ID], 0)
    journal.seal()
    assert journal.durable_lsn >= lsn
    assert committer.idle


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("non_transactional", [True, False])
def test_each_kind_of_write_syncs_as_its_setting_says(transactional: bool, non_transactional: bool) -> None:
    settings = JournalSettings(
        file_bytes=65536, sync_transactional=transactional, sync_non_transactional=non_transactional
    )
    _, journal, committer = begin(settings)
    commit(journal, committer)
    before = journal.syncs
    publish(journal, committer, message(1))
    assert journal.syncs - before == non_transactional
    before = journal.syncs
    journal.records.begin_group(transactional=True)
    journal.records.published(message(2), [QUEUE_ID], 0)
    journal.records.published(message(3), [QUEUE_ID], 0)
    journal.records.end_group()
    commit(journal, committer)
    assert journal.syncs - before == transactional


@pytest.mark.parametrize("compacts", [True, False])
def test_what_was_synced_outlives_a_power_cut_also_where_it_was_moved_unsynced(compacts: bool) -> None:
    """A message (or only its queue) of a COMMIT was synced; what is sent without transactions is not. Its file went,
    and the copy of it had not been synced.
    """
    settings = JournalSettings(
        file_bytes=4000, compact_files_min=2 * compacts, compact_percentage=50, sync_non_transactional=False
    )
    for seed in range(20):
        disk = SimDisk(random.Random(seed))
        journal, committer, _ = open_journal(disk, settings)
        journal.records.begin_group(transactional=True)
        journal.records.queue_changed(dict(QUEUE))
        if compacts:
            journal.records.published(message(1), [QUEUE_ID], 0)
        journal.records.end_group()
        commit(journal, committer)
        assert journal.syncs == 1
        number = 1
        while segment_name(1) in disk.names():
            number += 1
            _pass_through(journal, committer, number)
        disk.crash()
        recovered = recover(disk)
        assert QUEUE_ID in recovered.index.queues, f"seed {seed}"
        assert kept_ids(recovered) == [1] * compacts, f"seed {seed}"


def test_a_message_that_is_moved_unsynced_outlives_a_power_cut_wherever_the_bindings_are() -> None:
    """Bindings that are written again are synced, and what was moved in the same batch with them. Here a message is
    moved from a file without any.
    """
    settings = JournalSettings(
        file_bytes=4000, compact_files_min=5, compact_percentage=50, sync_non_transactional=False
    )
    bare = 0
    for before in range(40):
        disk, journal, committer = begin(settings, seed=before)
        # It stays, too: the bindings are in its file, or behind the other.
        journal.records.published(message(1), [QUEUE_ID], 0)
        for number in range(2, before + 2):
            _pass_through(journal, committer, number)
        number = stays = before + 2
        journal.records.begin_group(transactional=True)
        journal.records.published(message(number), [QUEUE_ID], 0)
        journal.records.end_group()
        commit(journal, committer)
        segment = journal.index.home[number]
        home = segment_name(segment.number)
        bare += not segment.has_bindings
        while home in disk.names():
            number += 1
            _pass_through(journal, committer, number)
        disk.crash()
        assert stays in kept_ids(recover(disk))
    assert bare > 10


def _pass_through(journal: Journal, committer: SteppedCommitter, number: int) -> None:
    """A message comes and goes."""
    one = message(number, BODY)
    journal.records.published(one, [QUEUE_ID], 0)
    journal.records.settled(QUEUE_ID, [one], "acked")
    commit(journal, committer)


def test_disk_use_follows_what_lives() -> None:
    """A message in every hundred stays for long: compaction gathers them, and the files between go."""
    settings = JournalSettings(file_bytes=8192, compact_files_min=5, compact_percentage=30)
    disk, journal, committer = begin(settings)
    staying: list[int] = []
    files_max = 0
    for number in range(1, 5001):
        one = message(number, BODY)
        journal.records.published(one, [QUEUE_ID], 0)
        if number % 100 == 0 and len(staying) < 20:
            staying.append(number)
        else:
            journal.records.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
        files_max = max(files_max, len([name for name in disk.names() if beside_segment(name) is None]))
    assert files_max <= 12, "20 living messages of 600 bytes are two files"
    disk.crash()
    assert kept_ids(recover(disk)) == staying


def test_without_compaction_only_dead_files_at_the_beginning_go() -> None:
    disk, journal, committer = begin(JournalSettings(file_bytes=2048, compact_files_min=0))
    stays = message(1, BODY)
    journal.records.published(stays, [QUEUE_ID], 0)
    for number in range(2, 50):
        one = message(number, BODY)
        journal.records.published(one, [QUEUE_ID], 0)
        journal.records.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
    assert len(disk.names()) > 10
    assert segment_name(1) in disk.names()
    journal.records.settled(QUEUE_ID, [stays], "acked")
    commit(journal, committer)
    publish(journal, committer, message(50))
    assert len([name for name in disk.names() if segment_number(name)]) == 1


def test_a_batch_larger_than_a_file_is_whole_in_one() -> None:
    disk, journal, committer = begin(JournalSettings(file_bytes=1000, compact_files_min=0))
    publish(journal, committer, *(message(number, BODY) for number in range(1, 20)))
    disk.crash()
    assert kept_ids(recover(disk)) == list(range(1, 20))


def test_numbers_of_dead_messages_are_not_given_again() -> None:
    disk, journal, committer = begin(JournalSettings(file_bytes=300, compact_files_min=0))
    for number in range(1, 20):
        one = message(number)
        journal.records.message_id = number
        journal.records.published(one, [QUEUE_ID], 0)
        journal.records.settled(QUEUE_ID, [one], "acked")
        commit(journal, committer)
    disk.crash()
    kept = recover(disk).index.recovered_state()
    assert (kept.messages, kept.message_id) == ({}, 19)


def test_other_files_are_no_segments() -> None:
    assert segment_number(segment_name(17)) == 17
    for name in ("artemis-journal-17.log", "quarantined-" + segment_name(1), "server.lock", segment_name(1) + "x"):
        assert segment_number(name) is None


def test_many_bindings_do_not_keep_the_journal_busy() -> None:
    """Bindings that fill a file made it go with the next batch, and were written again: by every batch."""
    disk, journal, committer = begin(JournalSettings(file_bytes=4096, compact_files_min=2))
    for number in range(40):
        journal.records.queue_changed({**QUEUE, "id": 10 + number, "name": f"queue {number}"})
    before = journal.records.last_lsn
    for _ in range(50):
        journal.records.published(message(1, BODY), [QUEUE_ID], 0)
        journal.records.settled(QUEUE_ID, [message(1)], "acked")
        commit(journal, committer)
    assert journal.records.last_lsn - before < 50 * 20, "not all 41 bindings with every batch"
    assert sum(segment.written_bytes for segment in journal.segments) < 60_000
    assert len(recover(disk).index.queues) == 41


def test_what_is_known_of_a_page_is_written_again_although_its_size_was_damaged() -> None:
    """An attempt on a message that no page seemed to have stopped the journal: every turn failed from then on."""
    disk, journal, committer = begin()
    page, behind = Page(1, 1, 1), Page(1, 2, 2)
    for each in (behind, page):
        journal.records.page_opened(each, "q")
        each.count, each.size_bytes, each.durable = 1, 100, {QUEUE_ID: PageShare(1, 50)}
        journal.records.paged(each)
        commit(journal, committer)
    grew_at = disk.read(segment_name(1)).rindex(encode_page_grew(page))
    one = message(1)
    paged = PagedMessage(one.head, b"", 1, 0, 0, Account(), page, 1)
    journal.records.page_attempted(QUEUE_ID, paged, 1, 0)
    commit(journal, committer)
    disk.write(segment_name(1), grew_at, b"\xff")
    disk.sync(segment_name(1))
    journal, committer, recovered = open_journal(disk, JournalSettings(file_bytes=8192, compact_files_min=0))
    assert recovered.damages
    publish(journal, committer, message(2, bytes(9000)))
    journal.records.settled(QUEUE_ID, [message(2)], "acked")
    commit(journal, committer)
    publish(journal, committer, message(3))
    assert segment_name(1) not in disk.names()


@pytest.mark.parametrize("retains", [True, False])
def test_readers_know_a_transaction_from_what_the_broker_keeps_together(retains: bool) -> None:
    disk, journal, committer = begin(JournalSettings(file_bytes=65536, retains=retains))
    journal.records.begin_group()
    journal.records.published(message(1), [QUEUE_ID], 0)
    journal.records.published(message(2), [QUEUE_ID], 0)
    journal.records.end_group()
    for numbers in ((3, 4), (5,)):
        journal.records.begin_group(transactional=True)
        for number in numbers:
            journal.records.published(message(number), [QUEUE_ID], 0)
        journal.records.end_group()
    commit(journal, committer)
    events = [one for one in events_of("log", disk.read(segment_name(1)), []) if isinstance(one, Published)]
    assert [one.kept.message.id for one in events] == [1, 2, 3, 4, 5]
    groups = [one.group for one in events]
    assert groups[:2] == [0, 0]
    if retains:
        assert groups[2] == groups[3] > 0
        assert groups[4] > groups[3]
    else:
        assert groups[2:] == [0, 0, 0]


def test_a_group_that_broke_off_takes_nothing_else_with_it() -> None:
    """What others write afterwards is durable, and what the group had written so far, too."""
    disk, journal, committer = begin()
    journal.records.begin_group(transactional=True)
    journal.records.begin_group()
    journal.records.published(message(1), [QUEUE_ID], 0)
    journal.records.close_groups()
    journal.records.close_groups()
    lsn = journal.records.published(message(2), [QUEUE_ID], 0)
    commit(journal, committer)
    assert journal.durable_lsn >= lsn
    assert kept_ids(recover(disk)) == [1, 2]
