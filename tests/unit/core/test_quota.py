"""Limits on addresses, queues and connections: who meets them, what is left behind, and who is not held up."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.config.settings import UserLimits
from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.broker import Broker
from artemis_py.core.destinations.registry import ANYBODY
from artemis_py.core.events import LIMITED
from artemis_py.errors import LimitError
from tests.kit.core import (
    NOW_MS,
    broker_of,
    consumer_on,
    divert_config,
    queue_config,
    send,
    turn,
)


def send_for(broker: Broker, name: str, by: str = "", queue: str | None = None) -> None:
    """What a client's first SEND does."""
    broker.resolver.route(name, queue, ANYCAST, by)


def subscribe_for(broker: Broker, name: str, by: str = "") -> None:
    """What a client's SUBSCRIBE to a topic does."""
    address = broker.resolver.obtain_address(name, MULTICAST, by)
    broker.resolver.create_subscription_queue(f"{by}.{name}", address, durable=True, selector=None, by=by)


def test_max_addresses() -> None:
    """Those that are declared count; what is there can be used; one that goes makes room."""
    broker = broker_of(queue_config("q", "a"), max_addresses=2)
    send_for(broker, "one")
    with pytest.raises(LimitError, match=r"Address two was not created: there are 2 addresses.*max-addresses"):
        send_for(broker, "two")
    assert set(broker.addresses) == {"a", "one"}
    send_for(broker, "one")
    send_for(broker, "a")
    broker.registry.delete_queue(broker.queues["one"], NOW_MS)
    broker.registry.delete_address(broker.addresses["one"])
    send_for(broker, "two")
    assert broker.events.counts[LIMITED] == 1


@pytest.mark.parametrize("ask", [send_for, subscribe_for])
def test_max_queues(ask: Any) -> None:
    """Nothing is left of what was made for a queue that may not be."""
    broker = broker_of(max_queues=1)
    ask(broker, "one")
    with pytest.raises(LimitError, match=r"two was not created: there is 1 queue.*max-queues"):
        ask(broker, "two")
    assert set(broker.addresses) == {"one"}
    assert len(broker.queues) == 1


def test_an_address_that_has_something_stays() -> None:
    """Messages went there: its counts and duplicate ids are not lost with a queue that may not be."""
    broker = broker_of(max_queues=0)
    send(broker, "topic", routing_type=MULTICAST)
    with pytest.raises(LimitError):
        subscribe_for(broker, "topic")
    assert broker.addresses["topic"].unrouted_message_count == 1


def test_queues_of_one_address_and_temporary_ones() -> None:
    """Every way to a queue."""
    broker = broker_of(max_queues=1, max_addresses=3)
    send_for(broker, "a", queue="q")
    for ask in (
        lambda: send_for(broker, "a", queue="r"),
        lambda: broker.resolver.obtain_anycast_queue("b", ""),
        lambda: broker.resolver.create_temporary_address("t", ANYCAST, ""),
    ):
        with pytest.raises(LimitError, match="max-queues"):
            ask()
    assert set(broker.addresses) == {"a"}
    broker.resolver.create_temporary_address("t", MULTICAST, "")
    broker.resolver.create_temporary_address("u", MULTICAST, "")
    with pytest.raises(LimitError, match="max-addresses"):
        broker.resolver.create_temporary_address("v", MULTICAST, "")


def test_without_limits() -> None:
    """The default of a broker that does not know its machine, and -1."""
    for broker in (broker_of(), broker_of(max_addresses=-1, max_queues=-1)):
        for number in range(100):
            send_for(broker, f"a{number}")
        assert len(broker.queues) == 100


def test_what_the_broker_needs_itself_is_created() -> None:
    """Dead letters and what a divert sends on are not lost at a limit."""
    broker = broker_of(
        queue_config(),
        queue_config("d", "d"),
        settings={
            "a": {
                "max_delivery_attempts": 1,
                "dead_letter_address": "DLA",
                "auto_create_dead_letter_resources": True,
            },
            "new": {"default_address_routing_type": ANYCAST},
        },
        diverts=[divert_config("d", "d", "new", exclusive=True)],
        max_addresses=2,
        max_queues=2,
    )
    send(broker)
    consumer = consumer_on(broker, broker.queues["q"])
    turn(broker)
    broker.detach(broker.queues["q"], consumer, failed=True, now_ms=NOW_MS)
    send(broker, "d")
    turn(broker)
    assert broker.queues["DLQ.a"].message_count == 1
    assert broker.queues["new"].message_count == 1


def test_max_queues_of_a_user() -> None:
    """Each login has its own count; who has no limits is not counted."""
    broker = broker_of(user_limits={"ann": UserLimits(queues_max=1)})
    send_for(broker, "one", "ann")
    with pytest.raises(LimitError, match="Queue two was not created: user ann has 1 queue"):
        send_for(broker, "two", "ann")
    send_for(broker, "two", "bob")
    send_for(broker, "three", "bob")
    send_for(broker, "four")
    broker.registry.delete_queue(broker.queues["one"], NOW_MS)
    send_for(broker, "five", "ann")
    with pytest.raises(LimitError):
        send_for(broker, "six", "ann")


def test_limits_for_anybody() -> None:
    """For each login that has none of its own; without a login all are one."""
    broker = broker_of(user_limits={ANYBODY: UserLimits(queues_max=1), "ann": UserLimits()})
    for number in range(3):
        send_for(broker, f"ann{number}", "ann")
    send_for(broker, "bob1", "bob")
    send_for(broker, "none1")
    with pytest.raises(LimitError, match="user bob has 1 queue"):
        send_for(broker, "bob2", "bob")
    with pytest.raises(LimitError, match="clients without a login have 1 queue"):
        send_for(broker, "none2")


def test_max_connections_of_a_user() -> None:
    """One that leaves makes room."""
    broker = broker_of(user_limits={"ann": UserLimits(connections_max=1)})
    broker.quota.connected("ann")
    with pytest.raises(LimitError, match=r"Connection refused: user ann has 1 connection.*max-connections"):
        broker.quota.connected("ann")
    for _ in range(3):
        broker.quota.connected("")
    broker.quota.disconnected("ann")
    broker.quota.connected("ann")
