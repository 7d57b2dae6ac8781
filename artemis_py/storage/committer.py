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


@dataclass(slots=True)
class Write:
    """Bytes for one place in one file."""

    disk: Disk
    name: str
    offset: int
    data: bytes
    sync: bool
    create_bytes: int = -1
    """Make the file first, this large; -1 when it exists."""
    renamed_from: str | None = None
    """Take this file, made ahead, instead of making one."""
    begins: bool = False
    """Make the file first, empty, to be durable with the first sync."""
    ends: bool = False
    """Nothing more will be written to the file."""


@dataclass(slots=True)
class Commit:
    """One batch: its writes, in order, and the lsn that is durable when all of them are. What a record speaks of (a
    page, a large body) is written before the record, so a crash in between leaves nothing that anybody refers to.
    """

    writes: list[Write]
    lsn: int

    @property
    def size_bytes(self) -> int:
        """How much is to be written, new files included."""
        return sum(len(write.data) + max(write.create_bytes, 0) for write in self.writes)


def carry_out(commit: Commit) -> None:
    """Write a batch and make it durable. Raises DiskError."""
    for write in commit.writes:
        if write.renamed_from is not None:
            write.disk.rename(write.renamed_from, write.name)
        elif write.create_bytes >= 0:
            write.disk.create(write.name, write.create_bytes)
        if write.begins:
            write.disk.begin(write.name)
        if write.data:
            write.disk.write(write.name, write.offset, write.data)
        if write.sync:
            write.disk.sync(write.name)
        if write.ends:
            write.disk.finish(write.name)


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

    def __init__(self, wake: Callable[[], None], name: str = "committer") -> None:
        self.busy = False
        self.failure: DiskError | None = None
        self._wake = wake
        self._done: Commit | None = None
        self._work: SimpleQueue[Commit | Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                if isinstance(work, Commit):
                    if self.failure is None:
                        carry_out(work)
                        self._done = work
                else:
                    work()
            except DiskError as error:
                self.failure = error
            except Exception as error:  # a thread that died in silence would let everybody wait for ever
                self.failure = DiskError(f"the thread {self._thread.name!r} failed: {error!r}")
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
            carry_out(commit)
            self._done = commit
        except DiskError as error:
            self.failure = error

    def later(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def stop(self) -> None:
        self._work.put(None)
        self._thread.join()
