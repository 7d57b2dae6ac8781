"""Every byte of every file of a journal changed, every file removed, cut off at every length, exchanged and put back:
what is lost is what stood there, it is told, and whatever would cost more is refused before anything is changed.
"""

from __future__ import annotations

import random

import pytest

from artemis_py.paged_messages import Page, PageShare
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import FILE_HEADER_BYTES, CodecError
from artemis_py.storage.format.segment_index import decode_index, encode_index, index_of
from artemis_py.storage.journal.bindings_copy import NAME as COPY
from artemis_py.storage.journal.extent import NAMES as EXTENTS
from artemis_py.storage.journal.extent import ExtentFiles, JournalExtent
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import LossError, recover
from artemis_py.version import IS_COMPILED
from tests.kit.crash.damaged import FILE_BYTES, Made, found_in, judge, make, published_by
from tests.kit.crash.prepared import (
    QUEUE_ID,
    batch_starts,
    begin,
    commit,
    flip,
    open_journal,
    overwrite,
    records,
)
from tests.kit.disk import File, SimDisk
from tests.kit.process import LONG

STRIDE = 39 if IS_COMPILED else 13
"""One of so many bytes, others in each run; of compiled modules, which have the same logic, a third of them."""
STRIDES = [pytest.param(STRIDE, id="some"), pytest.param(1, marks=LONG, id="every one")]
MASKS = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF)


@pytest.fixture(scope="module")
def made() -> Made:
    """Files after an orderly stop."""
    return make()


@pytest.mark.parametrize("stride", STRIDES)
def test_a_byte_that_is_wrong_costs_the_record_that_it_is_in(made: Made, rng: random.Random, stride: int) -> None:
    count, start = 0, rng.randrange(stride)
    masks = MASKS if stride == 1 else (rng.choice(MASKS[:-1]), 0xFF)
    for name in made.files:
        for offset in range(start, len(made.files[name]), stride):
            record = made.record_at(name, offset) if name in made.segments else None
            may_lose = set() if record is None else published_by(record)
            for mask in masks:
                disk = made.disk()
                flip(disk, name, offset, mask)
                recovered = judge(made, disk, may_lose, f"{name} at byte {offset}, bits {mask:#x}")
                if name in made.segments and (record is not None or offset < FILE_HEADER_BYTES):
                    told = [damage for damage in recovered.damages if damage.name == name and not damage.torn]
                    assert told, f"{name} at byte {offset}: nothing is told"
                    place = 0 if record is None else record.offset
                    assert told[0].offset == place, f"{name} at byte {offset}: told is {told[0]}"
                count += 1
    assert count > 6500 // stride


def test_what_nothing_is_wrong_with_is_whole(made: Made) -> None:
    recovered = judge(made, made.disk(), set(), "untouched")
    assert recovered.damages == []
    assert recovered.tells_all
    assert recovered.index.duplicate_ids == {"orders": ["id 5", "id 10"]}
    assert list(recovered.index.cursors) == ["reader"]


# ---- files that are not there --------------------------------------------------------------------


def _refused(disk: SimDisk) -> LossError:
    before = {name: disk.read(name) for name in disk.names()}
    with pytest.raises(LossError) as caught:
        recover(disk)
    assert {name: disk.read(name) for name in disk.names()} == before, "a start that is refused changes nothing"
    return caught.value


def test_each_journal_file_that_is_missing_is_named_and_nothing_else_goes(made: Made) -> None:
    assert len(made.segments) >= 4
    for name in made.segments:
        disk = made.disk()
        del disk.files[name]
        examined = _refused(disk).examined
        assert examined.missing == [name]
        published = {one for record in records(made.disk(), name) for one in published_by(record)}
        assert made.alive - found_in(examined) == published & made.alive
        assert set(examined.index.queues) == {1, 2, 3}, "the copy tells of queues in a file that is gone"


def test_all_journal_files_that_are_missing_are_named(made: Made) -> None:
    disk = made.disk()
    for name in made.segments:
        del disk.files[name]
    examined = _refused(disk).examined
    assert examined.missing == made.segments
    assert set(examined.index.queues) == {1, 2, 3}, "the copy tells of queues when no file is left"


