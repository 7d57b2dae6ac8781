"""What a queue was told to do and may take longer than a turn: one thing behind the other, a little in each turn.

Each is decided at once and carried out in its order, so what comes of it is what would have come of it in one go. While
something is under way that moves entries (``holds``), the queue dispatches nothing: nobody may be given what stands
behind an entry that is on its way back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Final, final

from mypy_extensions import mypyc_attr

from artemis_py.core.budget import Budget

SLICE_MAX: Final = 512
"""How many entries go into one record of the log, or are looked at before the budget is asked again."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueWork(ABC):
    """One thing that a queue does. Who asked for it may wait until ``may_go_on``."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        """Must nothing be dispatched before it is done?"""
        self.added_count = 0
        """How many entries it has put on the queue; the queue looks at them when it is done."""
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
class QueueWorks:
    """Everything that one queue was told to do and is not done with, in order."""

    __slots__ = ("_holding_count", "_waiting", "is_lifted", "late_count")

    def __init__(self) -> None:
        self._waiting: deque[QueueWork] | None = None
        """None before the first of them: most queues never have any."""
        self._holding_count = 0
        self.is_lifted = False
        """The first one is done with moving entries, and serves consumers before it ends."""
        self.late_count = 0
        """Entries that came meanwhile, and of which it is not yet decided what they push out of a full queue."""

    @property
    def holds(self) -> bool:
        """Must nothing be dispatched now?"""
        return self._holding_count > 0 and not self.is_lifted

    @property
    def first(self) -> QueueWork | None:
        """The one that is under way; None when there is nothing to do."""
        return self._waiting[0] if self._waiting else None

    def add(self, work: QueueWork) -> None:
        """Something more is to be done, behind all the rest."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(work)
        self._holding_count += work.holds

    def end_first(self) -> bool:
        """The first one is over. Was it the last of those that move entries?"""
        assert self._waiting, "something is under way"
        work = self._waiting.popleft()
        work.done = True
        self._holding_count -= work.holds
        return work.holds and not self._holding_count

    def take_late(self) -> int:
        """How many entries came meanwhile; they are looked at now."""
        count, self.late_count = self.late_count, 0
        return count
