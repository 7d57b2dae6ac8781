"""Forgets many objects a few at a time: Python would free them all in one go, 30 ms for 100,000."""

from __future__ import annotations

from typing import Any, Final, final

from artemis_py.core.agenda import Agenda, Chore
from artemis_py.core.budget import Budget

_SLICE: Final = 1000
_PER_UNIT: Final = 4


@final
class Disposal(Chore):
    """Empties a dict that nobody uses any more."""

    def __init__(self, things: dict[Any, Any]) -> None:
        self._things = things

    def work(self, budget: Budget, now_ms: int) -> bool:
        things = self._things
        while len(things) > _SLICE:
            for _ in range(_SLICE):
                things.popitem()
            budget.spend(_SLICE // _PER_UNIT)
            if budget.is_spent:
                return False
        return True


def dispose(things: dict[Any, Any], agenda: Agenda) -> None:
    """Have a dict that nobody uses any more forgotten in later turns, if it has much."""
    if len(things) > _SLICE:
        agenda.add(Disposal(things))
