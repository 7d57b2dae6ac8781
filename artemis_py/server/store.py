"""The server's view of the broker's files, for every kind of store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from artemis_py.logged import ReplayLog
from artemis_py.records import Durability, PageLog, RecordLog, RecoveredState
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.space import SpaceReserve

if TYPE_CHECKING:
    from artemis_py.server.cursor_desk import CursorDesk
    from artemis_py.server.log_view import LogView


class Store(ABC):
    """Where a broker's log, pages and large bodies go. A part that is None does not exist: its data stays in memory."""

    log: RecordLog
    durability: Durability
    """Makes the records of ``log`` durable."""
    pages: PageLog | None
    large: LargeStore | None
    log_view: LogView | None = None
    """The log for readers; None: there is no log to read."""
    cursor_desk: CursorDesk | None = None
    """The cursors of these readers; None: there is no log to read."""
    replay_log: ReplayLog | None = None
    """The log for replays; None: nothing is retained."""
    report: list[str]
    """Lines for standard error about what the start found."""
    rooms: tuple[SpaceReserve, ...] = ()
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
    def look_after(self) -> None:
        """Have a thread check that the directories and locks are those that were opened; if not, the log fails."""

    def hand_over(self) -> None:  # noqa: B027 - only a store of files can be shared
        """The other broker of a pair takes over after ``close``, whatever the configuration says."""

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, then close the files and release the directories."""
