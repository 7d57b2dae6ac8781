"""What damage costs, to the record, and which of two files with one number counts."""

from __future__ import annotations

import random
from pathlib import Path

from artemis_py.storage.format.scan import log_files, log_files_and_twins
from artemis_py.storage.format.segment_index import Gathered, SegmentIndex
from artemis_py.storage.format.segment_names import segment_name
from artemis_py.storage.recovery.recovery import recover
from artemis_py.storage.retention.retention import retained_name
from tests.sim.disk import SimDisk
from tests.sim.prepared import QUEUE, QUEUE_ID, commit, flip, kept_ids, message, open_journal, prepare, records


def test_a_record_lost_before_a_group_costs_one_record() -> None:
    """The group has a higher number than what is in it."""
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk)
    journal.records.queue_changed(dict(QUEUE))
    for number in (1, 2):
        journal.records.published(message(number), [QUEUE_ID], 0)
    journal.records.begin_group()
    for number in (3, 4):
        journal.records.published(message(number), [QUEUE_ID], 0)
    journal.records.end_group()
    commit(journal, committer)
    journal.records.published(message(5), [QUEUE_ID], 0)
    commit(journal, committer)
    second = records(disk, segment_name(1))[3]
    flip(disk, segment_name(1), second.end - 1)
    recovered = recover(disk)
    assert kept_ids(recovered) == [1, 3, 4, 5]
    assert recovered.lost_records == 1


def test_the_damaged_header_of_a_file_that_was_durable_is_no_torn_write() -> None:
    disk = prepare(1)
    flip(disk, segment_name(1), 3)
    recovered = recover(disk)
    assert [damage.torn for damage in recovered.damages] == [False]
    assert kept_ids(recovered) == [1]


def test_of_two_files_with_one_number_the_retained_one_counts(tmp_path: Path) -> None:
    """A crash left both; in whatever order the directories are read."""
    journal, kept = tmp_path / "journal", tmp_path / "kept"
    in_use, retained = journal / segment_name(1), kept / retained_name(segment_name(1), 1_700_000_000_000)
    for path in (in_use, retained, journal / segment_name(2)):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    for directories in ([journal, kept], [kept, journal]):
        assert [file.path for file in log_files(directories)] == [retained, journal / segment_name(2)]
        twins = log_files_and_twins(directories, {})[1]
        assert [(one.path, other.path) for one, other in twins] == [(retained, in_use)]


def test_an_index_knows_the_oldest_and_newest_message_in_whatever_order_they_come() -> None:
    """A transaction takes time, so that its messages are older than those before it."""
    for times in ([5, 3, 9, 7], [9, 3, 5], [3, 9, 9, 5]):
        index, one = SegmentIndex(1, 1), Gathered()
        for time_ms in times:
            one.published("a", time_ms, time_ms)
        index.add(one)
        assert (index.oldest_ms, index.newest_ms) == (3, 9)
        several = SegmentIndex(1, 1)
        for time_ms in times:
            each = Gathered()
            each.published("a", time_ms, time_ms)
            several.add(each)
        assert (several.oldest_ms, several.newest_ms) == (3, 9)
