"""Rounds that end anywhere, and go on from their mark: what stays is seen once all the same."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from typing import Any

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.scan import SCHEDULED, STATES, Mark, Round
from tests.unit.core.paged_bench import PagedBench
from tests.unit.core.parts import consumer_on, head_of, held, send
from tests.unit.core.test_handling_round import act, everything, send_some

QUEUES: list[dict[str, Any]] = [{}, {"queue_type": "standard"}, {"sort_key": "tag"}, {"target_queue_depth": 7}]


def through_json(mark: Mark) -> Mark:
    """The mark as a client brings it back."""
    return Mark.of(json.loads(json.dumps(list(mark))))


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
        mark: Mark | None = None
        is_done = False
        while not is_done:
            round, budget = Round(bench.queue.parts, start=mark), Budget()
            wanted = rng.choice((1, 2, 7))
            while wanted and not round.is_done:
                budget.refill(rng.choice((1, 3, 50)))
                sight = round.next(budget)
                if sight is not None:
                    seen.append(sight.message.id)
                    wanted -= 1
                if wanted:
                    act(bench, consumers, touched, rng)
                    aside |= set(bench.queue.contents.scheduled)
            is_done, mark = round.is_done, None if round.is_done else through_json(round.mark)
            round.close()
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
    mark: Mark | None = None
    while len(found) <= 60:
        round, budget = Round(bench.queue.parts, start=mark), Budget()
        sight = None
        while sight is None and not round.is_done:
            budget.refill(50)
            sight = round.next(budget)
            bench.work_disk()
            bench.turn()
        if sight is None:
            break
        found.append(sight.message.id)
        mark = through_json(round.mark)
        round.close()
    assert found == everything(bench)
    assert len(found) == bench.queue.message_count


def test_what_was_shown_last_may_go() -> None:
    bench = PagedBench()
    send(bench.broker, "q", 5)
    round, budget = Round(bench.queue.parts), Budget()
    assert [round.next(budget).message.id for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]
    mark = round.mark
    round.close()
    consumer = consumer_on(bench.broker, bench.queue, window_bytes=10_000)
    bench.turn()
    gone = [consumer.let_go(number) for number in held(consumer)[:3]]
    bench.queue.acknowledge(consumer, gone)
    bench.broker.detach(bench.queue, consumer, failed=False, now_ms=bench.now_ms)
    bench.turn()
    assert [round.message.id for round in _rest(bench, mark)] == [4, 5]


def _rest(bench: PagedBench, mark: Mark, states: Collection[str] = STATES) -> list[Any]:
    round, budget, found = Round(bench.queue.parts, states, start=mark), Budget(), []
    while not round.is_done:
        budget.refill(50)
        sight = round.next(budget)
        if sight is not None:
            found.append(sight)
    return found


def test_what_waits_for_its_time_comes_by_number() -> None:
    bench = PagedBench(-1)
    for wait_ms in (9000, 1000, 5000, 3000):
        send(bench.broker, "q", due_ms=bench.now_ms + wait_ms)
    round = Round(bench.queue.parts, (SCHEDULED,))
    assert round.next(Budget()) is not None
    assert [sight.message.id for sight in _rest(bench, round.mark, (SCHEDULED,))] == [2, 3, 4]


def test_a_mark_of_another_order_is_refused() -> None:
    bench, other = PagedBench(queue={"sort_key": "tag"}), PagedBench()
    for one in (bench, other):
        send(one.broker, "q", 3, head=head_of("q", tag="a"))
    round = Round(bench.queue.parts, STATES)
    assert round.next(Budget()) is not None
    with pytest.raises(ValueError, match="levels"):
        Round(other.queue.parts, STATES, start=round.mark)
