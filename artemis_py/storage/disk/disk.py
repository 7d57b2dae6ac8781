"""The disk as storage sees it: few operations, so that tests can replace it by one that forgets unsynced data.

In quarantine are files that were put aside because they are damaged or apparently unneeded. They are for people: no
broker reads or removes them, and none overwrites another.
"""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.atomic_files import sync_path
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.storage.disk.permissions import make_private, open_private
from artemis_py.storage.disk.space import NO_SPACE, SpaceReserve

_ZEROS: Final = bytes(1 << 20)
OPEN_FILES_MAX: Final = 64
_WITHOUT_END: Final = 1 << 62
_SECOND_NS: Final = 1_000_000_000
_TICK_NS, _COARSE_TICK_NS = 50_000_000, 3 * _SECOND_NS
"""Longer than the resolution of file times; some file systems count in seconds, FAT in two seconds."""
GONE: Final = "it was removed or replaced while the broker ran; put it back and start the broker again"
"""The end of a sentence about a file or directory."""


class DiskError(StorageError):
    """The disk failed: no space, an I/O error, a failed sync. Nothing is retried."""


class NoSpaceError(DiskError):
    """There is no room for more bytes, or a quota forbids them. Existing data is intact."""


class LockedError(ArtemisError):
    """Another broker uses the data directory."""


def no_room_or(error: OSError, path: object) -> DiskError:
    """The failure of a file operation: NoSpaceError if there was no room, DiskError otherwise."""
    kind = NoSpaceError if error.errno in NO_SPACE else DiskError
    return kind(f"{path}: {error.strerror or error}")


