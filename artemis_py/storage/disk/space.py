"""The room on one file system: its reserve, and who is notified when files grow.

With a full disk, a broker must still record that messages were consumed: only that frees room. So it keeps an empty
file as a reserve from the start, and shortens it when a write that must not fail has no room (the journal, and pages of
accepted messages). Senders are held back as soon as any of it is used. When the reserve is gone, files that nothing
waits for are removed one by one, and the write is retried after each.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.storage.disk.permissions import open_private

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
RESERVE_SHARE: Final = 16
"""The reserve is at most one part in this many of a file system."""
RESERVE_NAME: Final = "reserve.room"
LOOK_EVERY_BYTES: Final = 1 << 20
"""After this much growth the disk usage is checked."""
_BLOCK_BYTES: Final = 512
"""The unit in which the system counts a file's blocks."""
_GIVEN_BYTES_MIN: Final = 256 << 10
"""How much is cut off at least: freed room may be taken by others."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """A file system at one moment: the used share, from 0 to 1, and how many bytes this process may still write."""

    used_fraction: float
    free_bytes: int
    total_bytes: int = 0


def space_of(directory: str) -> DiskSpace:
    """The space on the file system of ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    total = found.f_blocks or 1
    return DiskSpace(1 - found.f_bavail / total, found.f_bavail * found.f_frsize, total * found.f_frsize)


def is_full(max_usage_percent: int, min_free_bytes: int, space: DiskSpace) -> bool:
    """Has the used share reached ``max-disk-usage`` percent? If ``min-disk-free`` is set (0 or more), only that counts:
    is no more than that free? (Artemis manual, "Max Disk Usage")
    """
    if min_free_bytes >= 0:
        return space.free_bytes <= min_free_bytes
    return 0 <= max_usage_percent <= space.used_fraction * 100


def bytes_until_full(max_usage_percent: int, min_free_bytes: int, space: DiskSpace) -> int:
    """How many bytes may be written until ``is_full``; 0 when it is."""
    kept_bytes = max(min_free_bytes, 0)
    if min_free_bytes < 0 <= max_usage_percent:
        kept_bytes = space.total_bytes * (100 - max_usage_percent) // 100
    return max(space.free_bytes - kept_bytes, 0)


