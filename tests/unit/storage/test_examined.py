"""What damage costs, to the record, and which of two files with one number counts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, RECORD_HEADER_BYTES
from artemis_py.storage.format.scan import log_files, log_files_and_twins
from artemis_py.storage.format.segment_index import Gathered, SegmentIndex
from artemis_py.storage.journal.bindings_copy import NAME as COPY
from artemis_py.storage.journal.extent import NAMES as EXTENTS
from artemis_py.storage.journal.extent import ExtentFiles, JournalExtent
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import LossError, recover
from artemis_py.storage.recovery.examination import LOST_RECORDS_MAX, examine
from artemis_py.storage.retention.retention import retained_name
from tests.kit.crash.damaged import found_in, make
from tests.kit.crash.prepared import (
    QUEUE,
    QUEUE_ID,
    begin,
    commit,
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
from tests.kit.disk import SECTOR_BYTES, File, SimDisk


def test_a_record_lost_before_a_group_costs_one_record() -> None:
    """The group has a higher number than what is in it."""
    disk, journal, committer = begin()
    for number in (1, 2):
        journal.records.published(message(number), [QUEUE_ID], 0)
    journal.records.begin_group()
    for number in (3, 4):
        journal.records.published(message(number), [QUEUE_ID], 0)
    journal.records.end_group()
    commit(journal, committer)
    publish(journal, committer, message(5))
    second = records(disk, segment_name(1))[3]
    flip(disk, segment_name(1), second.end - 1)
    recovered = recover(disk)
    assert kept_ids(recovered) == [1, 3, 4, 5]
    assert recovered.lost_records == 1


def test_the_damaged_header_of_a_file_that_was_durable_is_no_torn_write() -> None:
    disk = prepare(1)
    flip(disk, segment_name(1), 3)
    recovered = recover(disk)
    assert [damage.torn for damage in recovered.damages] == [False]
    assert kept_ids(recovered) == [1]


def test_of_two_files_with_one_number_the_retained_one_counts(tmp_path: Path) -> None:
    """A crash left both; in whatever order the directories are read."""
    journal, kept = tmp_path / "journal", tmp_path / "kept"
    in_use, retained = journal / segment_name(1), kept / retained_name(segment_name(1), 1_700_000_000_000)
    for path in (in_use, retained, journal / segment_name(2)):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    for directories in ([journal, kept], [kept, journal]):
        assert [file.path for file in log_files(directories)] == [retained, journal / segment_name(2)]
        twins = log_files_and_twins(directories, {})[1]
        assert [(one.path, other.path) for one, other in twins] == [(retained, in_use)]


def test_an_index_knows_the_oldest_and_newest_message_in_whatever_order_they_come() -> None:
    """A transaction takes time, so that its messages are older than those before it."""
    for times in ([5, 3, 9, 7], [9, 3, 5], [3, 9, 9, 5]):
        index, one = SegmentIndex(1, 1), Gathered()
        for time_ms in times:
            one.published("a", time_ms, time_ms)
        index.add(one)
        assert (index.oldest_ms, index.newest_ms) == (3, 9)
        several = SegmentIndex(1, 1)
        for time_ms in times:
            each = Gathered()
            each.published("a", time_ms, time_ms)
            several.add(each)
        assert (several.oldest_ms, several.newest_ms) == (3, 9)


# ---- how many records damage costs ---------------------------------------------------------------


def _costs(disk: SimDisk) -> list[int]:
    return [damage.lost for damage in recover(disk).damages if not damage.torn]


def test_the_number_between_two_batches_is_no_lost_record() -> None:
    """The number of a BATCH is above those of its records: it lies between its last record and the next."""
    disk = prepare(2, 2, 2)
    flip(disk, segment_name(1), record_of(disk, 2).end - 1)
    assert _costs(disk) == [1]


def test_damage_at_the_ends_of_two_batches_costs_one_record_each() -> None:
    disk = prepare(2, 2, 2, 1)
    for record in [record_of(disk, number) for number in (2, 4)]:
        flip(disk, segment_name(1), record.end - 1)
    assert _costs(disk) == [1, 1]


def test_the_first_record_of_all_is_counted_when_it_is_lost_with_its_batch() -> None:
    disk = prepare(3, 1)
    batch, queue, *_ = records(disk, segment_name(1))
    overwrite(disk, segment_name(1), batch.offset, bytes(queue.end - batch.offset))
    assert _costs(disk) == [1]


def test_a_file_of_before_in_the_place_of_another_makes_no_loss_smaller() -> None:
    """Its numbers are lower than those before the damage, and its header does not say so."""
    made = make(300)
    disk = made.disk()
    *_, before, last = made.segments
    hit = [one for one in records(disk, before) if one.type_code != BATCH][-1]
    flip(disk, before, hit.end - 1)
    disk.files[last] = File(bytearray(made.files[made.segments[0]]))
    overwrite(disk, last, 0, bytes(FILE_HEADER_BYTES))
    found = examine(disk)
    assert found.damages
    assert min(damage.lost for damage in found.damages) == 0
    assert found.lost_records >= 0


@pytest.mark.parametrize("more", [0, 1])
def test_a_thousand_lost_records_are_accepted_and_one_more_is_not(more: int) -> None:
    disk = prepare(1 + LOST_RECORDS_MAX + more, 1, file_bytes=1 << 20)
    name = segment_name(1)
    lost = [one for one in records(disk, name) if b"number:" in one.payload][1 : 1 + LOST_RECORDS_MAX + more]
    overwrite(disk, name, lost[0].offset, bytes(lost[-1].end - lost[0].offset))
    if more:
        with pytest.raises(LossError, match="up to 1,001 records lost"):
            recover(disk)
    else:
        assert _costs(disk) == [LOST_RECORDS_MAX]


def test_the_damaged_beginning_of_the_oldest_file_costs_no_more_than_stood_there() -> None:
    """The numbers before it are of files that went long ago; a start counted them all as lost, and was refused."""
    disk, journal, committer = begin(JournalSettings(file_bytes=2000, compact_files_min=0))
    for number in range(1, LOST_RECORDS_MAX + 1):
        journal.records.published(message(number), [QUEUE_ID], 0)
        if number <= LOST_RECORDS_MAX - 50:
            journal.records.settled(QUEUE_ID, [message(number)], "acked")
        commit(journal, committer)
    name = journal.segments[0].name
    assert len(journal.segments) > 1
    assert segment_name(1) not in disk.names()
    stood = records(disk, name)
    overwrite(disk, name, 0, bytes(SECTOR_BYTES))
    hit = [one for one in stood if one.offset < SECTOR_BYTES]
    assert len(hit) <= recover(disk).lost_records <= 2 * SECTOR_BYTES // RECORD_HEADER_BYTES
    size = len(disk.read(name))
    overwrite(disk, name, 0, bytes(size))
    found = examine(disk)
    assert f"{name} has no whole record" in found.reasons
    assert len(stood) <= found.lost_records <= size // RECORD_HEADER_BYTES


# ---- files of different times --------------------------------------------------------------------


def test_a_last_file_that_goes_on_behind_the_end_that_a_stop_told_is_refused() -> None:
    """It is of a later time than the files beside it."""
    made = prepare(2, 3)
    ExtentFiles(made).save(JournalExtent(1, 1, records(made, segment_name(1))[-1].lsn))
    assert examine(made).reasons == []
    made.files[segment_name(1)] = prepare(2, 3, 1).files[segment_name(1)]
    with pytest.raises(LossError, match="is from another time than the others"):
        recover(made)


def test_no_number_that_was_read_is_given_again_though_the_last_file_tells_a_lower_end() -> None:
    disk = prepare(1, 1, 1, 1, 1, 1, file_bytes=300)
    last = last_segment(disk)
    end = [one for one in records(disk, last) if one.type_code != BATCH][-1]
    ExtentFiles(disk).save(JournalExtent(1, int(last[16:28]), end.lsn))
    flip(disk, last, end.end - 1)
    other = prepare(40, file_bytes=300)
    disk.files[segment_name(1)] = other.files[segment_name(1)]
    highest = max(one.lsn for one in records(disk, segment_name(1)))
    assert highest > end.lsn + 2
    found = examine(disk)
    assert found.foreign
    assert found.next_lsn > highest


# ---- the extent after a start --------------------------------------------------------------------


def test_a_start_that_writes_nothing_forgets_no_end() -> None:
    """What is damaged behind it is no torn write, at the next start either."""
    made = make()
    disk = made.disk()
    del disk.files[EXTENTS[1]]  # so that the start writes them
    recover(disk)
    last = made.segments[-1]
    end = [one for one in records(disk, last) if one.type_code != BATCH][-1]
    flip(disk, last, end.end - 1)
    assert [damage.torn for damage in recover(disk).damages] == [False]


def test_the_end_of_a_file_is_not_taken_for_that_of_the_next() -> None:
    """There was no room to say that another file was begun."""
    made = make()
    disk = made.disk()
    number = int(made.segments[-1][16:28])
    told = {name: bytes(disk.read(name)) for name in EXTENTS}
    journal, committer, _ = open_journal(disk)
    journal.records.published(message(99), [1], 0)
    commit(journal, committer)
    assert last_segment(disk) == segment_name(number + 1)
    for name, data in told.items():
        overwrite(disk, name, 0, data)
    for _ in range(2):
        assert (1, 99) in found_in(recover(disk))


@pytest.mark.parametrize("damaged", [False, True])
def test_other_damage_brings_back_no_queue_of_a_batch_that_a_crash_took(damaged: bool) -> None:
    """Its copy tells of it all the same."""
    disk = prepare(3, 1)
    journal, committer, _ = open_journal(disk)
    commit(journal, committer)
    journal.records.queue_changed({**QUEUE, "id": 2, "name": "late"})
    commit(journal, committer)
    batch = [one for one in records(disk, last_segment(disk)) if one.type_code == BATCH][-1]
    assert b'"late"' in disk.read(COPY)
    overwrite(disk, last_segment(disk), batch.offset, bytes(len(disk.read(last_segment(disk))) - batch.offset))
    if damaged:
        flip(disk, segment_name(1), record_of(disk, 2).end - 1)
    assert set(recover(disk).index.queues) == {QUEUE_ID}


# ---- messages of queues that nothing names -------------------------------------------------------


def _with_orphans(queue_id: int, *, extent: bool) -> SimDisk:
    """Messages 1 and 3 on the known queue, 2 on one of which no record tells."""
    disk, journal, committer = begin()
    for number, on in ((1, QUEUE_ID), (2, queue_id), (3, QUEUE_ID)):
        journal.records.published(message(number), [on], 0)
        commit(journal, committer)
    for name in EXTENTS if not extent else ():
        del disk.files[name]
    return disk


def test_messages_of_an_unknown_queue_stop_a_start_unless_every_file_is_known_to_be_there_and_whole() -> None:
    line = "queue number 7, whose name is lost, has 1 message"
    assert examine(_with_orphans(7, extent=True)).reasons == []
    assert examine(_with_orphans(7, extent=False)).reasons == [line]
    damaged = _with_orphans(7, extent=True)
    flip(damaged, segment_name(1), record_of(damaged, 1).end - 1)
    assert examine(damaged).reasons == [line]


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("queue_id", [7, 9])
def test_the_number_of_an_unknown_queue_is_not_given_again(queue_id: int, damaged: bool) -> None:
    """Or the next start found these messages on another queue."""
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk)
    journal.records.queue_changed({**QUEUE, "id": 8})
    for number, on in ((1, 8), (2, queue_id), (3, 8)):
        journal.records.published(message(number), [on], 0)
        commit(journal, committer)
    if damaged:
        flip(disk, segment_name(1), record_of(disk, 1).end - 1)
    found = examine(disk)
    assert found.orphans == {queue_id: 1}
    assert found.index.queue_id_max == max(queue_id, 8)


def test_a_file_that_lost_all_records_ends_behind_its_header() -> None:
    made = make()
    disk = made.disk()
    name = made.segments[1]
    overwrite(disk, name, FILE_HEADER_BYTES, bytes(len(made.files[name]) - FILE_HEADER_BYTES))
    found = examine(disk)
    assert [(damage.name, damage.offset) for damage in found.damages] == [(name, FILE_HEADER_BYTES)]
    assert found.reasons == [f"{name} has no whole record"]