@mypyc_attr(allow_interpreted_subclasses=True)
class Disk(ABC):
    """One directory of files. Every method may raise DiskError, and NoSpaceError if a file grows; a file without room
    keeps its length.
    """

    @property
    def has_room(self) -> bool:
        """May files be created that could also be created later? False while only writes that must not fail are
        allowed.
        """
        return True

    @property
    def left_bytes(self) -> int:
        """How many bytes can still be written, including the reserve for a full disk."""
        return _WITHOUT_END

    @abstractmethod
    def confirm(self, name: str) -> None:
        """Check that a written file still has its name: data in a removed file, or in a replaced directory, is lost
        even if it was synced. Raises DiskError.
        """

    @abstractmethod
    def create(self, name: str, size: int) -> None:
        """Create a file of zeros whose content and name survive a crash."""

    @abstractmethod
    def begin(self, name: str) -> None:
        """Create an empty file to be written piece by piece; it and its name survive a crash only after ``sync``."""

    @abstractmethod
    def finish(self, name: str) -> None:
        """Nothing more will be written to the file."""

    @abstractmethod
    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of ``data``; it may be lost or torn until ``sync``."""

    @abstractmethod
    def sync(self, name: str) -> None:
        """Make everything written to the file durable. Never raises NoSpaceError: after a failed sync it is unknown
        what was stored.
        """

    @abstractmethod
    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """The file from ``offset`` on, at most ``size`` bytes (-1: all)."""

    def descriptor(self, name: str) -> int:
        """A descriptor of the file for whoever reads it by himself, and closes it. Raises DiskError."""
        raise DiskError(f"{name} is on a disk without descriptors")

    @abstractmethod
    def rename(self, name: str, new_name: str) -> None:
        """Rename a file, durably."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file, durably enough: a deleted file that reappears does no harm."""

    @abstractmethod
    def sync_names(self) -> None:
        """Make deletions durable."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files, sorted."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FileDisk(Disk):
    """A real directory. At most ``open_files_max`` recently written files stay open; ``close`` closes them. If
    ``is_made`` is false, the directory need not exist.

    ``room`` learns when files grow. Without room, a write to an existing file uses the reserve, if this directory
    ``draws`` on it, and then removes files that nothing waits for, until there is enough or nothing left. New names and
    files created without a size do the same; files created ahead with a size do not.
    """

    def __init__(
        self, directory: Path, *, data_only: bool = True, is_made: bool = True, open_files_max: int = OPEN_FILES_MAX
    ) -> None:
        self.directory = directory
        self._path = str(directory)
        self.reserve: SpaceReserve | None = None
        self.draws = False
        self._sync = os.fdatasync if data_only else os.fsync
        self._open_files_max = open_files_max
        self._descriptors: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        """The allocated sizes of the open files."""
        self._nameless: set[str] = set()
        """Files whose names a crash would lose."""
        self._identity: tuple[int, int] | None = None
        self._identities: dict[str, tuple[int, int]] = {}
        """The identities of the open files."""
        self._confirmed = ""
        self._unchanged: set[str] = set()
        """Files confirmed since the last change of a name in the directory, at ``_as_of_ns``."""
        self._as_of_ns = -1
        try:
            if is_made:
                make_private(directory)
                self._identity = identity_of(os.stat(directory))
        except OSError as error:
            raise DiskError(f"{directory}: {error.strerror}") from None

    @property
    def open_files(self) -> int:
        """How many files are open now."""
        return len(self._descriptors)

    @property
    def has_room(self) -> bool:
        return self.reserve is None or not self.reserve.is_short

    @property
    def left_bytes(self) -> int:
        return _WITHOUT_END if self.reserve is None else self.reserve.left_bytes

    def _descriptor(self, name: str, *, is_new: bool = False) -> int:
        """Raises OSError; a file that was not created is missing and is not created implicitly."""
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            self._descriptors[name] = descriptor  # removed last: another thread may open files while this one writes
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
            self._identities[name] = identity_of(found)
        return descriptor

    def _close(self, name: str) -> None:
        descriptor = self._descriptors.pop(name, None)
        self._sizes.pop(name, None)
        self._identities.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _failed(self, name: str, error: OSError) -> DiskError:
        if error.errno in NO_SPACE and self.reserve is not None:
            self.reserve.ran_out()
        return no_room_or(error, self.directory / name)

    def _failed_change(self, name: str, error: OSError) -> DiskError:
        """The failure of an operation on a file that must exist."""
        if error.errno == errno.ENOENT:
            return DiskError(f"{self.directory / name}: {error.strerror}: {GONE}")
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
        """Raises OSError; the file then does not exist."""
        descriptor = self._made(name)
        try:
            if size:
                self._fill(name, descriptor, size)
            os.fsync(descriptor)
            sync_path(self.directory)
        except OSError:
            self._close(name)
            with suppress(OSError):
                os.unlink(self.directory / name)
            raise

    def _made(self, name: str) -> int:
        """Create the file. Its name needs room, too. Raises OSError."""
        while True:
            try:
                return self._descriptor(name, is_new=True)
            except OSError as error:
                if not self._finds_room(error, 1):
                    raise

    def _fill(self, name: str, descriptor: int, size: int) -> None:
        """Fill with zeros, without using the reserve. Raises OSError."""
        if self.reserve is not None:
            self.reserve.grew(size)
        offset = 0
        while offset < size:
            offset += os.pwrite(descriptor, _ZEROS[: min(len(_ZEROS), size - offset)], offset)
        self._sizes[name] = max(self._sizes[name], size)

    def _finds_room(self, error: OSError, size_bytes: int) -> bool:
        """Did a write fail only for lack of room, and was something removed for it? Others may already have used that
        room.
        """
        if error.errno not in NO_SPACE or self.reserve is None or not self.draws:
            return False
        return self.reserve.free_room(size_bytes)

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
            if end > size and self.reserve is not None:
                self.reserve.grew(end - max(size, offset))
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
            self._sync(self._descriptors.get(name) or self._descriptor(name))
            if name in self._nameless:
                sync_path(self.directory)
                self._nameless.discard(name)
        except OSError as error:  # also for lack of room: written data may be lost, so a retry would prove nothing
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
        if abs(time.time_ns() - changed_ns) > tick_ns:  # otherwise another change may have the same time
            self._unchanged.add(name)

    def _confirm_file(self, name: str) -> None:
        path = f"{self._path}/{name}"
        try:
            if name not in self._identities:
                self._descriptor(name)
            is_there = identity_of(os.stat(path)) == self._identities[name]
        except OSError as error:
            raise DiskError(f"{path}: {error.strerror}: {GONE}") from None
        if not is_there:
            raise DiskError(f"{path}: another file is in its place: {GONE}")

    def confirm_again(self) -> None:
        """Check the last confirmed file even if its directory is unchanged, or the directory alone: for times without
        writes.
        """
        self.confirm_directory()
        if self._confirmed in self._descriptors:
            self._confirm_file(self._confirmed)

    def confirm_directory(self) -> None:
        """Check that the directory is still the same."""
        if self._identity is not None:
            self._changed_ns()

    def _changed_ns(self) -> int:
        """When a name in the directory last changed."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise DiskError(f"{self.directory}: {error.strerror}: {GONE}") from None
        if self._identity is not None and (found.st_dev, found.st_ino) != self._identity:
            raise DiskError(f"{self.directory}: another directory is in its place: {GONE}")
        return found.st_mtime_ns

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        try:
            with (self.directory / name).open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise self._failed(name, error) from None

    def descriptor(self, name: str) -> int:
        try:
            return os.open(self.directory / name, os.O_RDONLY | os.O_CLOEXEC)
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
            sync_path(self.directory)
        except OSError as error:
            raise self._failed_change(name, error) from None

    def _rename(self, name: str, new_name: str) -> None:
        """The new name may need room. Raises OSError."""
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
        if self.reserve is not None:
            self.reserve.shrank()

    def sync_names(self) -> None:
        try:
            sync_path(self.directory)
        except OSError as error:
            raise DiskError(f"{self.directory}: {error.strerror or error}") from None

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self.directory) if entry.is_file())
        except OSError as error:
            raise self._failed("", error) from None

    def close(self) -> None:
        """Close every file."""
        for name in list(self._descriptors):
            self._close(name)


def identity_of(found: os.stat_result) -> tuple[int, int]:
    """What makes a file the same file, whatever its name."""
    return found.st_dev, found.st_ino


# ---- quarantine ------------------------------------------------------------------------------------------------------

_PREFIX: Final = "quarantined-"
_UNFINISHED: Final = ".part"


def put_aside(disk: Disk, name: str) -> None:
    """Rename a file to a meaningless name. Raises DiskError."""
    disk.rename(name, _names_for(disk, name)[-1])


def keep_copy(disk: Disk, name: str) -> None:
    """Keep a copy of a file as it is now, unless there already is one. The copy gets its name when it is complete.
    Raises DiskError.
    """
    data = disk.read(name)
    *taken, free = _names_for(disk, name)
    if any(disk.read(one) == data for one in taken):
        return
    unfinished = f"{_PREFIX}{name}{_UNFINISHED}"
    disk.begin(unfinished)
    disk.write(unfinished, 0, data)
    disk.sync(unfinished)
    disk.finish(unfinished)
    disk.rename(unfinished, free)


def _names_for(disk: Disk, name: str) -> list[str]:
    """Names under which a file of this name was already put aside, followed by a free one."""
    there = set(disk.names())
    found = [f"{_PREFIX}{name}"]
    while found[-1] in there:
        found.append(f"{_PREFIX}{len(found) + 1}-{name}")
    return found
