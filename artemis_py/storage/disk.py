"""The disk, as storage sees it: few verbs, so that tests can put one in its place that forgets what was not synced."""

from __future__ import annotations

import fcntl
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from artemis_py.errors import ArtemisError

_ZEROS: Final = bytes(1 << 20)
_OPEN_FILES_MAX: Final = 64


class DiskError(ArtemisError):
    """The disk did not do what it was asked: no space, an I/O error, a failed sync. Nothing is retried."""


class LockedError(ArtemisError):
    """Another broker uses the data directory."""


class Disk(ABC):
    """One directory of files. Every method may raise DiskError."""

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
        """Make everything written to the file durable."""

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
    """A real directory. The files written to last stay open; ``close`` closes them. With ``is_made`` false the
    directory need not be there.
    """

    def __init__(self, directory: Path, *, data_only: bool = True, is_made: bool = True) -> None:
        self.directory = directory
        self._sync = os.fdatasync if data_only else os.fsync
        self._descriptors: dict[str, int] = {}
        self._nameless: set[str] = set()
        """Files whose names a crash would lose."""
        try:
            if is_made:
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"{directory}: {error.strerror}") from None

    def _descriptor(self, name: str) -> int:
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            descriptor = os.open(self.directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            if len(self._descriptors) >= _OPEN_FILES_MAX:
                oldest = list(self._descriptors)[0]  # noqa: RUF015 - one step: another thread may delete a file
                os.close(self._descriptors.pop(oldest))
            self._descriptors[name] = descriptor
        return descriptor

    def _failed(self, name: str, error: OSError) -> DiskError:
        return DiskError(f"{self.directory / name}: {error.strerror or error}")

    def create(self, name: str, size: int) -> None:
        try:
            descriptor = self._descriptor(name)
            offset = 0
            while offset < size:
                offset += os.pwrite(descriptor, _ZEROS[: min(len(_ZEROS), size - offset)], offset)
            os.fsync(descriptor)
            self._sync_directory()
        except OSError as error:
            raise self._failed(name, error) from None

    def begin(self, name: str) -> None:
        try:
            os.ftruncate(self._descriptor(name), 0)
        except OSError as error:
            raise self._failed(name, error) from None
        self._nameless.add(name)

    def finish(self, name: str) -> None:
        self._nameless.discard(name)
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def write(self, name: str, offset: int, data: bytes) -> None:
        try:
            descriptor = self._descriptor(name)
            written = os.pwrite(descriptor, data, offset)
            while written < len(data):
                more = os.pwrite(descriptor, data[written:], offset + written)
                if more == 0:
                    raise DiskError(f"{self.directory / name}: nothing more can be written")
                written += more
        except OSError as error:
            raise self._failed(name, error) from None

    def sync(self, name: str) -> None:
        try:
            self._sync(self._descriptor(name))
            if name in self._nameless:
                self._sync_directory()
                self._nameless.discard(name)
        except OSError as error:
            raise self._failed(name, error) from None

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        try:
            with (self.directory / name).open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise self._failed(name, error) from None

    def rename(self, name: str, new_name: str) -> None:
        try:
            os.rename(self.directory / name, self.directory / new_name)
            descriptor = self._descriptors.pop(name, None)
            if descriptor is not None:
                self._descriptors[new_name] = descriptor
            self._sync_directory()
        except OSError as error:
            raise self._failed(name, error) from None

    def delete(self, name: str) -> None:
        self.finish(name)
        try:
            (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(name, error) from None

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self.directory) if entry.is_file())
        except OSError as error:
            raise self._failed("", error) from None

    def _sync_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close every file."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


class DirectoryLock:
    """Keeps a second broker out of a data directory. The operating system lets go of it when the process ends.

    Raises LockedError when another one has it, DiskError when the directory cannot be written to.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "server.lock"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise DiskError(f"{path}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip()
            os.close(self._descriptor)
            who = f" (process {holder})" if holder else ""
            raise LockedError(f"{directory} is in use by another broker{who}") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in."""
        os.close(self._descriptor)