@pytest.mark.parametrize("name", [*EXTENTS, COPY])
def test_what_stands_twice_may_be_missing(made: Made, name: str) -> None:
    disk = made.disk()
    del disk.files[name]
    judge(made, disk, set(), f"without {name}")


def test_without_both_extents_a_gap_is_still_seen(made: Made) -> None:
    for name in made.segments[1:-1]:
        disk = made.disk()
        for gone in (name, *EXTENTS):
            del disk.files[gone]
        assert _refused(disk).examined.missing == [name]


def test_a_file_without_a_whole_record_counts_as_missing(made: Made) -> None:
    for name in made.segments:
        disk = made.disk()
        overwrite(disk, name, 0, bytes(len(made.files[name])))
        assert any(name in reason for reason in _refused(disk).examined.reasons)


# ---- files that are shorter, or others -----------------------------------------------------------


def _pending(made: Made, name: str, offset: int) -> set[tuple[int, int]]:
    return {one for record in records(made.disk(), name) if record.end > offset for one in published_by(record)}


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("zeros", [False, True], ids=["shorter", "zeros"])
def test_a_file_cut_off_loses_what_was_behind_the_cut(made: Made, zeros: bool, stride: int, rng: random.Random) -> None:
    step = 1 if stride == 1 else 2 * stride
    first = rng.randrange(step)
    for name in made.segments:
        for length in range(first, len(made.files[name]), step):
            disk = made.disk()
            if zeros:
                overwrite(disk, name, length, bytes(len(made.files[name]) - length))
            else:
                del disk.files[name].data[length:]
                disk.files[name].sync()
            if made.files[name][length : records(made.disk(), name)[0].end].strip(b"\0"):
                assert _refused(disk).examined.reasons == [f"{name} has no whole record"]
            else:
                judge(made, disk, _pending(made, name, length), f"{name} cut at {length}")


@pytest.mark.parametrize("size", [1, 40, 200])
def test_zeros_somewhere_cost_what_stood_there(made: Made, size: int, rng: random.Random) -> None:
    for name in made.segments:
        for offset in range(FILE_HEADER_BYTES + rng.randrange(29), len(made.files[name]) - size, 29):
            disk = made.disk()
            overwrite(disk, name, offset, bytes(size))
            hit = [one for one in records(made.disk(), name) if one.offset < offset + size and offset < one.end]
            may_lose = {pair for one in hit for pair in published_by(one)}
            if size > 1 and hit:  # what follows a record without a beginning may be the rest of a transaction
                end = min(
                    (place for place in batch_starts(made.disk(), name) if place > hit[-1].offset), default=1 << 30
                )
                may_lose |= _pending(made, name, offset) - _pending(made, name, end)
            if offset < records(made.disk(), name)[0].end and offset + size > batch_starts(made.disk(), name)[-1]:
                continue  # without any BATCH a file has no whole record
            judge(made, disk, may_lose, f"{size} zeros in {name} at {offset}")


def test_files_that_were_exchanged_are_seen(made: Made) -> None:
    for one, other in zip(made.segments, made.segments[1:], strict=False):
        disk = made.disk()
        disk.files[one], disk.files[other] = disk.files[other], disk.files[one]
        error = _refused(disk)
        assert len(error.examined.foreign) == 2
        assert made.alive == found_in(error.examined), "their headers tell the order"


def test_a_copy_under_another_number_is_seen(made: Made) -> None:
    last = made.segments[-1]
    for name in made.segments:
        disk = made.disk()
        pending = segment_name(int(last[16:28]) + 1)
        disk.files[pending] = File(bytearray(made.files[name]))
        error = _refused(disk)
        assert [line for line in error.examined.foreign if pending in line]
        assert found_in(error.examined) == made.alive


def test_a_file_of_before_that_comes_back_brings_back_nothing(made: Made) -> None:
    first = int(made.segments[0][16:28])
    disk = made.disk()
    disk.files[segment_name(first - 3)] = File(bytearray(made.files[made.segments[0]]))
    overwrite(disk, segment_name(first - 3), 0, bytes(FILE_HEADER_BYTES))
    recovered = judge(made, disk, set(), "an old file")
    assert recovered.leftovers == [segment_name(first - 3)]


