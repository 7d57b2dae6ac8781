"""What selectors say about one message. Each different selector is asked once, however many queues, diverts and
consumers share it.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import Budget
from artemis_py.message import Message
from artemis_py.selector import Program, Selector


@final
class Verdicts:
    """The verdicts on one message. They may be asked for ahead, some in each turn."""

    __slots__ = ("_asked", "_known", "_programs", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self._known: dict[Program, bool] = {}
        self._programs: list[Program] | None = None
        self._asked = 0

    def of(self, selector: Selector | None) -> bool:
        """Does the selector, if there is one, want the message?"""
        return selector is None or self._ask(selector.program)

    def _ask(self, program: Program) -> bool:
        known = self._known.get(program)
        if known is None:
            known = self._known[program] = program.condition(self.message.lookup) is True
        return known

    def ask_ahead(self, programs: list[Program], budget: Budget, stop_at: int) -> bool:
        """Ask all programs of a plan, including those that were added meanwhile, until the budget is down to
        ``stop_at`` units; at least one. Returns True when all are asked.
        """
        if programs is not self._programs:
            self._programs = programs
            self._asked = 0
        size_bytes = self.message.head.size_bytes
        while self._asked < len(programs):
            program = programs[self._asked]
            self._asked += 1
            if program in self._known:
                continue
            self._ask(program)
            budget.spend(program.units + (program.units_per_kb * size_bytes >> 10))
            if budget.left <= stop_at:
                break
        return self._asked >= len(programs)
