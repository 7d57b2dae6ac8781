"""Work that may be larger than a turn: it is done in slices, a little of each chore in every turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import final

from mypy_extensions import mypyc_attr

from artemis_py.core.budget import Budget
from artemis_py.errors import StorageError


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
