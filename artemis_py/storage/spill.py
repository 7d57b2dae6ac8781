"""A log that remembers nothing, for a broker without persistence that still has pages: it only sees to their files."""

from __future__ import annotations

from artemis_py.errors import ArtemisError
from artemis_py.records import MemoryLog
from artemis_py.storage.committer import Commit, Committer
from artemis_py.storage.pages import PageFiles


class SpillLog(MemoryLog):
    """Writes pages behind the broker's back. Nothing waits for it but senders that are too fast for the disk."""

    def __init__(self, committer: Committer, pages: PageFiles) -> None:
        super().__init__()
        self._committer = committer
        self._pages = pages

    @property
    def failure(self) -> ArtemisError | None:
        return self._committer.failure

    def poll(self) -> None:
        if self._committer.finished() is not None:
            self._pages.written()

    def seal(self) -> None:
        pages = self._pages
        pages.now_ms = self.now_ms
        pages.stamp_dropped(0)
        pages.delete_doomed(0, self._committer.later)
        if self._committer.busy or self._committer.failure is not None:
            return
        writes = pages.take_writes()
        if writes:
            self._committer.submit(Commit(writes, 0))
