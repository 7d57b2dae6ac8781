"""Folders that end with the process, and in one of them the large bodies of a broker without persistence."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.bodies.store import LargeStore
from artemis_py.storage.disk.committer import ThreadCommitter
from artemis_py.storage.disk.disk import DiskError, FileDisk, LockedError
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.disk.private import make_private
from artemis_py.storage.disk.room import Room


class TransientBodies:
    """The large bodies of a broker without persistence. ``store`` is None if there is no place for them, and ``report``
    says so: then bodies of every size stay in memory.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None], look: Callable[[], None]) -> None:
        directory = Path(config.large_messages_directory)
        self.report: list[str] = []
        self.store: LargeStore | None = None
        self.folder = TransientFolder(directory, look)
        if may_be_made(directory):
            remove_leftovers(directory)
            writer, reader = ThreadCommitter(wake, "body writer"), ThreadCommitter(wake, "body reader")
            self.store = LargeStore(self.folder, writer, reader, syncs=False)
        else:
            self.report.append(f"warning: {directory} cannot be created; large messages are kept in memory")

    def close(self) -> None:
        """Remove all of them."""
        if self.store is not None:
            self.store.close()
        self.folder.close()


class TransientFolder(FileDisk):
    """A folder that is created with its first file: most brokers without a journal never see a large body or fill their
    memory. Each process has its own, so that several brokers can share a directory. Any thread may call ``look``, when
    the folder is created and when it has grown much: then disk usage should be checked.
    """

    def __init__(self, directory: Path, look: Callable[[], None] = lambda: None) -> None:
        super().__init__(directory / f"transient-{os.getpid()}-{time.time_ns():x}", is_made=False)
        self._look = look
        self._lock: DirectoryLock | None = None
        self._parents_made: list[Path] = []

    def _descriptor(self, name: str, *, is_new: bool = False) -> int:
        if self._lock is None:
            self._parents_made = [parent for parent in self.directory.parents if not os.path.exists(parent)]
            make_private(self.directory)
            self._lock = DirectoryLock(self.directory)
            self.room = Room(self.directory, self._look, 0)
            self._look()
        return super()._descriptor(name, is_new=is_new)

    @property
    def is_made(self) -> bool:
        """Was a file written since the start?"""
        return self._lock is not None

    def names(self) -> list[str]:
        return [] if self._lock is None else super().names()

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.release()
            with suppress(OSError):  # another broker may use them by now
                for parent in self._parents_made:
                    parent.rmdir()


def may_be_made(directory: Path) -> bool:
    """Is the directory writable, or can it be created?"""
    nearest = next(path for path in (directory.absolute(), *directory.absolute().parents) if os.path.exists(path))
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def remove_leftovers(directory: Path) -> None:
    """Remove folders of killed processes, whose locks are free."""
    for folder in directory.glob("transient-*"):
        try:
            lock = DirectoryLock(folder)
        except (LockedError, DiskError):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
