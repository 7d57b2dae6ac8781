"""The index of a segment: what the journal keeps while it writes is what a walk over the file finds."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.paged_messages import Page
from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.format import segment_index
from artemis_py.storage.format.codec import decode_batch
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, CodecError, decode_record
from artemis_py.storage.format.scan import Damage, whole_records
from artemis_py.storage.format.segment_index import decode_index, encode_index, index_fields, index_name, index_of
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.index_files import delete_orphans, delete_segment, index_beside, write_index
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, SegmentCare
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.journal_story import ImmediateCommitter, Story, message


def sent(number: int, address: str, body: bytes = b"") -> Message:
    """A persistent message to an address."""
    head = Head(encode_headers([("destination", address), ("persistent", "true")]), address, persistent=True)
    return Message(head, body, number, number, 0, Account(), 0)


class IndexedJournal:
    """A journal on real files that writes the index of each segment it closes."""

    def __init__(self, folder: Path, file_bytes: int = 4096) -> None:
        self.folder = folder
        self.disk = FileDisk(folder)
        self.closed: list[Segment] = []
        recovered = recover(self.disk)
        self.journal = Journal(
            self.disk,
            ImmediateCommitter(),
            JournalSettings(file_bytes=file_bytes, compact_files_min=3, compact_percentage=60),
            start=recovered.start,
            care=SegmentCare(retire=lambda name: delete_segment(self.disk, name), closed=self._close),
        )
        self.number = 0

    def _close(self, segment: Segment) -> None:
        assert segment.index is not None
        assert write_index(self.disk, segment.index)
        self.closed.append(segment)

    def turn(self, now_ms: int) -> None:
        """What was written becomes durable."""
        self.journal.records.now_ms = now_ms
        self.journal.poll()
        self.journal.seal()
        self.journal.poll()

    def send(self, address: str, body: bytes = b"", queue_ids: tuple[int, ...] = (1,)) -> int:
        """One message."""
        self.number += 1
        self.journal.records.published(sent(self.number, address, body), list(queue_ids), 0)
        return self.number

    def bytes_of(self, number: int) -> bytes:
        """A segment's file."""
        return (self.folder / segment_name(number)).read_bytes()


def test_the_journal_keeps_what_a_walk_finds(tmp_path: Path, rng: random.Random) -> None:
    story = Story(tmp_path)
    kept: dict[int, dict[str, object]] = {}
    seal = story.journal.poll

    def poll() -> None:
        seal()
        for segment in story.journal.segments:
            if segment.index is not None and segment.index.records:
                kept[segment.number] = segment.index.fields()

    story.journal.poll = poll  # type: ignore[method-assign]
    for _ in range(4):
        story.generate(rng, 40)
        for segment in story.journal.segments:
            if segment.number in kept:
                data = (tmp_path / segment.name).read_bytes()
                assert index_of(data, is_last=True).fields() == kept[segment.number]
    assert len(kept) > 5


