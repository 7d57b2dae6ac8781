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
    lines = {
        "acknowledge": lines_run(queue.acknowledge_all),
        "arrive": lines_run(partial(queue.arrive, queue.held)),
        "dispatch": lines_run(queue.dispatch),
        "lease": lines_run(queue.send),
    }
    some = queue.consumers[:: max(len(queue.consumers) // 20, 1)]
    alone = sum([lines_run(partial(queue.one_more, one)) for one in some]) / len(some)
    queue.wait()
    lines |= {
        "expire": lines_run(queue.expire),
        "dispatch again": lines_run(queue.dispatch),
        "lease again": lines_run(queue.send),
    }
    return {"alone": alone, **{name: count / queue.held for name, count in lines.items()}}


@pytest.mark.parametrize("backlog", BACKLOGS)
@pytest.mark.parametrize("model", MODELS)
def test_a_leased_message_costs_the_same(model: str, backlog: int) -> None:
    usual = costs_of(DEPTHS[0], SUBSCRIPTIONS[0], model, backlog)
    deep = costs_of(DEPTHS[1], SUBSCRIPTIONS[0], model, backlog)
    many = costs_of(DEPTHS[0], SUBSCRIPTIONS[1], model, backlog)
    print({name: (round(cost, 1), round(deep[name], 1), round(many[name], 1)) for name, cost in usual.items()})
    for found in (deep, many):
        assert [name for name, cost in found.items() if cost > ALLOWANCE * usual[name]] == []
