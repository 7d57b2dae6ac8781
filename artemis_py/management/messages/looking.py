"""Looks through the messages of a queue, in steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.scan import LocatedMessage, QueueScan
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.management.managed import Managed

STEP_UNITS: Final = 200
"""What a step may cost, in units of a turn."""
Looking = Generator[Until | None, None, int]


def look(
    managed: Managed,
    queue: Queue,
    states: Collection[str],
    choice: MessageFilter,
    see: Callable[[LocatedMessage, Budget], bool],
) -> Looking:
    """Show each chosen message that is in one of the states to ``see``, until that says that it has seen enough.
    Returns how many were looked at.
    """
    return (yield from look_on(managed, queue, QueueScan(queue, states, choice.ids or ()), choice, see))


def look_on(
    managed: Managed,
    queue: Queue,
    scan: QueueScan,
    choice: MessageFilter,
    see: Callable[[LocatedMessage, Budget], bool],
) -> Looking:
    """The same with a scan of this queue, which is closed at the end."""
    budget = Budget()
    try:
        is_enough = False
        while not (scan.is_done or is_enough or queue.deleted):
            budget.refill(STEP_UNITS)
            located = scan.next(budget)
            while located is not None and not is_enough:
                is_enough = choice.holds(located.message, budget) and see(located, budget)
                located = None if is_enough or budget.is_spent else scan.next(budget)
            yield managed.in_a_moment() if scan.is_waiting else None
        return scan.looked_count
    finally:
        scan.close()
