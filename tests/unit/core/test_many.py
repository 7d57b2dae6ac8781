"""What one more address, queue or subscription costs does not depend on how many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.record_log import MemoryLog, RecoveredState
from tests.kit.core import NOW_MS, broker_of, consumer_on, lines_run, queue_config, send, write

FEW: Final = 50
MANY: Final = 400

Step = Callable[[Broker, int], object]


def _subscription(broker: Broker, address: str, name: str, *, durable: bool) -> Queue:
    return broker.resolver.create_subscription_queue(
        name, broker.resolver.obtain_address(address, MULTICAST), durable=durable, selector=None
    )


def _durable(broker: Broker, number: int) -> None:
    queue = _subscription(broker, f"news.{number}", f"client.{number}", durable=True)
    broker.detach(queue, consumer_on(broker, queue), failed=False, now_ms=NOW_MS)
    consumer_on(broker, queue)
    send(broker, f"news.{number}")


def _of_one_topic(broker: Broker, number: int) -> None:
    consumer_on(broker, _subscription(broker, "news", f"s{number}", durable=False))


def _view(broker: Broker, number: int) -> None:
    address = broker.resolver.obtain_address(f"view.{number}", ANYCAST)
    config = queue_config(f"v{number}", address.name, ANYCAST, underlying_address=f"news.{number}.#,news.{number}")
    consumer_on(broker, broker.registry.create_queue(address, config, auto_created=False))
    send(broker, "weather", routing_type=ANYCAST)


KINDS: Final[dict[str, Step]] = {
    "a queue by SEND": lambda it, n: send(it, f"orders.{n}", routing_type=ANYCAST),
    "a topic by SEND": lambda it, n: send(it, f"news.{n}", routing_type=MULTICAST),
    "a queue of one address by SEND": lambda it, n: send(it, "orders", queue=f"part{n}", routing_type=ANYCAST),
    "a queue that shares the messages of one address with others": lambda it, n: (
        it.resolver.obtain_queue("orders", f"part{n}", ANYCAST),
        send(it, "orders", routing_type=ANYCAST),
    ),
    "a queue by SUBSCRIBE": lambda it, n: consumer_on(it, it.resolver.obtain_anycast_queue(f"orders.{n}")),
    "a temporary queue": lambda it, n: (
        it.resolver.create_temporary_address(f"temp-queue.{n}", ANYCAST),
        send(it, f"temp-queue.{n}", routing_type=ANYCAST),
    ),
    "a durable subscription": _durable,
    "a subscription of one topic": _of_one_topic,
    "a subscription of one topic, and a message for one queue of it": lambda it, n: (
        _of_one_topic(it, n),
        send(it, "news", queue="news", routing_type=ANYCAST),
    ),
    "a wildcard subscription": lambda it, n: (
        consumer_on(it, _subscription(it, f"news.{n}.#", f"s{n}", durable=False)),
        send(it, "weather", routing_type=ANYCAST),
    ),
    "a view": _view,
}


@pytest.mark.parametrize("step", KINDS.values(), ids=KINDS)
def test_coming_costs_the_same(step: Step) -> None:
    """Made and used for the first time, as the fiftieth and as the last of some hundred."""
    broker = broker_of()
    for number in range(FEW):
        step(broker, number)
    early = lines_run(lambda: step(broker, FEW))
    for number in range(FEW + 1, MANY):
        step(broker, number)
    late = lines_run(lambda: step(broker, MANY))
    assert late <= early * 1.2 + 20, (early, late)


@pytest.mark.parametrize("step", KINDS.values(), ids=KINDS)
def test_going_costs_the_same(step: Step) -> None:
    """The first of some hundred goes at the price of the first of fifty."""
    costs = []
    for count in (FEW, MANY):
        broker = broker_of()
        for number in range(count):
            step(broker, number)
        queue = next((each for each in broker.queues.values() if each.name != "weather"), None)
        if queue is None:
            address = next(iter(broker.addresses.values()))
            costs.append(lines_run(lambda broker=broker, address=address: broker.registry.delete_address(address)))  # type: ignore[misc]
            continue
        costs.append(lines_run(lambda broker=broker, queue=queue: _leave(broker, queue)))  # type: ignore[misc]
    assert costs[1] <= costs[0] * 1.2 + 20, costs


def _leave(broker: Broker, queue: Queue) -> None:
    for consumer in list(queue.distribution.consumers):
        broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    if not queue.deleted:
        broker.registry.delete_queue(queue, NOW_MS)


def test_a_consumer_comes_at_the_same_cost_to_a_queue_that_has_many() -> None:
    """And it counts, without the others being counted again."""
    broker = broker_of()
    queue = broker.resolver.obtain_anycast_queue("work")
    costs = []
    for count in (FEW, MANY):
        while queue.consumer_count < count:
            consumer_on(broker, queue, room=0)
        costs.append(lines_run(lambda: consumer_on(broker, queue, room=0)))
    assert abs(costs[1] - costs[0]) < FEW // 2, costs
    browser = consumer_on(broker, queue, browses=True)
    assert (queue.taker_count, queue.consumer_count) == (MANY + 1, MANY + 2)
    broker.detach(queue, browser, failed=False, now_ms=NOW_MS)
    broker.detach(queue, queue.distribution.consumers[0], failed=False, now_ms=NOW_MS)
    assert (queue.taker_count, queue.consumer_count) == (MANY, MANY)


def test_others_do_not_notice() -> None:
    """A sender's route and plan stay good while destinations come and go elsewhere."""
    broker = broker_of()
    send(broker, "orders.0", routing_type=ANYCAST)
    route = broker.resolver.route("orders.0", None, ANYCAST)
    plan = broker.addresses["orders.0"].plan
    for number in range(1, FEW):
        send(broker, f"orders.{number}", routing_type=ANYCAST)
        _of_one_topic(broker, number)
        broker.registry.delete_queue(broker.queues[f"orders.{number}"], NOW_MS)
    assert broker.bindings.is_current(route)
    assert broker.addresses["orders.0"].plan is plan


