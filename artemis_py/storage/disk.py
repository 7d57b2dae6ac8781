"""The disk, as storage sees it: few verbs, so that tests can put one in its place that forgets what was not synced."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Final

from artemis_py.errors import ArtemisError, StorageError
from artemis_py.storage.private import make_private, open_private
from artemis_py.storage.room import NO_SPACE, Room

_ZEROS: Final = bytes(1 << 20)
OPEN_FILES_MAX: Final = 64
_WITHOUT_END: Final = 1 << 62
_SECOND_NS: Final = 1_000_000_000
_TICK_NS, _COARSE_TICK_NS = 50_000_000, 3 * _SECOND_NS
"""Longer than the step of a file system's times; some count in seconds, FAT in two of them."""
_GONE: Final = "it was removed or replaced while the broker ran; put it back and start the broker again"


class DiskError(StorageError):
    """The disk did not do what it was asked: no space, an I/O error, a failed sync. Nothing is retried."""


class NoSpaceError(DiskError):
    """There is no room for more bytes, or a quota does not allow them. Nothing that was there has suffered."""


class LockedError(ArtemisError):
    """Another broker uses the data directory."""


def no_room_or(error: OSError, path: object) -> DiskError:
    """What went wrong with a file: NoSpaceError for want of room, DiskError otherwise."""
    kind = NoSpaceError if error.errno in NO_SPACE else DiskError
    return kind(f"{path}: {error.strerror or error}")


class Disk(ABC):
    """One directory of files. Every method may raise DiskError, and NoSpaceError where a file grows; a file that found
    no room is as long as before.
    """

    @property
    def has_room(self) -> bool:
        """May files be made that could also be made later? False while nothing but what must not fail is written."""
        return True

    @property
    def left_bytes(self) -> int:
        """What can still be written, the reserve for a full disk counted."""
        return _WITHOUT_END

    @abstractmethod
    def confirm(self, name: str) -> None:
        """Make sure that a file that was written to is still where others will look for it: what is durable in a file
        that somebody removed, or in a directory that was replaced, is lost all the same.
        """

    @abstractmethod
    def create(self, name: str, size: int) -> None:
        """Make a file of zeros that survives a crash (its content and its name)."""

    @abstractmethod
    def begin(self, name: str) -> None:
        """Make an empty file to be written piece by piece; it survives a crash (its name, too) only after ``sync``."""

    @abstractmethod
    def finish(self, name: str) -> None:
        """Nothing more will be written to the file."""

    @abstractmethod
    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of ``data``; it may be lost or torn until ``sync``."""

    @abstractmethod
    def sync(self, name: str) -> None:
        """Make everything written to the file durable. Never raises NoSpaceError: after a sync that failed nobody knows
        what of it is there.
        """

    @abstractmethod
    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """The file from ``offset`` on, at most ``size`` bytes (-1: all)."""

    @abstractmethod
    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, durably."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file, durably enough: a deleted file that comes back does no harm."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files, sorted."""


