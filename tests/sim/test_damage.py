"""Files that are not as they were written: the end torn or changed byte by byte, and damage in the middle."""

from __future__ import annotations

import pytest

from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import FILE_HEADER_BYTES
from artemis_py.storage.recovery.accept_journal import Recovered, recover
from tests.kit.crash.prepared import (
    batch_starts,
    flip,
    kept_ids,
    message,
    open_journal,
    overwrite,
    prepare,
    publish,
    record_of,
    records,
)
from tests.kit.disk import SimDisk

FIRST = segment_name(1)
SECOND = segment_name(2)
QUARANTINED = f"quarantined-{FIRST}"


def _goes_on(disk: SimDisk, expected: list[int]) -> None:
    """A broker starts on the disk, writes, and loses nothing by starting again."""
    journal, committer, recovered = open_journal(disk)
    assert kept_ids(recovered) == expected
    publish(journal, committer, message(99))
    disk.crash()
    again = recover(disk)
    assert kept_ids(again) == [*expected, 99]


def _torn(recovered: Recovered) -> list[tuple[str, int]]:
    assert all(damage.torn for damage in recovered.damages), [str(one) for one in recovered.damages]
    return [(damage.name, damage.offset) for damage in recovered.damages]


# ---- the last record -----------------------------------------------------------------------------


def _last_record() -> range:
    last = records(prepare(2, 3), FIRST)[-1]
    return range(last.offset, last.end)


@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_each_byte_of_the_last_record_flipped(bits: int) -> None:
    place = _last_record()
    for offset in place:
        disk = prepare(2, 3)
        flip(disk, FIRST, offset, bits)
        recovered = recover(disk)
        assert kept_ids(recovered) == [1, 2, 3, 4], offset
        assert _torn(recovered) == [(FIRST, place.start)], offset
        assert recover(disk).damages == [], "what was cut is told only once"
        _goes_on(disk, [1, 2, 3, 4])


def test_the_last_record_overwritten_with_zeros_from_each_byte_on() -> None:
    place = _last_record()
    for offset in place:
        disk = prepare(2, 3)
        written = disk.read(FIRST)[offset : place.stop].rstrip(b"\0")
        overwrite(disk, FIRST, offset, bytes(len(disk.read(FIRST)) - offset))
        recovered = recover(disk)
        expected = [1, 2, 3, 4] if written else [1, 2, 3, 4, 5]
        assert kept_ids(recovered) == expected, offset
        assert _torn(recovered) == ([(FIRST, place.start)] if offset > place.start and written else []), offset
        _goes_on(disk, expected)


def test_each_byte_of_the_last_batch_flipped_costs_that_record() -> None:
    """Nothing proves that the last batch was durable; but what a crash loses are zeros, and whole records behind a
    damaged one show that no write was torn there. Where a zero is in the way the rest of the batch goes.
    """
    start, last = batch_starts(prepare(2, 3), FIRST)[-1], _last_record()
    for record in records(prepare(2, 3), FIRST):
        for offset in range(max(record.offset, start), record.end):
            disk = prepare(2, 3)
            flip(disk, FIRST, offset)
            recovered = recover(disk)
            lost = [number for number in (3, 4, 5) if b"number:%d" % number in record.payload]
            if not disk.read(f"quarantined-{FIRST}" if record.offset < last.start else FIRST)[record.offset]:
                lost = list(range(min(lost or [3]), 6))
            assert kept_ids(recovered) == [number for number in range(1, 6) if number not in lost], offset
            assert [one.torn for one in recovered.damages] == [record.offset == last.start], offset


# ---- the middle ----------------------------------------------------------------------------------


def test_each_record_of_earlier_batches_damaged_loses_only_itself() -> None:
    """A later batch proves that these were durable: the damage is told, the file kept aside, the rest read."""
    whole = prepare(3, 3, 2)
    last_batch = batch_starts(whole, FIRST)[-1]
    for record in records(whole, FIRST):
        if record.offset >= last_batch:
            break
        for offset in (record.offset, record.offset + 4, record.offset + 9, record.end - 1):
            disk = prepare(3, 3, 2)
            flip(disk, FIRST, offset)
            damaged = disk.read(FIRST)
            recovered = recover(disk)
            told = [(damage.name, damage.offset, damage.torn) for damage in recovered.damages]
            assert told == [(FIRST, record.offset, False)], f"byte {offset}"
            assert disk.read(QUARANTINED) == damaged
            if 1 not in recovered.index.queues:
                assert b'"id":1' in record.payload, f"byte {offset}: the queue is lost with another record"
                continue
            lost = [number for number in range(1, 9) if b"number:%d" % number in record.payload]
            assert kept_ids(recovered) == [number for number in range(1, 9) if number not in lost], f"byte {offset}"


def test_two_damaged_records_before_the_proof_lose_only_themselves() -> None:
    disk = prepare(4, 1, 1)
    for record in [record_of(disk, number) for number in (2, 4)]:
        flip(disk, FIRST, record.end - 1)
    recovered = recover(disk)
    assert kept_ids(recovered) == [1, 3, 5, 6]
    assert [damage.torn for damage in recovered.damages] == [False, False]


def test_a_record_of_zeros_in_the_middle_is_not_the_end() -> None:
    """A sector that reads as zeros must not hide the durable records behind it."""
    disk = prepare(4, 1, 1)
    record = record_of(disk, 2)
    overwrite(disk, FIRST, record.offset, bytes(record.end - record.offset))
    recovered = recover(disk)
    assert kept_ids(recovered) == [1, 3, 4, 5, 6]
    assert [(damage.offset, damage.torn) for damage in recovered.damages] == [(record.offset, False)]


def test_damage_in_the_last_batch_of_an_earlier_file_is_no_torn_write() -> None:
    disk = prepare(2, 3, 1, file_bytes=300)
    assert SECOND in disk.names()
    last = records(disk, FIRST)[-1]
    flip(disk, FIRST, last.end - 1)
    recovered = recover(disk)
    assert [(damage.name, damage.offset, damage.torn) for damage in recovered.damages] == [(FIRST, last.offset, False)]
    assert kept_ids(recovered) == [number for number in range(1, 7) if b"number:%d" % number not in last.payload]


@pytest.mark.parametrize("file_bytes", [65536, 300], ids=["the last file", "an earlier file"])
def test_a_damaged_file_header_loses_no_record(file_bytes: int) -> None:
    for offset in range(FILE_HEADER_BYTES):
        disk = prepare(2, 3, 1, file_bytes=file_bytes)
        flip(disk, FIRST, offset)
        damaged = disk.read(FIRST)
        recovered = recover(disk)
        assert kept_ids(recovered) == [1, 2, 3, 4, 5, 6], offset
        assert [(damage.name, damage.offset, damage.torn) for damage in recovered.damages] == [(FIRST, 0, False)]
        assert disk.read(QUARANTINED) == damaged
        _goes_on(disk, [1, 2, 3, 4, 5, 6])


def test_a_body_that_looks_like_a_journal_is_not_read_as_one() -> None:
    """A torn message whose body holds a whole journal file brings none of that file's records to life."""
    other = prepare(3, 3).read(FIRST).rstrip(b"\0")
    disk = prepare(2)
    journal, committer, _ = open_journal(disk)
    publish(journal, committer, message(50, other + b"the end"))
    name = segment_name(2)
    flip(disk, name, records(disk, name)[-1].end - 1)
    recovered = recover(disk)
    assert kept_ids(recovered) == [1, 2]
    assert [damage.torn for damage in recovered.damages] == [True]
