"""A committer without a thread: it works when told, one piece of work at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.disk.group_commit import Commit, Committer, write_commit


class SteppedCommitter(Committer):
    """Behaves as ``ThreadCommitter`` does, at the times that a test chooses with ``step``; with ``at_once``, before it
    returns.
    """

    def __init__(self, wake: Callable[[], object] = lambda: None, name: str = "", *, at_once: bool = False) -> None:
        super().__init__()
        self.wake = wake
        self.name = name
        self.at_once = at_once
        self.is_here = False
        """Is the caller in this thread?"""
        self._work: deque[Commit | Callable[[], None]] = deque()

    @property
    def idle(self) -> bool:
        """Is there nothing to do?"""
        return not self._work

    def step(self) -> bool:
        """Do one piece of work; False when there is none."""
        if not self._work:
            return False
        work = self._work.popleft()
        self.is_here = True
        try:
            if not isinstance(work, Commit):
                work()
            elif self.failure is None:
                write_commit(work)
                self._done = work
        except DiskError as error:
            self.failure = error
        self.is_here = False
        self.wake()
        return True

    def submit(self, commit: Commit) -> None:
        assert not self.busy, "a batch is handed over while another is under way"
        self.busy = True
        self.later(commit)

    def run_now(self, commit: Commit) -> None:
        assert not self.busy, "a batch is carried out while another is under way"
        super().run_now(commit)

    def later(self, work: Commit | Callable[[], None]) -> None:
        self._work.append(work)
        if self.at_once:
            self.stop()

    def stop(self) -> None:
        while self.step():
            pass