class FileDisk(Disk):
    """A real directory. The files written to last stay open, no more than ``open_files_max``; ``close`` closes them.
    With ``is_made`` false the directory need not be there.

    ``room`` is told when files grow. Where that finds no room, writing to a file that is there takes it from the
    reserve, if this directory ``draws`` on it, and then from whatever nobody waits for, until there is enough or
    nothing left. So do names of files and files made without a size; what is made ahead, of a size, takes nothing.
    """

    def __init__(
        self, directory: Path, *, data_only: bool = True, is_made: bool = True, open_files_max: int = OPEN_FILES_MAX
    ) -> None:
        self.directory = directory
        self._path = str(directory)
        self.room: Room | None = None
        self.draws = False
        self._sync = os.fdatasync if data_only else os.fsync
        self._open_files_max = open_files_max
        self._descriptors: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        """Of the open files, what they have room for."""
        self._nameless: set[str] = set()
        """Files whose names a crash would lose."""
        self._identity: tuple[int, int] | None = None
        self._identities: dict[str, tuple[int, int]] = {}
        """Which files the open ones are."""
        self._confirmed = ""
        self._unchanged: set[str] = set()
        """Files confirmed since the names in the directory changed last, at ``_as_of_ns``."""
        self._as_of_ns = -1
        try:
            if is_made:
                make_private(directory)
                self._identity = _identity(os.stat(directory))
        except OSError as error:
            raise DiskError(f"{directory}: {error.strerror}") from None

    @property
    def open_files(self) -> int:
        """How many files are open now."""
        return len(self._descriptors)

    @property
    def has_room(self) -> bool:
        return self.room is None or not self.room.is_short

    @property
    def left_bytes(self) -> int:
        return _WITHOUT_END if self.room is None else self.room.left_bytes

    def _descriptor(self, name: str, *, is_new: bool = False) -> int:
        """Raises OSError; a file that nobody made is not there, and is not made by the way."""
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            self._descriptors[name] = descriptor  # the last to go: another thread may open files while this one writes
        else:
            descriptor = open_private(self.directory / name, os.O_RDWR | (os.O_CREAT if is_new else 0))
            try:
                found = os.fstat(descriptor)
            except OSError:
                os.close(descriptor)
                raise
            if len(self._descriptors) >= self._open_files_max:
                oldest = list(self._descriptors)[0]  # noqa: RUF015 - one step: another thread may delete a file
                self._close(oldest)
            self._descriptors[name] = descriptor
            self._sizes[name] = found.st_size
            self._identities[name] = _identity(found)
        return descriptor

    def _close(self, name: str) -> None:
        descriptor = self._descriptors.pop(name, None)
        self._sizes.pop(name, None)
        self._identities.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _failed(self, name: str, error: OSError) -> DiskError:
        if error.errno in NO_SPACE and self.room is not None:
            self.room.ran_out()
        return no_room_or(error, self.directory / name)

    def _failed_change(self, name: str, error: OSError) -> DiskError:
        """The same, where what is not there has to be there."""
        if error.errno == errno.ENOENT:
            return DiskError(f"{self.directory / name}: {error.strerror}: {_GONE}")
        return self._failed(name, error)

    def create(self, name: str, size: int) -> None:
        while True:
            try:
                self._create(name, size)
            except OSError as error:
                if size or not self._finds_room(error, 1):
                    raise self._failed_change(name, error) from None
            else:
                return

    def _create(self, name: str, size: int) -> None:
        """Raises OSError, and then there is no such file."""
        descriptor = self._made(name)
        try:
            if size:
                self._fill(name, descriptor, size)
            os.fsync(descriptor)
            sync_directory(self.directory)
        except OSError:
            self._close(name)
            with suppress(OSError):
                os.unlink(self.directory / name)
            raise

    def _made(self, name: str) -> int:
        """A file that is there. A name needs room, too. Raises OSError."""
        while True:
            try:
                return self._descriptor(name, is_new=True)
            except OSError as error:
                if not self._finds_room(error, 1):
                    raise

    def _fill(self, name: str, descriptor: int, size: int) -> None:
        """Zeros, of which none comes from the reserve. Raises OSError."""
        if self.room is not None:
            self.room.grew(size)
        offset = 0
        while offset < size:
            offset += os.pwrite(descriptor, _ZEROS[: min(len(_ZEROS), size - offset)], offset)
        self._sizes[name] = max(self._sizes[name], size)

    def _finds_room(self, error: OSError, size_bytes: int) -> bool:
        """Did a write fail for want of room only, and was something given up for it? Others may have taken it."""
        if error.errno not in NO_SPACE or self.room is None or not self.draws:
            return False
        return self.room.give(size_bytes)

    def begin(self, name: str) -> None:
        try:
            os.ftruncate(self._made(name), 0)
        except OSError as error:
            raise self._failed_change(name, error) from None
        self._sizes[name] = 0
        self._nameless.add(name)

    def finish(self, name: str) -> None:
        self._nameless.discard(name)
        self._close(name)

    def write(self, name: str, offset: int, data: bytes) -> None:
        try:
            descriptor = self._descriptor(name)
            size = self._sizes[name]
            end = offset + len(data)
            if end > size and self.room is not None:
                self.room.grew(end - max(size, offset))
            try:
                self._write_all(name, descriptor, offset, data)
            except OSError as error:
                if end > size and error.errno in NO_SPACE:
                    os.ftruncate(descriptor, size)
                raise
            self._sizes[name] = max(size, end)
        except OSError as error:
            raise self._failed_change(name, error) from None

    def _write_all(self, name: str, descriptor: int, offset: int, data: bytes) -> None:
        """Raises OSError."""
        written = 0
        while written < len(data):
            try:
                more = os.pwrite(descriptor, data[written:] if written else data, offset + written)
            except OSError as error:
                if not self._finds_room(error, len(data) - written):
                    raise
                continue
            if more == 0:
                raise DiskError(f"{self.directory / name}: no more data can be written")
            written += more

    def sync(self, name: str) -> None:
        try:
            self._sync(self._descriptor(name))
            if name in self._nameless:
                sync_directory(self.directory)
                self._nameless.discard(name)
        except OSError as error:  # for want of room, too: what was written may be gone, so nothing can be tried again
            raise DiskError(f"{self.directory / name}: {error.strerror or error}") from None

    def confirm(self, name: str) -> None:
        # Only the directory is looked at while no name in it changes. A file whose times somebody asked for gets finer
        # ones at its next write (Linux 6.13), and its next sync has to write these: half as dear again.
        self._confirmed = name
        changed_ns = self._changed_ns()
        if changed_ns != self._as_of_ns:
            self._as_of_ns = changed_ns
            self._unchanged.clear()
        if name in self._unchanged:
            return
        self._confirm_file(name)
        tick_ns = _TICK_NS if changed_ns % _SECOND_NS else _COARSE_TICK_NS
        if abs(time.time_ns() - changed_ns) > tick_ns:  # else another change may have the time of this one
            self._unchanged.add(name)

    def _confirm_file(self, name: str) -> None:
        path = f"{self._path}/{name}"
        try:
            if name not in self._identities:
                self._descriptor(name)
            is_there = _identity(os.stat(path)) == self._identities[name]
        except OSError as error:
            raise DiskError(f"{path}: {error.strerror}: {_GONE}") from None
        if not is_there:
            raise DiskError(f"{path}: another file is in its place: {_GONE}")

    def confirm_again(self) -> None:
        """The same of the file confirmed last, whatever its directory says, or of the directory alone: for times when
        nothing is written.
        """
        self.confirm_directory()
        if self._confirmed in self._descriptors:
            self._confirm_file(self._confirmed)

    def confirm_directory(self) -> None:
        """Make sure that the directory is the one that it was."""
        if self._identity is not None:
            self._changed_ns()

    def _changed_ns(self) -> int:
        """When a name in the directory changed last."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise DiskError(f"{self.directory}: {error.strerror}: {_GONE}") from None
        if self._identity is not None and (found.st_dev, found.st_ino) != self._identity:
            raise DiskError(f"{self.directory}: another directory is in its place: {_GONE}")
        return found.st_mtime_ns

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        try:
            with (self.directory / name).open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise self._failed(name, error) from None

    def rename(self, name: str, new_name: str) -> None:
        try:
            self._rename(name, new_name)
            descriptor = self._descriptors.pop(name, None)
            size = self._sizes.pop(name, 0)
            if descriptor is not None:
                self._descriptors[new_name] = descriptor
                self._sizes[new_name] = size
                self._identities[new_name] = self._identities.pop(name)
            sync_directory(self.directory)
        except OSError as error:
            raise self._failed_change(name, error) from None

    def _rename(self, name: str, new_name: str) -> None:
        """The other name may need room. Raises OSError."""
        while True:
            try:
                os.rename(self.directory / name, self.directory / new_name)
            except OSError as error:
                if not self._finds_room(error, 1):
                    raise
            else:
                return

    def delete(self, name: str) -> None:
        self.finish(name)
        try:
            (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(name, error) from None
        if self.room is not None:
            self.room.shrank()

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self.directory) if entry.is_file())
        except OSError as error:
            raise self._failed("", error) from None

    def close(self) -> None:
        """Close every file."""
        for name in list(self._descriptors):
            self._close(name)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


class DirectoryLock:
    """Keeps a second broker out of a data directory. The operating system lets go of it when the process ends.

    Two things are locked: the file ``server.lock``, which tells who has the directory, and the directory itself, which
    nobody can replace unnoticed. Raises LockedError when another one has it, DiskError when the directory cannot be
    written to.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "server.lock"
        self._directory = directory
        self._held: list[int] = []
        try:
            self._lock_directory()
            self._lock_file()
        except OSError as error:
            self.release()
            raise DiskError(f"{self._path}: {error.strerror or error}") from None
        except BaseException:
            self.release()
            raise

    def _lock_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._taken() from None
        except OSError:  # some network file systems lock no directories: then the file has to do
            self._held.remove(descriptor)
            os.close(descriptor)

    def _lock_file(self) -> None:
        self._file = open_private(self._path, os.O_RDWR | os.O_CREAT)
        self._held.append(self._file)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # the latter from network file systems
            raise self._taken() from None
        with suppress(OSError):  # a disk that is full is no reason not to start
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def _taken(self) -> LockedError:
        holder = ""
        with suppress(OSError):
            holder = self._path.read_bytes()[:32].decode(errors="replace").strip()
        who = f" (process {holder})" if holder else ""
        return LockedError(f"{self._directory} is in use by another broker{who}")

    def confirm(self) -> None:
        """Make sure that the lock file is the one that is locked. Raises DiskError."""
        try:
            is_there = _identity(os.stat(self._path)) == _identity(os.fstat(self._file))
        except OSError as error:
            raise DiskError(f"{self._path}: {error.strerror}: {_GONE}") from None
        if not is_there:
            raise DiskError(f"{self._path}: another file is in its place: {_GONE}")

    def release(self) -> None:
        """Let others in."""
        while self._held:
            os.close(self._held.pop())
