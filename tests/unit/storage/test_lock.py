"""The lock of a data directory: who has it, what it says of the store, and when it is lost."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from artemis_py.storage.disk.disk import DiskError, LockedError
from artemis_py.storage.disk.lock import DirectoryLock, WaitingPrimary, primary_waits
from artemis_py.storage.disk.owner import ACTIVE, STOPPED, UNUSED, Owner, owner_in, owner_of, this_process

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
