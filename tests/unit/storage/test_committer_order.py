"""A batch is durable when all of it is synced, and what did not find its way to the disk is not said to be there. What
fails in the thread is told, never swallowed.
"""

from __future__ import annotations

import random
import threading
from functools import partial
from unittest.mock import Mock
from weakref import ref

import pytest

from artemis_py.storage.disk.disk import DiskError, NoSpaceError
from artemis_py.storage.disk.group_commit import Commit, ThreadCommitter, Write, bytes_of, write_commit
from tests.kit.disk import Fault, SimDisk
from tests.kit.process import eventually
from tests.kit.thing import Thing

NO_ROOM_FOR_B = Fault(0, "No space left on device", verbs=("write",), names=("b",))


def write(disk: SimDisk, name: str, *, may_fail: bool = False) -> Write:
    """A write to a new file, which ends it."""
    return Write(disk, name, 0, b"data", sync=True, create_bytes=0, ends=True, may_fail=may_fail)


def test_writes_are_synced_one_after_the_other_and_confirmed_before_they_are_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk, verbs = SimDisk(random.Random(1)), ("write", "sync", "confirm", "finish")
    done = Mock()
    for verb in verbs:
        done.attach_mock(Mock(side_effect=getattr(disk, verb)), verb)
        monkeypatch.setattr(disk, verb, getattr(done, verb))
    write_commit(Commit([write(disk, "a"), write(disk, "b")], 7))
    assert [(verb, given[0]) for verb, given, _ in done.mock_calls] == [(verb, name) for name in "ab" for verb in verbs]
    assert all(not file.unsynced for file in disk.files.values())


def test_nobody_hears_that_a_batch_is_durable_while_it_is_being_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    woken, may_sync = threading.Event(), threading.Event()
    committer = ThreadCommitter(woken.set)
    disk = SimDisk(random.Random(1))
    sync = disk.sync

    def sync_late(name: str) -> None:
        assert may_sync.wait(120)
        sync(name)

    monkeypatch.setattr(disk, "sync", sync_late)
    batch = Commit([write(disk, "a")], 7)
    committer.submit(batch)
    eventually("it is written", lambda: "a" in disk.files and bytes(disk.files["a"].data) == b"data", bool)
    assert committer.busy
    assert committer.finished() is None
    assert not woken.is_set()
    may_sync.set()
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


@pytest.mark.parametrize("failure", [DiskError("no space"), ValueError("a mistake")])
def test_a_failure_is_told(failure: Exception) -> None:
    """Also one that nobody expected: the broker stops with a message, and no sender waits for ever."""
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)

    committer.later(Mock(side_effect=failure))
    assert woken.wait(120)
    assert committer.failure is not None
    assert str(failure) in str(committer.failure)
    committer.stop()


def test_nothing_is_kept_of_what_is_done() -> None:
    """A part of a large body was kept with its reader, until the next one was read."""
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)
    client = Thing()
    left = ref(client)
    committer.later(partial(setattr, client, "is_served", True))
    assert woken.wait(120)
    del client
    assert left() is None
    committer.stop()


def test_a_failure_of_a_batch_that_somebody_waits_for_wakes_a_turn() -> None:
    """The turn that handed it over has looked for failures before; a lone sender waited for the next timer."""
    woken: list[int] = []
    committer = ThreadCommitter(lambda: woken.append(1))
    disk = SimDisk(random.Random(1))
    disk.create("file", 0)
    disk.fault = Fault(0, verbs=("sync",))
    committer.run_now(Commit([Write(disk, "file", 0, b"data", sync=True)], 1))
    assert woken == [1]
    assert committer.finished() is None
    assert "Input/output error" in str(committer.failure)
    committer.stop()
