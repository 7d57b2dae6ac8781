"""Asks selectors about a transaction's messages before its COMMIT."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.addresses.route import Route
from artemis_py.core.budget import Budget
from artemis_py.core.placing.verdicts import Verdicts
from artemis_py.message import Message
from artemis_py.selector import Program

_PASSES_MAX: Final = 8
"""How many passes look for selectors that arrived meanwhile. A client that subscribes without end must not hold up a
COMMIT.
"""


@final
class Inquiry:
    """Asks some selectors in each turn, because all of them may cost more than one turn has."""

    __slots__ = ("_asked", "_passes_left", "_place", "_sends", "verdicts")

    def __init__(self, sends: list[tuple[Route, Message, int]]) -> None:
        self._sends = sends
        self._place = 0
        self._passes_left = _PASSES_MAX
        self._asked: dict[Route, list[Program]] = {}
        """The programs that this pass asks about the messages of each route, taken when it reached the first of
        them.
        """
        self.verdicts: dict[Message, Verdicts] = {}

    def ask(self, bindings: Bindings, budget: Budget, stop_at: int) -> bool:
        """Ask until the budget is down to ``stop_at`` units, at least one selector. Returns True when all are asked."""
        while not self._pass_on(bindings, budget, stop_at):
            if budget.left <= stop_at:
                return False
        return True

    def _pass_on(self, bindings: Bindings, budget: Budget, stop_at: int) -> bool:
        """Go on with this pass. Returns True when it was the last."""
        sends = self._sends
        while self._place < len(sends):
            route, message, _ = sends[self._place]
            programs = self._asked.get(route)
            if programs is None:
                programs = self._asked[route] = bindings.cost_of(route).programs.copy()
            if programs:
                verdicts = self.verdicts.get(message)
                if verdicts is None:
                    verdicts = self.verdicts[message] = Verdicts(message)
                if not verdicts.ask_ahead(programs, budget, stop_at):
                    return False
            self._place += 1
            if budget.left <= stop_at and self._place < len(sends):
                return False
        self._passes_left -= 1
        if self._passes_left <= 0 or all(
            bindings.cost_of(route).programs == programs for route, programs in self._asked.items()
        ):
            return True
        self._asked.clear()
        self._place = 0
        return False
