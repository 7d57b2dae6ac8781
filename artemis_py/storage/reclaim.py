"""Frees room on a full file system: removes files created ahead, retained history, and segments that wait to be
retained.

An acknowledgement is worth more than history: history is removed before a write of the journal fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.disk.space import SpaceReserve
from artemis_py.storage.journal.index_files import delete_segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.retention.retention import Retention


def reserves_of(disks: Sequence[FileDisk], look: Callable[[], None], bytes_max: int) -> tuple[SpaceReserve, ...]:
    """Give each disk the room of its file system, with a reserve of ``bytes_max`` bytes; returns the rooms. ``look`` is
    called when the disk should be checked. Raises DiskError.
    """
    reserves: dict[int, SpaceReserve] = {}
    for disk in disks:
        number = _file_system(disk.directory)
        if number not in reserves:
            reserves[number] = SpaceReserve(disk.directory, look, bytes_max)
        disk.reserve = reserves[number]
    return tuple(reserves.values())


def _file_system(directory: Path) -> int:
    try:
        return os.stat(directory).st_dev
    except OSError as error:
        raise DiskError(f"{directory}: {error.strerror}") from None


class SpaceReclaim:
    """Finds room for a journal on ``disk``. ``is_here`` says whether the caller is in the committer's thread: only that
    thread removes files. ``say`` gets a line about each.
    """

    def __init__(
        self,
        disk: FileDisk,
        journal: Journal,
        retention: Retention | None,
        is_here: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self._disk = disk
        self._journal = journal
        self._retention = retention
        self._is_here = is_here
        self._say = say

    def offer(self, reserves: Sequence[SpaceReserve]) -> None:
        """Tell each room what can be removed when a write that must not fail does not fit. Raises DiskError."""
        retention = self._retention
        for reserve in reserves:
            if reserve is self._disk.reserve:
                reserve.sources.append(self._in_thread(self._journal.files.spares.give_up))
            if retention is not None and _file_system(retention.directory) == _file_system(reserve.directory):
                reserve.sources.append(self._in_thread(partial(self._give_up_history, retention, reserve)))
            if retention is not None and reserve is self._disk.reserve:
                reserve.sources.append(self._in_thread(partial(self._give_up_waiting, retention, reserve)))

    def _in_thread(self, source: Callable[[], bool]) -> Callable[[], bool]:
        """Limit a source to the committer's thread. A batch without room elsewhere is handed over to it."""
        return lambda: self._is_here() and source()

    def _give_up_history(self, retention: Retention, reserve: SpaceReserve) -> bool:
        name = retention.give_up_oldest()
        if name is None:
            return False
        self._say(f"warning: the disk of {reserve.directory} has no room: {name} was removed from the retained log")
        return True

    def _give_up_waiting(self, retention: Retention, reserve: SpaceReserve) -> bool:
        """A segment waits to be retained on another file system. Remove an older one there to make room for it; if
        there is none, remove the segment itself.
        """
        retirement = self._journal.files.retirement
        if not retirement.waits:
            return False
        if self._give_up_history(retention, reserve):
            retirement.retry()
            return True
        name = retirement.abandon(partial(delete_segment, self._disk))
        if name is not None:
            self._say(f"warning: the disk of {reserve.directory} has no room: {name} was removed and is not retained")
        return name is not None


def make_room(reserves: Sequence[SpaceReserve]) -> None:
    """Remove files until each file system has its reserve again or nothing removable is left. Call it in the
    committer's thread. Raises DiskError.
    """
    for reserve in reserves:
        reserve.refill()
        while reserve.is_short and reserve.remove_one_file():
            reserve.refill()
