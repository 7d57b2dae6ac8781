"""When a broker of a pair takes the lock, and for what it waits otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.config.settings import BrokerConfig, SharedStoreConfig
from artemis_py.server.standby import Candidate, FailbackWatch
from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.disk.lock import ACTIVE, STOPPED, UNUSED, DirectoryLock, WaitingPrimary, primary_waits
from tests.kit.loops import until

PRIMARY, BACKUP = SharedStoreConfig(is_backup=False), SharedStoreConfig(is_backup=True)


def candidate(folder: Path, part: SharedStoreConfig) -> Candidate:
    return Candidate(BrokerConfig(journal_directory=str(folder / "journal")), part)


def left_behind(folder: Path, state: str) -> None:
    """A broker worked here, and ended."""
    (folder / "journal").mkdir(exist_ok=True)
    lock = DirectoryLock(folder / "journal")
    lock.claim()
    lock.leaves(state)
    lock.release()


@pytest.mark.parametrize("state", [None, ACTIVE, STOPPED])
def test_a_primary_takes_what_is_free(tmp_path: Path, state: str | None) -> None:
    if state is not None:
        left_behind(tmp_path, state)
    lock = candidate(tmp_path, PRIMARY).take()
    assert lock is not None
    lock.release()


def test_a_primary_shows_that_it_waits(tmp_path: Path) -> None:
    left_behind(tmp_path, ACTIVE)
    held = DirectoryLock(tmp_path / "journal")
    primary = candidate(tmp_path, PRIMARY)
    assert primary.take() is None
    assert "the lock of process" in primary.waits_for
    assert primary_waits(tmp_path / "journal")
    held.release()
    lock = primary.take()
    assert lock is not None
    assert not primary_waits(tmp_path / "journal")
    lock.release()
    assert candidate(tmp_path, PRIMARY).take() is not None


def test_a_primary_ends_where_its_directory_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("")
    with pytest.raises(DiskError):
        candidate(tmp_path, PRIMARY).take()


@pytest.mark.parametrize(
    ("state", "waits_for"),
    [
        (None, "the directory "),
        (UNUSED, "the first start of a primary in "),
        (STOPPED, "was stopped, and is to be started again"),
    ],
)
def test_a_backup_waits_for_a_primary(tmp_path: Path, state: str | None, waits_for: str) -> None:
    if state is not None:
        left_behind(tmp_path, state)
    backup = candidate(tmp_path, BACKUP)
    assert backup.take() is None
    assert waits_for in backup.waits_for
    assert (tmp_path / "journal").exists() is (state is not None), "it makes nothing"


def test_a_backup_takes_over_from_the_dead(tmp_path: Path) -> None:
    left_behind(tmp_path, ACTIVE)
    backup = candidate(tmp_path, BACKUP)
    waiting = WaitingPrimary(tmp_path / "journal")
    waiting.show()
    assert backup.take() is None
    assert "the primary that is about to take over" in backup.waits_for
    waiting.withdraw()
    held = DirectoryLock(tmp_path / "journal")
    assert backup.take() is None
    assert "the lock of process" in backup.waits_for
    held.release()
    lock = backup.take()
    assert lock is not None
    lock.release()


def test_a_broker_that_is_stopped_while_a_backup_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides is what the file says when the backup has the lock."""
    left_behind(tmp_path, ACTIVE)
    backup = candidate(tmp_path, BACKUP)
    monkeypatch.setattr("artemis_py.server.standby.primary_waits", lambda _: left_behind(tmp_path, STOPPED) or False)
    assert backup.take() is None
    assert "was stopped" in backup.waits_for
    DirectoryLock(tmp_path / "journal").release()


def test_a_backup_waits_while_its_directory_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_behind(tmp_path, ACTIVE)
    monkeypatch.setattr(
        "artemis_py.server.standby.lock_journal", Mock(side_effect=DiskError("journal: Stale file handle"))
    )
    backup = candidate(tmp_path, BACKUP)
    assert backup.take() is None
    assert backup.waits_for == "a directory that can be used: journal: Stale file handle"


@pytest.mark.asyncio
async def test_a_backup_that_works_finds_a_waiting_primary_once(tmp_path: Path) -> None:
    left_behind(tmp_path, ACTIVE)
    config = BrokerConfig(journal_directory=str(tmp_path / "journal"))
    found = Mock()
    watch = FailbackWatch(config, asyncio.get_running_loop(), found)
    for _ in range(3):
        watch.check()
        await until(lambda: not watch._is_checking)
    found.assert_not_called()
    waiting = WaitingPrimary(tmp_path / "journal")
    waiting.show()
    await until(lambda: watch.check() or found.called)
    watch.check()
    await asyncio.get_running_loop().shutdown_default_executor()  # whatever looks has ended
    waiting.withdraw()
    found.assert_called_once()