def test_an_earlier_state_of_the_last_file_is_seen() -> None:
    """A copy that was made while the broker ran: it ends before the log did."""
    made = make(1200)
    name = made.segments[-1]
    disk = made.disk()
    _, *_, end = batch_starts(made.disk(), name)
    overwrite(disk, name, end, bytes(len(made.files[name]) - end))
    whole = recover(made.disk())
    recovered = judge(made, disk, _pending(made, name, end), "an earlier state")
    assert recovered.lost_records == whole.record_count - recovered.record_count - 1, "and the BATCH before it"
    assert recovered.next_lsn == whole.next_lsn, "no number is given again"


# ---- after a crash -------------------------------------------------------------------------------


def test_after_a_crash_damage_costs_the_rest_of_the_last_batch_at_most(made: Made, rng: random.Random) -> None:
    """No stop has told where the log ends. Before the last batch all is as it was; in it a hole may be a torn write."""
    last = made.segments[-1]
    start = batch_starts(made.disk(), last)[-1]
    for name in made.segments:
        for offset in range(rng.randrange(29), len(made.files[name]), 29):
            disk = made.disk()
            extents = ExtentFiles(disk)
            extents.save(JournalExtent(int(made.segments[0][16:28]), int(last[16:28])))
            record = made.record_at(name, offset)
            may_lose = set() if record is None else published_by(record)
            flip(disk, name, offset)
            if name == last and offset >= start:
                assert made.alive - found_in(recover(disk)) <= _pending(made, name, offset), offset
            else:
                judge(made, disk, may_lose, f"{name} at byte {offset}, after a crash")


# ---- what stands beside the segments -------------------------------------------------------------


def test_any_byte_of_an_index_that_is_wrong_is_noticed(made: Made) -> None:
    text = encode_index(index_of(made.files[made.segments[0]]).fields())
    fields = decode_index(text)
    for offset in range(len(text)):
        for bits in (0x01, 0x80):
            changed = bytearray(text)
            changed[offset] ^= bits
            try:
                found = decode_index(bytes(changed))
            except CodecError:
                continue
            assert {name: found[name] for name in fields} == fields, offset


def test_a_spare_with_something_in_it_is_not_used(made: Made) -> None:
    for offset in (0, FILE_BYTES - 1):
        disk = made.disk()
        disk.create("spare-000000009.log", FILE_BYTES)
        flip(disk, "spare-000000009.log", offset)
        open_journal(disk, JournalSettings(file_bytes=FILE_BYTES))
        assert "spare-000000009.log" not in disk.names()


def test_no_byte_of_the_journal_costs_a_page(rng: random.Random) -> None:
    """It tells of two pages, and told of them once more when its first file went."""
    whole, journal, committer = begin(JournalSettings(file_bytes=FILE_BYTES, compact_files_min=0))
    for page in (Page(1, 1, 1), Page(1, 2, 4)):
        journal.records.page_opened(page, "q")
        for count in (1, 2, 3):
            page.count, page.size_bytes, page.durable = count, 100 * count, {QUEUE_ID: PageShare(count, 50 * count)}
            journal.records.paged(page)
            commit(journal, committer)
    while journal.segments[0].number == 1:
        journal.records.cursor_changed({"name": "reader", "lsn": 1, "owner": "", "ttl_s": 60, "moved_ms": 1})
        commit(journal, committer)
    journal.finish()
    committer.stop()
    made = Made({name: whole.read(name) for name in whole.names()})
    for name in made.segments:
        for offset in range(rng.randrange(3), len(made.files[name]), 3):
            disk = made.disk()
            flip(disk, name, offset)
            pages = recover(disk).index.pages
            left = {page.number: pages.left(page) for page in pages.pages()}
            assert sorted(left) == [1, 2], f"{name} at byte {offset}"
            assert sum(left.values()) >= 5, f"{name} at byte {offset}: more than one record told is gone"
