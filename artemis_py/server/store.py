"""The broker's files: opening them at a start, with everything they give back, and closing them."""

from __future__ import annotations

import os
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.records import Keepsake, MemoryLog, PageLog, RecordLog
from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.disk import DirectoryLock, DiskError, FileDisk, LockedError
from artemis_py.storage.journal import Journal, JournalSettings
from artemis_py.storage.pages import PageFiles, delete_leftovers
from artemis_py.storage.recovery import Recovered, recover
from artemis_py.storage.retention import Retention, RetentionSettings
from artemis_py.storage.spill import SpillLog

_PROGRESS_AFTER_S: Final = 1.0
_CLOSE_S: Final = 10.0
_RUN: Final = "run-"


class Store(ABC):
    """Where a broker's log and pages go."""

    log: RecordLog
    pages: PageLog | None
    keepsake: Keepsake
    report: list[str]
    """What a person should know of what was found."""

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, and let the files go."""


class JournalStore(Store):
    """A data directory in use; one broker at a time may have it.

    Raises DiskError or LockedError when it cannot be opened.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        directory = Path(config.journal_directory)
        if not config.create_journal_dir and not directory.is_dir():
            raise DiskError(f"{directory} does not exist, and create-journal-dir is false")
        self.disk = FileDisk(directory, data_only=config.journal_datasync)
        self._locks = [DirectoryLock(directory)]
        try:
            self._open(config, wake, directory)
        except BaseException:
            self._unlock()
            raise

    def _open(self, config: BrokerConfig, wake: Callable[[], None], directory: Path) -> None:
        recovered = recover(self.disk, _Progress())
        paging_directory = Path(config.paging_directory)
        self._page_disk = FileDisk(paging_directory, data_only=config.journal_datasync)
        if paging_directory.resolve() != directory.resolve():
            self._locks.append(DirectoryLock(paging_directory))
        delete_leftovers(self._page_disk, recovered.index.pages.pages())
        retention = _retention(config, self.disk, directory)
        number_min = 1 if retention is None else _begin_behind(recovered, retention)
        self.report = _report(recovered, directory)
        self.keepsake = recovered.index.keepsake()
        self._committer = ThreadCommitter(wake)
        self._reader = ThreadCommitter(wake)
        self.pages: PageFiles = PageFiles(self._page_disk, self._reader, _say)
        settings = JournalSettings(
            file_bytes=config.journal_file_size,
            compact_files_min=config.journal_compact_min_files,
            compact_percentage=config.journal_compact_percentage,
            sync_transactional=config.journal_sync_transactional,
            sync_non_transactional=config.journal_sync_non_transactional,
            duplicate_ids_kept=config.id_cache_size,
            retains=retention is not None,
            files_min=config.journal_min_files,
            number_min=number_min,
        )
        self.log: Journal = Journal(
            self.disk,
            self._committer,
            settings,
            recovered.index,
            recovered.segments,
            recovered.next_lsn,
            recovered.batch_number,
            self.disk.delete if retention is None else retention.retire,
            None if retention is None else retention.purge,
            self.pages,
        )

    def _unlock(self) -> None:
        for lock in self._locks:
            lock.release()

    def close(self) -> None:
        deadline = time.monotonic() + _CLOSE_S
        while self.log.has_pending and self.log.failure is None and time.monotonic() < deadline:
            self.log.poll()
            self.log.seal()
            time.sleep(0.001)
        self._reader.stop()
        self._committer.stop()
        self.disk.close()
        self._page_disk.close()
        self._unlock()


class SpillStore(Store):
    """What a broker without persistence needs of a disk: pages, in a directory of its own that goes with it.

    Where no directory can be made, everything stays in memory; that is said, and is no reason not to start.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        self.keepsake = Keepsake()
        self.report = []
        self.log = MemoryLog()
        self.pages = None
        self._directory: Path | None = None
        parent = Path(config.paging_directory)
        try:
            _remove_stale(parent)
            self._disk = FileDisk(parent / f"{_RUN}{os.getpid()}")
            self._lock = DirectoryLock(self._disk.directory)
        except (DiskError, LockedError, OSError) as error:
            self.report = [f"warning: nothing can be paged, all messages stay in memory: {error}"]
            return
        self._directory = self._disk.directory
        self._committer = ThreadCommitter(wake)
        self._reader = ThreadCommitter(wake)
        pages = PageFiles(self._disk, self._reader, _say)
        self.pages = pages
        self.log = SpillLog(self._committer, pages)

    def close(self) -> None:
        if self._directory is None:
            return
        self._reader.stop()
        self._committer.stop()
        self._disk.close()
        self._lock.release()
        shutil.rmtree(self._directory, ignore_errors=True)
        with suppress(OSError):  # not empty: somebody else's
            os.removedirs(self._directory.parent)


def open_store(config: BrokerConfig, wake: Callable[[], None]) -> Store:
    """The store that a configuration asks for. Raises DiskError or LockedError."""
    return JournalStore(config, wake) if config.persistence_enabled else SpillStore(config, wake)


def _remove_stale(parent: Path) -> None:
    """Remove what brokers that were killed have left: directories that nobody holds locked."""
    for directory in parent.glob(f"{_RUN}*"):
        try:
            DirectoryLock(directory).release()
        except LockedError:
            continue
        shutil.rmtree(directory, ignore_errors=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _retention(config: BrokerConfig, disk: FileDisk, directory: Path) -> Retention | None:
    """What keeps closed journal files, when the configuration asks for it."""
    kept = config.journal_retention
    if kept is None:
        return None
    settings = RetentionSettings(Path(kept.directory), kept.period_ms, kept.storage_limit)
    return Retention(disk, directory, settings)


def _begin_behind(recovered: Recovered, retention: Retention) -> int:
    """With retained files and no journal, go on with their numbers; returns the number of the first segment."""
    mark = None if recovered.segments else retention.mark()
    if mark is None:
        return 1
    recovered.next_lsn = mark.lsn + 1
    recovered.batch_number = mark.batch.number
    recovered.index.message_id_max = mark.batch.message_id
    recovered.index.queue_id_max = mark.batch.queue_id
    return mark.number + 1


def _report(recovered: Recovered, directory: Path) -> list[str]:
    """What a person should know of the recovery."""
    lines = [f"warning: {directory}/{damage}" for damage in recovered.damages]
    if recovered.segments:
        index = recovered.index
        pages = index.pages.pages()
        in_pages = f" and {sum(map(index.pages.left, pages))} in {len(pages)} pages" if pages else ""
        lines.append(
            f"recovered {len(index.home)} messages{in_pages} from {recovered.record_count} records in"
            f" {len(recovered.segments)} journal files"
        )
    return lines


class _Progress:
    """Says how far a long recovery is: a line that rewrites itself on a terminal, one line per tenth elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._started < _PROGRESS_AFTER_S:
            return
        tenths = done * 10 // total
        if sys.stderr.isatty():
            end = os.linesep if done == total else ""
            print(f"\rrecovering: {done} of {total} journal files", end=end, file=sys.stderr, flush=True)
        elif tenths != self._told:
            self._told = tenths
            print(f"recovering: {done} of {total} journal files", file=sys.stderr, flush=True)
