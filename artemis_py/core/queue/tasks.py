"""Carries out a queue's works in order, a little in each turn."""

from __future__ import annotations

from typing import final

from artemis_py.core.agenda import Chore
from artemis_py.core.budget import Budget
from artemis_py.core.queue.aftermath import Aftermath
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.growth import Growth
from artemis_py.core.queue.works import QueueWork, QueueWorks


@final
class Tasks(Chore):
    """Begins the works of one queue and goes on with them. It is on the agenda while a work is unfinished."""

    __slots__ = ("_aftermath", "_growth", "_host", "_reference", "_serves", "_works")

    def __init__(self, basis: QueueBasis, works: QueueWorks, growth: Growth, aftermath: Aftermath) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._works = works
        self._growth = growth
        self._aftermath = aftermath
        self._serves = False
        """Is the queue between two works, looking at what arrived meanwhile?"""

    @property
    def are_done(self) -> bool:
        """Is no work unfinished?"""
        return self._works.first is None

    def begin(self, work: QueueWork, now_ms: int, budget: Budget | None = None) -> QueueWork | None:
        """Carry out a work, behind those begun before. Returns it when it is unfinished: it goes on in later turns.
        ``budget``: that of the chore that asks, instead of a share of the turn's.
        """
        if self._works.first is not None:
            self._works.add(work)
            return work
        if self._is_done(work, now_ms, budget):
            if work.added_count:
                self._growth.run(work.added_count, now_ms)
            self._aftermath.run()
            return None
        self._works.add(work)
        self._host.agenda.add(self)
        self._aftermath.run()
        return work

    def _is_done(self, work: QueueWork, now_ms: int, budget: Budget | None) -> bool:
        share = self._host.budget.lend() if budget is None else budget
        try:
            return work.work(share, now_ms)
        except Exception:
            work.failed = True
            work.break_off(now_ms)
            self._host.note_ready(self._reference)
            raise
        finally:
            if budget is None:
                self._host.budget.take_back(share)

    def work(self, budget: Budget, now_ms: int) -> bool:
        first = self._works.first
        while first is not None and first.work(budget, now_ms):
            self._end_first(first, now_ms)
            first = self._works.first
            if budget.is_spent:
                break
        self._aftermath.run()
        return first is None

    def _end_first(self, work: QueueWork, now_ms: int) -> None:
        """End the first work. If no entries are being moved any more, look at those that arrived meanwhile and serve
        consumers.
        """
        works = self._works
        added, work.added_count = work.added_count, 0
        if added:
            works.is_lifted = True
            self._growth.run(added, now_ms)
            works.is_lifted = False
        if works.end_first() and not self._reference.deleted:
            self._serves = True
            late_count = works.take_late()
            if late_count:
                self._growth.run(late_count, now_ms)
            self._host.note_ready(self._reference)
            self._serves = False

    def recover(self) -> bool:
        if self._serves:  # the work before is done, and the next has not begun
            self._serves = False
            self._host.note_ready(self._reference)
            return self._works.first is not None
        first = self._works.first
        assert first is not None, "what broke off was under way"
        first.failed = True
        first.break_off(self._host.log.now_ms)
        self._works.is_lifted = False
        self._end_first(first, self._host.log.now_ms)
        return self._works.first is not None
