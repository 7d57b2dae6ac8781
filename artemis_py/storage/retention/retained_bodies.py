"""Large bodies of the retained log."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artemis_py.log_codes import STORAGE
from artemis_py.storage.bodies import RetiredBodies
from artemis_py.storage.disk.disk import Disk, DiskError, no_room_or
from artemis_py.storage.disk.permissions import begin_private, make_private
from artemis_py.storage.format import records
from artemis_py.storage.format.names import RETAINED_FOLDER, read_name, start_of
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.scan import is_log_name
from artemis_py.terminal_output import warn

# ---- directory stamp -------------------------------------------------------------------------------------------------
#
# Detects whether others added or removed files, so that our own directory need not be listed again. A listing is
# slow: a day of traffic can be ten thousand files. A file system stamps a directory with the time of its last change.
# A change by others at the moment of one of our own is not detected, so a remembered listing may name a file that is
# gone.


class DirectoryStamp:
    """The last known change. Both methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed_ns = -1

    def is_foreign(self) -> bool:
        """Has the directory changed since ``note``? True at first."""
        return self._directory.stat().st_mtime_ns != self._changed_ns

    def note(self) -> None:
        """All changes so far were ours, or have been listed."""
        self._changed_ns = self._directory.stat().st_mtime_ns


# ---- retained bodies -------------------------------------------------------------------------------------------------
#
# Large bodies of the retained log: they move to their own folder when no queue needs them any more. A retained body's
# name ends with the time of the move: ``0000000100000002-20260131T235959.999Z.body``. Every record that refers to it
# is in a segment that existed by then. Clocks are set back, so the time is never before the beginning of the newest
# segment: that one stays as long as any with such a record. The bodies are remembered, so adding one costs the same
# however many there are.


_UNFINISHED: Final = ".part"


@dataclass(frozen=True, slots=True, order=True)
class _Body:
    """A retained body. Bodies sort by the time of retirement, which is in the name as text."""

    retired: str
    path: Path
    size_bytes: int
    number: int


