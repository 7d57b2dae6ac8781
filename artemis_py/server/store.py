"""The broker's files: opening them at a start, with everything they give back, and closing them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.records import Keepsake
from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.disk import DirectoryLock, DiskError, FileDisk
from artemis_py.storage.journal import Journal, JournalSettings
from artemis_py.storage.recovery import Recovered, recover
from artemis_py.storage.retention import Retention, RetentionSettings

_PROGRESS_AFTER_S: Final = 1.0


class Store:
    """A data directory in use; one broker at a time may have it.

    Raises DiskError or LockedError when it cannot be opened.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None]) -> None:
        directory = Path(config.journal_directory)
        if not config.create_journal_dir and not directory.is_dir():
            raise DiskError(f"{directory} does not exist, and create-journal-dir is false")
        self.disk = FileDisk(directory, data_only=config.journal_datasync)
        self._lock = DirectoryLock(directory)
        try:
            recovered = recover(self.disk, _Progress())
        except BaseException:
            self._lock.release()
            raise
        try:
            retention = _retention(config, self.disk, directory)
            number_min = 1 if retention is None else _begin_behind(recovered, retention)
        except BaseException:
            self._lock.release()
            raise
        self.report = _report(recovered, directory)
        self.keepsake: Keepsake = recovered.index.keepsake()
        self._committer = ThreadCommitter(wake)
        settings = JournalSettings(
            file_bytes=config.journal_file_size,
            compact_files_min=config.journal_compact_min_files,
            compact_percentage=config.journal_compact_percentage,
            sync_transactional=config.journal_sync_transactional,
            sync_non_transactional=config.journal_sync_non_transactional,
            duplicate_ids_kept=config.id_cache_size,
            retains=retention is not None,
            number_min=number_min,
        )
        self.log = Journal(
            self.disk,
            self._committer,
            settings,
            recovered.index,
            recovered.segments,
            recovered.next_lsn,
            recovered.batch_number,
            self.disk.delete if retention is None else retention.retire,
            None if retention is None else retention.purge,
        )

    def close(self) -> None:
        """Make durable what is gathered, and let the directory go."""
        deadline = time.monotonic() + 10.0
        while self.log.has_pending and self.log.failure is None and time.monotonic() < deadline:
            self.log.poll()
            self.log.seal()
            time.sleep(0.001)
        self._committer.stop()
        self.disk.close()
        self._lock.release()


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
        lines.append(
            f"recovered {len(recovered.index.home)} messages from {recovered.record_count} records in"
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
