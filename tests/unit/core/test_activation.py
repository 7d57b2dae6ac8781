"""Messages that become active in order: what decides, and what it costs with many messages and many consumers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from artemis_py.core.queue.barriers import BarrierRule, TargetDepth
from artemis_py.core.queue.messages import PendingMessages
from artemis_py.selector import compile_selector
from tests.kit.core import NOW_MS, consumer_on, entry_of, head_of, lines_run, send, with_queue, write

DEPTHS = (500, 20_000)
ALLOWANCE = 1.1
IN_ORDER: dict[str, dict[str, Any]] = {
    "barriers": {"barrier_expression": "kind = 'barrier'"},
    "target depth": {"target_queue_depth": 10},
}


def test_a_barrier_is_what_matches() -> None:
    """Neither false nor unknown does."""
    rule = BarrierRule(compile_selector("kind = 'barrier'"))
    assert rule.makes_barriers
    assert not rule.lets_in(entry_of(kind="barrier").message, 0)
    assert rule.lets_in(entry_of(kind="other").message, 10**6)
    assert rule.lets_in(entry_of().message, 0)
    assert rule.units_of(entry_of().message) > 0


def test_so_many_are_active() -> None:
    target = TargetDepth(2)
    assert not target.makes_barriers
    assert [target.lets_in(entry_of().message, count) for count in range(4)] == [True, True, False, False]
    assert target.units_of(entry_of().message) == 0


def test_they_stand_in_order_of_arrival_whoever_goes() -> None:
    pending = PendingMessages(TargetDepth(1))
    entries = [entry_of(id=number) for number in (3, 1, 2)]
    for entry in entries:
        entry.sequence = entry.message.id
        pending.add(entry)
    another = entry_of(id=3)
    another.sequence = 3
    first = pending.first()
    assert first is entries[1]
    pending.barrier = first
    pending.remove(entries[1])
    assert pending.first() is entries[2]
    assert (pending.first(), pending.count) == (entries[2], 2)
    assert (pending.at(3), pending.at(1), pending.has(another)) == (entries[0], None, False)
    pending.aside_count = 1
    assert pending.count == 1, "one of them waits for its time"


@pytest.mark.interpreted
@pytest.mark.parametrize("name", IN_ORDER)
def test_no_part_costs_more_with_many_behind(name: str) -> None:
    """To arrive, to go out and be acknowledged, to expire, to be looked at: for some messages."""
    costs: list[dict[str, int]] = []
    for depth in DEPTHS:
        broker, queue = with_queue(max_per_subscription_backlog=10, **IN_ORDER[name])
        send(broker, head=head_of(kind="first"))
        send(broker, head=head_of(kind="barrier"))
        for _ in range(depth):
            send(broker)
        for _ in range(10):
            broker.dispatch(NOW_MS)
        cost = {"arrive": lines_run(partial(send, broker, count=20))}
        send(broker, count=20, expires_ms=NOW_MS + 5)
        cost["expire"] = lines_run(partial(queue.expire_due, NOW_MS + 5))
        cost["dispatch"] = lines_run(partial(broker.dispatch, NOW_MS))
        consumer = consumer_on(broker, queue, backlog_max=10)
        cost["go out"] = lines_run(partial(broker.dispatch, NOW_MS))
        write(broker)
        broker.budget.refill(100)
        held = consumer.let_go_all()
        cost["acknowledge"] = lines_run(partial(queue.acknowledge, consumer, held))
        cost["go on"] = lines_run(partial(broker.dispatch, NOW_MS))
        assert queue.contents.counters.expired == 20
        costs.append(cost)
    for part, lines in costs[1].items():
        assert lines <= costs[0][part] * ALLOWANCE + 5, f"{part}: {costs[0][part]} lines, and {lines} with more behind"


@pytest.mark.interpreted
def test_who_leaves_while_a_barrier_is_out_costs_the_same_with_many_consumers() -> None:
    costs: list[int] = []
    for count in (50, 3000):
        broker, queue = with_queue(**IN_ORDER["barriers"])
        waited_for = consumer_on(broker, queue, room=0)
        consumers = [consumer_on(broker, queue) for _ in range(count)]
        send(broker, head=head_of(kind="barrier"))
        for _ in range(count):
            broker.budget.refill(1000)
            broker.dispatch(NOW_MS)
            write(broker)
        assert queue.contents.counters.held_count == 1, "one is still to get it"
        leaves = partial(broker.detach, queue, consumers[0], failed=False, now_ms=NOW_MS)
        costs.append(lines_run(leaves))
        broker.detach(queue, waited_for, failed=False, now_ms=NOW_MS)
        for _ in range(count):
            broker.budget.refill(1000)
            broker.dispatch(NOW_MS)
        assert queue.message_count == 0
    assert costs[1] <= costs[0] * 1.2 + 20, costs
