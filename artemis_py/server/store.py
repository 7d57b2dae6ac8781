"""The broker's files: opening them at a start, with everything they give back, and closing them."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.records import Keepsake, MemoryLog, PageLog, RecordLog
from artemis_py.server.bodies import TransientBodies, TransientFolder, may_be_made, open_bodies, remove_leftovers
from artemis_py.server.cursor_desk import CursorDesk
from artemis_py.server.disk_watch import is_full, space_of
from artemis_py.server.log_view import LogView
from artemis_py.storage.body_recovery import take_over
from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.cursors import Cursors
from artemis_py.storage.disk import DirectoryLock, DiskError, FileDisk, LockedError
from artemis_py.storage.index import Segment
from artemis_py.storage.journal import Journal, JournalSettings
from artemis_py.storage.large import LargeStore
from artemis_py.storage.log_id import log_id
from artemis_py.storage.page_bodies import hold_bodies
from artemis_py.storage.pages import PageFiles, delete_leftovers
from artemis_py.storage.recovery import Recovered, recover
from artemis_py.storage.retained_bodies import RetainedBodies
from artemis_py.storage.retention import Retention, RetentionSettings, wall_clock_ms
from artemis_py.storage.sidecars import delete_orphans, delete_segment, write_index
from artemis_py.storage.spill import SpillLog

_PROGRESS_AFTER_S: Final = 1.0
_CLOSE_S: Final = 10.0


class Store(ABC):
    """Where a broker's log, pages and large bodies go. What is None has no place: then memory has to do."""

    log: RecordLog
    pages: PageLog | None
    large: LargeStore | None
    log_view: LogView | None = None
    """What others may read of the log; None: there is none."""
    cursor_desk: CursorDesk | None = None
    """Their cursors in it."""
    report: list[str]
    """What a person should know of what was found."""

    @abstractmethod
    def keepsake(self) -> Keepsake:
        """What the broker takes back. Nobody may keep it longer: it holds every message, and large ones their files."""

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, and let the files go."""


def open_store(config: BrokerConfig, wake: Callable[[], None]) -> Store:
    """The store that a configuration asks for. ``wake`` is called by the disk's threads when something is done. Raises
    DiskError or LockedError.
    """
    return JournalStore(config, wake) if config.persistence_enabled else TransientStore(config, wake)


class JournalStore(Store):
    """The directories of journal, pages and large bodies in use; one broker at a time may have them.

    Raises DiskError or LockedError when they cannot be opened.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        directory = Path(config.journal_directory)
        if not config.create_journal_dir and not directory.is_dir():
            raise DiskError(f"{directory} does not exist, and create-journal-dir is false")
        data_only = config.journal_datasync
        self._disk = FileDisk(directory, data_only=data_only)
        self._body_disk = FileDisk(Path(config.large_messages_directory), data_only=data_only)
        self._page_disk = FileDisk(Path(config.paging_directory), data_only=data_only)
        self._disks = (self._disk, self._body_disk, self._page_disk)
        self._locks = _locked(*(disk.directory for disk in self._disks))
        try:
            self._open(config, wake)
        except BaseException:
            self._unlock()
            raise

    def _open(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        recovered = recover(self._disk, _Progress())
        index = recovered.index
        self.report = _report(recovered, self._disk.directory)
        delete_leftovers(self._page_disk, index.pages.pages())
        delete_orphans(self._disk)
        bodies = retention = cursors = None
        number_min = 1
        if config.journal_retention is not None:
            kept = config.journal_retention
            bodies = RetainedBodies(self._body_disk, self._body_disk.directory, Path(kept.directory), wall_clock_ms)
            settings = RetentionSettings(Path(kept.directory), kept.period_ms, kept.storage_limit)
            crowded = partial(_is_crowded, config, kept.directory)
            cursors = Cursors(index.cursors, wall_clock_ms, crowded, _say, kept.cursor_ttl_s)
            retention = Retention(self._disk, self._disk.directory, settings, bodies=bodies, holds=cursors)
            number_min = _begin_behind(recovered, retention)
        self._committer = ThreadCommitter(wake)
        self._reader = ThreadCommitter(wake, "page reader")
        pages = PageFiles(self._page_disk, self._reader, _say)
        self.pages = pages
        self._journal = self.log = Journal(
            self._disk,
            self._committer,
            _journal_settings(config, number_min),
            index,
            recovered.segments,
            recovered.next_lsn,
            recovered.batch_number,
            partial(delete_segment, self._disk) if retention is None else retention.retire,
            None if retention is None else retention.purge,
            pages,
            self._write_index,
        )
        self._bodies = self.large = open_bodies(
            self._body_disk,
            wake,
            syncs=config.large_message_sync,
            retire=None if bodies is None else bodies.retire,
            start_min=1 if bodies is None else bodies.start_min,
        )
        directories = [self._disk.directory] + ([] if retention is None else [retention.directory])
        self.log_view = LogView(
            self._journal,
            self._disk.directory,
            log_id(directories),
            [self._body_disk.directory, *directories],
            retention,
        )
        self.cursor_desk = CursorDesk(self._journal, retention, cursors, wall_clock_ms)
        given_up = hold_bodies(self._page_disk, index.pages, self._journal, self._bodies)
        given_up += take_over(index, self._journal, self._bodies)
        self.report += [f"warning: {self._body_disk.directory}: {line}" for line in given_up]

    def keepsake(self) -> Keepsake:
        return self._journal.index.keepsake()

    def _write_index(self, segment: Segment) -> None:
        """A segment was closed: its index need not stay in memory when it is on the disk."""
        if segment.index is not None and write_index(self._disk, segment.index):
            segment.index = None

    def close(self) -> None:
        deadline = time.monotonic() + _CLOSE_S
        log, large = self._journal, self._bodies
        if self.log_view is not None:
            self.log_view.stop()
        while log.has_pending or large.has_pending:
            if log.failure is not None or large.failure is not None or time.monotonic() > deadline:
                break
            log.poll()
            log.seal()
            large.poll()
            large.seal(log.last_lsn, log.durable_lsn)
            time.sleep(0.001)
        log.finish()
        self._reader.stop()
        self._committer.stop()
        large.close()
        for disk in self._disks:
            disk.close()
        self._unlock()

    def _unlock(self) -> None:
        for lock in self._locks:
            lock.release()


class TransientStore(Store):
    """What a broker without persistence needs of a disk: pages and large bodies, in folders that go with its process.
    Where none can be made, everything stays in memory; that is said, and is no reason not to start.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        self._bodies = TransientBodies(config, wake)
        self.large = self._bodies.store
        self.report = list(self._bodies.report)
        self.pages = None
        self.log = MemoryLog()
        directory = Path(config.paging_directory)
        self._folder = TransientFolder(directory)
        self._threads: list[ThreadCommitter] = []
        if not may_be_made(directory):
            self.report.append(f"warning: {directory} cannot be made: nothing is paged, all messages stay in memory")
            return
        remove_leftovers(directory)
        self._threads = [ThreadCommitter(wake, "page writer"), ThreadCommitter(wake, "page reader")]
        pages = PageFiles(self._folder, self._threads[1], _say)
        self.pages = pages
        self.log = SpillLog(self._threads[0], pages)

    def keepsake(self) -> Keepsake:
        return Keepsake()

    def close(self) -> None:
        for thread in self._threads:
            thread.stop()
        self._folder.close()
        self._bodies.close()


def _locked(*directories: Path) -> list[DirectoryLock]:
    """Locks on directories, of which some may be the same. Raises LockedError or DiskError, and then none is locked."""
    locks: list[DirectoryLock] = []
    try:
        for directory in dict.fromkeys(directory.resolve() for directory in directories):
            locks.append(DirectoryLock(directory))
    except (LockedError, DiskError):
        for lock in locks:
            lock.release()
        raise
    return locks


def _journal_settings(config: BrokerConfig, number_min: int) -> JournalSettings:
    return JournalSettings(
        file_bytes=config.journal_file_size,
        compact_files_min=config.journal_compact_min_files,
        compact_percentage=config.journal_compact_percentage,
        sync_transactional=config.journal_sync_transactional,
        sync_non_transactional=config.journal_sync_non_transactional,
        duplicate_ids_kept=config.id_cache_size,
        retains=config.journal_retention is not None,
        files_min=config.journal_min_files,
        number_min=number_min,
        broker_name=config.name,
    )


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


def _is_crowded(config: BrokerConfig, directory: str) -> bool:
    """Is the disk with the retained log so full that nobody may hold anything of it back?"""
    return is_full(config, space_of(directory))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
