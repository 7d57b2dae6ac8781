"""A store whose start or end fails has nothing open any more: no file, no lock, no thread."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py import atomic_files
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import RetentionConfig
from artemis_py.server.journal_store import JournalStore
from artemis_py.server.server import open_store
from artemis_py.storage.disk import disk as disk_module
from artemis_py.storage.disk import permissions, space
from artemis_py.storage.disk.disk import DiskError
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, message
from tests.kit.failing_os import FailingOs
from tests.kit.process import open_below

CALLS = frozenset({"open", "pwrite", "fsync", "fdatasync", "ftruncate", "rename", "stat", "fstat", "scandir"})


def _config(folder: Path, **named: Any) -> BrokerConfig:
    kept = RetentionConfig(directory=str(folder / "kept"), period_ms=None, storage_limit=None, cursor_ttl_s=60)
    return BrokerConfig(
        journal_directory=str(folder / "journal"),
        paging_directory=str(folder / "paging"),
        large_messages_directory=str(folder / "large"),
        journal_file_size=4096,
        journal_retention=kept,
        **named,
    )


def test_a_start_that_fails_at_any_call_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(tmp_path)
    store = open_store(config, Mock())
    store.log.queue_changed(dict(QUEUE))
    store.log.published(message(1), [QUEUE_ID], 0)
    store.close()
    threads = set(threading.enumerate())
    system = FailingOs(CALLS, errno.EIO)
    system.put_in_place(monkeypatch, disk_module, permissions, space, atomic_files)
    open_store(config, Mock()).close()
    calls = system.count
    assert calls > 20
    failed = 0
    for at in range(1, calls + 1):
        system.at, system.count = at, 0
        try:
            open_store(config, Mock()).close()
        except DiskError:
            failed += 1
        assert open_below(tmp_path) == set(), f"call {at}"
        assert set(threading.enumerate()) <= threads, f"call {at}"
    assert failed > 5


@pytest.mark.parametrize("persistence", [True, False])
def test_an_end_that_fails_leaves_nothing_open(tmp_path: Path, persistence: bool) -> None:
    threads = set(threading.enumerate())
    store = open_store(_config(tmp_path, persistence_enabled=persistence), Mock())
    store.log.queue_changed(dict(QUEUE))
    if isinstance(store, JournalStore):
        store._files.journal.finish = Mock(side_effect=DiskError("at the end"))  # type: ignore[method-assign]
        with pytest.raises(DiskError, match="at the end"):
            store.close()
    else:
        store.close()
    assert open_below(tmp_path) == set()
    assert set(threading.enumerate()) <= threads
