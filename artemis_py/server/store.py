"""The files of a broker: what the server needs of any store, and the store of a broker without persistence."""

from __future__ import annotations

import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artemis_py.config.settings import BrokerConfig
from artemis_py.log_codes import STORAGE
from artemis_py.record_log import Durability, MemoryLog, PageLog, RecordLog, RecoveredState
from artemis_py.replay_log import ReplayLog
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import DiskError, FileDisk, LockedError
from artemis_py.storage.disk.group_commit import ThreadCommitter
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.disk.permissions import make_private
from artemis_py.storage.disk.space import SpaceReserve
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.pages import PageFiles, SpillLog
from artemis_py.terminal_output import warn

if TYPE_CHECKING:
    from artemis_py.server.log_cursors import LogCursors
    from artemis_py.server.log_view import LogView


class Store(ABC):
    """Where a broker's log, pages and large bodies go. Without a part (None) its data stays in memory."""

    log: RecordLog
    durability: Durability
    """Makes the records of ``log`` durable."""
    pages: PageLog | None
    large: LargeStore | None
    log_view: LogView | None = None
    """The log for readers; None: there is no log to read."""
    cursors: LogCursors | None = None
    """The cursors of these readers; None: there is no log to read."""
    replay_log: ReplayLog | None = None
    """The log for replays; None: nothing is retained."""
    report: list[str]
    """Lines for standard error about what the start found."""
    reserves: tuple[SpaceReserve, ...] = ()
    """The room on each file system in use."""

    @abstractmethod
    def recovered_state(self) -> RecoveredState:
        """What the broker takes over. Do not keep it: it holds every message and every large body's file."""

    def open_files(self) -> int:
        """How many files are open now."""
        return 0

    @abstractmethod
    def directories(self) -> tuple[str, ...]:
        """The directories in which files grow."""

    @abstractmethod
    def make_room(self) -> None:
        """Files did not fit: have a thread free room if it can."""

    def give_way(self, is_busy: Callable[[], bool]) -> None:  # noqa: B027 - most stores do nothing that can wait
        """From now on, delay deferrable work while ``is_busy`` returns true; any thread may call it."""

    @abstractmethod
    def check_directories(self) -> None:
        """Have a thread check that the directories and locks are those that were opened; if not, the log fails."""

    def hand_over(self) -> None:  # noqa: B027 - only a store of files can be shared
        """The other broker of a pair takes over after ``close``, whatever the configuration says."""

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, then close the files and release the directories."""


# ---- transient bodies ------------------------------------------------------------------------------------------------
#
# Folders that end with the process, and in one of them the large bodies of a broker without persistence.


class TransientBodies:
    """The large bodies of a broker without persistence. ``store`` is None if there is no place for them, and ``report``
    says so: then bodies of every size stay in memory.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None], check_disk: Callable[[], None]) -> None:
        directory = Path(config.large_messages_directory)
        self.report: list[str] = []
        self.store: LargeStore | None = None
        self.folder = TransientFolder(directory, check_disk)
        if may_be_made(directory):
            remove_leftovers(directory)
            writer, reader = ThreadCommitter(wake, "body writer"), ThreadCommitter(wake, "body reader")
            self.store = LargeStore(self.folder, writer, reader, syncs=False)
        else:
            self.report.append(f"warning: {directory} cannot be created; large messages are kept in memory")

    def close(self) -> None:
        """Remove all of them."""
        if self.store is not None:
            self.store.close()
        self.folder.close()


