"""The lock of a data directory: who has it, what it says of the store, and when it is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import stat
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.storage.disk import lock as lock_module
from artemis_py.storage.disk.disk import DiskError, LockedError
from artemis_py.storage.disk.lock import (
    ACTIVE,
    STOPPED,
    UNUSED,
    DirectoryLock,
    Owner,
    WaitingPrimary,
    owner_in,
    owner_of,
    primary_waits,
    this_process,
)
from artemis_py.storage.disk.permissions import open_private

_OF_ARTEMIS = b"L\0\0" + bytes(range(240, 256))


def state_of(directory: Path) -> str:
    owner = owner_of(directory)
    assert owner is not None
    return owner.state


def test_the_file_says_who_has_it(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    owner = owner_of(tmp_path)
    assert owner is not None
    assert (owner.process, owner.host, owner.state) == (os.getpid(), socket.gethostname(), UNUSED)
    assert re.fullmatch(r"[0-9a-f-]{36}", owner.boot)
    assert owner.shown == f"process {os.getpid()} on host {socket.gethostname()} since {owner.since}"
    with pytest.raises(LockedError, match=re.escape(f"{tmp_path} is in use by another broker ({owner.shown})")):
        DirectoryLock(tmp_path)
    lock.release()


def test_a_file_of_an_older_version_says_less(tmp_path: Path) -> None:
    assert owner_in(b"1234") == Owner(process=1234)
    assert Owner(process=1234).shown == "process 1234"
    (tmp_path / "server.lock").write_bytes(b"1234")
    DirectoryLock(tmp_path).release()
    assert state_of(tmp_path) == UNUSED


@pytest.mark.parametrize(
    "content",
    [b"", b"artemis_py ", b"artemis_py process=1 host=a", b"artemis_py process=x host= boot= since= state=\n",
     b"artemis_py process=1\n", _OF_ARTEMIS, b"\xff"],
)  # fmt: skip
def test_what_names_nobody(content: bytes) -> None:
    assert owner_in(content) is None


@pytest.mark.parametrize("before", [b"", _OF_ARTEMIS])
def test_a_store_remembers_how_its_broker_ended(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "server.lock").write_bytes(before)
    lock = DirectoryLock(tmp_path)
    lock.claim()
    assert state_of(tmp_path) == ACTIVE
    lock.release()
    assert state_of(tmp_path) == UNUSED, "a start that failed leaves what it found"
    lock = DirectoryLock(tmp_path)
    lock.claim()
    lock.leaves(STOPPED)
    lock.release()
    assert state_of(tmp_path) == STOPPED
    DirectoryLock(tmp_path).release()
    assert state_of(tmp_path) == STOPPED, "a command changes nothing"
    content = (tmp_path / "server.lock").read_bytes()
    assert content.startswith(before)
    assert content.count(b"artemis_py ") == 1


def test_a_lock_is_lost_to_another_owner(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.claim()
    lock.confirm()
    mine = owner_of(tmp_path)
    assert mine is not None
    (tmp_path / "server.lock").write_bytes(replace(mine, state=STOPPED).text)
    lock.confirm()  # an operator may say what a backup is to do
    (tmp_path / "server.lock").write_bytes(replace(mine, host="other").text)
    with pytest.raises(DiskError, match=rf"the lock was lost to process {os.getpid()} on host other since"):
        lock.confirm()
    lock.release()


def test_a_lock_that_comes_soon(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(LockedError):
        DirectoryLock.soon(tmp_path, 0.02)
    lock.release()
    DirectoryLock.soon(tmp_path, 0.0).release()


def test_a_primary_that_waits_is_seen_while_it_lives(tmp_path: Path) -> None:
    assert not primary_waits(tmp_path)
    one, two = WaitingPrimary(tmp_path), WaitingPrimary(tmp_path)
    for waiting in (one, two):
        waiting.show()
        waiting.show()
        assert primary_waits(tmp_path)
    one.withdraw()
    assert primary_waits(tmp_path)
    two.withdraw()
    assert not primary_waits(tmp_path)


def test_the_host_of_an_owner_is_one_word() -> None:
    owner = this_process(ACTIVE)
    assert owner_in(owner.text) == owner
    assert owner_in(b"") is None


def _refuse_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a network file system does."""
    lock_file = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOLCK, "No locks available")
        lock_file(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)


def _refuse_to_open(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """As with mode 000, which root does not notice; another file at the same place can be opened."""
    refused = path.stat().st_ino

    def opened(wanted: Path, flags: int) -> int:
        if wanted.exists() and wanted.stat().st_ino == refused:
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_private(wanted, flags)

    monkeypatch.setattr(lock_module, "open_private", opened)


@pytest.mark.interpreted
def test_a_file_that_cannot_be_read_is_put_aside_if_nobody_has_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.lock"
    path.write_bytes(this_process(ACTIVE).text)
    _refuse_to_open(monkeypatch, path)
    lock = DirectoryLock(tmp_path)
    assert "could not be read" in lock.notes[0]
    assert owner_in((tmp_path / "server.lock.unreadable").read_bytes()) is not None
    assert lock.confirm() is None
    lock.release()


@pytest.mark.interpreted
def test_a_file_that_cannot_be_read_stays_while_somebody_has_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = DirectoryLock(tmp_path)
    _refuse_to_open(monkeypatch, tmp_path / "server.lock")
    with pytest.raises(LockedError):
        DirectoryLock(tmp_path)
    assert held.confirm() is None
    held.release()


@pytest.mark.interpreted
def test_nobody_can_tell_who_has_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.lock"
    path.write_bytes(this_process(ACTIVE).text)
    _refuse_to_open(monkeypatch, path)
    _refuse_directories(monkeypatch)
    with pytest.raises(DiskError, match=r"nobody can tell whether a broker works there; make the file readable"):
        DirectoryLock(tmp_path)
    assert path.exists()


@pytest.mark.parametrize("others", [(), ("artemis-journal-000000000001.log",)])
def test_a_new_file_is_good_once_the_owner_of_a_removed_one_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]
) -> None:
    for name in others:
        (tmp_path / name).write_bytes(b"")
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    _refuse_directories(monkeypatch)
    first = DirectoryLock(tmp_path)
    (tmp_path / "server.lock").unlink()
    waits.clear()
    second = DirectoryLock(tmp_path)
    assert len(waits) == len(others), "a new directory is nobody's"
    with pytest.raises(DiskError, match="another file is in its place"):
        first.confirm()
    second.release()
    first.release()


def test_a_file_that_names_nobody_is_written_again_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = DirectoryLock(tmp_path)
    lock.claim()
    path = tmp_path / "server.lock"
    for content in (b"", b"artemis_py ", b"\xff"):
        path.write_bytes(content)
        assert "it names this one again" in (lock.confirm() or "")
        assert (state_of(tmp_path), lock.confirm()) == (ACTIVE, None)
    path.write_bytes(b"")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        assert "cannot be written" in (lock.confirm() or "")
        assert lock.confirm() is None, "once is enough"
    assert "it names this one again" in (lock.confirm() or "")
    lock.release()


def test_a_lock_that_is_lost_leaves_the_file_to_its_new_owner(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.claim()
    lock.leaves(STOPPED)
    other = replace(this_process(ACTIVE), host="other")
    (tmp_path / "server.lock").write_bytes(other.text)
    lock.release()
    assert owner_of(tmp_path) == other