class RetainedBodies(RetiredBodies):
    """Keeps bodies of ``body_directory``, which records in ``journal_directory`` refer to, below the directory of the
    retained log. The thread that writes bodies retires them; the journal's thread purges them. Every method may raise
    DiskError.

    Any thread may hold a body. While it is held, it is removed only from a full disk.
    """

    def __init__(
        self,
        disk: Disk,
        body_directory: Path,
        journal_directory: Path,
        log_directory: Path,
        clock_ms: Callable[[], int],
    ) -> None:
        self._disk = disk
        self._body_directory = body_directory
        self._journal_directory = journal_directory
        self._directory = log_directory / RETAINED_FOLDER
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._kept: list[_Body] = []
        self._kept_bytes = 0
        self._by_number: dict[int, _Body] = {}
        self._holders: dict[int, int] = {}
        self._moving: dict[int, Path] = {}
        """Bodies that are being taken over: they are still where they were, or here already."""
        self._lsns: dict[int, int] = {}
        """Up to where every record is that refers to a body; of those missing here, up to ``_first_lsn``."""
        self._first_lsn = 0
        """The first lsn that was given since the start; 0: none yet."""
        self._hold_lock = threading.Lock()
        """For what begins with ``_by_number``. Nobody works on files while having it."""
        self._stamp = DirectoryStamp(self._directory)
        try:
            make_private(self._directory)
            for path in self._directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
        except OSError as error:
            raise self._failed(error) from None

    def retire(self, name: str, lsn: int) -> None:
        """Take over a body that only the log needs, in records up to an lsn (0: unknown). If it is gone, that is
        reported, but no message needs it.
        """
        source = self._body_directory / name
        if self._body_directory.is_dir() and not source.exists():
            warn(f"warning: {source} was removed by someone else and is not retained", STORAGE)
            return
        stem, dot, kind = name.partition(".")
        with self._listed():
            moved_ms = max(self._clock_ms(), self._newest_begun_ms())
        target = self._directory / f"{stem}-{shown_time(moved_ms)}{dot}{kind}"
        body_file = read_name(name)
        number = 0 if body_file is None else body_file.number
        with self._hold_lock:
            self._moving[number] = target
            if lsn:
                self._lsns[number] = lsn
                self._first_lsn = self._first_lsn or lsn
        try:
            move(source, target, _UNFINISHED)  # a copy may take long, but nothing waits for it
            self._add(target)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            with self._hold_lock:
                del self._moving[number]
        self._disk.delete(name)

    def _newest_begun_ms(self) -> int:
        """When the newest segment was begun whose header can be read: the journal may just be making one."""
        for directory in (self._journal_directory, self._directory.parent):
            for name in sorted(filter(is_log_name, os.listdir(directory)), reverse=True):
                begun = begun_ms(directory / name)
                if begun:
                    return begun
        return 0

    def _add(self, path: Path) -> None:
        """Add a body. The other thread may have listed it already."""
        body = _body(path)
        assert body is not None
        with self._lock:
            self._stamp.note()
            place = bisect_left(self._kept, body)
            if self._kept[place : place + 1] != [body]:
                self._kept.insert(place, body)
                self._kept_bytes += body.size_bytes
                with self._hold_lock:
                    self._by_number[body.number] = body

    # ---- holders ---------------------------------------------------------------------------------

    def hold_if_known(self, number: int) -> bool:
        with self._hold_lock:
            if number not in self._by_number:
                return False
            self._holders[number] = self._holders.get(number, 0) + 1
        return True

    def is_whole(self, number: int, size_bytes: int) -> bool:
        with self._listed(), self._hold_lock:
            body = self._by_number.get(number)
        return body is not None and body.size_bytes >= size_bytes

    def hold(self, number: int, size_bytes: int) -> None:
        """Add a holder of a body that is here or on its way."""
        with self._hold_lock:
            self._holders[number] = self._holders.get(number, 0) + 1

    def release(self, number: int) -> None:
        with self._hold_lock:
            left = self._holders[number] - 1
            if left:
                self._holders[number] = left
            else:
                del self._holders[number]

    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        with self._hold_lock:
            body = self._by_number.get(number)
            path = self._moving.get(number) if body is None else body.path
        if path is None:
            raise DiskError(f"the body {number:016x} was removed from the retained log")
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(size_bytes)
        except OSError as error:
            raise self._failed(error) from None

    # ---- removal ---------------------------------------------------------------------------------

    @property
    def start_min(self) -> int:
        """The lowest start number above those of all retained bodies."""
        with self._listed() as kept:
            return max((start_of(body.path.name) or 0 for body in kept), default=0) + 1

    @property
    def size_bytes(self) -> int:
        """The size of all bodies."""
        with self._listed():
            return self._kept_bytes

    def purge_before(self, time_ms: int, held_from: int | None = None) -> None:
        """Delete bodies retired before a time, but none that a record may need from the lsn ``held_from`` on."""
        limit = shown_time(time_ms)
        with self._listed() as kept:
            place = 0
            while place < len(kept) and kept[place].retired < limit:
                place += not self._remove(place, held_from)

    def purge_to(self, bytes_max: int, held_from: int | None = None) -> None:
        """Delete the oldest until the rest is no larger than this, but none that a record may need from the lsn
        ``held_from`` on.
        """
        with self._listed() as kept:
            place = 0
            while place < len(kept) and self._kept_bytes > bytes_max:
                place += not self._remove(place, held_from)

    def give_up_oldest(self) -> str | None:
        """Delete the oldest to free its room; returns its name, or None if there is none."""
        with self._listed() as kept:
            if not kept:
                return None
            name = kept[0].path.name
            self._remove(0, None, even_if_held=True)
            sync_directory(self._directory)
        return name

    def _remove(self, place: int, held_from: int | None, *, even_if_held: bool = False) -> bool:
        """Delete a body, unless somebody holds it; returns whether it is gone."""
        body = self._kept[place]
        with self._hold_lock:
            if body.number in self._holders and not even_if_held:
                return False
            last_lsn = self._lsns.get(body.number, self._first_lsn)
            if held_from is not None and not 0 < last_lsn < held_from:
                return False
            self._by_number.pop(body.number, None)
            self._lsns.pop(body.number, None)
        del self._kept[place]
        self._kept_bytes -= body.size_bytes
        body.path.unlink(missing_ok=True)
        self._stamp.note()
        return True

    @contextmanager
    def _listed(self) -> Iterator[list[_Body]]:
        """All bodies, oldest first, for one thread; the directory is listed again if others changed it."""
        try:
            with self._lock:
                if self._stamp.is_foreign():
                    self._stamp.note()  # before the listing, so that later changes are noticed
                    self._kept = sorted(filter(None, map(_body, self._directory.iterdir())))
                    self._kept_bytes = sum(body.size_bytes for body in self._kept)
                    with self._hold_lock:
                        self._by_number = {body.number: body for body in self._kept}
                yield self._kept
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> DiskError:
        return no_room_or(error, error.filename or self._directory)


def _body(path: Path) -> _Body | None:
    """None for other files."""
    name = read_name(path.name)
    if name is None or name.retired is None:
        return None
    return _Body(name.retired, path, path.stat().st_size, name.number)


def begun_ms(path: Path) -> int:
    """When a segment was begun, by its header; 0 if that is damaged, or the file is gone. Raises OSError."""
    try:
        with path.open("rb", buffering=0) as stream:
            return records.decode_file_header(stream.read(records.FILE_HEADER_BYTES)).created_ms
    except (CodecError, FileNotFoundError):
        return 0


def shown_time(time_ms: int) -> str:
    """A time as in file names: 20260131T235959.999Z."""
    whole, part = divmod(max(time_ms, 0), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y%m%dT%H%M%S}.{part:03}Z"


def move(source: Path, target: Path, unfinished_suffix: str) -> None:
    """Rename durably, or copy if the target is on another file system. A crash in between leaves both, which is
    harmless: the file is moved again. Raises OSError.
    """
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        unfinished = target.with_name(target.name + unfinished_suffix)
        try:
            begin_private(unfinished)
            shutil.copyfile(source, unfinished)
            sync_directory(unfinished)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        os.rename(unfinished, target)
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory (or the content of a file) durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
