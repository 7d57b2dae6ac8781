"""A message for more queues than a turn has units for: decided at once, put on its queues in slices."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.core.addresses.address import MULTICAST
from artemis_py.core.broker import Broker
from artemis_py.core.events import GIVEN_UP
from artemis_py.core.queue.arrivals import Arrivals
from artemis_py.core.transactions import Transaction
from artemis_py.record_log import Depth
from tests.kit.core import (
    NOW_MS,
    breaking,
    broker_of,
    consumer_on,
    divert_config,
    head_of,
    ids,
    lines_run,
    queue_config,
    send,
    turn,
)

COUNT = 600
UNITS = 200


def _topic(count: int = COUNT, settings: dict[str, Any] | None = None, **attributes: Any) -> Broker:
    queues = [queue_config(f"q{number}", "news", **attributes) for number in range(count)]
    return broker_of(*queues, settings={"#": settings or {}})


def _publish(broker: Broker, count: int = 1, units: int = UNITS, **options: Any) -> None:
    broker.budget.refill(units)
    send(broker, "news", count, **options)


def _placed(broker: Broker) -> int:
    return sum(queue.contents.counters.added for queue in broker.queues.values())


def _turns_until_done(broker: Broker) -> list[int]:
    """How many places were taken in each turn until all were."""
    steps = []
    while broker.agenda:
        before = _placed(broker)
        broker.budget.refill(UNITS)
        turn(broker)
        steps.append(_placed(broker) - before)
    return steps


def test_no_turn_puts_more_on_queues_than_it_has_units_for() -> None:
    broker = _topic()
    _publish(broker)
    assert _placed(broker) == 0
    steps = _turns_until_done(broker)
    assert sum(steps) == COUNT
    assert max(steps) <= UNITS
    assert [queue.message_count for queue in broker.queues.values()] == [1] * COUNT
    assert broker.addresses["news"].account.message_count == 1
    assert not broker.addresses["news"].is_fanning_out


def test_a_slice_costs_the_same_however_many_queues_there_are() -> None:
    costs = []
    for count in (COUNT, 3 * COUNT):
        broker = _topic(count)
        _publish(broker)
        broker.budget.refill(UNITS)
        costs.append(lines_run(lambda broker=broker: broker.tick(NOW_MS)))  # type: ignore[misc]
    assert costs[1] <= costs[0] * 1.1, costs


def test_few_queues_are_served_at_once() -> None:
    broker = _topic(8)
    _publish(broker, units=1)
    assert _placed(broker) == 8
    assert not broker.agenda


def test_a_commit_of_many_messages_is_spread_too() -> None:
    broker = _topic(60)
    transaction = Transaction()
    for _ in range(20):
        send(broker, "news", within=transaction)
    broker.budget.refill(UNITS)
    transaction.commit(broker, NOW_MS)
    at_once = _placed(broker)
    assert at_once <= UNITS
    steps = _turns_until_done(broker)
    assert (at_once + sum(steps), max(steps) <= UNITS) == (1200, True)
    assert [ids(queue.contents.order) == sorted(ids(queue.contents.order)) for queue in broker.queues.values()] == [
        True
    ] * 60


def test_each_queue_gets_everything_in_order() -> None:
    """What comes meanwhile stands behind it, also what comes to one of the queues alone."""
    broker = _topic()
    _publish(broker)
    broker.budget.refill(UNITS)
    broker.tick(NOW_MS)
    assert 0 < _placed(broker) < COUNT
    last = f"q{COUNT - 1}"
    send(broker, "news", 3, queue=last)
    send(broker, "news")
    assert broker.queues[last].message_count == 0
    _turns_until_done(broker)
    assert ids(broker.queues["q0"].contents.order) == [1, 5]
    assert ids(broker.queues[last].contents.order) == [1, 2, 3, 4, 5]


def test_consumers_are_handed_plain_messages() -> None:
    broker = _topic()
    consumers = [consumer_on(broker, queue, settles=True) for queue in broker.queues.values()]
    _publish(broker, plain=True)
    got = 0
    while broker.agenda:
        broker.budget.refill(UNITS)
        broker.tick(NOW_MS)
        got = sum(len(consumer.handed) for consumer in consumers)
    assert got == COUNT
    assert broker.addresses["news"].account.message_count == 0


def test_scheduled_messages_wait_on_each_queue() -> None:
    broker = _topic()
    _publish(broker, due_ms=NOW_MS + 50)
    _turns_until_done(broker)
    assert [len(queue.contents.scheduled) for queue in broker.queues.values()] == [1] * COUNT
    broker.budget.refill(10**9)
    turn(broker, NOW_MS + 60)
    assert [queue.contents.order.count for queue in broker.queues.values()] == [1] * COUNT


@pytest.mark.interpreted
def test_a_queue_that_goes_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = _topic()
    settled = Mock(return_value=0)
    monkeypatch.setattr(broker.log, "settled", settled)
    _publish(broker, head=head_of("news", persistent=True))
    gone = [broker.queues[f"q{number}"] for number in range(0, COUNT, 2)]
    broker.budget.refill(10**9)
    for queue in gone:
        broker.registry.delete_queue(queue, NOW_MS)
    _turns_until_done(broker)
    told = [(call.args[0], [message.id for message in call.args[1]], call.args[2]) for call in settled.mock_calls]
    assert told == [(queue.id, [1], "deleted") for queue in gone]
    assert {queue.message_count for queue in broker.queues.values()} == {1}
    assert [queue.message_count for queue in gone] == [0] * len(gone)
    for queue in list(broker.queues.values()):
        broker.registry.delete_queue(queue, NOW_MS)
    assert broker.addresses["news"].account.message_count == 0


def test_a_queue_without_consumers_takes_nothing_where_it_is_to_be_empty_then() -> None:
    broker = _topic(purge_on_no_consumers=True)
    consumers = {queue.name: consumer_on(broker, queue) for queue in broker.queues.values()}
    _publish(broker)
    broker.budget.refill(10**9)
    queue = broker.queues["q7"]
    broker.detach(queue, consumers["q7"], failed=False, now_ms=NOW_MS)
    _turns_until_done(broker)
    broker.budget.refill(10**9)
    turn(broker)
    assert (queue.message_count, queue.contents.counters.killed) == (0, 1)
    assert [list(consumer.held) for name, consumer in consumers.items() if name != "q7"] == [[1]] * (COUNT - 1)


def test_a_ring_keeps_the_newest() -> None:
    broker = _topic(ring_size=2)
    for _ in range(4):
        _publish(broker)
    _turns_until_done(broker)
    assert {tuple(ids(queue.contents.order)) for queue in broker.queues.values()} == {(3, 4)}


def test_a_queue_that_refuses_is_asked_about_what_came_before() -> None:
    """Two messages, and room for one: the second one is refused whatever is still on its way."""
    queues = [queue_config(f"q{number}", "news") for number in range(COUNT)]
    tight = queue_config("tight", "news", overflow_policy="REJECT", max_depth_messages=1)
    broker = broker_of(*queues, tight)
    _publish(broker)
    assert broker.queues["tight"].message_count == 1
    assert send(broker, "news") == 0
    _turns_until_done(broker)
    assert broker.queues["q0"].message_count == 1


def test_duplicates_are_known_before_everybody_has_the_first() -> None:
    broker = _topic()
    for _ in range(2):
        _publish(broker, head=head_of("news", duplicate_id="once"))
    _turns_until_done(broker)
    assert {queue.message_count for queue in broker.queues.values()} == {1}


def test_a_full_address_is_full_from_the_first_moment() -> None:
    broker = _topic(settings={"max_size_messages": 1, "address_full_policy": "FAIL"})
    _publish(broker)
    broker.budget.refill(UNITS)
    assert send(broker, "news") == 0
    _turns_until_done(broker)
    assert send(broker, "news") == 0
    assert {queue.message_count for queue in broker.queues.values()} == {1}


@pytest.mark.interpreted
def test_a_queue_that_breaks_off_keeps_nothing_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = _topic()
    _publish(broker)
    broken = broker.queues["q5"]
    arrive = breaking(Arrivals.arrive, lambda arrivals, *_: arrivals is broken.arrivals)
    monkeypatch.setattr(Arrivals, "arrive", arrive)
    (fan_out,) = broker.enqueuer.take_begun()
    _turns_until_done(broker)
    assert (fan_out.done, fan_out.failed) == (True, True)
    assert [queue.name for queue in broker.queues.values() if not queue.message_count] == ["q5"]
    assert [event.code for event in broker.events.take()].count(GIVEN_UP) == 1


def test_copies_keep_their_order_though_nobody_waits_for_them() -> None:
    queues = [queue_config(f"q{number}", "news") for number in range(COUNT)]
    broker = broker_of(*queues, diverts=[divert_config("d", "source", "news")], addresses=["source"])
    broker.budget.refill(UNITS)
    for _ in range(3):
        send(broker, "source")
        broker.copy_publisher.flush(NOW_MS)
    broker.end_turn()
    assert not broker.enqueuer.begun
    _turns_until_done(broker)
    assert {tuple(ids(queue.contents.order)) for queue in broker.queues.values()} == {(2, 4, 6)}


def test_a_broker_that_stops_carries_it_out() -> None:
    broker = _topic()
    _publish(broker)
    broker.finish(NOW_MS)
    assert _placed(broker) == COUNT


def test_subscriptions_that_come_meanwhile_get_nothing_of_it() -> None:
    broker = _topic()
    _publish(broker)
    queue = broker.resolver.create_subscription_queue(
        "late", broker.resolver.obtain_address("news", MULTICAST), durable=True, selector=None
    )
    _turns_until_done(broker)
    assert queue.message_count == 0


@pytest.mark.interpreted
def test_a_reader_of_the_log_counts_what_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record names every queue, so the depths that are told behind it have it on every queue."""
    broker = _topic()
    told: list[Depth] = []
    monkeypatch.setattr(broker.log.audit, "is_enabled", True)
    monkeypatch.setattr(broker.log.audit, "end_turn", lambda: True)
    monkeypatch.setattr(broker.log.audit, "depths", told.extend)
    _publish(broker, head=head_of("news", persistent=True))
    _publish(broker, 2, head=head_of("news", persistent=True), due_ms=NOW_MS + 50)
    while broker.agenda:
        broker.budget.refill(UNITS)
        turn(broker)
        told.clear()
        broker.end_turn()
        assert {(depth.count, depth.scheduled_count) for depth in told} == {(3, 2)}
        assert (len(told), len({depth.size_bytes for depth in told})) == (COUNT, 1)
    assert {queue.depth() for queue in broker.queues.values()} == set(told)
