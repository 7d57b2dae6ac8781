"""Segments leaving the journal's directory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from artemis_py.storage.disk.disk import NoSpaceError
from artemis_py.storage.journal.extent import ExtentFiles
from artemis_py.storage.journal.index import Segment


class Departure:
    """Passes segments to ``retire``, in order. A segment without room elsewhere stays in the journal's directory, and
    so do all after it, until ``retry`` finds room. Segments that are gone are removed from ``leaving``.

    Everything here runs in the committer's thread.
    """

    def __init__(self, extent: ExtentFiles, retire: Callable[[str], None], leaving: dict[int, Segment]) -> None:
        self._extent = extent
        self._retire = retire
        self._leaving = leaving
        self._waiting: deque[Segment] = deque()
        self._is_going = False

    @property
    def waits(self) -> bool:
        """Does a segment wait for room elsewhere?"""
        return bool(self._waiting) and not self._is_going

    def let_go(self, segment: Segment) -> None:
        """Retire a segment that is no longer needed. Raises DiskError."""
        self._waiting.append(segment)
        self.retry()

    def retry(self) -> None:
        """Retire the waiting segments. Raises DiskError."""
        with suppress(NoSpaceError):
            while self._waiting:
                self._go(self._retire)

    def abandon(self, remove: Callable[[str], None]) -> str | None:
        """Delete the oldest waiting segment with ``remove``. Returns its name, or None if even that cannot be recorded.
        Raises DiskError.
        """
        with suppress(NoSpaceError):
            return self._go(remove)
        return None

    def _go(self, let_go: Callable[[str], None]) -> str:
        segment = self._waiting[0]
        self._is_going = True  # this write may find no room, and then asks which segments wait
        try:
            self._extent.begin_at(segment.number + 1)  # before the file is removed: otherwise it would count as missing
            let_go(segment.name)
        finally:
            self._is_going = False
        self._waiting.popleft()
        self._leaving.pop(segment.number, None)
        return segment.name
