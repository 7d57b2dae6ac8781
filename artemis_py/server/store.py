"""What the server knows of the broker's files, whatever kind of store keeps them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from artemis_py.records import Durability, PageLog, RecordLog, RecoveredState
from artemis_py.server.cursor_desk import CursorDesk
from artemis_py.server.log_view import LogView
from artemis_py.storage.bodies.store import LargeStore
from artemis_py.storage.disk.room import Room


class Store(ABC):
    """Where a broker's log, pages and large bodies go. What is None has no place: then memory has to do."""

    log: RecordLog
    durability: Durability
    """What makes durable what the log is told."""
    pages: PageLog | None
    large: LargeStore | None
    log_view: LogView | None = None
    """What others may read of the log; None: there is none."""
    cursor_desk: CursorDesk | None = None
    """Their cursors in it."""
    report: list[str]
    """What a person should know of what was found."""
    rooms: tuple[Room, ...] = ()
    """One for each file system in use."""

    @abstractmethod
    def recovered_state(self) -> RecoveredState:
        """What the broker takes back. Nobody may keep it longer: it holds every message, and large ones their files."""

    def open_files(self) -> int:
        """How many files are open now."""
        return 0

    @abstractmethod
    def directories(self) -> tuple[str, ...]:
        """Where files grow."""

    @abstractmethod
    def make_room(self) -> None:
        """Files find no room: have done, by a thread, what can be done about it."""

    def give_way(self, is_busy: Callable[[], bool]) -> None:  # noqa: B027 - most stores do nothing that can wait
        """What can wait waits while the broker is busy, from now on."""

    @abstractmethod
    def look_after(self) -> None:
        """Have looked, by a thread, whether the directories and locks are still those that were opened; if not, the log
        fails.
        """

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, and let the files go."""
