"""A store whose start or end fails has nothing open any more: no file, no lock, no thread."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import RetentionConfig
from artemis_py.server.journal_store import JournalStore
from artemis_py.server.server import open_store
from artemis_py.server.store import Store
from artemis_py.storage.disk import disk as disk_module
from artemis_py.storage.disk import permissions, space
from artemis_py.storage.disk.disk import DiskError
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, message

CALLS = frozenset({"open", "pwrite", "fsync", "fdatasync", "ftruncate", "rename", "stat", "fstat", "scandir"})


class CountingSystem:
    """The module ``os``, of which the ``at``-th call about files fails in the thread that opens the store."""

    def __init__(self) -> None:
        self.at = -1
        self.count = 0
        self._thread = threading.current_thread()

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._counted(real) if name in CALLS and threading.current_thread() is self._thread else real

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count == self.at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **named)

        return call


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


def _held() -> tuple[int, int]:
    """How many files and threads there are."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def _opened(config: BrokerConfig) -> Store:
    return open_store(config, lambda: None)


def test_a_start_that_fails_at_any_call_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(tmp_path)
    store = _opened(config)
    store.log.queue_changed(dict(QUEUE))
    store.log.published(message(1), [QUEUE_ID], 0)
    store.close()
    before = _held()
    system = CountingSystem()
    for module in (disk_module, permissions, space):
        monkeypatch.setattr(module, "os", system)
    _opened(config).close()
    calls = system.count
    assert calls > 20
    failed = 0
    for at in range(1, calls + 1):
        system.at, system.count = at, 0
        try:
            _opened(config).close()
        except DiskError:
            failed += 1
        assert _held() == before, f"call {at}"
    assert failed > 5


@pytest.mark.parametrize("persistence", [True, False])
def test_an_end_that_fails_leaves_nothing_open(tmp_path: Path, persistence: bool) -> None:
    before = _held()
    store = _opened(_config(tmp_path, persistence_enabled=persistence))
    store.log.queue_changed(dict(QUEUE))
    if isinstance(store, JournalStore):
        store._files.journal.finish = _fail  # type: ignore[method-assign]
        with pytest.raises(DiskError, match="at the end"):
            store.close()
    else:
        store.close()
    assert _held() == before


def _fail() -> None:
    raise DiskError("at the end")
