"""The index of a segment. That what the journal keeps while it writes is what a walk over the file finds, crash worlds
check after each crash (``indexes_match``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.paged_messages import Page
from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.format import segment_index
from artemis_py.storage.format.codec import decode_batch
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, CodecError, decode_record
from artemis_py.storage.format.scan import Damage, whole_records
from artemis_py.storage.format.segment_index import decode_index, encode_index, index_fields, index_name, index_of
from artemis_py.storage.journal.index_files import delete_orphans, delete_segment, index_beside, write_index
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.journal_story import START_MS, message
from tests.kit.journal_with_cursors import JournalWithCursors

COMPACTED = JournalSettings(file_bytes=4096, compact_files_min=3, compact_percentage=60)
LARGE = replace(COMPACTED, file_bytes=65536)


def bytes_of(rig: JournalWithCursors, number: int) -> bytes:
    """A segment's file."""
    return (rig.disk.directory / segment_name(number)).read_bytes()


def test_what_an_index_says(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    journal = rig.journal
    journal.records.queue_changed({"id": 1, "name": "q", "address": "a"})
    rig.publish(address="b")
    rig.publish()
    rig.turn(2000)
    journal.records.begin_group()
    rig.publish()
    journal.records.queue_deleted(1)
    journal.records.end_group()
    journal.records.published_run([message(8, address="run"), message(9, address="run")], 1, 0)
    rig.turn(1000)
    fields = index_of(bytes_of(rig, 1)).fields()
    end = len(bytes_of(rig, 1).rstrip(b"\0"))
    assert fields == {
        "format": 1, "segment": 1, "first_lsn": 1, "last_lsn": 10, "first_ms": 1000, "last_ms": 2000,
        "oldest_ms": START_MS + 1, "newest_ms": START_MS + 9, "bytes": fields["bytes"], "records": 10, "messages": 5,
        "addresses": ["a", "b", "run"],
        "queues": [
            {"lsn": 1, "id": 1, "name": "q", "address": "a"},
            {"lsn": 6, "id": 1, "name": "q", "address": "a", "deleted": True},
        ],
        "sessions": [], "consumers": [], "blocks": [[FILE_HEADER_BYTES, 1, 2000]],
    }  # fmt: skip
    assert end <= fields["bytes"] <= end + 8  # the last record may end in zeros
    assert journal.segments[0].index is not None
    assert journal.segments[0].index.fields() == fields


def test_a_record_that_another_replaced_before_it_was_written_does_not_count(tmp_path: Path) -> None:
    """A page that grows twice in a turn says so once."""
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    page = Page(1, 1, 1)
    rig.journal.records.page_opened(page, "a")
    for count in (1, 2, 3):
        page.count, page.size_bytes = count, 100 * count
        rig.journal.records.paged(page)
    rig.turn(1)
    index = rig.journal.segments[0].index
    assert index is not None
    assert index.records == 3
    assert index.fields() == index_of(bytes_of(rig, 1)).fields()


def test_nothing_is_told_before_it_is_durable(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    rig.publish()
    index = rig.journal.segments[0].index
    assert index is not None
    assert (index.messages, index.addresses, index.size_bytes) == (0, [], FILE_HEADER_BYTES)
    rig.turn(1)
    assert (index.messages, index.addresses) == (1, ["a"])


@pytest.mark.interpreted
def test_blocks_begin_with_a_batch_and_cover_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_index, "BLOCK_BYTES", 1000)
    rig = JournalWithCursors(tmp_path, settings=LARGE)
    for now_ms in range(40):
        rig.publish(bytes(100))
        rig.turn(10 + now_ms)
    data = bytes_of(rig, 1)
    index = index_of(data)
    offsets = [offset for offset, _, _ in index.blocks]
    assert offsets[0] == FILE_HEADER_BYTES
    assert all(later - earlier >= 1000 for earlier, later in pairwise(offsets))
    lsns = {record.offset: record.lsn for record in whole_records("", data, [])}
    for (offset, first_lsn, time_ms), end in zip(index.blocks, [*offsets[1:], index.size_bytes], strict=True):
        record = decode_record(data, offset)
        assert record is not None
        assert record.type_code == BATCH
        assert decode_batch(record.payload).now_ms == time_ms
        assert min(lsn for place, lsn in lsns.items() if offset <= place < end) == first_lsn
    assert rig.journal.segments[0].index is not None
    assert rig.journal.segments[0].index.blocks == index.blocks


@pytest.mark.interpreted
def test_with_too_many_addresses_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_index, "ADDRESSES_MAX", 3)
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    for address in "abc":
        rig.publish(address=address)
        rig.turn(1)
    assert index_of(bytes_of(rig, 1)).addresses == ["a", "b", "c"]
    rig.publish(address="d")
    rig.turn(1)
    assert index_of(bytes_of(rig, 1)).addresses is None
    rig.publish()
    rig.turn(1)
    assert rig.journal.segments[0].index is not None
    assert rig.journal.segments[0].index.fields()["addresses"] is None


