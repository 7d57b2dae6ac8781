"""Work in slices: what is larger than a turn goes on in the next, and nobody is left out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.tasks import Agenda, Task
from artemis_py.errors import StorageError


@dataclass(eq=False)
class Steps(Task):
    """So many steps of one unit each, or an error instead."""

    left: int = 1
    error: Exception | None = None

    def work(self, budget: Budget, now_ms: int) -> bool:
        if self.error is not None:
            raise self.error
        while True:
            self.left -= 1
            budget.spend(1)
            if not self.left:
                return True
            if budget.is_spent:
                return False


def _run(agenda: Agenda, units: int) -> int:
    budget = Budget()
    budget.refill(units)
    agenda.run(budget, 0)
    return units - budget.left


def test_a_budget_without_a_limit_is_never_spent() -> None:
    budget = Budget()
    budget.spend(10**12)
    assert not budget.is_spent


def test_a_task_larger_than_a_turn_goes_on_in_the_next() -> None:
    agenda, task = Agenda(), Steps(25)
    agenda.add(task)
    assert [_run(agenda, 10), _run(agenda, 10), _run(agenda, 10)] == [10, 10, 5]
    assert (task.left, len(agenda)) == (0, 0)


def test_a_small_task_does_not_wait_for_a_large_one() -> None:
    agenda, large, small = Agenda(), Steps(1_000_000), Steps(3)
    agenda.add(large)
    agenda.add(small)
    assert _run(agenda, 100) == 50 + 3
    assert small.left == 0
    assert len(agenda) == 1


def test_with_a_budget_of_nothing_each_task_still_gets_on_in_its_turn() -> None:
    agenda = Agenda()
    tasks = [Steps(2) for _ in range(5)]
    for task in tasks:
        agenda.add(task)
    for _ in range(10):
        _run(agenda, 0)
    assert [task.left for task in tasks] == [0] * 5
    assert len(agenda) == 0


def test_a_task_that_breaks_off_is_given_up_and_the_others_go_on() -> None:
    agenda, other = Agenda(), Steps(5)
    breaking = Steps(error=ValueError("broken"))
    agenda.add(breaking)
    agenda.add(other)
    _run(agenda, 100)
    assert (other.left, len(agenda)) == (0, 0)
    assert [(broken.task, str(broken.error)) for broken in agenda.broken] == [(breaking, "broken")]


def test_a_disk_that_fails_in_a_task_is_nobodys_to_catch() -> None:
    agenda = Agenda()
    agenda.add(Steps(error=StorageError("no space")))
    with pytest.raises(StorageError):
        _run(agenda, 100)