class SpaceReserve:
    """The reserve on the file system of ``directory``, which must exist: ``bytes_max`` large, less on a small file
    system. For any thread.

    Any thread may call ``changed``, when the disk should be checked: files have grown much, the reserve is needed, or a
    file was removed while room was short. Without room for a reserve, room is short from the start. If the reserve
    cannot be created for another reason, removing files would not help: then there is none, and ``take_fault`` says
    why.
    """

    def __init__(self, directory: Path, changed: Callable[[], None], bytes_max: int) -> None:
        self.directory = directory
        self.is_short = False
        """True from the time a file did not fit until the reserve is whole again."""
        self.sources: list[Callable[[], bool]] = []
        """Functions that each remove a file that nothing waits for, called in this order when the reserve is gone. Each
        returns whether it did; any thread may call them.
        """
        self._path = directory / RESERVE_NAME
        self._changed = changed
        self._lock = threading.Lock()
        self._grown_bytes = 0
        self._has_bytes = 0
        self._fault = ""
        with suppress(OSError):
            self._has_bytes = _held_bytes(self._path)
        self.wanted_bytes = 0
        with suppress(OSError):
            self.wanted_bytes = min(bytes_max, space_of(str(directory)).total_bytes // RESERVE_SHARE)
        self.is_short = not self._fill(self.wanted_bytes)

    @property
    def reserve_bytes(self) -> int:
        """The rest of the reserve."""
        return self._has_bytes

    @property
    def left_bytes(self) -> int:
        """How many bytes can be written here: the reserve and the free space."""
        with suppress(OSError):
            return self._has_bytes + space_of(str(self.directory)).free_bytes
        return self._has_bytes

    def take_fault(self) -> str:
        """Why there is no reserve although there is room for it, returned once; otherwise empty."""
        fault, self._fault = self._fault, ""
        return fault

    def grew(self, size_bytes: int) -> None:
        """Files are about to grow by this much."""
        with self._lock:
            self._grown_bytes += size_bytes
            is_due = self._grown_bytes >= LOOK_EVERY_BYTES
            if is_due:
                self._grown_bytes = 0
        if is_due:
            self._changed()

    def ran_out(self) -> None:
        """A file did not fit."""
        if not self.is_short:
            self.is_short = True
            self._changed()

    def shrank(self) -> None:
        """A file was removed."""
        if self.is_short:
            self._changed()

    def free_room(self, size_bytes: int) -> bool:
        """Free room for a write that did not fit: at least this much of the reserve, or one file of a source; False if
        nothing is left. Others may take the freed room, so the caller must retry, and ask again.
        """
        self.ran_out()
        if self._cut_reserve(size_bytes):
            return True
        if not self.remove_one_file():
            return False
        self.refill()  # at once: whoever fills the disk must not take the rest of the file before the next write
        return True

    def remove_one_file(self) -> bool:
        """Remove one file that nothing waits for; False if there is none."""
        return any(source() for source in self.sources)

    def _cut_reserve(self, size_bytes: int) -> bool:
        with self._lock:
            given = min(max(size_bytes, _GIVEN_BYTES_MIN), self._has_bytes)
            if not given:
                return False
            try:
                os.truncate(self._path, self._has_bytes - given)
            except OSError:
                self._has_bytes = 0
                return False
            self._has_bytes -= given
            return True

    def refill(self) -> None:
        """Refill the reserve if there is room for it and as much again, since otherwise senders would take the room at
        once. Until then it gets half of the free room, and others may use the rest. A reserve that is nearly gone gets
        all: somebody who fills the disk must not take what the broker frees piece by piece.
        """
        if not self.is_short:
            return
        with self._lock:
            try:
                free_bytes = space_of(str(self.directory)).free_bytes
            except OSError:
                return
            if free_bytes < 2 * self.wanted_bytes - self._has_bytes:
                if free_bytes >= 2 * _GIVEN_BYTES_MIN:
                    self._fill(min(self._has_bytes + free_bytes // 2, self.wanted_bytes))
                elif self._has_bytes < _GIVEN_BYTES_MIN:
                    self._fill(min(self._has_bytes + free_bytes, _GIVEN_BYTES_MIN, self.wanted_bytes))
                return
            self.is_short = not self._fill(self.wanted_bytes)
        if not self.is_short:
            self._changed()

    def _fill(self, size_bytes: int) -> bool:
        """Resize the reserve to this much, or keep it as it was; False if there is no room."""
        if self._has_bytes != size_bytes:
            try:
                self._resize(size_bytes)
            except OSError as error:
                if error.errno in NO_SPACE:
                    return False
                self._fault = f"{self._path} cannot be created: {error.strerror or error}"
        return True

    def _resize(self, size_bytes: int) -> None:
        """Raises OSError."""
        descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
        try:
            if self._has_bytes > size_bytes:
                os.ftruncate(descriptor, size_bytes)
            else:
                _allocate(descriptor, self._has_bytes, size_bytes)
        finally:
            self._has_bytes = os.fstat(descriptor).st_size
            os.close(descriptor)


def _allocate(descriptor: int, start: int, end: int) -> None:
    """Allocate room for a file up to ``end``; without room it stays as before. Raises OSError."""
    try:
        os.posix_fallocate(descriptor, start, end - start)
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def _held_bytes(path: Path) -> int:
    """How much room a file really holds: holes count as none, as in a copy made by a tool. Raises OSError."""
    found = os.stat(path)
    return found.st_size if found.st_blocks * _BLOCK_BYTES >= found.st_size else 0