def test_what_an_index_says(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path)
    journal = rig.journal
    journal.records.queue_changed({"id": 1, "name": "q", "address": "a"})
    rig.send("b")
    rig.send("a")
    rig.turn(2000)
    journal.records.begin_group()
    rig.send("a")
    journal.records.queue_deleted(1)
    journal.records.end_group()
    journal.records.published_run([sent(8, "run"), sent(9, "run")], 1, 0)
    rig.turn(1000)
    fields = index_of(rig.bytes_of(1)).fields()
    end = len(rig.bytes_of(1).rstrip(b"\0"))
    assert fields == {
        "format": 1, "segment": 1, "first_lsn": 1, "last_lsn": 10, "first_ms": 1000, "last_ms": 2000,
        "oldest_ms": 1, "newest_ms": 9, "bytes": fields["bytes"], "records": 10, "messages": 5,
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


def test_sessions_and_consumers_are_told_in_each_segment_that_names_them(tmp_path: Path) -> None:
    story = Story(tmp_path)
    journal = story.journal
    story.turn(story.declare)
    journal.records.audit.session_opened(7, {"client": "127.0.0.1:5", "login": "me"})
    consumer = journal.records.audit.consumer_opened(7, 1, {"subscription": "s"})
    assert consumer is not None
    found: list[dict[str, Any]] = []
    for number in range(1, 30):
        one = message(number, bytes(300))
        one.origin = 7
        story.turn(
            partial(journal.records.published, one, [1], 0),
            partial(journal.records.audit.delivered, 1, [one], consumer),
        )
    for segment in journal.segments[:4]:
        assert segment.index is not None
        found.append(segment.index.fields())
        assert index_of((tmp_path / segment.name).read_bytes()).fields() == found[-1]
    found = found[1:]  # the first one tells of those of the story, too
    (session,), (subscribed,) = found[0]["sessions"], found[0]["consumers"]
    assert (session["client"], session["login"], subscribed["subscription"]) == ("127.0.0.1:5", "me", "s")
    assert subscribed["session"] == session["id"]
    for earlier, later in pairwise(found):
        assert earlier["sessions"][0]["id"] == later["sessions"][0]["id"]
        assert earlier["sessions"][0]["lsn"] < later["sessions"][0]["lsn"]
        assert earlier["consumers"][0]["id"] == later["consumers"][0]["id"]


def test_a_record_that_another_replaced_before_it_was_written_does_not_count(tmp_path: Path) -> None:
    """A page that grows twice in a turn says so once."""
    rig = IndexedJournal(tmp_path)
    page = Page(1, 1, 1)
    rig.journal.records.page_opened(page, "a")
    for count in (1, 2, 3):
        page.count, page.size_bytes = count, 100 * count
        rig.journal.records.paged(page)
    rig.turn(1)
    index = rig.journal.segments[0].index
    assert index is not None
    assert index.records == 3
    assert index.fields() == index_of(rig.bytes_of(1)).fields()


def test_nothing_is_told_before_it_is_durable(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path)
    rig.send("a")
    index = rig.journal.segments[0].index
    assert index is not None
    assert (index.messages, index.addresses, index.size_bytes) == (0, [], FILE_HEADER_BYTES)
    rig.turn(1)
    assert (index.messages, index.addresses) == (1, ["a"])


def test_copies_of_a_compaction_are_no_messages(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path)
    rig.journal.records.queue_changed({"id": 1, "name": "q", "address": "a"})
    staying = rig.send("a.stays")
    for number in range(200):
        sent_id = rig.send("b", bytes(200))
        rig.journal.records.settled(1, [sent(sent_id, "b")], "acked")
        rig.turn(number)
    assert rig.journal.index.home[staying].number > 3
    assert "a.stays" not in (index_of(rig.bytes_of(rig.journal.index.home[staying].number)).addresses or [])
    assert sum(1 for segment in rig.closed if segment.index and "a.stays" in (segment.index.addresses or [])) == 1


@pytest.mark.interpreted
def test_blocks_begin_with_a_batch_and_cover_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_index, "BLOCK_BYTES", 1000)
    rig = IndexedJournal(tmp_path, file_bytes=65536)
    for turn in range(40):
        rig.send("a", bytes(100))
        rig.turn(10 + turn)
    data = rig.bytes_of(1)
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
    rig = IndexedJournal(tmp_path)
    for address in "abc":
        rig.send(address)
        rig.turn(1)
    assert index_of(rig.bytes_of(1)).addresses == ["a", "b", "c"]
    rig.send("d")
    rig.turn(1)
    assert index_of(rig.bytes_of(1)).addresses is None
    rig.send("a")
    rig.turn(1)
    assert rig.journal.segments[0].index is not None
    assert rig.journal.segments[0].index.fields()["addresses"] is None


def test_an_index_goes_with_its_segment_and_a_lost_one_is_made_again(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path)
    for turn in range(60):
        rig.send("a", bytes(200))
        rig.turn(turn)
    names = set(rig.disk.names())
    for segment in rig.closed:
        assert segment.index is not None
        path = tmp_path / segment.name
        beside = tmp_path / index_name(segment.name)
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
    (tmp_path / rig.closed[1].name).unlink()
    (tmp_path / (index_name(rig.closed[2].name) + ".part")).write_bytes(b"half")
    delete_orphans(rig.disk)
    left = {index_name(segment.name) for segment in rig.closed[2:]}
    assert {name for name in rig.disk.names() if ".index" in name} == left


def test_a_journal_that_ends_closes_its_segment(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path)
    rig.journal.finish()
    assert rig.closed == []
    rig.send("a")
    rig.turn(1)
    rig.journal.finish()
    assert [segment.number for segment in rig.closed] == [1]
    again = IndexedJournal(tmp_path)
    again.send("b")
    again.turn(2)
    again.journal.finish()
    assert [segment.number for segment in again.closed] == [2]
    assert index_fields(tmp_path / segment_name(2))["addresses"] == ["b"]


@pytest.mark.interpreted
def test_a_disk_that_refuses_an_index_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = IndexedJournal(tmp_path)
    rig.send("a")
    rig.turn(1)
    index = rig.journal.segments[0].index
    assert index is not None
    monkeypatch.setattr(rig.disk, "begin", Mock(side_effect=DiskError("no space")))
    assert not write_index(rig.disk, index)


def test_damage_is_passed_over(tmp_path: Path) -> None:
    rig = IndexedJournal(tmp_path, file_bytes=65536)
    for turn in range(3):
        rig.send("abc"[turn])
        rig.turn(turn)
    data = bytearray(rig.bytes_of(1))
    place = data.index(b"destination:b")
    data[place] ^= 1
    damages: list[Damage] = []
    index = index_of(bytes(data), "x", damages)
    assert (index.addresses, index.messages, index.records, index.last_lsn) == (["a", "c"], 2, 5, 6)
    assert len(damages) == 1
    data[3] ^= 1
    with pytest.raises(CodecError):
        index_of(bytes(data))
