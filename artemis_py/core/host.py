"""What a queue needs of the broker around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr, trait

from artemis_py.core.agenda import Agenda
from artemis_py.core.budget import Budget
from artemis_py.core.clock import Clock
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
    clock: Clock
    budget: Budget
    """What the turn that runs may still do."""
    agenda: Agenda
    """What was decided and is larger than a turn."""

    @property
    @abstractmethod
    def last_message_id(self) -> int:
        """The highest id that a message has."""

    @abstractmethod
    def note_ready(self, queue: Queue) -> None:
        """The queue may have something to dispatch."""

    @abstractmethod
    def note_output(self, consumer: Consumer) -> None:
        """The consumer's outbox has entries."""

    @abstractmethod
    def note_due(self, due_ms: int, queue: Queue, entry: Entry, *, is_date: bool) -> None:
        """The entry is scheduled and falls due at ``due_ms``: at that date whenever it comes (``is_date``), or when the
        time until then has passed, whatever date it is.
        """

    @abstractmethod
    def note_alarm(self, due_ms: int, queue: Queue) -> None:
        """The queue has something to look at when the date ``due_ms`` comes. It looks earlier when somebody has set the
        clock.
        """

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