def test_a_wildcard_subscription_costs_each_address_one_look() -> None:
    """It comes at once; an address that it does not match looks at its own name, and keeps its plan."""
    broker = broker_of()
    for number in range(FEW):
        _of_one_topic(broker, number)
    send(broker, "news")
    plan = broker.addresses["news"].plan
    _subscription(broker, "weather.#", "w", durable=False)
    few = lines_run(lambda: send(broker, "news"))
    assert broker.addresses["news"].plan is plan
    again = lines_run(lambda: send(broker, "news"))
    assert few - again < FEW, "the queues of the address were gone through"
    _subscription(broker, "#", "all", durable=False)
    send(broker, "news")
    assert broker.addresses["news"].plan is not plan
    assert broker.queues["all"].message_count == 1


@pytest.mark.interpreted
def test_a_subscriber_of_all_stands_in_a_bounded_number_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan for each of a million addresses, with each such subscriber in it, is more than the messages."""
    monkeypatch.setattr("artemis_py.core.addresses.routing_table._MIXED_MAX", 10)
    broker = broker_of()
    _subscription(broker, "#", "all", durable=False)
    for number in range(FEW):
        send(broker, f"news.{number}", routing_type=MULTICAST)
    assert sum(address.plan is not None for address in broker.addresses.values()) == 10
    assert broker.queues["all"].message_count == FEW
    write(broker)


def test_a_full_disk_costs_the_same() -> None:
    """Every address is full at once, without being visited."""
    broker = broker_of(settings={"#": {"disk_full_policy": "FAIL"}})
    for number in range(MANY):
        send(broker, f"orders.{number}", routing_type=ANYCAST)
    assert lines_run(partial(setattr, broker.memory, "disk_full", True)) < FEW
    assert send(broker, "orders.7", routing_type=ANYCAST) == 0
    broker.memory.disk_full = False
    assert send(broker, "orders.7", routing_type=ANYCAST) == 1


def test_a_restart_costs_as_much_for_each_queue() -> None:
    """Ten times as many, each with an address of its own, cost ten times as much."""
    costs = []
    for count in (100, 1000):
        queue: dict[str, Any] = {
            "routing_type": ANYCAST, "filter": None, "auto_created": True, "paused": False, "ring_size": None,
            "attributes": {}, "owner": None,
        }  # fmt: skip
        kept = RecoveredState(
            queues=[{**queue, "id": number, "name": f"q{number}", "address": f"a{number}"} for number in range(count)],
            addresses=[
                {"name": f"a{number}", "routing_types": [ANYCAST], "auto_created": True} for number in range(count)
            ],
            queue_id=count,
        )
        costs.append(lines_run(lambda kept=kept: Broker(BrokerConfig(), MemoryLog(), NOW_MS, kept)))  # type: ignore[misc]
    assert costs[1] <= costs[0] * 10


def test_a_deleted_address_that_a_wildcard_queue_heard_is_freed() -> None:
    broker = broker_of(queue_config("all", "#", routing_type="MULTICAST"))
    address = broker.resolver.obtain_address("gone", "MULTICAST")
    send(broker, "gone")
    broker.registry.delete_address(address)
    assert sys.getrefcount(address) == 2, "here, and as an argument"
