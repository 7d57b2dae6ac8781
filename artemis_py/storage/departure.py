"""Segments on their way out of the journal's directory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from artemis_py.storage.disk import NoSpaceError
from artemis_py.storage.extent import ExtentFiles
from artemis_py.storage.index import Segment


class Departure:
    """Gives segments to ``retire``, in order. One for which there is no room elsewhere stays, and so do all behind it,
    until ``retry`` finds room: the journal's own directory is a good place to wait. ``leaving`` loses what is gone.

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
        """Is there a segment that found no room elsewhere?"""
        return bool(self._waiting) and not self._is_going

    def let_go(self, segment: Segment) -> None:
        """A segment is needed no longer. Raises DiskError."""
        self._waiting.append(segment)
        self.retry()

    def retry(self) -> None:
        """Let go of those that wait. Raises DiskError."""
        with suppress(NoSpaceError):
            while self._waiting:
                self._go(self._retire)

    def abandon(self, remove: Callable[[str], None]) -> str | None:
        """The oldest of those that wait goes for good, by ``remove``. Returns its name; None when even that cannot be
        written down. Raises DiskError.
        """
        with suppress(NoSpaceError):
            return self._go(remove)
        return None

    def _go(self, let_go: Callable[[str], None]) -> str:
        segment = self._waiting[0]
        self._is_going = True  # what is written here may find no room, and ask who waits
        try:
            self._extent.begin_at(segment.number + 1)  # before it goes: else it would be missed
            let_go(segment.name)
        finally:
            self._is_going = False
        self._waiting.popleft()
        self._leaving.pop(segment.number, None)
        return segment.name
