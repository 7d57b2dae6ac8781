"""The journal's files in order: when one may go, where one begins, and what an orderly end leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artemis_py.storage.format import records
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.journal.extent import NAMES, JournalExtent, read_extent
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.prepared import QUEUE_ID, begin, commit, kept_ids, message, open_journal, publish

FILE_BYTES = 4096
SMALL = JournalSettings(file_bytes=FILE_BYTES, compact_files_min=0)
KILOBYTE = bytes(1000)
UNSYNCED = replace(SMALL, sync_non_transactional=False)


def test_a_segment_goes_only_when_the_log_is_durable_up_to_where_nothing_needed_it_any_more() -> None:
    disk, journal, committer = begin(SMALL)
    for number in range(1, 9):
        publish(journal, committer, message(number, KILOBYTE))
    first, second = journal.segments[:2]
    end_lsn = journal.records.last_lsn
    journal.files.let_oldest_go(end_lsn)
    journal.files.let_oldest_go(end_lsn + 1)
    for durable_lsn, there in ((end_lsn - 1, {first, second}), (end_lsn, {second}), (end_lsn + 1, set())):
        journal.files.retire(durable_lsn)
        committer.stop()
        assert {one for one in (first, second) if one.name in disk.names()} == there
        assert set(journal.files.leaving.values()) == there, "readers find them as long as they are there"


def test_a_segment_says_where_the_one_before_it_ended() -> None:
    disk, journal, committer = begin(SMALL)
    lsns = [publish(journal, committer, message(number, KILOBYTE)) for number in range(1, 9)]
    headers = [records.decode_file_header(disk.read(segment.name)) for segment in journal.segments[:-1]]
    assert len(headers) > 1
    assert headers[0].before_lsn == 0
    for header in headers[1:]:
        assert header.before_lsn == max(lsn for lsn in lsns if lsn < header.first_lsn)


@pytest.mark.parametrize("spare_bytes", [1, 0])
def test_a_segment_is_full_when_nothing_more_fits(spare_bytes: int) -> None:
    _, journal, committer = begin(SMALL)
    commit(journal, committer)
    written = journal.segments[0].written_bytes
    publish(journal, committer, message(1, b""))
    overhead = journal.segments[0].written_bytes - written
    body = bytes(FILE_BYTES - journal.segments[0].written_bytes - overhead - spare_bytes)
    publish(journal, committer, message(2, body))
    assert journal.segments[0].written_bytes == FILE_BYTES - spare_bytes
    assert len(journal.segments) == (1 if spare_bytes else 2)


def test_a_segment_that_was_not_synced_is_not_said_to_exist() -> None:
    """A power cut may take it, and a start would miss it."""
    disk, journal, committer = begin(UNSYNCED)
    assert read_extent(disk).extent is None
    journal.records.begin_group(transactional=True)
    publish_lsn = journal.records.published(message(1), [QUEUE_ID], 0)
    journal.records.end_group()
    commit(journal, committer)
    assert journal.durable_lsn > publish_lsn
    extent = read_extent(disk).extent
    assert extent is not None
    assert (extent.first, extent.last) == (1, 1)


@pytest.mark.parametrize("body_bytes", [0, FILE_BYTES])
def test_an_orderly_end_says_which_record_is_the_last(body_bytes: int) -> None:
    """Also when it filled the file, so that the next one has nothing yet."""
    disk, journal, committer = begin(SMALL)
    lsn = publish(journal, committer, message(1, bytes(body_bytes)))
    assert (segment_name(2) in [segment.name for segment in journal.segments]) == bool(body_bytes)
    journal.finish()
    committer.stop()
    extent = read_extent(disk).extent
    assert extent is not None
    assert (extent.last, extent.end_lsn) == (1, lsn)


@pytest.mark.parametrize("loses_power", [False, True])
def test_an_orderly_end_is_synced_although_nothing_asked_for_it_while_the_broker_ran(loses_power: bool) -> None:
    """The note about the end is; without the records before it, or in the name of the file before, the next start would
    find a file damaged.
    """
    for seed in range(10):
        disk, journal, committer = begin(UNSYNCED, seed=seed)
        for number in range(1, 5):
            lsn = publish(journal, committer, message(number, bytes(100)))
            journal.finish()
            committer.stop()
            assert read_extent(disk).extent == JournalExtent(1, number, lsn)
            if loses_power:
                disk.crash()
            journal, committer, recovered = open_journal(disk, UNSYNCED)
            assert kept_ids(recovered) == list(range(1, number + 1))


def test_an_end_that_left_something_unwritten_does_not_say_where_it_is() -> None:
    disk, journal, committer = begin(SMALL)
    publish(journal, committer, message(1, KILOBYTE))
    journal.records.published(message(2), [QUEUE_ID], 0)
    journal.finish()
    committer.stop()
    extent = read_extent(disk).extent
    assert extent is not None
    assert extent.end_lsn == 0


def test_a_journal_whose_extent_was_lost_says_again_where_it_begins() -> None:
    """Or a start would not miss its oldest file."""
    disk, journal, committer = begin(SMALL)
    for number in range(1, 9):
        publish(journal, committer, message(number, KILOBYTE))
    for name in NAMES:
        disk.delete(name)
    journal, committer, _ = open_journal(disk, SMALL)
    count = len(journal.segments)
    assert count > 2
    publish(journal, committer, message(9, KILOBYTE))
    assert read_extent(disk).extent == JournalExtent(1, count)
