"""Journal files created ahead (``journal-min-files``): filled with zeros and synced, so that a batch never waits for
that.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from artemis_py.storage.disk.committer import Committer
from artemis_py.storage.disk.disk import Disk, NoSpaceError

_NAME: Final = re.compile(r"spare-(?P<number>\d{9})\.log", re.ASCII)


class Spares:
    """Keeps one file more than is in use, and at least ``files_min`` in total. The committer's thread creates them
    between batches, while the disk has room.
    """

    def __init__(self, disk: Disk, committer: Committer, file_bytes: int, files_min: int) -> None:
        self._disk = disk
        self._committer = committer
        self._file_bytes = file_bytes
        self._files_min = files_min
        self._ready: deque[str] = deque()
        self._promised = 0
        """Files that are ready or being created."""
        self._number = 0
        for name in disk.names():
            match = _NAME.fullmatch(name)
            if match is not None:
                self._take_over(name, int(match["number"]))

    def _take_over(self, name: str, number: int) -> None:
        """Reuse a spare from before the start if it is finished, empty and of the right size."""
        self._number = max(self._number, number)
        data = self._disk.read(name)
        if len(data) == self._file_bytes and not data.strip(b"\0"):
            self._ready.append(name)
            self._promised += 1
        else:
            self._disk.delete(name)

    def take(self) -> str | None:
        """A file to rename and use, or None if none is ready."""
        try:  # a single step, because another thread may give one up
            name = self._ready.popleft()
        except IndexError:
            return None
        self._promised -= 1
        return name

    def give_up(self) -> bool:
        """Remove a spare to free its room; False if none is ready. For any thread. Raises DiskError."""
        name = self.take()
        if name is None:
            return False
        self._disk.delete(name)
        return True

    def provide(self, files_in_use: int) -> None:
        """Start to create missing spares."""
        if not self._disk.has_room:
            return
        while self._promised < max(1, self._files_min - files_in_use):
            self._number += 1
            self._promised += 1
            name = f"spare-{self._number:09}.log"
            self._committer.later(lambda name=name: self._make(name))  # type: ignore[misc]

    def _make(self, name: str) -> None:
        try:
            self._disk.create(name, self._file_bytes)
        except NoSpaceError:  # the disk knows; the next journal file grows as it is written
            self._promised -= 1
        else:
            self._ready.append(name)
