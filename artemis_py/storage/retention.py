"""Retention: closed journal files move to a directory of their own instead of being deleted, and go by age and size.

A retained file's name tells its number and when it was written to for the last time, so that a listing sorts by both:
``artemis-journal-000000000012-20260131T235959.999Z.log``. Files go oldest first and only oldest first, so what is kept
has no holes.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artemis_py.storage import codec
from artemis_py.storage.codec import Batch
from artemis_py.storage.disk import Disk, DiskError
from artemis_py.storage.scan import Damage, LogFile, log_file, log_files, whole_records

_UNFINISHED: Final = ".part"


def wall_clock_ms() -> int:
    """The time of day in epoch milliseconds."""
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """``journal-retention-directory`` with ``period`` and ``storage-limit``; None: no such limit."""

    directory: Path
    period_ms: int | None
    bytes_max: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the retained log goes: a journal that starts anew begins behind it, so that no number is given twice."""

    number: int
    lsn: int
    batch: Batch


class Retention:
    """Keeps what the journal in ``journal_directory`` retires. Every method may raise DiskError."""

    def __init__(
        self,
        disk: Disk,
        journal_directory: Path,
        settings: RetentionSettings,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._disk = disk
        self._journal_directory = journal_directory
        self._settings = settings
        self._clock_ms = clock_ms
        self._directory = settings.directory
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for path in self._directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
        except OSError as error:
            raise self._failed(error) from None
        self.purge()

    def retire(self, name: str) -> None:
        """Take over a segment that the journal needs no longer."""
        source = self._journal_directory / name
        try:
            closed_ms = source.stat().st_mtime_ns // 1_000_000
            self._move(source, self._directory / retained_name(name, closed_ms))
        except OSError as error:
            raise self._failed(error) from None
        self._disk.delete(name)
        self.purge()

    def _move(self, source: Path, target: Path) -> None:
        """Rename, or copy when the target is on another file system. A crash in between leaves both, which is harmless:
        the segment is retired again.
        """
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            unfinished = target.with_name(target.name + _UNFINISHED)
            shutil.copyfile(source, unfinished)
            _sync(unfinished)
            os.rename(unfinished, target)
        _sync(self._directory)

    def purge(self) -> None:
        """Delete what is too old, and the oldest of what is too much."""
        try:
            files = self._files()
            while files and self._is_too_old(files[0]):
                files.pop(0).path.unlink(missing_ok=True)
            if self._settings.bytes_max is not None:
                self._purge_to(files, self._settings.bytes_max)
        except OSError as error:
            raise self._failed(error) from None

    def _is_too_old(self, file: LogFile) -> bool:
        period_ms = self._settings.period_ms
        return period_ms is not None and (file.closed_ms or 0) < self._clock_ms() - period_ms

    def _purge_to(self, files: list[LogFile], bytes_max: int) -> None:
        sizes = [file.path.stat().st_size for file in files]
        total = sum(sizes)
        for file, size in zip(files, sizes, strict=True):
            if total <= bytes_max:
                return
            file.path.unlink(missing_ok=True)
            total -= size

    def mark(self) -> Mark | None:
        """How far the retained files go; None when there are none."""
        try:
            files = self._files()
            if not files:
                return None
            data = files[-1].path.read_bytes()
        except OSError as error:
            raise self._failed(error) from None
        lsn, batch = 0, Batch(0, 0, 0, 0)
        damages: list[Damage] = []
        for record in whole_records(files[-1].path.name, data, damages, is_last=False):
            lsn = max(lsn, record.lsn)
            if record.type_code == codec.BATCH:
                batch = codec.decode_batch(record.payload)
        return Mark(files[-1].number, lsn, batch)

    def _files(self) -> list[LogFile]:
        return [file for file in log_files([self._directory]) if file.closed_ms is not None]

    def _failed(self, error: OSError) -> DiskError:
        return DiskError(f"{error.filename or self._directory}: {error.strerror or error}")


def retained_name(name: str, closed_ms: int) -> str:
    """The name that a segment gets when it is retained."""
    file = log_file(Path(name))
    if file is None:
        raise DiskError(f"{name} is not the name of a journal file")
    whole, part = divmod(closed_ms, 1000)
    return f"{Path(name).stem}-{datetime.fromtimestamp(whole, UTC):%Y%m%dT%H%M%S}.{part:03}Z.log"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
