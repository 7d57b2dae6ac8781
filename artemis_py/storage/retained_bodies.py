"""Large bodies that the retained log speaks of: they move to a folder of their own when no queue needs them any more.

A retained body's name ends with the time of the move: ``0000000100000002-20260131T235959.999Z.body``. Whatever record
speaks of it was written before that time.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artemis_py.storage.body_names import RETAINED_FOLDER, read_name, start_of
from artemis_py.storage.disk import Disk, DiskError

_UNFINISHED: Final = ".part"


class RetainedBodies:
    """Keeps bodies of ``body_directory`` below the directory of the retained log. Every method may raise DiskError."""

    def __init__(self, disk: Disk, body_directory: Path, log_directory: Path, clock_ms: Callable[[], int]) -> None:
        self._disk = disk
        self._body_directory = body_directory
        self._directory = log_directory / RETAINED_FOLDER
        self._clock_ms = clock_ms
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for path in self._directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
        except OSError as error:
            raise self._failed(error) from None

    def retire(self, name: str) -> None:
        """Take over a body that nothing but the log needs."""
        stem, dot, kind = name.partition(".")
        target = self._directory / f"{stem}-{shown_time(self._clock_ms())}{dot}{kind}"
        try:
            move(self._body_directory / name, target, _UNFINISHED)
        except OSError as error:
            raise self._failed(error) from None
        self._disk.delete(name)

    @property
    def start_min(self) -> int:
        """The lowest start whose numbers no retained body has."""
        return max((start_of(path.name) or 0 for path in self._paths()), default=0) + 1

    @property
    def size_bytes(self) -> int:
        """What all of them take."""
        return sum(path.stat().st_size for path in self._paths())

    def purge_before(self, time_ms: int) -> None:
        """Delete those that were retired before a time."""
        limit = shown_time(time_ms)
        for path in self._paths():
            if _retired(path) < limit:
                path.unlink(missing_ok=True)

    def purge_to(self, bytes_max: int) -> None:
        """Delete the oldest until the others are no more than this."""
        paths = self._paths()
        total = self.size_bytes
        while total > bytes_max:
            total -= paths[0].stat().st_size
            paths.pop(0).unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        """All of them, oldest first."""
        return sorted((path for path in self._directory.iterdir() if _retired(path)), key=_retired)

    def _failed(self, error: OSError) -> DiskError:
        return DiskError(f"{error.filename or self._directory}: {error.strerror or error}")


def _retired(path: Path) -> str:
    """When it was retired, as text that sorts; empty for other files."""
    body = read_name(path.name)
    return "" if body is None else body.retired or ""


def shown_time(time_ms: int) -> str:
    """A time as names of files tell it: 20260131T235959.999Z."""
    whole, part = divmod(max(time_ms, 0), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y%m%dT%H%M%S}.{part:03}Z"


def move(source: Path, target: Path, unfinished_suffix: str) -> None:
    """Rename durably, or copy when the target is on another file system. A crash in between leaves both, which is
    harmless: the file is moved again. Raises OSError.
    """
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        unfinished = target.with_name(target.name + unfinished_suffix)
        shutil.copyfile(source, unfinished)
        _sync(unfinished)
        os.rename(unfinished, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
