"""What a queue needs of the broker around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr, trait

from artemis_py.records import RecordLog

if TYPE_CHECKING:
    from artemis_py.core.consumer import Consumer
    from artemis_py.core.entry import Entry
    from artemis_py.core.queue import Queue


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class Host(ABC):
    """None of these runs any queue: they only note work for later in the turn."""

    log: RecordLog

    @abstractmethod
    def note_ready(self, queue: Queue) -> None:
        """The queue may have something to dispatch."""

    @abstractmethod
    def note_output(self, consumer: Consumer) -> None:
        """The consumer's outbox has entries."""

    @abstractmethod
    def note_due(self, due_ms: int, queue: Queue, entry: Entry) -> None:
        """The entry is scheduled and falls due at ``due_ms``."""

    @abstractmethod
    def note_alarm(self, due_ms: int, queue: Queue) -> None:
        """The queue has something to look at when ``due_ms`` comes."""

    @abstractmethod
    def note_event(
        self, code: str, queue: Queue, fields: dict[str, str | int], *, kind: str = "", count: int = 1
    ) -> None:
        """Something happened to the queue that belongs into the operational log (``core/events.py``)."""

    @abstractmethod
    def note_dead(self, queue: Queue, entry: Entry) -> None:
        """The entry failed for the last time; a copy belongs on the dead-letter address."""

    @abstractmethod
    def note_expired(self, queue: Queue, entry: Entry) -> None:
        """The entry expired; a copy belongs on the expiry address."""
