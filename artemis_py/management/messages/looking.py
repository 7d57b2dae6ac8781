"""Looks through the messages of a queue, in steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.choice import Choice
from artemis_py.core.operations.scan import Round, Sight
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.management.managed import Managed

STEP_UNITS: Final = 200
"""What a step may cost, in units of a turn."""
Looking = Generator[Until | None, None, int]


def look(
    managed: Managed, queue: Queue, states: Collection[str], choice: Choice, see: Callable[[Sight, Budget], bool]
) -> Looking:
    """Show each chosen message that is in one of the states to ``see``, until that says that it has seen enough.
    Returns how many were looked at.
    """
    return (yield from look_on(managed, queue, Round(queue.parts, states, choice.ids or ()), choice, see))


def look_on(
    managed: Managed, queue: Queue, round: Round, choice: Choice, see: Callable[[Sight, Budget], bool]
) -> Looking:
    """The same with a round of this queue, which is closed in the end."""
    budget = Budget()
    try:
        is_enough = False
        while not (round.is_done or is_enough or queue.deleted):
            budget.refill(STEP_UNITS)
            sight = round.next(budget)
            while sight is not None and not is_enough:
                is_enough = choice.holds(sight.message, budget) and see(sight, budget)
                sight = None if is_enough or budget.is_spent else round.next(budget)
            yield managed.in_a_moment() if round.is_waiting else None
        return round.looked_count
    finally:
        round.close()
