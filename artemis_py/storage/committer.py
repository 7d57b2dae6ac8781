"""Making batches durable: one write and one sync each, in a thread, or at once where that is quicker.

A batch is handed over only when the one before is done, so while one sync runs the next turn's work gathers: group
commit without a timer.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from artemis_py.storage.disk import Disk, DiskError


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch: where it goes, and the lsn that is durable when it is."""

    name: str
    offset: int
    data: bytes
    lsn: int
    sync: bool
    create_bytes: int
    """Make the file first, this large; 0 when it exists."""


def carry_out(disk: Disk, commit: Commit) -> None:
    """Write a batch and make it durable. Raises DiskError."""
    if commit.create_bytes:
        disk.create(commit.name, commit.create_bytes)
    disk.write(commit.name, commit.offset, commit.data)
    if commit.sync:
        disk.sync(commit.name)


class Committer(ABC):
    """Takes one batch at a time."""

    busy: bool
    failure: DiskError | None
    """Why nothing more becomes durable; nothing is retried."""

    @abstractmethod
    def submit(self, commit: Commit) -> None:
        """Begin to carry out a batch; ``busy`` until ``finished`` tells of it."""

    @abstractmethod
    def finished(self) -> Commit | None:
        """The batch that has become durable since the last call, or None."""

    @abstractmethod
    def run_now(self, commit: Commit) -> None:
        """Carry a batch out before returning; not while busy."""

    @abstractmethod
    def later(self, work: Callable[[], None]) -> None:
        """Do something about files that nobody waits for, after the batches handed over so far."""

    @abstractmethod
    def stop(self) -> None:
        """Finish what was handed over, then end."""


class ThreadCommitter(Committer):
    """Syncs in a thread of its own, so that the event loop does not wait for the disk. ``wake`` is called from that
    thread.
    """

    def __init__(self, disk: Disk, wake: Callable[[], None]) -> None:
        self.busy = False
        self.failure: DiskError | None = None
        self._disk = disk
        self._wake = wake
        self._done: Commit | None = None
        self._work: SimpleQueue[Commit | Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                if isinstance(work, Commit):
                    if self.failure is None:
                        carry_out(self._disk, work)
                        self._done = work
                else:
                    work()
            except DiskError as error:
                self.failure = error
            self._wake()

    def submit(self, commit: Commit) -> None:
        self.busy = True
        self._work.put(commit)

    def finished(self) -> Commit | None:
        done = self._done
        if done is not None:
            self._done = None
            self.busy = False
        return done

    def run_now(self, commit: Commit) -> None:
        try:
            carry_out(self._disk, commit)
            self._done = commit
        except DiskError as error:
            self.failure = error

    def later(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def stop(self) -> None:
        self._work.put(None)
        self._thread.join()