class TransientFolder(FileDisk):
    """A folder that is created with its first file: most brokers without a journal never see a large body or fill their
    memory. Each process has its own, so that several brokers can share a directory. Any thread may call
    ``check_disk``, when the folder is created and when it has grown much: then disk usage should be checked.
    """

    def __init__(self, directory: Path, check_disk: Callable[[], None] = lambda: None) -> None:
        super().__init__(directory / f"transient-{os.getpid()}-{time.time_ns():x}", is_made=False)
        self._check_disk = check_disk
        self._lock: DirectoryLock | None = None
        self._parents_made: list[Path] = []

    def _descriptor(self, name: str, *, is_new: bool = False) -> int:
        if self._lock is None:
            self._parents_made = [parent for parent in self.directory.parents if not os.path.exists(parent)]
            make_private(self.directory)
            self._lock = DirectoryLock(self.directory)
            self.reserve = SpaceReserve(self.directory, self._check_disk, 0)
            self._check_disk()
        return super()._descriptor(name, is_new=is_new)

    @property
    def is_made(self) -> bool:
        """Was a file written since the start?"""
        return self._lock is not None

    def names(self) -> list[str]:
        return [] if self._lock is None else super().names()

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.release()
            with suppress(OSError):  # another broker may use them by now
                for parent in self._parents_made:
                    parent.rmdir()


def may_be_made(directory: Path) -> bool:
    """Is the directory writable, or can it be created?"""
    nearest = next(path for path in (directory.absolute(), *directory.absolute().parents) if os.path.exists(path))
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def remove_leftovers(directory: Path) -> None:
    """Remove folders of killed processes, whose locks are free."""
    for folder in directory.glob("transient-*"):
        try:
            lock = DirectoryLock(folder)
        except (LockedError, DiskError):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


# ---- transient store -------------------------------------------------------------------------------------------------
#
# The files of a broker without persistence, which end with its process.


def unread_journal(config: BrokerConfig) -> str | None:
    """What to say of a journal that a configuration without persistence leaves as it is; None if there is none."""
    directory = Path(config.journal_directory)
    if config.persistence_enabled:
        return None
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return (
            f"persistence-enabled is false, and whether {directory} has a journal cannot be looked at: "
            f"{error.strerror or error}. If it has one, it is kept and not read"
        )
    if not any(segment_number(name) is not None for name in names):
        return None
    return (
        f"persistence-enabled is false: the journal in {directory} is kept and not read. Its messages are there again "
        "with a start that has persistence-enabled true"
    )


class TransientStore(Store):
    """The pages and large bodies of a broker without persistence, in folders that end with its process. If no folder
    can be created, the broker reports it, starts, and keeps everything in memory.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None], check_disk: Callable[[], None]) -> None:
        with ExitStack() as opened:
            self._bodies = TransientBodies(config, wake, check_disk)
            opened.callback(self._bodies.close)
            self.large = self._bodies.store
            self.report = list(self._bodies.report)
            unread = unread_journal(config)
            if unread is not None:
                self.report.append(f"warning: {unread}")
            self.pages = None
            self.log = self.durability = MemoryLog()
            directory = Path(config.paging_directory)
            self._folder = TransientFolder(directory, check_disk)
            opened.callback(self._folder.close)
            self.folders = self._folder, self._bodies.folder
            if may_be_made(directory):
                self._open_pages(directory, wake, opened)
            else:
                self.report.append(
                    f"warning: {directory} cannot be created: nothing is paged, all messages stay in memory"
                )
            self._opened = opened.pop_all()

    def _open_pages(self, directory: Path, wake: Callable[[], None], opened: ExitStack) -> None:
        remove_leftovers(directory)
        writer, reader = ThreadCommitter(wake, "page writer"), ThreadCommitter(wake, "page reader")
        for thread in (reader, writer):
            opened.callback(thread.stop)
        say = partial(warn, code=STORAGE)
        pages = PageFiles(self._folder, reader, say)
        self.pages = pages
        self.log = self.durability = SpillLog(writer, pages, say)

    def recovered_state(self) -> RecoveredState:
        return RecoveredState()

    def directories(self) -> tuple[str, ...]:
        """Empty until a message was paged or a large body arrived."""
        return tuple(str(folder.directory) for folder in self.folders if folder.is_made)

    def make_room(self) -> None:
        """Nothing to do: pages wait until others are consumed, and large bodies are refused."""

    def check_directories(self) -> None:
        """Nothing to do: these files end with the process."""

    def close(self) -> None:
        self._opened.close()
