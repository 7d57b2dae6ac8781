"""When compaction is wanted: enough files, of which little enough lives, and sooner on a disk without room."""

from __future__ import annotations

import pytest

from artemis_py.message import Message
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.prepared import QUEUE_ID, begin, message, publish
from tests.kit.disk import SimDisk

FILE_BYTES = 4096


def filled(
    files: int, *, files_min: int = 3, percentage: int = 50, settled: float = 1.0
) -> tuple[SimDisk, Journal, SteppedCommitter]:
    """A journal of so many files; of the first message so much is left as the first file needs to stay."""
    settings = JournalSettings(file_bytes=FILE_BYTES, compact_files_min=files_min, compact_percentage=percentage)
    disk, journal, committer = begin(settings)
    published: list[Message] = []
    while len(journal.segments) < files:
        assert not journal.compaction.is_wanted
        published.append(message(len(published) + 1, bytes(400)))
        publish(journal, committer, published[-1])
    gone = published[1 : 1 + round(settled * (len(published) - 1))]
    if gone:
        journal.records.settled(QUEUE_ID, gone, "acked")
    return disk, journal, committer


@pytest.mark.parametrize(("files", "is_wanted"), [(1, False), (3, False), (4, True)])
def test_there_must_be_more_files_than_the_minimum(files: int, is_wanted: bool) -> None:
    _, journal, _ = filled(files)
    assert journal.compaction.is_wanted == is_wanted
    assert [kept.message.id for kept in journal.compaction.moved()] == [1] * is_wanted


def test_none_is_wanted_where_it_is_switched_off() -> None:
    _, journal, _ = filled(6, files_min=0)
    assert not journal.compaction.is_wanted


def test_bindings_live_too() -> None:
    """With many of them the journal would move messages out of their way for ever."""
    _, journal, _ = filled(5)
    assert journal.compaction.is_wanted
    journal.compaction.bindings_bytes = journal.files.written_bytes // 2
    assert not journal.compaction.is_wanted


@pytest.mark.parametrize(("percentage", "settled", "is_wanted"), [(30, 0.5, True), (90, 0.2, True), (30, 0.2, False)])
def test_a_disk_without_room_is_compacted_sooner_and_never_later(
    percentage: int, settled: float, is_wanted: bool
) -> None:
    disk, journal, _ = filled(6, percentage=percentage, settled=settled)
    with_room = journal.compaction.is_wanted
    disk.has_room = False
    assert journal.compaction.is_wanted == is_wanted
    assert is_wanted or not with_room


def test_without_room_it_moves_nothing_unless_twice_as_much_is_left() -> None:
    disk, journal, _ = filled(6)
    disk.has_room = False
    live_bytes = journal.segments[0].live_bytes
    for left, count in ((2 * live_bytes - 1, 0), (2 * live_bytes, 1)):
        disk.left_bytes = left
        assert len(journal.compaction.moved()) == count


def test_messages_of_a_deleted_queue_are_not_moved() -> None:
    _, journal, _ = filled(6)
    journal.records.queue_deleted(QUEUE_ID)
    assert journal.compaction.moved() == []
    assert journal.index.home == {}
