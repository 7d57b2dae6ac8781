"""A batch is durable when all of it is synced, and what did not find its way to the disk is not said to be there."""

from __future__ import annotations

import random
import threading

import pytest

from artemis_py.storage.disk.disk import NoSpaceError
from artemis_py.storage.disk.group_commit import Commit, ThreadCommitter, Write, bytes_of, write_commit
from tests.kit.disk import Fault, SimDisk
from tests.kit.process import eventually

NO_ROOM_FOR_B = Fault(0, "No space left on device", verbs=("write",), names=("b",))


class WatchedDisk(SimDisk):
    """Notes what is done; ``sync`` waits until it may go on."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.done: list[str] = []
        self.may_sync = threading.Event()
        self.may_sync.set()

    def write(self, name: str, offset: int, data: bytes) -> None:
        super().write(name, offset, data)
        self.done.append(f"write {name}")

    def sync(self, name: str) -> None:
        assert self.may_sync.wait(120)
        super().sync(name)
        self.done.append(f"sync {name}")

    def confirm(self, name: str) -> None:
        super().confirm(name)
        self.done.append(f"confirm {name}")

    def finish(self, name: str) -> None:
        super().finish(name)
        self.done.append(f"finish {name}")


def write(disk: SimDisk, name: str, *, may_fail: bool = False) -> Write:
    """A write to a new file, which ends it."""
    return Write(disk, name, 0, b"data", sync=True, create_bytes=0, ends=True, may_fail=may_fail)


def test_writes_are_synced_one_after_the_other_and_confirmed_before_they_are_finished() -> None:
    disk = WatchedDisk()
    write_commit(Commit([write(disk, "a"), write(disk, "b")], 7))
    assert disk.done == [f"{verb} {name}" for name in "ab" for verb in ("write", "sync", "confirm", "finish")]
    assert all(not file.unsynced for file in disk.files.values())


def test_nobody_hears_that_a_batch_is_durable_while_it_is_being_synced() -> None:
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)
    disk = WatchedDisk()
    disk.may_sync.clear()
    batch = Commit([write(disk, "a")], 7)
    committer.submit(batch)
    eventually("it is written", lambda: disk.done == ["write a"], bool)
    assert committer.busy
    assert committer.finished() is None
    assert not woken.is_set()
    disk.may_sync.set()
    assert woken.wait(120)
    assert committer.finished() is batch
    assert not committer.busy
    committer.stop()


def test_nothing_becomes_durable_after_a_failure() -> None:
    """Even if the disk works again: what failed is missing before it."""
    committer = ThreadCommitter(lambda: None)
    disk = SimDisk(random.Random(1))
    disk.fault = Fault(0, verbs=("sync",))
    committer.submit(Commit([write(disk, "a")], 7))
    eventually("it failed", lambda: committer.failure is not None, bool)
    disk.fault = None
    committer.submit(Commit([write(disk, "b")], 8))
    committer.stop()
    assert committer.finished() is None
    assert "b" not in disk.files


def test_a_batch_that_may_wait_stops_where_there_is_no_room_and_can_be_repeated() -> None:
    disk = SimDisk(random.Random(1))
    disk.fault = NO_ROOM_FOR_B
    batch = Commit([write(disk, name) for name in "abc"], 7, may_wait=True)
    write_commit(batch)
    assert "No space left" in (batch.failure or "")
    assert "c" not in disk.files
    disk.fault = None
    write_commit(batch)
    assert batch.failure is None
    assert {name for name, file in disk.files.items() if bytes(file.data) == b"data"} == {"a", "b", "c"}


def test_a_write_that_may_fail_leaves_no_file_and_the_others_go_on() -> None:
    disk = SimDisk(random.Random(1))
    disk.fault = NO_ROOM_FOR_B
    writes = [write(disk, name, may_fail=name == "b") for name in "abc"]
    write_commit(Commit(writes, 7))
    assert [one.failure is not None for one in writes] == [False, True, False]
    assert sorted(disk.files) == ["a", "c"]
    with pytest.raises(NoSpaceError):
        write_commit(Commit([write(disk, "b")], 8))


def test_a_new_file_counts_for_what_a_batch_has_to_write() -> None:
    """A large one would keep the event loop waiting."""
    disk = SimDisk(random.Random(1))
    assert bytes_of([Write(disk, "a", 0, b"data", sync=True)]) == 4
    assert bytes_of([Write(disk, "a", 0, b"data", sync=True, create_bytes=1000)]) == 1004
