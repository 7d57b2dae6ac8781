"""A disk that can lose power: what was written and not synced is gone, as after a crash of the machine."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.disk.space import DiskSpace, space_of


@final
class MachineDisk:
    """All directories of one broker: they lose power together, and are full together."""

    def __init__(self) -> None:
        self.is_full = False
        self.is_off = False
        self._opened: list[PoweredDisk] = []

    def open(self, directory: Path, **options: Any) -> FileDisk:
        """Open a directory, with the arguments of ``FileDisk``."""
        disk = PoweredDisk(self, directory, **options)
        self._opened.append(disk)
        return disk

    def space_of(self, directory: str) -> DiskSpace:
        """How full the file system of a directory is, or seems to be."""
        found = space_of(directory)
        return DiskSpace(1.0, 0, found.total_bytes) if self.is_full else found

    def settle(self) -> None:
        """A broker has ended cleanly: given time, the system writes everything to the medium."""
        self._opened.clear()

    def lose_unsynced(self) -> None:
        """The power is back: undo what was not synced. The files must be closed."""
        for disk in self._opened:
            disk.undo()
        self._opened.clear()
        self.is_off = False


@final
class PoweredDisk(FileDisk):
    """One directory. It remembers what each write replaced until the file is synced; then that is as good as on the
    medium, and the real disk is not waited for: it is the test that ends the process, not a cable.
    """

    def __init__(self, machine: MachineDisk, directory: Path, **options: Any) -> None:
        self._machine = machine
        self._replaced: dict[str, list[tuple[int, bytes, int]]] = {}
        """By file: for each write since the last sync its place, the bytes that stood there, and the file's size."""
        self._begun: set[str] = set()
        self._lock = threading.Lock()
        super().__init__(directory, **options)
        self._sync = _no_sync

    def begin(self, name: str) -> None:
        with self._lock:
            self._check_power(name)
            super().begin(name)
            self._begun.add(name)

    def create(self, name: str, size: int) -> None:
        with self._lock:
            self._check_power(name)
            super().create(name, size)

    def write(self, name: str, offset: int, data: bytes) -> None:
        with self._lock:
            self._check_power(name)
            before = self.read(name, offset, len(data))
            size = os.stat(self.directory / name).st_size
            super().write(name, offset, data)
            self._replaced.setdefault(name, []).append((offset, before, size))

    def sync(self, name: str) -> None:
        with self._lock:
            self._check_power(name)
            super().sync(name)
            self._replaced.pop(name, None)
            self._begun.discard(name)

    def rename(self, name: str, new_name: str) -> None:
        with self._lock:
            self._check_power(name)
            super().rename(name, new_name)
            replaced = self._replaced.pop(name, None)
            if replaced is not None:
                self._replaced[new_name] = replaced
            if name in self._begun:
                self._begun.discard(name)
                self._begun.add(new_name)

    def delete(self, name: str) -> None:
        with self._lock:
            self._check_power(name)
            super().delete(name)
            self._replaced.pop(name, None)
            self._begun.discard(name)

    def _check_power(self, name: str) -> None:
        """Raises DiskError once the power is off."""
        if self._machine.is_off:
            raise DiskError(f"{self.directory / name}: the power is off")

    def undo(self) -> None:
        """Undo what was not synced, the last write first."""
        for name in self._begun:
            with suppress(FileNotFoundError):
                os.unlink(self.directory / name)
        for name in self._replaced.keys() - self._begun:
            self._undo_file(name)
        self._begun.clear()
        self._replaced.clear()

    def _undo_file(self, name: str) -> None:
        with suppress(FileNotFoundError), (self.directory / name).open("r+b") as file:
            for offset, before, size in reversed(self._replaced[name]):
                file.seek(offset)
                file.write(before)
                file.truncate(size)


def _no_sync(fd: object) -> None:
    """The bytes are with the system; they outlive the process."""
