"""Rounds that end anywhere, and go on from their mark: what stays is seen once all the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.scan import SCHEDULED, STATES, QueueScan, ScanCursor
from tests.kit.core import consumer_on, head_of, send
from tests.kit.paged_bench import PagedBench
from tests.unit.core.test_scan import act, everything, send_some

QUEUES: list[dict[str, Any]] = [{}, {"queue_type": "standard"}, {"sort_key": "tag"}, {"target_queue_depth": 7}]


CASES = [
    *((queue, "q", messages_max) for queue in QUEUES for messages_max in (-1, 3, 40)),
    ({}, "q.*", 3),
    ({"queue_type": "standard"}, "q.*", 20),
]


@pytest.mark.parametrize(("queue", "address", "messages_max"), CASES)
def test_what_stays_is_seen_once(queue: dict[str, Any], address: str, messages_max: int, rng: random.Random) -> None:
    """Consumers take and return, pages are read ahead, others send: between two looks, and between two rounds."""
    for _ in range(25):
        bench = PagedBench(messages_max, queue=queue, address=address)
        send_some(bench, rng.randrange(80), rng)
        bench.settle()
        consumers: list[Consumer] = []
        last_id = bench.broker.host.message_id
        aside = set(bench.queue.contents.scheduled)
        seen: list[int] = []
        touched: set[int] = set()
        scan_cursor: ScanCursor | None = None
        is_done = False
        while not is_done:
            scan, budget = QueueScan(bench.queue, start=scan_cursor), Budget()
            wanted = rng.choice((1, 2, 7))
            while wanted and not scan.is_done:
                budget.refill(rng.choice((1, 3, 50)))
                located = scan.next(budget)
                if located is not None:
                    seen.append(located.message.id)
                    wanted -= 1
                if wanted:
                    act(bench, consumers, touched, rng)
                    aside |= set(bench.queue.contents.scheduled)
            is_done, scan_cursor = scan.is_done, None
            if not is_done:  # as a client brings it back
                scan_cursor = ScanCursor.of(json.loads(json.dumps(list(scan.scan_cursor))))
            scan.close()
            for _ in range(rng.randrange(6)):
                act(bench, consumers, touched, rng)
                aside |= set(bench.queue.contents.scheduled)
        moved = touched | aside
        twice = {number for number in seen if seen.count(number) > 1} - moved
        assert not twice, f"shown twice: {twice}"
        assert max(seen, default=0) <= last_id, "a message that came later was shown"
        missing = {number for number in everything(bench) if number <= last_id} - set(seen) - moved
        assert not missing, f"not seen: {missing}"


@pytest.mark.parametrize("queue", QUEUES, ids=["priorities", "standard", "sorted", "behind"])
def test_the_order_is_that_of_one_round(queue: dict[str, Any], rng: random.Random) -> None:
    bench = PagedBench(12, queue=queue)
    send_some(bench, 60, rng)
    consumer_on(bench.broker, bench.queue, window_bytes=300)
    bench.settle()
    found: list[int] = []
    scan_cursor: ScanCursor | None = None
    while len(found) <= 60:
        scan, budget = QueueScan(bench.queue, start=scan_cursor), Budget()
        located = None
        while located is None and not scan.is_done:
            budget.refill(50)
            located = scan.next(budget)
            bench.work_disk()
            bench.turn()
        if located is None:
            break
        found.append(located.message.id)
        scan_cursor = ScanCursor.of(json.loads(json.dumps(list(scan.scan_cursor))))
        scan.close()
    assert found == everything(bench)
    assert len(found) == bench.queue.message_count


def test_what_was_shown_last_may_go() -> None:
    bench = PagedBench()
    send(bench.broker, "q", 5)
    scan, budget = QueueScan(bench.queue), Budget()
    assert [scan.next(budget).message.id for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]
    scan_cursor = scan.scan_cursor
    scan.close()
    consumer = consumer_on(bench.broker, bench.queue, window_bytes=10_000)
    bench.turn()
    gone = [consumer.let_go(number) for number in list(consumer.held)[:3]]
    bench.queue.acknowledge(consumer, gone)
    bench.broker.detach(bench.queue, consumer, failed=False, now_ms=bench.now_ms)
    bench.turn()
    assert everything(bench, start=scan_cursor) == [4, 5]


def test_what_waits_for_its_time_comes_by_number() -> None:
    bench = PagedBench(-1)
    for wait_ms in (9000, 1000, 5000, 3000):
        send(bench.broker, "q", due_ms=bench.now_ms + wait_ms)
    scan = QueueScan(bench.queue, (SCHEDULED,))
    assert scan.next(Budget()) is not None
    assert everything(bench, states=(SCHEDULED,), start=scan.scan_cursor) == [2, 3, 4]


def test_a_mark_of_another_order_is_refused() -> None:
    bench, other = PagedBench(queue={"sort_key": "tag"}), PagedBench()
    for one in (bench, other):
        send(one.broker, "q", 3, head=head_of("q", tag="a"))
    scan = QueueScan(bench.queue, STATES)
    assert scan.next(Budget()) is not None
    with pytest.raises(ValueError, match="levels"):
        QueueScan(other.queue, STATES, start=scan.scan_cursor)
