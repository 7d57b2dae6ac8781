"""What a queue was told to do and may take longer than a turn: one thing behind the other, a little in each turn.

Each is decided at once and carried out in its order, so what comes of it is what would have come of it in one go. While
something is under way that moves entries (``holds``), the queue dispatches nothing: nobody may be given what stands
behind an entry that is on its way back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from artemis_py.core.agenda import Chore
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer

if TYPE_CHECKING:
    from artemis_py.core.queue import Queue

SLICE_MAX: Final = 512
"""How many entries go into one record of the log, or are looked at before the budget is asked again."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueWork(ABC):
    """One thing that a queue does. Who asked for it may wait until ``may_go_on``."""

    def __init__(self, queue: Queue, *, holds: bool) -> None:
        self.queue = queue
        self.holds = holds
        """Must nothing be dispatched before it is done?"""
        self.done = False
        self.failed = False
        """It broke off with an exception, which was told."""

    @property
    def may_go_on(self) -> bool:
        """Is it over?"""
        return self.done

    @abstractmethod
    def work(self, budget: Budget, now_ms: int) -> bool:
        """Do some of it; see ``Chore.work``."""


@final
class QueueWorks(Chore):
    """Everything that one queue was told to do and is not done with."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting: deque[QueueWork] = deque()
        self._holding_count = 0
        self.is_lifted = False
        """The first one is done with moving entries, and serves consumers before it ends."""
        self.late_count = 0
        """Entries that came meanwhile, and of which it is not yet decided what they push out of a full queue."""
        self._serves = False
        """No work is under way: the queue looks at what came meanwhile."""

    @property
    def holds(self) -> bool:
        """Must nothing be dispatched now?"""
        return self._holding_count > 0 and not self.is_lifted

    def add(self, work: QueueWork) -> None:
        """Something more is to be done, behind all the rest."""
        self._waiting.append(work)
        self._holding_count += work.holds

    def work(self, budget: Budget, now_ms: int) -> bool:
        while self._waiting[0].work(budget, now_ms):
            if self._is_last_done(now_ms):
                return True
            if budget.is_spent:
                return False
        return False

    def _is_last_done(self, now_ms: int) -> bool:
        """The first one is over; True when nothing is left."""
        work = self._waiting.popleft()
        work.done = True
        is_last = not self._waiting
        if is_last:
            self._queue.works = None
        if work.holds:
            self._holding_count -= 1
            if not self._holding_count:
                late_count, self.late_count = self.late_count, 0
                self._serves = True
                self._queue.go_on(late_count, now_ms)
                self._serves = False
        return is_last

    def recover(self) -> bool:
        if self._serves:  # the work before it is done, and the one behind it has not begun
            self._serves = False
            self._queue.host.note_ready(self._queue)
            return len(self._waiting) > 0
        self._waiting[0].failed = True
        return not self._is_last_done(self._queue.host.log.now_ms)


@final
class Settling(QueueWork):
    """An ACK of one message and of all that were sent to the consumer before it. Entries that are not reached yet stay
    in the consumer's hands.
    """

    def __init__(self, queue: Queue, consumer: Consumer, message_id: int) -> None:
        super().__init__(queue, holds=False)
        self._consumer = consumer
        self._message_id = message_id

    def work(self, budget: Budget, now_ms: int) -> bool:
        consumer = self._consumer
        count = min(max(budget.left, 1), SLICE_MAX)
        while True:
            if self._message_id not in consumer.held:  # an ACK in front of this one has settled it
                return True
            entries = consumer.let_go_up_to(self._message_id, count)
            self.queue.acknowledge(consumer, entries)
            budget.spend(len(entries))
            if consumer.parked:
                self.queue.wake(consumer)
            if budget.is_spent and self._message_id in consumer.held:
                return False
