"""The room on one file system: what is kept in reserve there, and who is told when files grow.

A broker whose disk is full still has to write that messages were consumed: that is the only way in which room comes
back. So a file of nothing is kept there from the start, and cut shorter when a write that must not fail finds no room
(the journal, and pages that were taken in already). Senders are held back from the first byte of it on. When the
reserve is gone, whatever nobody waits for goes, one file after the other: the write is tried again after each.
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

from artemis_py.storage.private import open_private

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
RESERVE_SHARE: Final = 16
"""No more of a file system than one part in so many."""
RESERVE_NAME: Final = "reserve.room"
LOOK_EVERY_BYTES: Final = 1 << 20
"""After this much growth somebody looks how full the disk is."""
_BLOCK_BYTES: Final = 512
"""Of which the system counts those that a file holds."""
_GIVEN_BYTES_MIN: Final = 256 << 10
"""Cut off at once: room that was just freed can be gone to somebody else."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """A file system at one moment: the share that is used, from 0 to 1, and what this process may still write."""

    used_fraction: float
    free_bytes: int
    total_bytes: int = 0


def space_of(directory: str) -> DiskSpace:
    """The file system that holds ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    total = found.f_blocks or 1
    return DiskSpace(1 - found.f_bavail / total, found.f_bavail * found.f_frsize, total * found.f_frsize)


def is_full(max_usage_percent: int, min_free_bytes: int, space: DiskSpace) -> bool:
    """Has the share that is used reached ``max-disk-usage`` percent? Or, when ``min-disk-free`` is set (0 or more),
    which then counts alone: is no more than that free? (Artemis manual, "Max Disk Usage")
    """
    if min_free_bytes >= 0:
        return space.free_bytes <= min_free_bytes
    return 0 <= max_usage_percent <= space.used_fraction * 100


class Room:
    """The reserve on the file system of ``directory``, which has to be there: ``bytes_max`` large, less on a small one.
    Any thread may call.

    ``changed`` is called, from any thread, when somebody should look: much has grown, the reserve is needed, or a file
    has gone while room was short. Where there is no room for a reserve, room is short from the start. Where it cannot
    be made for another reason nothing that is given up would change that: ``take_fault`` tells why, and there is none.
    """

    def __init__(self, directory: Path, changed: Callable[[], None], bytes_max: int) -> None:
        self.directory = directory
        self.is_short = False
        """Did a file find no room, and is there not yet so much again that the reserve is whole?"""
        self.used_bytes_total = 0
        """Taken from the reserve since the start."""
        self.sources: list[Callable[[], bool]] = []
        """Who can give up a file that nobody waits for, in this order, when the reserve is gone. Each returns whether
        it did; any thread may ask.
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
        """What is left of the reserve."""
        return self._has_bytes

    @property
    def left_bytes(self) -> int:
        """What can be written here: the reserve, and what is free beside it."""
        with suppress(OSError):
            return self._has_bytes + space_of(str(self.directory)).free_bytes
        return self._has_bytes

    def take_fault(self) -> str:
        """Why there is no reserve although there is room for it, told once; empty: there is nothing to tell."""
        fault, self._fault = self._fault, ""
        return fault

    def grew(self, size_bytes: int) -> None:
        """Files are about to become larger by so much."""
        with self._lock:
            self._grown_bytes += size_bytes
            is_due = self._grown_bytes >= LOOK_EVERY_BYTES
            if is_due:
                self._grown_bytes = 0
        if is_due:
            self._changed()

    def ran_out(self) -> None:
        """A file found no room."""
        if not self.is_short:
            self.is_short = True
            self._changed()

    def shrank(self) -> None:
        """A file has gone."""
        if self.is_short:
            self._changed()

    def give(self, size_bytes: int) -> bool:
        """Free something for somebody who found no room: so much of the reserve at least, or one file of a source;
        False when there is nothing left. Others may take what was freed, so who asks has to try, and to ask again.
        """
        self.ran_out()
        return self._cut_reserve(size_bytes) or self.give_up()

    def give_up(self) -> bool:
        """Have one file go that nobody waits for; False when there is none."""
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
            self.used_bytes_total += given
            return True

    def refill(self) -> None:
        """Make the reserve whole when there is room for it, and as much again: or senders would take it at once. Until
        then it gets half of what there is: somebody else may come for the rest.
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
                return
            self.is_short = not self._fill(self.wanted_bytes)
        if not self.is_short:
            self._changed()

    def _fill(self, size_bytes: int) -> bool:
        """Have so much in reserve, or what there was of it; False when there is no room for it."""
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
    """Have a file hold room up to ``end``, and nothing more than before when there is none. Raises OSError."""
    try:
        os.posix_fallocate(descriptor, start, end - start)
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def _held_bytes(path: Path) -> int:
    """How much room a file holds: none where it has holes, as in a copy that a tool made of it. Raises OSError."""
    found = os.stat(path)
    return found.st_size if found.st_blocks * _BLOCK_BYTES >= found.st_size else 0
