"""What each part of a message's way costs on deep queues of every type, in lines of Python, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from tests.kit.core import NOW_MS, consumer_on, counting, head_of, lines_run, send, with_queue

TYPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "standard": {"queue_type": "standard"},
    "priority": {"priority_levels": 3},
    "sorted": {"sort_key": "k"},
    "last-value": {"queue_type": "lvq", "last_value_key": "k"},
}
DEPTHS = (500, 6_000)
ALLOWANCE = 1.25
"""A block more or less is made or dropped now and then; a search by halves is one line at any depth."""


def filled(attributes: dict[str, Any], depth: int) -> tuple[Broker, Queue]:
    """A queue with so many messages, each with a key of its own and one of ten priorities."""
    broker, queue = with_queue(**attributes)
    send_numbers(broker, [number * 7919 % depth for number in range(depth)])
    return broker, queue


def send_numbers(broker: Broker, numbers: Iterable[int], expires_ms: int = 0) -> None:
    """A message for each."""
    for number in numbers:
        send(broker, head=head_of(priority=number % 10, k=f"{number:08}"), expires_ms=expires_ms)


@pytest.mark.parametrize("name", TYPES)
def test_no_part_costs_more_on_a_deep_queue(name: str) -> None:
    """Lines for a few messages: to arrive, be dispatched, return, expire, be given up, be replaced."""
    found: list[dict[str, int]] = []
    for depth in DEPTHS:
        broker, queue = filled(TYPES[name], depth)
        costs = {"arrive": lines_run(partial(send_numbers, broker, range(depth, depth + 20)))}
        send_numbers(broker, range(depth + 20, depth + 40), NOW_MS + 5)
        costs["expire"] = lines_run(partial(queue.expire_due, NOW_MS + 5))
        consumer = consumer_on(broker, queue, weigh=lambda message: 1, room=20)
        costs["dispatch"] = lines_run(partial(queue.dispatch, NOW_MS))
        release = partial(queue.release, failed=False, now_ms=NOW_MS)
        costs["release"] = lines_run(lambda: release(consumer, consumer.let_go_all()))  # noqa: B023
        broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
        broker.queue_operations.set_ring_size("q", queue.message_count)
        last = range(depth + 100, depth + 120)
        costs["evict"] = lines_run(partial(send_numbers, broker, last))
        costs["replace"] = lines_run(partial(send_numbers, broker, last))
        assert queue.contents.counters.replaced == 40
        assert queue.message_count == depth + 20
        found.append(costs)
    shallow, deep = found
    for part, lines in deep.items():
        assert lines <= shallow[part] * ALLOWANCE, (
            f"{part}: {shallow[part]} lines at {DEPTHS[0]}, {lines} at {DEPTHS[1]}"
        )


@pytest.mark.interpreted
@pytest.mark.parametrize("name", TYPES)
def test_a_filtered_consumer_never_tests_an_entry_twice(name: str) -> None:
    """Whatever arrives in between, also before the place that it has come to."""
    broker, queue = filled(TYPES[name], 300)
    consumer = consumer_on(broker, queue, selector="k = 'nobody'")
    asked = counting(consumer)
    queue.dispatch(NOW_MS)
    assert asked.call_count == 300
    for number in range(40):
        send_numbers(broker, [1000 - 25 * number])
        queue.dispatch(NOW_MS)
    assert asked.call_count == 340
