"""What each step of a leased message costs by fairness model, in lines of Python, whatever the machine: the same on a
deep queue, and the same beside many subscriptions.
"""

from __future__ import annotations

from functools import partial

import pytest

from bench.fairness import LeasedQueue
from tests.kit.core import lines_run

pytestmark = pytest.mark.interpreted

MODELS = ("fast", "round-robin", "proportional")
DEPTHS = (500, 20_000)
SUBSCRIPTIONS = (5, 500)
BACKLOGS = (1, 4)
ALLOWANCE = 1.1


def costs_of(depth: int, consumers: int, model: str, backlog: int) -> dict[str, float]:
    """Lines for each message."""
    queue = LeasedQueue(depth, consumers, model, backlog)
    each: dict[str, float] = {}

    def note(name: str, lines: int, count: int) -> None:
        each[name] = lines / count

    note("acknowledge", lines_run(queue.acknowledge_all), queue.held)
    note("arrive", lines_run(partial(queue.arrive, queue.held)), queue.held)
    note("dispatch", lines_run(queue.dispatch), queue.held)
    note("lease", lines_run(queue.send), queue.held)
    some = queue.consumers[:: max(len(queue.consumers) // 20, 1)]
    note("alone", sum([lines_run(partial(queue.one_more, one)) for one in some]), len(some))
    queue.wait()
    note("expire", lines_run(queue.expire), queue.held)
    note("dispatch again", lines_run(queue.dispatch), queue.held)
    note("lease again", lines_run(queue.send), queue.held)
    return each


@pytest.mark.parametrize("backlog", BACKLOGS)
@pytest.mark.parametrize("model", MODELS)
def test_a_leased_message_costs_the_same(model: str, backlog: int) -> None:
    usual = costs_of(DEPTHS[0], SUBSCRIPTIONS[0], model, backlog)
    deep = costs_of(DEPTHS[1], SUBSCRIPTIONS[0], model, backlog)
    many = costs_of(DEPTHS[0], SUBSCRIPTIONS[1], model, backlog)
    print({name: (round(cost, 1), round(deep[name], 1), round(many[name], 1)) for name, cost in usual.items()})
    for found in (deep, many):
        assert [name for name, cost in found.items() if cost > ALLOWANCE * usual[name]] == []
