"""The core's only view of storage: what must be remembered, in order, and what order means.

Each record appended gets the next log sequence number (lsn). An output that depends on a record carries its lsn and
leaves when ``lsn <= durable_lsn``. Storage never calls the core back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from artemis_py.message import Message


class RecordLog(ABC):
    """Where the core writes what a crash must not undo. Every method but ``seal`` only gathers; ``seal`` ends a
    turn.
    """

    durable_lsn: int
    """Everything up to this lsn survives a crash."""

    @abstractmethod
    def published(self, message: Message, queue_names: list[str]) -> int:
        """A durable message went to these durable queues; returns the record's lsn."""

    @abstractmethod
    def settled(self, message: Message, queue_name: str, reason: str) -> int:
        """A queue is done with a durable message (acked, replaced, expired, killed); returns the record's lsn."""

    @abstractmethod
    def seal(self) -> None:
        """The turn is over: hand what was gathered to whoever makes it durable."""


class MemoryLog(RecordLog):
    """Keeps nothing: every lsn is 0, which every connection may release at once. For a broker without persistence."""

    def __init__(self) -> None:
        self.durable_lsn = 0

    def published(self, message: Message, queue_names: list[str]) -> int:
        return 0

    def settled(self, message: Message, queue_name: str, reason: str) -> int:
        return 0

    def seal(self) -> None:
        return
