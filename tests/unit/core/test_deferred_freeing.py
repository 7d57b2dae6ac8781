"""Much that nobody needs any more is forgotten in slices: ``core/queue/groups.py``."""

from __future__ import annotations

import weakref
from itertools import pairwise

from artemis_py.core.budget import TURN_UNITS, Budget
from artemis_py.core.queue.groups import free_later
from artemis_py.core.tasks import Agenda
from tests.kit.thing import Thing


def test_very_much_goes_in_several_turns() -> None:
    things = {number: Thing() for number in range(100_000)}
    left = weakref.WeakSet(things.values())
    agenda = Agenda()
    free_later(things, agenda)
    del things
    counts = [len(left)]
    while agenda:
        budget = Budget()
        budget.refill(TURN_UNITS)
        agenda.run(budget, 0)
        counts.append(len(left))
    assert counts[0] == 100_000
    assert counts[-1] == 0
    assert max(before - after for before, after in pairwise(counts)) <= 42_000


def test_little_goes_at_once() -> None:
    agenda = Agenda()
    things = {1: Thing()}
    left = weakref.ref(things[1])
    free_later(things, agenda)
    del things
    assert not agenda
    assert left() is None