def test_an_index_goes_with_its_segment_and_a_lost_one_is_made_again(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    for now_ms in range(60):
        rig.publish(bytes(200))
        rig.turn(now_ms)
    names = set(rig.disk.names())
    for segment in rig.closed:
        assert segment.index is not None
        path = rig.disk.directory / segment.name
        beside = rig.disk.directory / index_name(segment.name)
        assert beside.name in names
        fields = segment.index.fields()
        assert index_fields(path) == index_beside(path) == fields
        for text in (b"", encode_index(fields)[:-3], bytes(len(encode_index(fields)))):
            beside.write_bytes(text)
            assert index_fields(path) == fields
            assert beside.read_bytes() == text
            assert index_beside(path) == fields
            assert decode_index(beside.read_bytes()) == fields
        beside.unlink()
        assert index_beside(path) == fields
        assert beside.exists()
    first = rig.closed[0].name
    delete_segment(rig.disk, first)
    assert not {first, index_name(first)} & set(rig.disk.names())
    (rig.disk.directory / rig.closed[1].name).unlink()
    (rig.disk.directory / (index_name(rig.closed[2].name) + ".part")).write_bytes(b"half")
    delete_orphans(rig.disk)
    left = {index_name(segment.name) for segment in rig.closed[2:]}
    assert {name for name in rig.disk.names() if ".index" in name} == left


def test_a_journal_that_ends_closes_its_segment(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    rig.journal.finish()
    assert rig.closed == []
    rig.publish()
    rig.turn(1)
    rig.journal.finish()
    assert [segment.number for segment in rig.closed] == [1]
    rig.start()
    rig.publish(address="b")
    rig.turn(2)
    rig.journal.finish()
    assert [segment.number for segment in rig.closed] == [1, 2]
    assert index_fields(rig.disk.directory / segment_name(2))["addresses"] == ["b"]


@pytest.mark.interpreted
def test_a_disk_that_refuses_an_index_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = JournalWithCursors(tmp_path, settings=COMPACTED)
    rig.publish()
    rig.turn(1)
    index = rig.journal.segments[0].index
    assert index is not None
    monkeypatch.setattr(rig.disk, "begin", Mock(side_effect=DiskError("no space")))
    assert not write_index(rig.disk, index)


def test_damage_is_passed_over(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, settings=LARGE)
    for now_ms in range(3):
        rig.publish(address="abc"[now_ms])
        rig.turn(now_ms)
    data = bytearray(bytes_of(rig, 1))
    place = data.index(b"destination:/queue/b")
    data[place] ^= 1
    damages: list[Damage] = []
    index = index_of(bytes(data), "x", damages)
    assert (index.addresses, index.messages, index.records, index.last_lsn) == (["a", "c"], 2, 5, 6)
    assert len(damages) == 1
    data[3] ^= 1
    with pytest.raises(CodecError):
        index_of(bytes(data))
