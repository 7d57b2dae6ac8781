"""In which order files come to the retained log and go from it, as somebody sees who looks in the middle."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.format.address_index import places_name
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.segment_index import decode_index, index_name
from artemis_py.storage.journal.extent import ExtentFiles, JournalExtent, read_extent
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.segments import SegmentRetirement
from artemis_py.storage.retention.retention import RetainedLog, RetentionSettings
from tests.kit.disk import SimDisk
from tests.kit.journal_with_cursors import JournalWithCursors
from tests.kit.keeping import Keeping


def test_nobody_is_told_of_a_retained_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(4)
    unlink = Path.unlink
    gone: list[int] = []

    def watched(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=missing_ok)
        if path.suffix == ".log" and path.parent.name == "kept":
            gone.append(min(rig.numbers))

    monkeypatch.setattr(Path, "unlink", watched)
    rig.retention.give_up_oldest()
    rig.retention.give_up_oldest()
    assert gone == [2, 3]


def test_a_segment_comes_to_retention_behind_what_stands_beside_it_and_is_found_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rename = os.rename
    moved: list[str] = []

    def watched(source: Path, target: Path) -> None:
        rename(source, target)
        if Path(target).parent.name != "kept":
            return
        moved.append(Path(target).suffix)
        if moved[-1] == ".log":
            found = rig.retention.path_of(len(rig.numbers) + 1)
            assert found is not None
            assert found.exists()

    monkeypatch.setattr(os, "rename", watched)
    rig.write(3)
    assert len(moved) >= 4
    assert moved == [".index", ".log"] * (len(moved) // 2)


def test_a_body_goes_with_the_last_file_that_speaks_of_it_if_that_is_given_up(tmp_path: Path) -> None:
    kept = Keeping(tmp_path)
    start_ms = kept.now_ms
    kept.retire_body(1)
    kept.now_ms = start_ms + 9000
    kept.retire_segment(kept.begin_segment(start_ms - 1000), start_ms + 9000)
    kept.retire_segment(kept.begin_segment(start_ms + 9000), start_ms + 9500)
    assert kept.kept_bodies == [1]
    assert kept.log.give_up_oldest() is not None
    assert kept.kept_bodies == []


def test_the_extent_says_that_a_segment_goes_before_it_goes() -> None:
    """A crash in between would make a start miss it."""
    disk = SimDisk(random.Random(1))
    extent = ExtentFiles(disk)
    extent.save(JournalExtent(1, 3))
    leaving = {number: Segment(number, segment_name(number), 1) for number in (1, 2)}
    seen: list[tuple[str, int, bool]] = []

    def retire(name: str) -> None:
        told = read_extent(disk).extent
        assert told is not None
        seen.append((name, told.first, departure.waits))

    departure = SegmentRetirement(extent, retire, leaving)
    for segment in [*leaving.values()]:
        departure.let_go(segment)
    assert seen == [(segment_name(1), 2, False), (segment_name(2), 3, False)], "and while it goes, it does not wait"
    assert not leaving


class TightDisk(FileDisk):
    """A disk without room, when the test says so."""

    has_room = True


def test_a_survey_is_put_beside_its_segment_wherever_that_is(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(3)
    disk = TightDisk(tmp_path / "journal")
    settings = RetentionSettings(tmp_path / "kept", None, None)
    log = RetainedLog(disk, FileDisk(tmp_path / "large"), settings, rig.cursors)
    retained = log.retention.files[0]
    in_journal = retained.file.path.rename(tmp_path / "journal" / segment_name(9))
    (tmp_path / "kept" / index_name(retained.file.path.name)).rename(tmp_path / "journal" / index_name(in_journal.name))
    second = log.retention.files[1].file
    assert (log.path_of(9), log.path_of(second.number), log.path_of(77)) == (in_journal, second.path, None)
    for number, path in ((9, in_journal), (second.number, second.path), (77, tmp_path / segment_name(77))):
        beside = path.with_name(places_name(path.name))
        disk.has_room = False
        log.put_beside(number, {"copies": 3}, b"places")
        assert not beside.exists(), "nobody needs it, so a full disk is spared"
        disk.has_room = True
        log.put_beside(number, {"copies": 3}, b"places")
        assert beside.exists() == path.exists()
        if path.exists():
            assert decode_index(path.with_name(index_name(path.name)).read_bytes())["copies"] == 3
