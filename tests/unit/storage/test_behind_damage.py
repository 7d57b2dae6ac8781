"""Where reading goes on behind damage, and what proves that it is no torn write: never what a client put in a body."""

from __future__ import annotations

import pytest

from artemis_py.paged_messages import Page, PageShare
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import (
    BATCH,
    FILE_HEADER_BYTES,
    GROUP,
    PAGE_GREW,
    RECORD_HEADER_BYTES,
    TRANSACTION,
    decode_record,
    encode_record,
)
from artemis_py.storage.format.scan import Damage, lowest_lsn, whole_records
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.crash.prepared import (
    QUEUE_ID,
    begin,
    flip,
    kept_ids,
    last_segment,
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


def _wreck(disk: SimDisk, number: int) -> None:
    """Nothing tells any more where a message's record ended: its length is wrong, and its number."""
    offset = record_of(disk, number).offset
    overwrite(disk, FIRST, offset + 4, (1).to_bytes(4, "little"))
    flip(disk, FIRST, offset + 8, 0x40)


def _with_body(body: bytes, *, proved: bool = True) -> SimDisk:
    """Message 1 to 3 in a batch, of which 2 has this body; and, if that is to be proved, another batch."""
    disk, journal, committer = begin()
    publish(journal, committer, message(1), message(2, body), message(3))
    if proved:
        publish(journal, committer, message(4))
    return disk


# ---- what a body looks like ----------------------------------------------------------------------


def test_a_record_in_a_body_that_was_read_before_is_not_read_again() -> None:
    """The body is the bytes of the record in front of it."""
    plain = _with_body(b"")
    first = record_of(plain, 1)
    disk = _with_body(b"! " + plain.read(FIRST)[first.offset : first.end] + b" !")
    third = record_of(disk, 3)
    _wreck(disk, 2)
    recovered = recover(disk)
    assert [damage.end for damage in recovered.damages if not damage.torn] == [third.offset]
    assert kept_ids(recovered) == [1, 3, 4]


def test_a_record_in_a_body_with_a_number_above_the_next_batch_is_not_read() -> None:
    other = prepare(*[1] * 20)
    late = record_of(other, 20)
    disk = _with_body(b"! " + other.read(FIRST)[late.offset : late.end] + b" !")
    _wreck(disk, 2)
    assert kept_ids(recover(disk)) == [1, 3, 4]


@pytest.mark.parametrize("number", [1, 10], ids=["the message's own batch", "a batch too far on"])
def test_a_batch_in_a_body_with_another_number_than_the_next_proves_nothing(number: int) -> None:
    """The message was torn, and what is in it stays in it."""
    other = prepare(*[1] * 12)
    batches = [one for one in records(other, FIRST) if one.type_code == BATCH]
    inside = other.read(FIRST)[batches[number - 1].offset : batches[number].offset]
    disk = _with_body(b"! " + inside + b" !", proved=False)
    second, third = record_of(disk, 2), record_of(disk, 3)
    overwrite(disk, FIRST, third.offset, bytes(third.end - third.offset))
    _wreck(disk, 2)
    recovered = recover(disk)
    assert [(damage.offset, damage.torn) for damage in recovered.damages] == [(second.offset, True)]
    assert kept_ids(recovered) == [1]


def test_the_next_batch_in_the_body_of_the_last_record_proves_nothing() -> None:
    """The record says that it takes everything up to the end, and what follows that batch is not whole."""
    other = prepare(1, 1, 1)
    inside = other.read(FIRST)[[one.offset for one in records(other, FIRST) if one.type_code == BATCH][-1] :].rstrip(
        b"\0"
    )
    disk = prepare(1)
    journal, committer, _ = open_journal(disk)
    publish(journal, committer, message(50, inside + b"the end"))
    name = last_segment(disk)
    torn = records(disk, name)[-1]
    assert torn.end == len(disk.read(name).rstrip(b"\0"))
    flip(disk, name, torn.end - 1)
    recovered = recover(disk)
    assert [damage.torn for damage in recovered.damages] == [True]
    assert kept_ids(recovered) == [1]


def test_a_record_that_is_a_header_alone_is_found_at_the_very_end() -> None:
    """Only the length of the one in front of it is wrong."""
    damaged = bytearray(encode_record(TRANSACTION, 6, b"x"))
    damaged[4] = 99
    data = bytes(FILE_HEADER_BYTES) + damaged + encode_record(TRANSACTION, 7, b"")
    damages: list[Damage] = []
    assert [record.lsn for record in whole_records("", data, damages)] == [7]
    assert [damage.end for damage in damages] == [FILE_HEADER_BYTES + len(damaged)]


# ---- what a batch proves -------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", [7, 8])
def test_the_eighth_batch_on_still_proves_that_those_between_were_durable(damaged: int) -> None:
    """Zeros where whole batches were; farther on a batch no longer counts, whatever its number."""
    disk = prepare(*[1] * 12)
    batches = [one.offset for one in records(disk, FIRST) if one.type_code == BATCH]
    overwrite(disk, FIRST, batches[1], bytes(batches[1 + damaged] - batches[1]))
    recovered = recover(disk)
    if damaged == 7:
        assert [damage.torn for damage in recovered.damages] == [False]
        assert kept_ids(recovered) == [1, *range(9, 13)]
    else:
        assert [damage.torn for damage in recovered.damages] == [True]
        assert kept_ids(recovered) == [1]


def test_any_batch_proves_where_none_was_read_before() -> None:
    """The first BATCH of the last file is damaged, and nothing tells which number it had."""
    disk = prepare(*[1] * 10)
    journal, committer, _ = open_journal(disk)
    for number in (11, 12, 13):
        publish(journal, committer, message(number))
    name = last_segment(disk)
    first, eleventh, *_ = records(disk, name)
    assert first.type_code == BATCH
    overwrite(disk, name, first.offset, bytes(eleventh.end - first.offset))
    recovered = recover(disk)
    assert [damage.torn for damage in recovered.damages] == [False]
    assert kept_ids(recovered) == [*range(1, 11), 12, 13]


def test_a_length_that_takes_everything_up_to_the_end_hides_no_batch_that_is_whole() -> None:
    disk = prepare(3, 2)
    second = record_of(disk, 2)
    end = records(disk, FIRST)[-1].end
    assert end == len(disk.read(FIRST).rstrip(b"\0"))
    length = end - second.offset - RECORD_HEADER_BYTES
    overwrite(disk, FIRST, second.offset + 4, length.to_bytes(4, "little"))
    flip(disk, FIRST, second.end - 1)
    recovered = recover(disk)
    assert [damage.torn for damage in recovered.damages] == [False]
    assert kept_ids(recovered) == [1, 3, 4, 5]


# ---- which numbers are missing -------------------------------------------------------------------


def test_a_page_that_was_told_again_in_one_batch_hides_no_record_in_front_of_it() -> None:
    """Its last PAGE-GREW replaced the others, so that numbers are missing before it as before the end of a group."""
    disk, journal, committer = begin()
    for number in (1, 2):
        journal.records.published(message(number), [QUEUE_ID], 0)
    page = Page(1, 1, 1)
    journal.records.page_opened(page, "q")
    for count in (1, 2, 3):
        page.count, page.size_bytes, page.durable = count, 100 * count, {QUEUE_ID: PageShare(count, 50 * count)}
        journal.records.paged(page)
    publish(journal, committer, message(3))
    publish(journal, committer, message(4))
    before, grew = next(
        pair
        for pair in zip(records(disk, FIRST), records(disk, FIRST)[1:], strict=False)
        if pair[1].type_code == PAGE_GREW
    )
    assert grew.lsn > before.lsn + 1
    second = record_of(disk, 2)
    _wreck(disk, 1)
    recovered = recover(disk)
    assert [damage.end for damage in recovered.damages if not damage.torn] == [second.offset]
    assert kept_ids(recovered) == [2, 3, 4]


@pytest.mark.parametrize("inner", [b"", b"x"])
def test_the_lowest_number_of_a_group_is_that_of_its_first_record(inner: bytes) -> None:
    record = decode_record(encode_record(GROUP, 8, encode_record(TRANSACTION, 7, inner)), 0)
    assert record is not None
    assert lowest_lsn(record) == 7


def test_a_group_of_nothing_has_its_own_number() -> None:
    record = decode_record(encode_record(GROUP, 8, b""), 0)
    assert record is not None
    assert lowest_lsn(record) == 8
