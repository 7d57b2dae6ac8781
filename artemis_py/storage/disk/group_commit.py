"""Makes batches durable: one write and one sync each, in a thread, or at once if that is faster.

A batch is submitted only when the previous one is done, so records gather while a sync runs: group commit without a
timer.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from time import perf_counter_ns
from typing import final

from mypy_extensions import mypyc_attr

from artemis_py.storage.disk.disk import Disk, DiskError, NoSpaceError


@final
class Write:
    """Bytes for one place in one file. ``begins``: create the file first, empty; the first sync makes it durable.
    ``ends``: nothing more will be written to the file.
    """

    __slots__ = (
        "begins", "create_bytes", "data", "disk", "ends", "failure", "may_fail", "name", "offset", "renamed_from",
        "sync",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        name: str,
        offset: int,
        data: bytes,
        sync: bool,
        create_bytes: int = -1,
        *,
        begins: bool = False,
        ends: bool = False,
        may_fail: bool = False,
    ) -> None:
        self.disk = disk
        self.name = name
        self.offset = offset
        self.data = data
        self.sync = sync
        self.create_bytes = create_bytes
        """Create the file first, with this size; -1 if it exists."""
        self.renamed_from: str | None = None
        """Use this file, created ahead, instead of creating one."""
        self.begins = begins
        self.ends = ends
        self.may_fail = may_fail
        """May this write fail for lack of room without failing the batch? Then the file is removed, and ``failure``
        says why.
        """
        self.failure: str | None = None


def bytes_of(writes: list[Write]) -> int:
    """How many bytes are to be written, including new files."""
    return sum([len(write.data) + max(write.create_bytes, 0) for write in writes])


@final
class Commit:
    """One batch: its writes in order, and the lsn that is durable when all of them are. What a record refers to (a
    page, a large body) is written before the record, so a crash in between leaves no dangling reference.
    ``size_bytes``: how many bytes are to be written, including new files; 0: unknown.
    """

    __slots__ = ("duration_ns", "failure", "lsn", "may_wait", "size_bytes", "writes")

    def __init__(self, writes: list[Write], lsn: int, size_bytes: int = 0, *, may_wait: bool = False) -> None:
        self.writes = writes
        self.lsn = lsn
        self.size_bytes = size_bytes
        self.may_wait = may_wait
        """May the batch fail for lack of room without failing the committer? Then ``failure`` says so, and the batch
        can be submitted again.
        """
        self.failure: str | None = None
        self.duration_ns = 0
        """How long it took to write the batch and to make it durable."""


def write_commit(commit: Commit) -> None:
    """Write a batch and make it durable. Raises DiskError."""
    commit.failure = None
    started_ns = perf_counter_ns()
    for write in commit.writes:
        try:
            disk, name, data = write.disk, write.name, write.data
            if write.create_bytes >= 0 or write.renamed_from is not None or write.begins:
                _make_file(write)
            if data:
                disk.write(name, write.offset, data)
            if write.sync:
                disk.sync(name)
            if data:
                disk.confirm(name)
            if write.ends:
                disk.finish(name)
        except NoSpaceError as error:
            if commit.may_wait:
                commit.failure = str(error)
                return
            if not write.may_fail:
                raise
            write.failure = str(error)
            write.disk.delete(write.name)
    commit.duration_ns = perf_counter_ns() - started_ns


def _make_file(write: Write) -> None:
    disk, name = write.disk, write.name
    if write.renamed_from is not None:
        disk.rename(write.renamed_from, name)
        write.renamed_from, write.create_bytes = None, -1  # the file exists now, if the batch must be carried out again
    elif write.create_bytes >= 0:
        _create(disk, name, write.create_bytes)
        write.create_bytes = -1  # made anew, it would lose what a record may count that a full disk has refused
    if write.begins:
        disk.begin(name)


def _create(disk: Disk, name: str, size: int) -> None:
    """Create a file in its full size, so that writing needs no more room; without room for that, it grows as it is
    written.
    """
    if size and disk.has_room:
        with suppress(NoSpaceError):
            disk.create(name, size)
            return
    disk.create(name, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Committer(ABC):
    """Takes one batch at a time."""

    def __init__(self) -> None:
        self.busy = False
        self.failure: DiskError | None = None
        """Why nothing more becomes durable; nothing is retried."""
        self._done: Commit | None = None

    @abstractmethod
    def submit(self, commit: Commit) -> None:
        """Start a batch; ``busy`` until ``finished`` returns it."""

    def finished(self) -> Commit | None:
        """The batch that has become durable since the last call, or None."""
        done = self._done
        if done is not None:
            self._done = None
            self.busy = False
        return done

    def run_now(self, commit: Commit) -> None:
        """Carry out a batch before returning; not while busy. Without room it is submitted as by ``submit``."""
        try:
            write_commit(commit)
            self._done = commit
        except NoSpaceError:  # the thread may free room before it tries again
            self.submit(commit)
        except DiskError as error:
            self.fail(error)

    def fail(self, error: DiskError) -> None:
        """Nothing more becomes durable."""
        self.failure = error

    @abstractmethod
    def later(self, work: Callable[[], None]) -> None:
        """Do file work that nothing waits for, after the batches submitted so far."""

    @abstractmethod
    def stop(self) -> None:
        """Finish all submitted work, then end."""


class ThreadCommitter(Committer):
    """Syncs in its own thread, so that the event loop does not wait for the disk. That thread calls ``wake``."""

    def __init__(self, wake: Callable[[], None], name: str = "committer") -> None:
        super().__init__()
        self._wake = wake
        self._work: SimpleQueue[Commit | Callable[[], None] | None] = SimpleQueue()
        self._worker = threading.Thread(target=self._run, name=name, daemon=True)
        self._worker.start()

    @property
    def is_here(self) -> bool:
        """Is the caller in this committer's thread?"""
        return threading.current_thread() is self._worker

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                if isinstance(work, Commit):
                    if self.failure is None:
                        write_commit(work)
                        self._done = work
                else:
                    work()
            except DiskError as refused:
                self.failure = refused
            except Exception as error:  # if the thread died silently, everybody would wait for ever
                self.failure = DiskError(f"the thread {self._worker.name!r} failed: {error!r}")
            work = None  # while this thread waits for the next one it keeps nothing of this one
            self._wake()

    def submit(self, commit: Commit) -> None:
        self.busy = True
        self._work.put(commit)

    def fail(self, error: DiskError) -> None:
        super().fail(error)
        self._wake()  # the turn has already checked for failures, and nothing else may wake the next one

    def later(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def stop(self) -> None:
        self._work.put(None)
        self._worker.join()
