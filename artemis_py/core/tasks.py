"""Work that goes on in later turns, with its share of the budget: of the broker, and of one queue in its order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Final, final

from mypy_extensions import mypyc_attr

from artemis_py.core.budget import Budget
from artemis_py.errors import StorageError

# ---- agenda ----------------------------------------------------------------------------------------------------------
#
# Work that may be larger than a turn: it is done in slices, a little of each chore in every turn.


@mypyc_attr(allow_interpreted_subclasses=True)
class Chore(ABC):
    """Work that was decided and is carried out over as many turns as it takes."""

    @abstractmethod
    def work(self, budget: Budget, now_ms: int) -> bool:
        """Do some of it. Spend from ``budget`` and stop soon after that is spent, but get on by at least one step even
        when it is spent already. Returns True when everything is done.
        """

    def recover(self) -> bool:
        """``work`` has raised an exception. Returns True when there is more to do that does not depend on the step that
        failed; otherwise the chore is given up.
        """
        return False


@final
class Agenda:
    """The unfinished chores. Each gets its share of a turn, so none holds up another."""

    __slots__ = ("_share", "broken", "chores")

    def __init__(self) -> None:
        self.broken: list[tuple[str, Exception]] = []
        """Chores that raised an exception, by the name of their class. Whoever reports them takes them out."""
        self.chores: deque[Chore] = deque()
        """Those that are not done."""
        self._share = Budget()

    def __len__(self) -> int:
        return len(self.chores)

    def add(self, chore: Chore) -> None:
        """Have a chore done, from the next ``run`` on."""
        self.chores.append(chore)

    def run(self, budget: Budget, now_ms: int) -> None:
        """Go around the chores once at most. The first chore gets on in any case: a turn that others have used up must
        not put it off for ever.

        A chore that raises an exception leaves the shares of the others alone. It is noted in ``broken`` and goes on if
        ``Chore.recover`` says so. StorageError passes: the disk failed.
        """
        chores = self.chores
        share = self._share
        for waiting in range(len(chores), 0, -1):
            units = max(budget.left // waiting, 1)
            share.refill(units)
            chore = chores.popleft()
            try:
                is_done = chore.work(share, now_ms)
            except StorageError:
                raise
            except Exception as error:
                self.broken.append((type(chore).__name__, error))
                is_done = not chore.recover()
            if not is_done:
                chores.append(chore)
            budget.spend(units - share.left)
            if budget.is_spent:
                break


# ---- works -----------------------------------------------------------------------------------------------------------
#
# Works of a queue that may take longer than a turn: they are carried out one after the other, a little in each turn.
# Each work is decided at once and carried out in order, so its result is the same as in one go. While a work moves
# entries (``holds``), the queue dispatches nothing: no consumer may get an entry that stands behind one on its way
# back.


SLICE_MAX: Final = 512
"""How many entries go into one record of the log, or are looked at before the budget is checked again."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueWork(ABC):
    """One work of a queue. Who asked for it may have to wait until ``may_go_on``."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        """Is dispatch held back until it is done?"""
        self.added_count = 0
        """How many entries it has put on the queue. The queue reacts to them when it is done."""
        self.done = False
        self.failed = False
        """Has it broken off with an exception? The exception is reported."""

    @property
    def may_go_on(self) -> bool:
        """Is it done?"""
        return self.done

    @abstractmethod
    def work(self, budget: Budget, now_ms: int) -> bool:
        """Do some of it; see ``Chore.work``. What raises in a step leaves the entries of the step on the queue."""

    def break_off(self, now_ms: int) -> None:
        """A step has failed, and the work ends: put back what it was still to do something with."""
        return


@final
class QueueWorks:
    """The unfinished works of one queue, in order."""

    __slots__ = ("_holding_count", "_waiting", "is_lifted", "late_count")

    def __init__(self) -> None:
        self._waiting: deque[QueueWork] | None = None
        """None before the first of them: most queues never have any."""
        self._holding_count = 0
        self.is_lifted = False
        """Has the first work finished moving entries? It serves consumers before it ends."""
        self.late_count = 0
        """How many entries arrived meanwhile. A full queue has not been trimmed for them yet."""

    @property
    def holds(self) -> bool:
        """Is dispatch held back now?"""
        return self._holding_count > 0 and not self.is_lifted

    @property
    def first(self) -> QueueWork | None:
        """The work that is under way; None when there is none."""
        return self._waiting[0] if self._waiting else None

    def add(self, work: QueueWork) -> None:
        """Add a work behind all others."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(work)
        self._holding_count += work.holds

    def end_first(self) -> bool:
        """End the first work. Returns whether it was the last of those that move entries."""
        assert self._waiting, "something is under way"
        work = self._waiting.popleft()
        work.done = True
        self._holding_count -= work.holds
        return work.holds and not self._holding_count

    def take_late(self) -> int:
        """How many entries arrived meanwhile. The count starts again at 0."""
        count, self.late_count = self.late_count, 0
        return count
