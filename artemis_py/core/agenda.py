"""Work that may be larger than a turn, done in slices: a little of each in every turn, in rotation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import final

from mypy_extensions import mypyc_attr

from artemis_py.core.budget import Budget
from artemis_py.errors import StorageError


@mypyc_attr(allow_interpreted_subclasses=True)
class Chore(ABC):
    """Something that was decided and is carried out over as many turns as it takes."""

    @abstractmethod
    def work(self, budget: Budget, now_ms: int) -> bool:
        """Do some of it, spending from ``budget`` and stopping soon after it is spent. True when all is done. It must
        get on by at least one step even with a budget that is spent already.
        """

    def recover(self) -> bool:
        """``work`` has raised an exception. True when there is more to do that does not depend on what failed; else the
        chore is given up.
        """
        return False


@final
class Agenda:
    """The chores that are not done. Each gets its share of a turn, so that no one of them holds up another."""

    __slots__ = ("_chores", "_share", "broken")

    def __init__(self) -> None:
        self.broken: list[tuple[str, Exception]] = []
        """Chores that broke off and are given up, by the name of their class; whoever tells of them takes them out."""
        self._chores: deque[Chore] = deque()
        self._share = Budget()

    def __len__(self) -> int:
        return len(self._chores)

    def add(self, chore: Chore) -> None:
        """Have a chore done, beginning with the next ``run``."""
        self._chores.append(chore)

    def run(self, budget: Budget, now_ms: int) -> None:
        """Go once around the chores at the most. The first one gets on in any case: a turn that is used up by others
        must not put it off for ever. One that breaks off keeps none of the others from its share and is told in
        ``broken``; it goes on if it says so (``Chore.recover``). StorageError passes: the disk failed.
        """
        chores = self._chores
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
