"""What a journal and a log of pages do while the disk has no room: no file ahead, compaction sooner, patience."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.core.order.entry import ACKED
from artemis_py.paged_messages import Page
from artemis_py.storage.disk.disk import DiskError, FileDisk, NoSpaceError
from artemis_py.storage.disk.group_commit import Commit, Write
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.journal.segments import Spares
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.prepared import QUEUE_ID, begin, commit, message, publish
from tests.kit.disk import Fault, SimDisk


def test_no_file_is_made_ahead() -> None:
    disk = SimDisk(random.Random(1))
    committer = SteppedCommitter()
    spares = Spares(disk, committer, 100, 2)
    disk.has_room = False
    spares.provide(1)
    committer.stop()
    assert disk.names() == []
    disk.has_room = True
    spares.provide(1)
    committer.stop()
    assert len(disk.names()) == 1


def test_a_file_ahead_that_finds_no_room_ends_nothing_and_comes_later() -> None:
    """The broker ended here, and again after each restart."""
    disk = SimDisk(random.Random(1))
    committer = SteppedCommitter()
    spares = Spares(disk, committer, 100, 2)
    disk.fault = Fault(0, "No space left on device", verbs=("create",))
    spares.provide(1)
    committer.stop()
    assert committer.failure is None
    assert spares.take() is None
    disk.fault = None
    spares.provide(1)
    committer.stop()
    assert spares.take() is not None


def test_no_batch_waits_for_more_than_one_file() -> None:
    """However many are wanted; the broker promised all of them at once, and was not heard of again."""
    disk = SimDisk(random.Random(1))
    committer = SteppedCommitter()
    spares = Spares(disk, committer, 100, 3)
    spares.provide(0)
    spares.provide(0)
    later: list[int] = []
    committer.later(lambda: later.append(len(disk.names())))
    committer.stop()
    assert later == [1]
    assert len(disk.names()) == 3


def test_a_spare_is_taken_over_only_if_it_is_empty_and_whole() -> None:
    disk = SimDisk(random.Random(1))
    for number, data in enumerate((bytes(100), bytes(99), bytes(101), bytes(99) + b"x"), 1):
        disk.create(f"spare-{number:09}.log", len(data))
        disk.write(f"spare-{number:09}.log", 0, data)
    Spares(disk, SteppedCommitter(), 100, 2)
    assert disk.names() == ["spare-000000001.log"]


def _files_after_drain(*, is_roomy: bool, left: int = 1 << 30) -> int:
    """Journal files of which half lived, when the disk has room or not."""
    settings = JournalSettings(file_bytes=2000, compact_files_min=10, compact_percentage=30)
    disk, journal, committer = begin(settings)
    published = [message(number, bytes(200)) for number in range(1, 61)]
    for each in published:
        publish(journal, committer, each)
    journal.records.settled(QUEUE_ID, published[1::2], ACKED)
    disk.has_room, disk.left_bytes = is_roomy, left
    for _ in range(50):
        journal.seal()
        commit(journal, committer)
    assert committer.failure is None
    return len(journal.segments)


def test_compaction_begins_sooner() -> None:
    """One message that nobody wants must not keep the room of all others."""
    assert _files_after_drain(is_roomy=True) >= 9
    assert _files_after_drain(is_roomy=False) <= 7


def test_compaction_leaves_what_is_left_to_acknowledgements() -> None:
    """It wrote all that was freed full again, and the broker ended."""
    assert _files_after_drain(is_roomy=False, left=1000) >= 9


def test_compaction_moves_little_at_a_time() -> None:
    """A disk that is full all of a sudden has to have room for it."""
    settings = JournalSettings(file_bytes=4 << 20, compact_files_min=2, compact_percentage=90)
    disk, journal, committer = begin(settings)
    published = [message(number, bytes(100_000)) for number in range(1, 121)]
    for each in published:
        publish(journal, committer, each)
    journal.records.settled(QUEUE_ID, [*published[:20], *published[60:80]], ACKED)
    written = committed = 0
    while journal.has_pending or journal.compaction.is_wanted:
        before = _content_bytes(disk)
        journal.poll()
        journal.seal()
        committer.stop()
        journal.poll()
        written = max(written, _content_bytes(disk) - before)
        committed += 1
    assert committed > 1
    assert 100_000 < written < 1_300_000


def _content_bytes(disk: SimDisk) -> int:
    names = [name for name in disk.names() if segment_number(name) is not None]
    return sum(len(disk.read(name).rstrip(b"\0")) for name in names)


def _turns(log: SpillLog, writer: SteppedCommitter, count: int) -> None:
    for _ in range(count):
        log.poll()
        log.seal()
        writer.stop()


def test_a_page_that_is_dropped_while_it_waits_for_room_is_not_written_any_more() -> None:
    """Its file had gone, and the broker ended because it was not there."""
    disk = SimDisk(random.Random(1))
    writer, reader = SteppedCommitter(), SteppedCommitter()
    pages = PageFiles(disk, reader, lambda _: None)
    log = SpillLog(writer, pages, lambda _: None)

    page = Page(1, 1, 0)
    pages.open(page, "a")
    _turns(log, writer, 2)
    disk.fault = Fault(0, "No space left on device", verbs=("write",))
    pages.append(page, pages.encode(message(1), 0, [QUEUE_ID], 0), durable=False)
    _turns(log, writer, 3)
    pages.drop(page)
    _turns(log, writer, 1)
    disk.fault = None
    _turns(log, writer, 3)
    assert log.failure is None
    assert disk.names() == []


def test_pages_without_a_journal_wait_for_room() -> None:
    """Senders do as well, because what waits counts as backlog; it is written when there is room, and once."""
    disk = SimDisk(random.Random(1))
    writer, reader = SteppedCommitter(), SteppedCommitter()
    said: list[str] = []
    pages = PageFiles(disk, reader, said.append)
    log = SpillLog(writer, pages, said.append)
    page = Page(1, 1, 0)
    size = pages.open(page, "a")
    disk.fault = Fault(0, "No space left on device", verbs=("create",))

    _turns(log, writer, 3)
    assert log.failure is None
    assert pages.backlog_bytes == size
    assert "No space left on device" in said[0]
    disk.fault = None
    _turns(log, writer, 3)
    assert pages.backlog_bytes == 0
    assert len(disk.names()) == 1
    operations = disk.operations
    _turns(log, writer, 3)
    assert disk.operations == operations


@pytest.mark.interpreted
def test_a_sync_that_finds_no_room_is_a_failure_and_nothing_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written may be gone from memory and disk; only a write that told of it at once can come again."""
    disk = FileDisk(tmp_path)
    disk.create("file", 0)
    disk.write("file", 0, b"x")
    monkeypatch.setattr(disk, "_sync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with pytest.raises(DiskError) as raised:
        disk.sync("file")
    assert not isinstance(raised.value, NoSpaceError)
    syncs: list[str] = []
    monkeypatch.setattr(disk, "sync", lambda name: syncs.append(name) or FileDisk.sync(disk, name))
    committer = SteppedCommitter()
    committer.run_now(Commit([Write(disk, "file", 1, b"y", sync=True)], 1))
    committer.stop()
    assert "No space left on device" in str(committer.failure)
    assert syncs == ["file"]
    disk.close()
