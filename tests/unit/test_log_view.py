"""What is listed and opened of the log while files move and go between being listed and being read."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from artemis_py.server import log_view
from artemis_py.server.log_view import LogView, NotInLogError
from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.format.segment_index import SegmentIndex, encode_index, index_name, index_of
from artemis_py.storage.journal.index_files import index_beside
from artemis_py.storage.log_id import known_id, log_id
from tests.kit.files import flip
from tests.kit.log_desk import Desk


@contextmanager
def looks() -> Iterator[Counter[str]]:
    """How often a directory is listed and a file opened meanwhile."""
    counts, is_on = Counter[str](), [True]
    sys.addaudithook(lambda event, _: counts.update([event]) if is_on else None)
    yield counts
    is_on.clear()


def test_a_listing_costs_as_much_while_segments_retire(tmp_path: Path) -> None:
    """No directory is listed for a segment that moved, nor for one that was removed."""
    desk = Desk(tmp_path)
    desk.keep(24)
    for segment in desk.journal.segments[:-1]:
        segment.index = None  # as when they were recovered
    listing, openings = desk.view.listing("b", 7, -1), [desk.view.opening(number) for number in range(1, 21)]
    for number in range(1, 21):
        desk.retention.retire(f"artemis-journal-{number:012}.log")
    desk.retention.give_up_oldest()
    desk.retention._stamp.note()
    with looks() as seen:
        found = desk.read(listing())
    assert [one["segment"] for one in found] == list(range(2, 25))
    assert seen["os.listdir"] + seen["os.scandir"] == 0
    assert seen["open"] <= 3 * 24  # index and file where they were, and the index where it is
    with looks() as seen:
        for opening in openings[1:]:
            os.close(opening()[0])
        with pytest.raises(NotInLogError):
            openings[0]()
    assert seen["os.listdir"] + seen["os.scandir"] == 0


@pytest.mark.interpreted
def test_what_is_behind_an_lsn_is_found_without_looking_at_all_segments(tmp_path: Path) -> None:
    """Neither a poll for what is new nor one segment's bytes ask for the indexes of the others."""
    desk = Desk(tmp_path)
    desk.keep(20)
    asked: list[int] = []
    fields = SegmentIndex.fields
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SegmentIndex, "fields", lambda index: asked.append(index.number) or fields(index))
        listing = desk.view.listing("b", 7, desk.journal.durable_lsn - 1)
        opening = desk.view.opening(4)
        assert asked == [20]  # in the event loop's thread: one to which the journal may still write
        assert [one["segment"] for one in desk.read(listing())] == [20]
        os.close(opening()[0])
        assert asked == [20, 4]


def test_a_listing_says_what_is_in_the_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.listed() == []
    desk.keep(3)
    desk.write(1)
    listed = desk.listed()
    assert [one["segment"] for one in listed] == [1, 2, 3, 4]
    for one in listed:
        data = (tmp_path / "journal" / one["name"]).read_bytes()
        assert {**index_of(data).fields(), "name": one["name"], "is_current": False} == one
    second = listed[1]
    assert [one["segment"] for one in desk.listed(second["last_lsn"])] == [3, 4]
    assert [one["segment"] for one in desk.listed(second["last_lsn"] - 1)] == [2, 3, 4]
    assert desk.listed(listed[-1]["last_lsn"]) == []
    head = json.loads(b"".join(desk.view.listing("b", 7, -1)()))
    assert {key: head[key] for key in ("broker", "id", "durable_lsn", "first_lsn", "now_ms")} == {
        "broker": "b", "id": "id", "durable_lsn": desk.journal.durable_lsn, "first_lsn": 1, "now_ms": 7
    }  # fmt: skip


def test_a_listing_behind_an_lsn_is_the_end_of_the_whole_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(6)
    desk.keep(2)
    assert len(desk.retention.files) > 3
    whole = desk.listed()
    for after_lsn in range(desk.journal.durable_lsn + 2):
        assert desk.listed(after_lsn) == [one for one in whole if one["last_lsn"] > after_lsn]
    for one in whole:
        descriptor, size_bytes = desk.view.opening(one["segment"])()
        os.close(descriptor)
        assert size_bytes == one["bytes"]


