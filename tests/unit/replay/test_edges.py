"""What a replay finds while segments move and go, behind torn writes and damage, and where a disk fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.replay.replay import Addresses
from artemis_py.replay_log import Spot
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import FILE_HEADER_BYTES, Record
from artemis_py.storage.format.scan import whole_records
from artemis_py.storage.format.segment_index import index_name
from artemis_py.storage.journal.index_files import index_beside, write_survey
from artemis_py.storage.retention.survey import Survey
from tests.kit.files import flip
from tests.kit.log_desk import Desk
from tests.unit.replay.reading import ALL, Reading, told

SLICE = 600
HOUR_MS = 3_600_000


class Archive(Desk):
    """Its messages stay in the journal until a segment is moved by hand."""

    def reading(self) -> Reading:
        """The log as it is now."""
        return Reading(self.journal, self.folder / "journal", self.retention)

    def records(self, path: Path) -> list[Record]:
        """Of a segment."""
        return list(whole_records(path.name, path.read_bytes(), [], is_last=False))


def test_segments_that_move_while_they_are_read(tmp_path: Path) -> None:
    """Before, while and after they are."""
    archive = Archive(tmp_path)
    archive.keep(9)
    reading = archive.reading()
    moved = iter(range(1, 9))

    def move() -> None:
        number = next(moved, None)
        if number is not None and number % 2:
            archive.retention.retire(segment_name(number))
        elif number is not None:
            archive.move(number)
            archive.retention._list()

    expected = told(tmp_path)
    assert reading.rows(SLICE, between=move) == expected
    assert reading.rows(SLICE) == expected
    assert next(moved, None) is None


def test_a_segment_that_has_moved_and_is_not_noted(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.keep(3)
    reading, expected = archive.reading(), told(tmp_path)
    archive.move(1)
    found = reading.slice(Spot(1, FILE_HEADER_BYTES))
    assert not found.is_gone
    assert found.select(ALL)
    assert reading.rows(spot=Spot(1, FILE_HEADER_BYTES)) == expected


def test_what_retention_has_removed_is_gone_and_the_rest_begins_with_its_first_lsn(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.write(6)
    assert archive.numbers[:4] == [1, 2, 3, 4]
    reading, before = archive.reading(), told(tmp_path)
    archive.retention.give_up_oldest()
    assert reading.slice(Spot(1, FILE_HEADER_BYTES)).is_gone
    assert reading.log.after(0) is None
    assert reading.log.beginning().place == (2, FILE_HEADER_BYTES)
    first_lsn = reading.log.first_lsn()
    left = told(tmp_path)
    assert before[-len(left) :] == left
    assert before[-len(left) - 1][0] < first_lsn <= left[0][0]
    spot = reading.log.after(first_lsn - 1)
    assert spot is not None
    assert reading.rows(spot=spot) == left


def test_a_segment_that_somebody_else_removed_is_gone_and_what_follows_it_is_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.write(6)
    assert archive.numbers[:4] == [1, 2, 3, 4]
    reading, before = archive.reading(), told(tmp_path)
    path = archive.retention.path_of(2)
    assert path is not None
    path.unlink()
    archive.retention._list()
    assert reading.slice(Spot(2, FILE_HEADER_BYTES)).is_gone
    first_lsn = reading.log.first_lsn(2)
    spot = reading.log.after(first_lsn - 1)
    assert spot is not None
    assert spot.segment == 3
    assert reading.rows(spot=spot) == [row for row in before if row[0] >= first_lsn]


def test_a_time_after_the_clock_was_set_back(tmp_path: Path, rng: Random) -> None:
    """By an hour, in the middle of a segment or between two, wherever the segments are: it begins with the segment of
    the first message that was published at the time or later.
    """
    archive = Archive(tmp_path)
    for turn in range(60):
        archive.now_ms += -HOUR_MS if turn % 13 == 12 else rng.choice((1, 1000, HOUR_MS // 8))
        archive.publish(bytes(500))
        archive.turn()
        if turn == 40:
            archive.start()
    for number in (1, 2, 3):
        archive.retention.retire(segment_name(number))
    reading, expected = archive.reading(), told(tmp_path)
    begins = [reading.log.after(lsn - 1) for lsn, *_ in expected]
    for time_ms in {row[1] for row in expected}:
        first = next(place for place, row in enumerate(expected) if row[1] >= time_ms)
        begin = begins[first]
        spot = reading.log.since(time_ms)
        assert begin is not None
        assert spot.segment == begin.segment
        assert reading.rows(spot=spot)[-len(expected) + first :] == expected[first:]
    assert reading.log.since(max(row[1] for row in expected) + 1).place[0] == reading.log.end()[0]


def test_a_time_in_a_retained_segment_without_an_index(tmp_path: Path) -> None:
    """Nothing says until when it goes, so it may have what is asked for. An index that comes later is seen."""
    archive = Archive(tmp_path)
    archive.now_ms += HOUR_MS
    archive.keep(1)
    archive.now_ms -= HOUR_MS
    archive.keep(3)
    beside = tmp_path / "journal" / index_name(segment_name(2))
    text = beside.read_bytes()
    beside.unlink()
    for number in (1, 2, 3):
        archive.retention.retire(segment_name(number))
    log = archive.reading().log
    assert log.since(archive.now_ms + 1).segment == 1
    assert log.since(archive.now_ms + HOUR_MS + 1).segment == 2
    path = archive.retention.path_of(2)
    assert path is not None
    path.with_name(index_name(path.name)).write_bytes(text)
    archive.retention.purge()
    assert log.since(archive.now_ms + HOUR_MS + 1).segment == log.end()[0]


@pytest.mark.parametrize("cut_bytes", [0, 1, 5, 20, 100])
def test_a_torn_write_is_no_part_of_the_log(tmp_path: Path, cut_bytes: int) -> None:
    """A broker was killed while it wrote a batch: the next one begins behind what is whole, in another file."""
    archive = Archive(tmp_path)
    archive.keep(2)
    for _ in range(2):
        archive.publish(bytes(500))
        archive.turn()
    expected = told(tmp_path)
    path = tmp_path / "journal" / archive.journal.segments[-1].name
    *_, batch, one = archive.records(path)
    with path.open("r+b") as file:
        file.seek(one.end)
        file.write(path.read_bytes()[batch.offset : one.end][:cut_bytes])
    archive.start()
    reading = archive.reading()
    assert reading.rows(SLICE) == expected
    archive.keep(2)
    assert reading.rows(SLICE) == told(tmp_path)
    assert len(told(tmp_path)) > len(expected)
    assert reading.said == []


def test_damage_is_passed_over_and_told_once(tmp_path: Path) -> None:
    """The messages before and behind it are shown."""
    archive = Archive(tmp_path)
    archive.keep(4)
    expected = told(tmp_path)
    for number in (1, 2):
        archive.retention.retire(segment_name(number))
    path = archive.retention.path_of(2)
    assert path is not None
    victim = archive.records(path)[len(archive.records(path)) // 2]
    lost = [row for row in expected if row[0] == victim.lsn]
    flip(path, victim.end - 1)
    reading = archive.reading()
    for size_bytes in (SLICE, 131072):
        assert reading.rows(size_bytes) == [row for row in expected if row not in lost]
    (line,) = reading.said
    assert line.startswith(f"warning: {segment_name(2)} at byte {victim.offset}: DAMAGED: replays go on at byte ")


def test_a_length_that_is_damaged_hides_nothing_behind_it(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.keep(4)
    expected = told(tmp_path)
    archive.retention.retire(segment_name(1))
    path = archive.retention.path_of(1)
    assert path is not None
    records = archive.records(path)
    victim = records[len(records) // 2]
    data = bytearray(path.read_bytes())
    data[victim.offset + 4 : victim.offset + 8] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    found = archive.reading().rows(SLICE)
    assert [row for row in expected if row not in found] == [row for row in expected if row[0] == victim.lsn]


def test_a_header_that_is_damaged_does_not_matter(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.keep(4)
    expected = told(tmp_path)
    for number in (1, 2):
        archive.retention.retire(segment_name(number))
    path = archive.retention.path_of(1)
    assert path is not None
    flip(path, 20, 0xFF)
    archive.retention.files = archive.retention.files[:0]
    archive.retention._list()
    first_lsns = [one.first_lsn for one in archive.retention.files]
    assert first_lsns[0] == 0
    reading = archive.reading()
    assert reading.rows(SLICE) == expected
    assert reading.log.first_lsn() == first_lsns[1]
    assert reading.rows(spot=reading.log.after(1)) == expected  # who knows where it begins


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path)
    archive.keep(2)
    reading = archive.reading()
    monkeypatch.setattr(
        "artemis_py.storage.replay.os.pread", Mock(side_effect=OSError(errno.EIO, os.strerror(errno.EIO)))
    )
    found = reading.slice(Spot(1, FILE_HEADER_BYTES))
    assert (found.failure, found.is_gone) == (f"{segment_name(1)}: Input/output error", False)


def test_only_the_parts_with_an_address_are_read(tmp_path: Path) -> None:
    """Where the file of places says where they are."""
    archive = Archive(tmp_path)
    archive.keep(2)
    archive.number = 999
    for number in range(1000, 1060):
        archive.publish(bytes(2000), address="rare" if number == 1030 else "often")
        archive.turn()
    archive.keep(2)
    expected = {row[0] for row in told(tmp_path)}
    journal = tmp_path / "journal"
    for path in sorted(journal.glob("artemis-journal-*.log"))[:-1]:
        fields = index_beside(path)
        survey = Survey(path.read_bytes(), fields["bytes"])
        while survey.step(1000):
            continue
        write_survey(path, survey.fields(), survey.places())
    reading = archive.reading()
    (row,) = reading.rows(choice=Addresses(("rare",), WildcardSyntax()))
    assert row[3] == 1030
    part_bytes = reading.read_bytes
    reading = archive.reading()
    assert {row[0] for row in reading.rows()} == expected
    assert part_bytes < reading.read_bytes / 5
