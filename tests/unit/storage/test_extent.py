"""Which journal files a crash expects to find, on a disk that refuses to note it."""

from __future__ import annotations

import random

import pytest

from artemis_py.storage.disk.disk import NoSpaceError
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.journal.extent import NAMES, ExtentFiles, JournalExtent, read_extent
from tests.kit.disk import Fault, SimDisk

FULL = "No space left on device"


def test_a_note_that_was_refused_and_is_there_all_the_same() -> None:
    """Found by the simulation, seed 3066950486: a file that it names was deleted, and missed after a crash."""
    disk = SimDisk(random.Random(1))
    disk.fault = Fault(0, FULL, whole=True)
    extents = ExtentFiles(disk)
    extents.reach(2, 1)
    assert read_extent(disk).extent == JournalExtent(1, 2)
    with pytest.raises(NoSpaceError):
        extents.begin_at(2)
    disk.fault = None
    extents.begin_at(2)
    assert read_extent(disk).extent == JournalExtent(2, 2)


def test_a_note_that_was_refused_holds_up_nobody() -> None:
    """The next file makes it again."""
    disk = SimDisk(random.Random(1))
    disk.fault = Fault(1, FULL, verbs=("create", "write"))
    extents = ExtentFiles(disk)
    extents.reach(2, 1)
    assert read_extent(disk).extent is None
    disk.fault = None
    extents.reach(3, 1)
    assert read_extent(disk).extent == JournalExtent(1, 3)
    assert {*disk.names()} == {*NAMES}


@pytest.mark.parametrize("refused", NAMES)
def test_a_file_may_go_although_there_is_no_room_for_a_second_note(refused: str) -> None:
    """Found by a disk that is full from one call on, seed 3556705479: the broker ended for want of room, and could have
    deleted a file.
    """
    disk = SimDisk(random.Random(1))
    disk.fault = Fault(0, FULL, verbs=("create",), names=(refused,))
    extents = ExtentFiles(disk)
    extents.reach(2, 1)
    assert read_extent(disk).extent == (None if refused == NAMES[0] else JournalExtent(1, 2))
    extents.begin_at(2)
    assert read_extent(disk).extent == (None if refused == NAMES[0] else JournalExtent(2, 2))
    disk.fault = None
    extents.reach(3, 2)
    extents.begin_at(3)
    assert read_extent(disk).extent == JournalExtent(3, 3)
    assert {*disk.names()} == {*NAMES}


def test_files_that_go_without_a_note_go_in_their_order() -> None:
    """Found by the simulation, seed 1126586887: the first one came back after a crash, the second did not."""
    left: set[tuple[str, ...]] = set()
    for seed in range(40):
        disk = SimDisk(random.Random(seed))
        for number in (1, 2, 3):
            disk.create(segment_name(number), 512)
        disk.fault = Fault(1, FULL, verbs=("create", "write"))
        extents = ExtentFiles(disk)
        extents.reach(3, 1)
        for number in (1, 2):
            extents.begin_at(number + 1)
            disk.delete(segment_name(number))
            if seed % 2:
                extents.note_deleted()
        assert read_extent(disk).extent is None
        disk.crash()
        if seed % 2:
            assert disk.names() == [segment_name(3)]
        left.add(tuple(disk.names()))
    assert (segment_name(1), segment_name(3)) in left, "without it, there would be a gap"
