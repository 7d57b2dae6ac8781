"""Where a broker's large bodies are: beside its journal, or, without one, in a folder that goes with the process."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.disk import DirectoryLock, Disk, DiskError, FileDisk, LockedError
from artemis_py.storage.large import LargeStore


def open_bodies(
    disk: Disk,
    wake: Callable[[], None],
    *,
    syncs: bool,
    retire: Callable[[str], None] | None = None,
    start_min: int = 1,
) -> LargeStore:
    """A store with threads of its own. ``wake`` is called from them. Raises DiskError."""
    writer = ThreadCommitter(wake, "body writer")
    reader = ThreadCommitter(wake, "body reader")
    return LargeStore(disk, writer, reader, syncs=syncs, retire=retire, start_min=start_min)


class TransientBodies:
    """The large bodies of a broker that keeps nothing. ``store`` is None when there is no place for them, and
    ``report`` says so: then bodies of every size are kept in memory.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        directory = Path(config.large_messages_directory)
        self.report: list[str] = []
        self.store: LargeStore | None = None
        self._disk = TransientFolder(directory)
        if may_be_made(directory):
            remove_leftovers(directory)
            self.store = open_bodies(self._disk, wake, syncs=False)
        else:
            self.report.append(f"warning: {directory} cannot be made: large messages are kept in memory")

    def close(self) -> None:
        """Nothing of them is left."""
        if self.store is not None:
            self.store.close()
            self._disk.close()


class TransientFolder(FileDisk):
    """A folder that is made with its first file: most brokers without a journal never see a large body, or fill their
    memory. Each process has its own, so that several brokers can have one directory.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / f"transient-{os.getpid()}-{time.time_ns():x}", is_made=False)
        self._lock: DirectoryLock | None = None
        self._parents_made: list[Path] = []

    def _descriptor(self, name: str) -> int:
        if self._lock is None:
            self._parents_made = [parent for parent in self.directory.parents if not parent.exists()]
            self.directory.mkdir(parents=True)
            self._lock = DirectoryLock(self.directory)
        return super()._descriptor(name)

    def names(self) -> list[str]:
        return [] if self._lock is None else super().names()

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.release()
            with suppress(OSError):  # another broker may have come to use them
                for parent in self._parents_made:
                    parent.rmdir()


def may_be_made(directory: Path) -> bool:
    """Is the directory there and can be written to, or can it be made?"""
    nearest = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def remove_leftovers(directory: Path) -> None:
    """Folders of processes that were killed: nobody holds their locks."""
    for folder in directory.glob("transient-*"):
        try:
            lock = DirectoryLock(folder)
        except (LockedError, DiskError):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