def test_a_segment_that_moved_since_is_found(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.keep(3)
    before = desk.listed()
    for segment in desk.journal.segments[:-1]:
        segment.index = None  # as when it was recovered
    listing, opening = desk.view.listing("b", 7, -1), desk.view.opening(2)
    target = desk.move(2)
    after = desk.read(listing())
    assert after[1] == {**before[1], "name": target.name}
    assert after[::2] == before[::2]
    descriptor, size_bytes = opening()
    assert size_bytes == before[1]["bytes"]
    assert os.pread(descriptor, 1 << 20, 0) == target.read_bytes()
    os.close(descriptor)


def test_a_segment_that_was_removed_since_is_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.keep(3)
    for segment in desk.journal.segments[:-1]:
        segment.index = None
    listing, opening = desk.view.listing("b", 7, -1), desk.view.opening(1)
    moved = desk.move(1)
    moved.unlink()
    moved.with_name(index_name(moved.name)).unlink()
    assert [one["segment"] for one in desk.read(listing())] == [2, 3]
    with pytest.raises(NotInLogError, match="segment 1 is no longer in the log") as gone:
        opening()
    assert gone.value.is_gone
    with pytest.raises(NotInLogError, match="segment 9 does not exist yet") as missing:
        desk.view.opening(9)
    assert not missing.value.is_gone


def test_a_retained_segment_with_a_damaged_header_is_listed_as_such(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(4)
    path = desk.retention.files[1].file.path
    path.with_name(index_name(path.name)).unlink()
    flip(path, 3)
    desk.view.indexing()()
    listed = desk.listed()
    assert [one["segment"] for one in listed] == list(range(1, len(listed) + 1))
    assert listed[1]["error"] == "not a journal file: the first eight bytes are not ARTEMISJ"
    with pytest.raises(NotInLogError, match="segment 2 cannot be read: not a journal file"):
        desk.view.opening(2)()


def test_indexes_that_are_missing_are_made_unless_the_broker_ends(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.keep(3)
    paths = [tmp_path / "journal" / index_name(segment.name) for segment in desk.journal.segments[:-1]]
    before = [path.read_bytes() for path in paths]
    desk.start()
    view = LogView(desk.journal, tmp_path / "journal", "id", [], None)
    for path in paths:
        path.unlink()
    indexing = view.indexing()
    view.stop()
    indexing()
    assert not any(path.exists() for path in paths)
    LogView(desk.journal, tmp_path / "journal", "id", [], None).indexing()()
    assert [path.read_bytes() for path in paths] == before


def test_the_id_stays_while_one_of_the_directories_does(tmp_path: Path) -> None:
    directories = [tmp_path / "journal", tmp_path / "kept"]
    for directory in directories:
        directory.mkdir()
    first = log_id(directories[:1])
    assert log_id(directories) == first
    (tmp_path / "journal" / "log-id").unlink()
    assert log_id(directories) == first
    for directory in directories:
        (directory / "log-id").unlink()
    assert log_id(directories) != first


def test_no_byte_of_an_id_can_be_wrong_unnoticed(tmp_path: Path) -> None:
    """The other copy counts, and the damaged one is written again; without one the log has a new id, which is told."""
    directories = [tmp_path / "journal", tmp_path / "kept"]
    for directory in directories:
        directory.mkdir()
    first = log_id(directories).text
    paths = [directory / "log-id" for directory in directories]
    whole = paths[0].read_bytes()
    for offset in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[offset] ^= 1 << bit
            paths[0].write_bytes(damaged)
            assert known_id(directories) == first
            with pytest.raises(DiskError, match="is DAMAGED"):
                known_id(directories[:1])
        for place, path in enumerate(paths):  # writing an id is slow: one bit of each byte
            path.write_bytes(damaged)
            found = log_id(directories)
            assert (found.text, found.faults) == (first, (f"{path} is DAMAGED",)), place
            assert path.read_bytes() == whole
        paths[0].write_bytes(damaged)
        found = log_id(directories[:1])
        assert found.text != first
        assert "the log has a new id" in found.faults[0]
        paths[0].write_bytes(whole)


def test_an_id_without_a_checksum_is_read(tmp_path: Path) -> None:
    """As older brokers wrote it."""
    (tmp_path / "log-id").write_text("0123456789abcdef" * 2 + "\n", "ascii")
    assert known_id([tmp_path]) == log_id([tmp_path]).text == "0123456789abcdef" * 2


@pytest.mark.interpreted
def test_what_is_sent_as_it_is_need_not_be_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log with thousands of segments to decode their indexes was most of what a listing cost."""
    desk = Desk(tmp_path)
    desk.keep(12)
    for segment in desk.journal.segments[:-1]:
        segment.index = None
        path = tmp_path / "journal" / segment.name
        fields = index_of(path.read_bytes(), path.name).fields()
        path.with_name(index_name(path.name)).write_bytes(encode_index(fields))
    for number in range(1, 6):
        desk.retention.retire(f"artemis-journal-{number:012}.log")
    middle = desk.journal.segments[-3].first_lsn
    every = [*desk.view._in_journal(), *map(log_view._listed, desk.retention.files)]
    wanted = {one.number: desk.view._described(one) for one in every if one.fields is None}
    decoded: list[Path] = []
    true_index = index_beside
    monkeypatch.setattr(log_view, "index_beside", lambda path: decoded.append(path) or true_index(path))
    found = {one["segment"]: one for one in desk.listed()}
    assert not decoded
    assert len(wanted) == 12
    assert {number: found[number] for number in wanted} == wanted
    behind = desk.listed(middle)
    assert [one["segment"] for one in behind] == [number for number in found if found[number]["last_lsn"] > middle]
    assert len(decoded) == 1  # the first one: does all of it lie before the lsn?
    oldest = desk.retention.files[0].file.path
    damaged = oldest.with_name(index_name(oldest.name))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert {one["segment"]: one for one in desk.listed()} == found
