"""A log for a broker without persistence that still has pages: it stores nothing but their files."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from artemis_py.errors import ArtemisError
from artemis_py.records import MemoryLog
from artemis_py.shown import warn
from artemis_py.storage.disk.committer import Commit, Committer
from artemis_py.storage.pages.files import PageFiles

_PAUSE_S: Final = 0.1


class SpillLog(MemoryLog):
    """Writes pages in the background. Only senders that are too fast for the disk wait for it. A disk without room
    counts as slow: accepted messages wait in memory until pages were consumed. ``say`` gets a line.
    """

    def __init__(self, committer: Committer, pages: PageFiles, say: Callable[[str], object] = warn) -> None:
        super().__init__()
        self._say = say
        self._waiting: Commit | None = None
        """A batch that did not fit."""
        self._committer = committer
        self._pages = pages

    @property
    def failure(self) -> ArtemisError | None:
        return self._committer.failure

    def poll(self) -> None:
        done = self._committer.finished()
        if done is None:
            return
        if done.failure is None:
            self._pages.written()
            return
        self._say(f"warning: {done.failure}: senders wait, and pages are written when there is room again")
        self._waiting = done
        self._committer.later(_pause)  # and it wakes the broker afterwards

    def seal(self) -> None:
        pages = self._pages
        pages.now_ms = self.now_ms
        pages.stamp_dropped(0)
        pages.delete_doomed(0, self._committer.later)
        if self._committer.busy or self._committer.failure is not None:
            return
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.writes = [write for write in waiting.writes if pages.is_coming(write.name)]
            self._committer.submit(waiting)
            return
        writes = pages.take_writes()
        if writes:
            self._committer.submit(Commit(writes, 0, may_wait=True))


def _pause() -> None:
    time.sleep(_PAUSE_S)
