"""Retention: closed journal files move to a directory of their own instead of being deleted, and go by age and size.

A retained file's name tells its number and when it was written to for the last time, so that a listing sorts by both:
``artemis-journal-000000000012-20260131T235959.999Z.log``. Files go oldest first and only oldest first, so what is kept
has no holes. Large bodies are kept as long as a journal file that may speak of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.storage import codec
from artemis_py.storage.codec import Batch, CodecError
from artemis_py.storage.disk import Disk, DiskError
from artemis_py.storage.retained_bodies import RetainedBodies, move, shown_time
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
    """Keeps what the journal in ``journal_directory`` retires. ``bodies`` are kept with it and count for its limit.
    Every method may raise DiskError.
    """

    def __init__(
        self,
        disk: Disk,
        journal_directory: Path,
        settings: RetentionSettings,
        clock_ms: Callable[[], int] = wall_clock_ms,
        bodies: RetainedBodies | None = None,
    ) -> None:
        self._disk = disk
        self._journal_directory = journal_directory
        self._settings = settings
        self._clock_ms = clock_ms
        self._bodies = bodies
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
            move(source, self._directory / retained_name(name, closed_ms), _UNFINISHED)
        except OSError as error:
            raise self._failed(error) from None
        self._disk.delete(name)
        self.purge()

    def purge(self) -> None:
        """Delete what is too old, and the oldest of what is too much."""
        try:
            files = self._files()
            while files and self._is_too_old(files[0]):
                files.pop(0).path.unlink(missing_ok=True)
            self._purge_bodies(files)
            if self._settings.bytes_max is not None:
                self._purge_to(files, self._settings.bytes_max)
        except OSError as error:
            raise self._failed(error) from None

    def _is_too_old(self, file: LogFile) -> bool:
        period_ms = self._settings.period_ms
        return period_ms is not None and (file.closed_ms or 0) < self._clock_ms() - period_ms

    def _purge_to(self, files: list[LogFile], bytes_max: int) -> None:
        sizes = [file.path.stat().st_size for file in files]
        body_bytes = 0 if self._bodies is None else self._bodies.size_bytes
        while files and sum(sizes) + body_bytes > bytes_max:
            files.pop(0).path.unlink(missing_ok=True)
            sizes.pop(0)
            body_bytes = self._purge_bodies(files)
        if self._bodies is not None and body_bytes > bytes_max:
            self._bodies.purge_to(bytes_max)

    def _purge_bodies(self, files: list[LogFile]) -> int:
        """Delete bodies of which no file that is left can speak; returns what the others take."""
        if self._bodies is None:
            return 0
        if files:
            self._bodies.purge_before(_begun_ms(files[0]))
        elif self._settings.period_ms is not None:
            self._bodies.purge_before(self._clock_ms() - self._settings.period_ms)
        return self._bodies.size_bytes

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


def _begun_ms(file: LogFile) -> int:
    """When a file was begun; 0 when it does not say."""
    with file.path.open("rb") as stream:
        try:
            return codec.decode_file_header(stream.read(codec.FILE_HEADER_BYTES)).created_ms
        except CodecError:
            return 0


def retained_name(name: str, closed_ms: int) -> str:
    """The name that a segment gets when it is retained."""
    file = log_file(Path(name))
    if file is None:
        raise DiskError(f"{name} is not the name of a journal file")
    return f"{Path(name).stem}-{shown_time(closed_ms)}.log"
