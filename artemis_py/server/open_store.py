"""The store that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable

from artemis_py.config.settings import BrokerConfig
from artemis_py.server.store import Store
from artemis_py.server.transient_store import TransientStore
from artemis_py.storage.disk.disk import OPEN_FILES_MAX, FileDisk
from artemis_py.storage.disk.lock import DirectoryLock


def open_store(
    config: BrokerConfig,
    wake: Callable[[], None],
    look: Callable[[], None] = lambda: None,
    open_files_max: int = OPEN_FILES_MAX,
    open_disk: Callable[..., FileDisk] = FileDisk,
    lock: DirectoryLock | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Store:
    """Open it. The disk's threads call ``wake`` when something is done, and ``look`` when the disk usage should be
    checked. ``open_files_max`` limits the open files of each directory, and ``open_disk`` opens those that outlive the
    process. ``lock`` is that of a pair. ``progress`` is called after each journal file, with how many were read and how
    many there are. Raises DiskError, LockedError, or LossError.
    """
    if config.persistence_enabled:
        from artemis_py.server.journal_store import JournalStore

        return JournalStore(config, wake, look, open_files_max, open_disk, lock, progress)
    return TransientStore(config, wake, look)
