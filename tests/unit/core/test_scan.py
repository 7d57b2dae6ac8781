"""A round shows each message of a queue exactly once, whatever happens to the queue meanwhile."""

from __future__ import annotations

import random
from typing import Any

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.scan import DELIVERING, PAGED, READY, SCHEDULED, STATES, QueueScan
from tests.kit.core import consumer_on, head_of, ids, send
from tests.kit.paged_bench import PagedBench

ORDERS: list[dict[str, Any]] = [{}, {"queue_type": "standard"}, {"sort_key": "tag"}]


def send_some(bench: PagedBench, count: int, rng: random.Random) -> None:
    """To one of the addresses whose messages q has."""
    for _ in range(count):
        due_ms = bench.now_ms + rng.choice((0, 0, 0, 0, 500, 5000))
        address = bench.queue.address.name.replace("*", rng.choice("ab"))
        head = head_of(address, priority=rng.randrange(10), persistent=True, tag=rng.choice("abc"))
        send(bench.broker, address, head=head, due_ms=due_ms if due_ms > bench.now_ms else 0, now_ms=bench.now_ms)


def everything(bench: PagedBench, **options: Any) -> list[int]:
    """The ids that a round shows, with a disk that works at once."""
    scan, budget, found = QueueScan(bench.queue, **options), Budget(), []
    while not scan.is_done:
        located = scan.next(budget)
        if located is None:
            bench.work_disk()
            bench.turn()
        else:
            found.append(located.message.id)
    return found


@pytest.mark.parametrize("queue", ORDERS, ids=["priorities", "standard", "sorted"])
@pytest.mark.parametrize("messages_max", [-1, 3, 40])
def test_what_stays_is_seen_once(queue: dict[str, Any], messages_max: int, rng: random.Random) -> None:
    """Consumers take and return, pages are read ahead, schedules fall due, others send: all between two looks."""
    for _ in range(12):
        bench = PagedBench(messages_max, queue=queue)
        send_some(bench, rng.randrange(60), rng)
        bench.settle()
        consumers: list[Consumer] = []
        there, seen, last_id = bench.queue.message_count, [], bench.broker.host.message_id
        scan, budget = QueueScan(bench.queue), Budget()
        touched: set[int] = set()
        while not scan.is_done:
            budget.refill(rng.choice((1, 3, 50)))
            located = scan.next(budget)
            if located is not None:
                seen.append(located.message.id)
            act(bench, consumers, touched, rng)
        assert len(seen) == len(set(seen)), "a message was shown twice"
        assert max(seen, default=0) <= last_id, "a message that came later was shown"
        missing = {number for number in everything(bench) if number <= last_id} - set(seen) - touched
        assert not missing, f"of {there} these were not seen: {missing}"


def act(bench: PagedBench, consumers: list[Consumer], touched: set[int], rng: random.Random) -> None:
    """Something happens. What consumers had in their hands is noted."""
    what = rng.randrange(12)
    if what == 0:
        consumers.append(consumer_on(bench.broker, bench.queue, window_bytes=rng.choice((100, 500))))
    elif what == 1 and consumers:
        consumer = consumers.pop(rng.randrange(len(consumers)))
        touched.update(list(consumer.held))
        bench.broker.detach(bench.queue, consumer, failed=rng.random() < 0.5, now_ms=bench.now_ms)
    elif what == 2 and consumers:
        consumer = rng.choice(consumers)
        if consumer.held:
            touched.update(list(consumer.held))
            bench.queue.acknowledge(consumer, [consumer.let_go(next(iter(consumer.held)))])
            bench.queue.wake(consumer)
    elif what == 3:
        send_some(bench, 2, rng)
    elif what == 4:
        bench.now_ms += rng.choice((1, 600))
    elif what < 8:
        bench.work_disk()
    bench.turn()
    for consumer in consumers:
        touched.update(list(consumer.held))


def test_the_order_is_that_of_the_queue() -> None:
    bench = PagedBench(4)
    for priority in (4, 4, 9, 4, 4, 9):
        send(bench.broker, "q", head=head_of("q", priority=priority, persistent=True))
    bench.settle()
    assert everything(bench)[:4] == [3, 1, 2, 4]
    assert set(everything(bench)) == {1, 2, 3, 4, 5, 6}


def test_each_message_is_in_one_state() -> None:
    bench = PagedBench(4)
    send(bench.broker, "q", 3)
    send(bench.broker, "q", due_ms=bench.now_ms + 1000)
    send(bench.broker, "q", 3)
    consumer = consumer_on(bench.broker, bench.queue, window_bytes=1)
    bench.turn()
    states: dict[str, list[int]] = {state: [] for state in STATES}
    scan, budget = QueueScan(bench.queue), Budget()
    while not scan.is_done:
        located = scan.next(budget)
        if located is None:
            bench.work_disk()
            bench.turn()
        else:
            states[located.state].append(located.message.id)
    assert states[DELIVERING] == list(consumer.held) == [1]
    assert states[SCHEDULED] == [4]
    assert states[READY] + states[PAGED] == [2, 3, 5, 6, 7]


def test_a_message_is_found_by_its_number_wherever_it_is() -> None:
    bench = PagedBench(4)
    send(bench.broker, "q", 3)
    send(bench.broker, "q", due_ms=bench.now_ms + 1000)
    send(bench.broker, "q", 5)
    consumer_on(bench.broker, bench.queue, window_bytes=1)
    bench.turn()
    for number in range(1, 10):
        scan, budget, found = QueueScan(bench.queue, ids={number}), Budget(), []
        while not scan.is_done:
            located = scan.next(budget)
            if located is None:
                bench.work_disk()
                bench.turn()
            elif located.message.id == number:
                found.append(number)
        assert found == [number]


def test_nothing_is_left_of_a_round_that_is_closed() -> None:
    bench = PagedBench()
    send(bench.broker, "q", 3)
    scan = QueueScan(bench.queue)
    assert scan.next(Budget()) is not None
    assert len(bench.queue.contents.order.cursors) == 1  # type: ignore[attr-defined]
    scan.close()
    assert bench.queue.contents.order.cursors == []  # type: ignore[attr-defined]
    assert scan.next(Budget()) is None
    assert ids(bench.queue.contents.order) == [1, 2, 3]
