"""Closed segments move, keep their order and their time in their names, and go by age and size, oldest first."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest

from artemis_py.storage.disk.disk import DiskError, FileDisk, NoSpaceError
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import decode_file_header
from artemis_py.storage.format.scan import log_file, log_files
from artemis_py.storage.journal.extent import ExtentFiles
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.segments import SegmentRetirement
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.retention import retention
from artemis_py.storage.retention.retention import LogEnd, Retention, RetentionSettings, retained_name
from tests.kit.committer import SteppedCommitter
from tests.kit.files import age
from tests.kit.journal_story import FILE_BYTES, START_MS, Story
from tests.kit.keeping import Keeping

DAY_MS = 86_400_000


def test_the_name_tells_number_and_time() -> None:
    name = retained_name("artemis-journal-000000000012.log", 1_700_000_000_123)
    assert name == "artemis-journal-000000000012-20231114T221320.123Z.log"
    file = log_file(Path(name))
    assert file is not None
    assert (file.number, file.closed_ms) == (12, 1_700_000_000_123)


@pytest.mark.parametrize(
    "name", ["artemis-journal-12.log", "quarantined-artemis-journal-000000000012.log", "server.lock"]
)
def test_other_files_are_no_journal_files(name: str) -> None:
    assert log_file(Path(name)) is None


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    rig = Keeping(tmp_path, period_ms=DAY_MS)
    rig.retire_segment(1, START_MS - DAY_MS)
    rig.retire_segment(2, START_MS)
    assert rig.kept_segments == [1, 2]
    rig.now_ms += 1
    rig.log.purge()
    assert rig.kept_segments == [2]


def test_a_younger_segment_protects_the_ones_behind_it(tmp_path: Path) -> None:
    rig = Keeping(tmp_path, period_ms=DAY_MS)
    rig.retire_segment(1, START_MS)
    rig.retire_segment(2, START_MS - 3 * DAY_MS)
    assert rig.kept_segments == [1, 2]


def test_the_oldest_of_too_much_goes(tmp_path: Path) -> None:
    rig = Keeping(tmp_path, bytes_max=2500)
    for number in range(1, 6):
        rig.retire_segment(number, START_MS)
    assert rig.kept_segments == [4, 5]


def test_one_more_file_costs_no_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Keeping(tmp_path, bytes_max=4500, period_ms=DAY_MS)
    rig.retire_segment(1, START_MS)
    monkeypatch.setattr(
        retention,
        "log_files",
        Mock(side_effect=AssertionError("a directory that only retention changed was listed again")),
    )
    for number in range(2, 8):
        rig.retire_segment(number, START_MS)
    assert rig.kept_segments == [4, 5, 6, 7]
    assert [one.file.number for one in rig.log.files] == rig.kept_segments
    assert rig.log.size_bytes == 4000
    rig.now_ms += DAY_MS + 1
    rig.log.purge()
    assert (rig.kept_segments, rig.log.files, rig.log.size_bytes) == ([], (), 0)


def test_what_others_remove_or_bring_is_noticed(tmp_path: Path) -> None:
    rig = Keeping(tmp_path)
    for number in range(1, 5):
        rig.retire_segment(number, START_MS)
    rig.log.files[1].file.path.unlink()
    age(rig.folder, -1)
    rig.log.purge()
    assert [one.file.number for one in rig.log.files] == [1, 3, 4]
    rig.log.files[0].file.path.unlink()
    age(rig.folder, -1)
    rig.retire_segment(5, START_MS)
    assert [one.file.number for one in rig.log.files] == [3, 4, 5]
    assert rig.log.size_bytes == 3000
    (rig.folder / retained_name("artemis-journal-000000000002.log", START_MS)).write_bytes(bytes(50))
    age(rig.folder, -1)
    rig.log.purge()
    assert [one.file.number for one in rig.log.files] == [2, 3, 4, 5]
    assert rig.log.size_bytes == 3050


def test_a_file_that_a_crash_left_in_both_places_is_kept_once(tmp_path: Path) -> None:
    rig = Keeping(tmp_path)
    rig.retire_segment(1, START_MS)
    rig.retire_segment(2, START_MS)
    rig.retire_segment(1, START_MS)
    assert [one.file.number for one in rig.log.files] == rig.kept_segments == [1, 2]
    assert rig.log.size_bytes == 2000


def test_what_is_behind_an_lsn(tmp_path: Path, rng: Random) -> None:
    settings = RetentionSettings(tmp_path / "kept", None, None)
    story = Story(tmp_path / "journal", settings)
    story.generate(rng, 60)
    kept = Retention(story.disk, story.folder, settings, lambda: story.now_ms)
    assert len(kept.files) > 3
    third = kept.files[2]
    assert kept.since(-1) == kept.since(0) == kept.files
    assert kept.since(third.first_lsn - 1) == kept.files[2:]
    assert kept.since(third.first_lsn - 2) == kept.files[1:]
    assert kept.since(kept.files[-1].first_lsn + 1000) == kept.files[-1:]
    assert Keeping(tmp_path / "empty").log.since(7) == ()


def test_a_directory_on_another_file_system_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Keeping(tmp_path)
    rename = os.rename

    def refuse(source: Path, target: Path) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    rig.retire_segment(1, START_MS)
    assert rig.kept_segments == [1]
    assert [path.stat().st_size for path in rig.folder.glob("*.*")] == [1000]


def test_an_unfinished_copy_is_removed_at_the_next_start(tmp_path: Path) -> None:
    rig = Keeping(tmp_path)
    (rig.folder / "artemis-journal-000000000001-20231114T221320.123Z.log.part").write_bytes(b"half")
    Keeping(tmp_path)
    assert list(rig.folder.glob("*.*")) == []


def test_a_segment_that_cannot_be_kept_is_an_error_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Keeping(tmp_path)
    monkeypatch.setattr(os, "rename", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    rig.disk.create("artemis-journal-000000000001.log", 100)
    with pytest.raises(DiskError, match="No space left on device"):
        rig.log.retire("artemis-journal-000000000001.log")
    assert rig.disk.names() == ["artemis-journal-000000000001.log"]


def test_segments_wait_in_order_while_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal goes on meanwhile, readers still find them, and they go when there is room."""
    rig = Keeping(tmp_path)
    leaving = {number: Segment(number, segment_name(number), 1) for number in (1, 2, 3)}
    departure = SegmentRetirement(ExtentFiles(rig.disk), rig.log.retire, leaving)
    rename = os.rename
    monkeypatch.setattr(os, "rename", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    for segment in list(leaving.values()):
        rig.disk.create(segment.name, 100)
        departure.let_go(segment)
    assert list(leaving) == [1, 2, 3]
    departure.retry()
    assert (rig.kept_segments, len(rig.disk.names())) == ([], 3)
    monkeypatch.setattr(os, "rename", rename)
    departure.retry()
    assert (rig.kept_segments, rig.disk.names(), leaving) == ([1, 2, 3], [], {})


def test_a_copy_without_room_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Keeping(tmp_path)

    def half(_source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", Mock(side_effect=OSError(errno.EXDEV, "Invalid cross-device link")))
    monkeypatch.setattr(shutil, "copyfile", half)
    rig.disk.create("artemis-journal-000000000001.log", 100)
    with pytest.raises(NoSpaceError):
        rig.log.retire("artemis-journal-000000000001.log")
    assert list(rig.folder.glob("*.*")) == []


def test_the_oldest_can_be_given_up_whoever_holds_it(tmp_path: Path) -> None:
    """That is asked for only when the journal finds no room beside it."""
    rig = Keeping(tmp_path)
    for number in (1, 2):
        rig.retire_segment(number, START_MS + number)
    name = rig.log.give_up_oldest()
    assert name is not None
    assert name.startswith("artemis-journal-000000000001-")
    assert rig.kept_segments == [2]
    assert rig.log.give_up_oldest() is not None
    assert rig.log.give_up_oldest() is None
    assert rig.log.size_bytes == 0


def test_a_new_journal_goes_on_behind_the_kept_one(tmp_path: Path, rng: Random) -> None:
    settings = RetentionSettings(tmp_path / "kept", None, None)
    story = Story(tmp_path / "journal", settings)
    story.journal.records.message_id, story.journal.records.queue_id = 4711, 12
    story.generate(rng, 60)
    mark = Retention(story.disk, story.folder, settings, lambda: story.now_ms).log_end()
    assert isinstance(mark, LogEnd)
    assert mark.number == log_files([tmp_path / "kept"])[-1].number
    oldest = log_files([story.folder])[0].path.read_bytes()
    assert len(oldest) >= FILE_BYTES
    assert mark.lsn == decode_file_header(oldest).first_lsn - 1
    assert (mark.batch.message_id, mark.batch.queue_id) == (4711, 12)


def test_nothing_kept_is_no_mark(tmp_path: Path) -> None:
    assert Keeping(tmp_path).log.log_end() is None


def test_the_journal_looks_after_its_regular_tasks_every_ten_seconds(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path)
    done: list[int] = []
    care = SegmentCare(retire=disk.delete, regular_tasks=lambda: done.append(second))
    journal = Journal(disk, SteppedCommitter(at_once=True), JournalSettings(), start=JournalStart(), care=care)
    for second in range(25):
        journal.records.now_ms = START_MS + second * 1000
        journal.seal()
    assert done == [0, 10, 20]
