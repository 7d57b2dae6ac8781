"""Each call of the operating system that a journal makes on files fails once: no space, no quota, an I/O error."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py import atomic_files
from artemis_py.core.order.entry import ACKED
from artemis_py.storage.disk import disk as disk_module
from artemis_py.storage.disk import permissions, space
from artemis_py.storage.disk.disk import DiskError, FileDisk, LockedError, NoSpaceError
from artemis_py.storage.disk.group_commit import Commit, Write, write_commit
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.disk.space import RESERVE_NAME, DiskSpace, SpaceReserve
from artemis_py.storage.journal.index_files import delete_segment, write_index
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, SegmentCare
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, kept_ids, message
from tests.kit.failing_os import FailingOs
from tests.kit.process import open_below
from tests.kit.promises import Promises

CALLS = frozenset(
    {"open", "pwrite", "fsync", "fdatasync", "ftruncate", "truncate", "rename", "stat", "fstat", "posix_fallocate"}
)
"""What may fail. Closing and unlinking are not injected: they need no room, and nothing is confirmed by them."""
SYNCS = frozenset({"fsync", "fdatasync"})
"""They fail like the others, and otherwise do nothing: no power goes here."""
MESSAGES = 24
RESERVE_BYTES = 64 * 1024


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> FailingOs:
    """Stands in the place of ``os`` for disks and rooms."""
    failing = FailingOs(CALLS, instead=dict.fromkeys(SYNCS, lambda descriptor: None))
    failing.put_in_place(monkeypatch, disk_module, space, permissions, atomic_files)
    return failing


def lived(folder: Path) -> Promises:
    """A journal on real files, from its opening to the fault."""
    life = Promises()
    try:
        with closing(FileDisk(folder)) as disk:
            disk.draws = True
            disk.reserve = SpaceReserve(folder, lambda: None, RESERVE_BYTES)

            def closed(segment: Any) -> None:
                write_index(disk, segment.index)

            journal = Journal(
                disk,
                SteppedCommitter(at_once=True),
                JournalSettings(file_bytes=900, compact_files_min=0),
                start=recover(disk).start,
                care=SegmentCare(retire=partial(delete_segment, disk), closed=closed),
            )
            journal.records.queue_changed(dict(QUEUE))
            for number in range(1, MESSAGES + 1):
                one = message(number)
                steps = [(life.written, life.promised, partial(journal.records.published, one, [QUEUE_ID], 0))]
                if number % 2 == 0:
                    steps.append((life.ended, life.settled, partial(journal.records.settled, QUEUE_ID, [one], ACKED)))
                for begun, done, step in steps:
                    begun.add(number)
                    lsn = step()
                    journal.poll()
                    journal.seal()
                    journal.poll()
                    if lsn <= journal.durable_lsn and journal.failure is None:
                        done.add(number)
            life.failure = journal.failure
    except DiskError as error:  # at the opening: then the broker does not start
        life.failure = error
    return life


@pytest.mark.interpreted
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO], ids=errno.errorcode.get)
def test_each_call_fails_once(system: FailingOs, tmp_path: Path, code: int) -> None:
    """What was promised is there, what was settled does not come again, and a want of room alone ends nothing that
    has a reserve to write to.
    """
    lived(tmp_path / "whole")
    calls = system.count
    assert calls > 200
    ended = survived = 0
    for at in range(1, calls + 1):
        folder = tmp_path / str(at)
        system.at, system.code, system.count, system.failed = at, code, 0, ""
        life = lived(folder)
        system.at = -1
        kept = set(kept_ids(recover(FileDisk(folder))))
        where = f"{system.failed} at call {at}"
        life.hold(kept, where)
        if life.failure is None:
            survived += 1
        else:
            ended += 1
            assert os.strerror(code) in str(life.failure), where
            assert not (code != errno.EIO and system.failed == "pwrite"), f"{where}: {life.failure}"
    assert ended
    assert survived


@pytest.mark.interpreted
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_write_without_room_takes_it_from_the_reserve(system: FailingOs, tmp_path: Path, code: int) -> None:
    disk, news = FileDisk(tmp_path), list[int]()
    disk.reserve = SpaceReserve(tmp_path, lambda: news.append(1), 1 << 20)
    disk.draws = True
    disk.create("file", 0)
    system.at, system.code = system.count + 4, code
    for number in range(4):
        disk.write("file", number * 10, b"0123456789")
    assert system.failed == "pwrite"
    assert disk.read("file") == b"0123456789" * 4
    assert disk.reserve.is_short
    assert news == [1]
    assert (tmp_path / RESERVE_NAME).stat().st_size == disk.reserve.reserve_bytes < 1 << 20
    disk.reserve.refill()
    assert disk.has_room
    assert disk.reserve.reserve_bytes == 1 << 20


@pytest.mark.interpreted
def test_a_write_that_finds_no_room_at_all_leaves_what_was_there(system: FailingOs, tmp_path: Path) -> None:
    """What it had taken goes back: the next start has it."""
    disk = FileDisk(tmp_path)
    disk.create("file", 0)
    disk.write("file", 0, b"before")

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        """It takes half of what it gets, and then nothing."""
        if system.failed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        system.failed = "pwrite"
        return os.pwrite(descriptor, data[: len(data) // 2], offset)

    system.instead["pwrite"] = pwrite
    with pytest.raises(NoSpaceError, match="No space left on device"):
        disk.write("file", 6, bytes(100))
    assert disk.read("file") == b"before"
    with pytest.raises(NoSpaceError):
        disk.create("larger", 1000)
    assert disk.names() == ["file"]


@pytest.mark.interpreted
def test_the_reserve_is_made_whole_only_when_there_is_as_much_beside_it(tmp_path: Path, monkeypatch: Any) -> None:
    """Or senders would take it again at once."""
    free = [8 << 20]
    monkeypatch.setattr(space, "space_of", lambda _: DiskSpace(0.5, free[0], 64 << 20))
    news: list[int] = []
    room = SpaceReserve(tmp_path, lambda: news.append(1), 1 << 30)
    assert room.reserve_bytes == room.wanted_bytes == 4 << 20
    assert not room.is_short
    while room.free_room(1 << 20):
        pass
    assert room.reserve_bytes == 0
    for free[0], is_short, has_bytes in ((3 << 20, True, 3 << 19), (6 << 20, True, 4 << 20), (8 << 20, False, 4 << 20)):
        room.refill()
        assert room.is_short is is_short
        assert room.reserve_bytes == has_bytes, "half of what there is, until there is as much beside it"
    assert room.reserve_bytes == 4 << 20
    assert len(news) == 2, "when it began, and when it was over"


@pytest.mark.interpreted
def test_a_reserve_that_is_gone_gets_every_piece(tmp_path: Path, monkeypatch: Any) -> None:
    """Somebody who fills the disk would take each piece before there is enough to share."""
    free = [64 << 20]
    monkeypatch.setattr(space, "space_of", lambda _: DiskSpace(0.5, free[0], 64 << 20))
    room = SpaceReserve(tmp_path, lambda: None, 1 << 20)
    while room.free_room(1 << 20):
        pass
    for free[0], has_bytes in (
        (64 << 10, 64 << 10),
        (128 << 10, 192 << 10),
        (128 << 10, 256 << 10),
        (64 << 10, 256 << 10),
    ):
        room.refill()
        assert room.reserve_bytes == has_bytes
    assert room.is_short


def test_growth_is_looked_at_by_the_mebibyte(tmp_path: Path) -> None:
    news: list[int] = []
    disk = FileDisk(tmp_path)
    disk.reserve = SpaceReserve(tmp_path, lambda: news.append(1), 0)
    disk.create("file", 0)
    for place in range(32):
        disk.write("file", place << 16, bytes(1 << 16))
    assert len(news) == 2
    for place in range(32):
        disk.write("file", place << 16, bytes(1 << 16))
    assert len(news) == 2, "what is written again is no growth"
    disk.create("spare", 3 << 20)
    assert len(news) == 3


@pytest.mark.interpreted
@pytest.mark.parametrize("is_short", [False, True])
def test_a_journal_file_grows_as_it_is_written_when_there_is_no_room_for_all_of_it(
    tmp_path: Path, is_short: bool, system: FailingOs
) -> None:
    """Also when nobody knew that before."""
    disk = FileDisk(tmp_path)
    disk.reserve = SpaceReserve(tmp_path, lambda: None, 0)
    disk.reserve.is_short = is_short
    if not is_short:
        system.at = system.count + 3  # of the calls: it is opened, looked at, and filled
    write = Write(disk, "file", 0, b"data", sync=True, create_bytes=4096)
    write_commit(Commit([write], 1))
    assert system.failed == ("" if is_short else "pwrite")
    assert disk.read("file") == b"data"


def test_the_file_written_to_last_is_the_last_to_be_closed(tmp_path: Path) -> None:
    """While one thread writes to it another one opens files: its number must not become that of another file."""
    with closing(FileDisk(tmp_path, open_files_max=4)) as disk:
        disk.create("current", 0)
        for number in range(10):
            disk.write("current", 0, b"x")
            disk.create(f"other {number}", 0)
            assert tmp_path / "current" in open_below(tmp_path), number
        assert disk.open_files == 4


def test_a_file_system_without_locks_is_no_other_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "artemis_py.storage.disk.lock.fcntl.flock", Mock(side_effect=OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)))
    )
    with pytest.raises(DiskError, match=r"server\.lock: No locks available"):
        DirectoryLock(tmp_path)


_NODE_OF_ARTEMIS = b"L\0\0" + bytes(range(240, 256))
_HOLD_AS_ARTEMIS = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 1)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_file_of_artemis_stays_as_it_is_and_is_respected(tmp_path: Path) -> None:
    file = tmp_path / "server.lock"
    file.write_bytes(_NODE_OF_ARTEMIS)
    command = [sys.executable, "-c", _HOLD_AS_ARTEMIS, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as artemis:
        assert artemis.stdout is not None
        assert artemis.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match="is in use by Artemis; stop it first"):
            DirectoryLock(tmp_path)
        artemis.communicate()
    ours = DirectoryLock(tmp_path)
    nowait = _HOLD_AS_ARTEMIS.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    late = subprocess.run([sys.executable, "-c", nowait, file], input=b"", capture_output=True, check=False)
    assert b"BlockingIOError" in late.stderr  # Artemis would wait
    with pytest.raises(LockedError, match=rf"in use by another broker \(process {os.getpid()} on host "):
        DirectoryLock(tmp_path)
    ours.confirm()
    ours.release()
    assert file.read_bytes().startswith(_NODE_OF_ARTEMIS)
    DirectoryLock(tmp_path).release()
    assert file.read_bytes().count(b"artemis_py ") == 1
