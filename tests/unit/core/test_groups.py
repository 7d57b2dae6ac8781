"""What groups cost, and what they remember."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.budget import TURN_UNITS
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.groups import QueueGroups
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, encode_headers
from tests.kit.core import NOW_MS, consumer_on, counting, lines_run, send, with_queue

STICKY: dict[str, Any] = {"group_type": "STANDARD", "queue_type": "standard"}
SHARED: dict[str, Any] = {"group_type": "SHARED_GROUPS", "queue_type": "standard"}
ALLOWANCE = 1.25


def send_to(broker: Broker, group: str | None, count: int = 1, **headers: str) -> None:
    """Messages of one group."""
    named = {} if group is None else {"JMSXGroupID": group}
    head = Head(encode_headers([("destination", "a"), *named.items(), *headers.items()]), "a")
    for _ in range(count):
        send(broker, head=head)


def groups_of(queue: Queue) -> QueueGroups:
    """The queue's groups, which it must have begun."""
    assert queue.grouping.groups is not None
    return queue.grouping.groups


def busy_and_idle(attributes: dict[str, Any], depth: int) -> tuple[Broker, Queue, Consumer, Consumer]:
    """A consumer that is busy with a group of which ``depth`` more wait, and one that has nothing to do."""
    broker, queue = with_queue(**attributes)
    busy = consumer_on(broker, queue, weigh=lambda message: 1, room=1)
    send_to(broker, "busy", depth + 1)
    queue.dispatch(NOW_MS)
    assert len(busy.held) == 1
    idle = consumer_on(broker, queue)
    for _ in range(depth // 20_000 + 1):
        queue.dispatch(NOW_MS)
    assert not idle.held
    return broker, queue, busy, idle


def pass_one(broker: Broker, queue: Queue, idle: Consumer) -> None:
    """A message of another group comes, and is settled."""
    send_to(broker, "other")
    queue.dispatch(NOW_MS)
    queue.acknowledge(idle, [idle.let_go(next(reversed(idle.held)))])


@pytest.mark.parametrize("attributes", [STICKY, SHARED], ids=["sticky", "shared"])
def test_a_blocked_group_costs_nothing_further(attributes: dict[str, Any]) -> None:
    """With a hundred of it parked and with thousands, another group's message takes as many steps."""
    costs = []
    for depth in (100, 4_000):
        broker, queue, _, idle = busy_and_idle(attributes, depth)
        pass_one(broker, queue, idle)
        costs.append(lines_run(partial(pass_one, broker, queue, idle)))
    assert costs[1] <= costs[0] * ALLOWANCE


@pytest.mark.parametrize("count", [10, 12_000])
def test_very_many_groups_are_freed_in_slices(count: int) -> None:
    """Those of a consumer that leaves. Nobody gets a message before all of them are free."""
    broker, queue = with_queue(**STICKY)
    owner = consumer_on(broker, queue)
    for number in range(count):
        send_to(broker, f"g{number}")
    broker.begin_turn(10**9, NOW_MS)
    queue.dispatch(NOW_MS)
    queue.acknowledge(owner, owner.let_go_all())
    other = consumer_on(broker, queue)
    send_to(broker, "g1")
    broker.dispatch(NOW_MS)
    assert not other.held, "its group has another owner"
    assert len(owner.held) == 1
    broker.begin_turn(TURN_UNITS, NOW_MS)
    queue.detach(owner, failed=False, now_ms=NOW_MS)
    assert queue.grouping.is_freeing is (count > 10)
    turns = 0
    while queue.grouping.is_freeing:
        turns += 1
        broker.begin_turn(TURN_UNITS, NOW_MS)
        broker.tick(NOW_MS)
        if queue.grouping.is_freeing:
            broker.dispatch(NOW_MS)
            assert not other.held, "some groups are free, and others are not"
    assert turns >= count // TURN_UNITS
    broker.begin_turn(TURN_UNITS, NOW_MS)
    broker.tick(NOW_MS)
    broker.dispatch(NOW_MS)
    assert len(other.held) == 1
    assert set(groups_of(queue).table.groups) == {"g1"}


@pytest.mark.parametrize("attributes", [STICKY, SHARED], ids=["sticky", "shared"])
def test_the_number_of_groups_costs_nothing(attributes: dict[str, Any]) -> None:
    costs = []
    for number_of_groups in (50, 1_500):
        broker, queue = with_queue(**attributes)
        first, other = consumer_on(broker, queue), consumer_on(broker, queue)
        for number in range(number_of_groups):
            send_to(broker, f"g{number}")
        queue.dispatch(NOW_MS)
        assert len(groups_of(queue).table.groups) == number_of_groups
        first.room_bytes = 0
        pass_one(broker, queue, other)
        costs.append(lines_run(partial(pass_one, broker, queue, other)))
    assert costs[1] <= costs[0] * ALLOWANCE


@pytest.mark.interpreted
def test_a_filtered_consumer_never_tests_an_entry_twice() -> None:
    """Also on a queue whose groups come free again and again."""
    broker, queue, busy, _ = busy_and_idle(SHARED, 0)
    for number in range(50):
        send_to(broker, "busy", number=str(number))
    consumer = consumer_on(broker, queue, selector="color = 'red'")
    asked = counting(consumer)
    queue.dispatch(NOW_MS)
    assert asked.call_count == 50
    queue.detach(busy, failed=False, now_ms=NOW_MS)
    queue.dispatch(NOW_MS)
    assert asked.call_count <= 51, "only the one that came back may be looked at, for the first time"


def test_a_plain_queue_does_not_look_at_groups() -> None:
    """The first message with a group opens the views, and they go with the last reader of an empty queue."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue)
    send_to(broker, None, 10)
    queue.dispatch(NOW_MS)
    assert queue.grouping.groups is None
    send_to(broker, "g")
    queue.dispatch(NOW_MS)
    assert groups_of(queue).table.groups["g"].owner is consumer
    queue.acknowledge(consumer, consumer.let_go_all())
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    assert queue.grouping.groups is None


@pytest.mark.parametrize("attributes", [STICKY, SHARED], ids=["sticky", "shared"])
def test_what_a_ring_takes_from_a_blocked_group_is_forgotten(attributes: dict[str, Any]) -> None:
    """However much goes through, what is noted of it stays in proportion to what stands on the queue."""
    broker, queue, busy, idle = busy_and_idle({**attributes, "ring_size": 10}, 5)
    for _ in range(300):
        send_to(broker, "busy", 20)
        queue.dispatch(NOW_MS)
    assert queue.contents.order.count == 10
    assert groups_of(queue).parking.count < 2_000
    queue.acknowledge(busy, busy.let_go_all())
    busy.room_bytes = 100
    queue.wake(busy)
    queue.dispatch(NOW_MS)
    assert len(busy.held) + len(idle.held) == 10


def test_shared_groups_are_forgotten_when_they_are_with_nobody() -> None:
    broker, queue = with_queue(**SHARED)
    consumer = consumer_on(broker, queue)
    for number in range(100):
        send_to(broker, f"g{number}")
    queue.dispatch(NOW_MS)
    assert len(groups_of(queue).table.groups) == 100
    queue.acknowledge(consumer, consumer.let_go_all())
    assert not groups_of(queue).table.groups


def test_one_dispatch_passes_over_so_many_only() -> None:
    """Others have their turn before the rest is looked at; nobody has to ask for that."""
    broker, queue = with_queue(**STICKY)
    consumer_on(broker, queue, weigh=lambda message: 1, room=1)
    send_to(broker, "busy", 45_000)
    send_to(broker, "other")
    idle = consumer_on(broker, queue)
    rounds = 0
    while broker.has_ready and not idle.held:
        broker.budget.refill(20_000)
        broker.dispatch(NOW_MS)
        rounds += 1
    assert [entry.message.head.properties["JMSXGroupID"] for entry in idle.held.values()] == ["other"]
    assert rounds == 3


def test_a_selector_that_passes_over_much_lets_others_go_first() -> None:
    broker, queue = with_queue()
    send_to(broker, None, 45_000)
    send_to(broker, None, color="red")
    consumer = consumer_on(broker, queue, selector="color = 'red'")
    rounds = 0
    while broker.has_ready and not consumer.held:
        broker.budget.refill(20_000)
        broker.dispatch(NOW_MS)
        rounds += 1
    assert (len(consumer.held), rounds) == (1, 3)


def test_a_pause_after_a_rebalance_ends_on_a_paused_queue() -> None:
    """Nobody settles anything any more, and the gate is shut: no turn may follow another for nothing."""
    broker, queue = with_queue(group_rebalance=True, group_rebalance_pause_dispatch=True)
    first = consumer_on(broker, queue)
    send_to(broker, "g")
    broker.dispatch(NOW_MS)
    consumer_on(broker, queue)  # the groups are rebalanced, and wait for the first consumer
    broker.queue_operations.pause("q")
    queue.acknowledge(first, [first.let_go(next(iter(first.held)))])
    for _ in range(10):
        broker.budget.refill(100)
        broker.dispatch(NOW_MS)
    assert not broker.has_ready
