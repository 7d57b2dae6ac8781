"""The store that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable

from artemis_py.config.settings import BrokerConfig
from artemis_py.server.store import Store
from artemis_py.server.transient_store import TransientStore
from artemis_py.storage.disk.disk import OPEN_FILES_MAX, FileDisk


def open_store(
    config: BrokerConfig,
    wake: Callable[[], None],
    look: Callable[[], None] = lambda: None,
    open_files_max: int = OPEN_FILES_MAX,
    open_disk: Callable[..., FileDisk] = FileDisk,
) -> Store:
    """Open it. The disk's threads call ``wake`` when something is done, and ``look`` when the disk usage should be
    checked. ``open_files_max`` limits the open files of each directory, and ``open_disk`` opens those that outlive the
    process. Raises DiskError, LockedError, or LossError.
    """
    if config.persistence_enabled:
        from artemis_py.server.journal_store import JournalStore

        return JournalStore(config, wake, look, open_files_max, open_disk)
    return TransientStore(config, wake, look)
