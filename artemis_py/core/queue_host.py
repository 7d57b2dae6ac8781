"""What all queues share: the log, the time, the turn's budget, and where they note work for later in the turn."""

from __future__ import annotations

from collections import deque
from typing import final

from artemis_py.core.budget import Budget
from artemis_py.core.clock import Clock
from artemis_py.core.consumer import Consumer
from artemis_py.core.counter_history import Rounds
from artemis_py.core.dead_letters import Copies, DeadLetterAddresses
from artemis_py.core.events import GIVEN_UP, Events, described
from artemis_py.core.notifications import Notifications
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.queue_reference import QueueReference
from artemis_py.core.queue_timers import Timers
from artemis_py.core.tasks import Agenda
from artemis_py.record_log import RecordLog


@final
class QueueHost:
    """The log, the clock, the budget of the turn, timers and events: shared by all queues, one for each broker."""

    __slots__ = ("agenda", "budget", "clock", "copies", "dead_letter_addresses", "events", "log", "message_id",
                 "notifications", "outcomes", "outgoing", "ready", "rounds", "timers", "turn_ms")  # fmt: skip

    def __init__(self, log: RecordLog) -> None:
        self.log = log
        self.clock = Clock()
        """Turns dates into steady times; the server tells it when the wall clock was set."""
        self.budget = Budget()
        """What the turn that runs may still do."""
        self.agenda = Agenda()
        """Tasks that are larger than a turn."""
        self.timers = Timers(self.clock)
        self.copies = Copies(log)
        self.events = Events()
        """Events for the operational log."""
        self.dead_letter_addresses = DeadLetterAddresses()
        self.notifications = Notifications()
        """Notifications for listeners."""
        self.rounds = Rounds()
        """Samples of counters of the last hour."""
        self.outcomes: dict[int, PublishOutcome] = {}
        """By message id: the outcome of messages whose publishers wait for it."""
        self.ready: deque[QueueReference] = deque()
        """Queues that may have something to dispatch, in the order in which they are served."""
        self.outgoing: list[Consumer] = []
        """Consumers whose outbox is to be written out in this turn."""
        self.turn_ms = 0
        """The date of the turn that runs, in epoch ms, for operators."""
        self.message_id = 0
        """The highest id that a message has."""

    def note_ready(self, queue: QueueReference) -> None:
        """The queue may have something to dispatch."""
        if not queue.noted_ready:
            queue.noted_ready = True
            self.ready.append(queue)

    def note_output(self, consumer: Consumer) -> None:
        """The consumer's outbox has entries."""
        if not consumer.listed:
            consumer.listed = True
            self.outgoing.append(consumer)

    def note_event(
        self, code: str, queue: QueueReference, fields: dict[str, str | int], *, kind: str = "", count: int = 1
    ) -> None:
        """Something happened to the queue that belongs in the operational log (``core/events.py``)."""
        self.events.note(code, queue.name, fields, kind=kind, count=count)

    def give_up(self, queue_name: str, step: str, error: Exception) -> None:
        """A copy or a task has failed and is given up: note it for the operational log. Raises the error when the disk
        failed.
        """
        self.events.note(GIVEN_UP, queue_name, described(step, error), kind=step)

    def next_message_id(self) -> int:
        """A number that no message has had."""
        self.message_id += 1
        return self.message_id

    def take_message_ids(self, count: int) -> int:
        """Reserve ``count`` numbers for messages; returns the first."""
        first = self.message_id + 1
        self.message_id += count
        return first
