"""Who gets a message: anycast and multicast, named queues, wildcard addresses, what is created on the way."""

from __future__ import annotations

import gc
import weakref

import pytest

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.broker import Broker
from artemis_py.errors import BrokerError, NotFoundError
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, ids, queue_config, send, turn, with_queue
from tests.unit.core.test_copies import counts


def dual() -> Broker:
    """An address with two anycast and two multicast queues (row 2.17.20, tests/queues/rows.py)."""
    return broker_of(
        queue_config("qA", routing_type=ANYCAST),
        queue_config("qB", routing_type=ANYCAST),
        queue_config("qC"),
        queue_config("qD"),
    )


@pytest.mark.parametrize(
    ("routing_type", "expected"), [(ANYCAST, [1, 0, 0, 0]), (MULTICAST, [0, 0, 1, 1]), (None, [1, 0, 1, 1])]
)
def test_routing_types_on_a_dual_address(routing_type: str | None, expected: list[int]) -> None:
    """Anycast: one of the anycast queues; multicast: each multicast queue; untyped: both."""
    broker = dual()
    send(broker, routing_type=routing_type)
    assert counts(broker, "qA", "qB", "qC", "qD") == expected
    assert broker.addresses["a"].routed_message_count == 1
    assert broker.addresses["a"].account.message_count == 1


@pytest.mark.parametrize("batches", [[6], [1] * 6, [3, 3], [5, 1]])
def test_anycast_queues_take_turns(batches: list[int]) -> None:
    """One message each, in turn, also across batches."""
    broker = dual()
    for count in batches:
        send(broker, count=count, routing_type=ANYCAST)
    assert ids(broker.queues["qA"].contents.order) == [1, 3, 5]
    assert ids(broker.queues["qB"].contents.order) == [2, 4, 6]


def test_turns_go_on_when_bindings_change() -> None:
    """Otherwise, with subscriptions coming and going anywhere, the first queue would get everything."""
    broker = dual()
    other = broker.resolver.obtain_address("other", MULTICAST)
    for number in range(4):
        send(broker, routing_type=ANYCAST)
        broker.registry.create_queue(other, queue_config(f"o{number}", "other"), auto_created=True)
    assert counts(broker, "qA", "qB") == [2, 2]


def test_turns_pass_over_a_queue_that_does_not_accept() -> None:
    """Filters, disabled queues, and queues that want a consumer first."""
    broker = broker_of(
        queue_config("red", routing_type=ANYCAST, filter="color = 'red'"),
        queue_config("all", routing_type=ANYCAST),
        queue_config("off", routing_type=ANYCAST, enabled=False),
        queue_config("purged", routing_type=ANYCAST, purge_on_no_consumers=True),
    )
    blue, red = head_of("a", color="blue", routing_type=ANYCAST), head_of("a", color="red", routing_type=ANYCAST)
    for _ in range(3):
        send(broker, head=blue, routing_type=ANYCAST)
    assert counts(broker, "red", "all", "off", "purged") == [0, 3, 0, 0]
    for _ in range(4):
        send(broker, head=red, routing_type=ANYCAST)
    assert counts(broker, "red", "all", "off", "purged") == [2, 5, 0, 0]


def test_nobody_accepts() -> None:
    """The address counts it as unrouted, once, and holds nothing."""
    broker = broker_of(queue_config("red", filter="color = 'red'"), queue_config("off", enabled=False))
    send(broker, head=head_of("a", color="blue"))
    address = broker.addresses["a"]
    assert (address.routed_message_count, address.unrouted_message_count) == (0, 1)
    assert (address.account.message_count, address.account.size_bytes) == (0, 0)


def test_part_of_a_batch_is_accepted() -> None:
    """Counted message by message."""
    broker = broker_of(queue_config("large", filter="AMQSize > 100"), queue_config("small", filter="AMQSize < 40"))
    for body in (b"", b"x" * 60, b"x" * 200):
        send(broker, body=body)
    address = broker.addresses["a"]
    assert counts(broker, "large", "small") == [1, 1]
    assert (address.routed_message_count, address.unrouted_message_count) == (2, 1)


# ---- straight to the only consumer ---------------------------------------------------------------


def test_handed_over_without_queueing() -> None:
    """Alone, settling on send, with room: added and acknowledged at once, the address holds nothing."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, settles=True)
    send(broker, count=3, plain=True)
    assert ids(consumer.handed) == [1, 2, 3]
    assert (queue.contents.counters.added, queue.contents.counters.acknowledged, queue.message_count) == (3, 3, 0)
    assert broker.addresses["a"].account.message_count == 0
    assert broker.host.outgoing == [consumer]


@pytest.mark.parametrize("obstacle", ["waiting", "paused", "second", "selector", "client", "no room", "expires", "due"])
def test_not_handed_over(obstacle: str) -> None:
    """Whatever stands in the way, the message is queued and nothing overtakes."""
    broker, queue = with_queue()
    if obstacle == "waiting":
        send(broker)
    if obstacle == "paused":
        queue.pause()
    if obstacle == "second":
        consumer_on(broker, queue)
    consumer = consumer_on(
        broker,
        queue,
        settles=obstacle != "client",
        selector="color IS NULL" if obstacle == "selector" else None,
        room=0 if obstacle == "no room" else 1000,
    )
    send(broker, plain=obstacle != "expires", due_ms=5_000_000 if obstacle == "due" else 0)
    assert consumer.handed == []
    assert queue.message_count == (2 if obstacle == "waiting" else 1)


def test_handed_over_to_several_topic_subscribers_at_once() -> None:
    """Each of them gets each message; a subscriber who has to queue does not hold up the others."""
    broker = broker_of(queue_config("x"), queue_config("y"), queue_config("slow"))
    fast = [consumer_on(broker, broker.queues[name], settles=True) for name in ("x", "y")]
    slow = consumer_on(broker, broker.queues["slow"])
    send(broker, count=2, plain=True)
    assert [ids(consumer.handed) for consumer in fast] == [[1, 2], [1, 2]]
    assert broker.addresses["a"].account.message_count == 2
    turn(broker)
    for id in (1, 2):
        broker.queues["slow"].acknowledge(slow, [slow.let_go(id)])
    assert broker.addresses["a"].account.message_count == 0


# ---- named queues --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qA", "qB", "qC", "qD"])
def test_fully_qualified_name_reaches_one_queue(name: str) -> None:
    """Of either kind, and no other."""
    broker = dual()
    send(broker, queue=name, count=2)
    assert counts(broker, "qA", "qB", "qC", "qD") == [2 if other == name else 0 for other in ("qA", "qB", "qC", "qD")]


def test_fully_qualified_name_of_another_address() -> None:
    """A queue has one address."""
    broker = broker_of(queue_config("q", "a"), queue_config("r", "b"))
    with pytest.raises(NotFoundError, match="on address b"):
        broker.resolver.route("a", "r", None)
    assert broker.resolver.route("", "r", None).address.name == "b"
    with pytest.raises(NotFoundError):
        broker.resolver.route("a", "", None)


def test_fully_qualified_name_creates() -> None:
    """Queue and address, with the type asked for, else the default."""
    broker = broker_of(settings={"no": {"auto_create_queues": False}})
    send(broker, "new", queue="n1", routing_type=ANYCAST)
    assert broker.queues["n1"].routing_type == ANYCAST
    assert broker.queues["n1"].auto_created
    send(broker, "new", queue="n2")
    assert broker.queues["n2"].routing_type == ANYCAST
    send(broker, "fresh", queue="n3")
    assert broker.queues["n3"].routing_type == MULTICAST
    with pytest.raises(NotFoundError):
        broker.resolver.route("no", "n4", None)


# ---- what is created -----------------------------------------------------------------------------


def test_anycast_send_creates_the_queue() -> None:
    """Durable, of the address' name."""
    broker = broker_of()
    send(broker, "new", routing_type=ANYCAST)
    assert counts(broker, "new") == [1]
    assert broker.queues["new"].durable
    assert broker.addresses["new"].auto_created


def test_anycast_send_uses_the_anycast_queue_that_is_there() -> None:
    """Whatever its name."""
    broker = broker_of(queue_config("orders.in", "orders", ANYCAST))
    send(broker, "orders", routing_type=ANYCAST)
    assert counts(broker, "orders.in") == [1]
    assert "orders" not in broker.queues


def test_plain_send_creates_a_multicast_address() -> None:
    """The default type: nobody listens, so the message is gone, and counted."""
    broker = broker_of()
    send(broker, "new")
    assert not broker.queues
    assert broker.addresses["new"].routing_types == {MULTICAST}
    assert broker.addresses["new"].unrouted_message_count == 1


def test_default_address_routing_type() -> None:
    """Anycast by setting: then the queue is created too."""
    broker = broker_of(settings={"#": {"default_address_routing_type": ANYCAST}})
    send(broker, "new")
    assert counts(broker, "new") == [1]


def test_what_may_not_be_created() -> None:
    """An error, and nothing is left behind."""
    broker = broker_of(queue_config(), settings={"#": {"auto_create_addresses": False}})
    with pytest.raises(NotFoundError):
        send(broker, "new")
    with pytest.raises(NotFoundError, match="cannot be used as"):
        send(broker, "a", routing_type=ANYCAST)
    with pytest.raises(NotFoundError):
        broker.resolver.route("", None, None)
    assert list(broker.addresses) == ["a"]
    assert broker.addresses["a"].routing_types == {MULTICAST}


def test_a_type_is_added_to_an_address() -> None:
    """Where addresses may be created, they may be extended."""
    broker = broker_of(queue_config())
    send(broker, "a", routing_type=ANYCAST)
    assert broker.addresses["a"].routing_types == {ANYCAST, MULTICAST}
    assert counts(broker, "q", "a") == [0, 1]


def test_no_two_queues_of_one_name() -> None:
    """A queue's name is unique in the broker."""
    broker = broker_of(queue_config("q", "a"))
    with pytest.raises(BrokerError, match="already exists"):
        broker.registry.create_queue(
            broker.resolver.obtain_address("b", MULTICAST), queue_config("q", "b"), auto_created=True
        )


def test_routes_grow_old() -> None:
    """A route is good while queues come, here and elsewhere, and is resolved again when a queue of its address went."""
    broker = broker_of(queue_config(), queue_config("other", "b"))
    route, to_queue = broker.resolver.route("a", None, None), broker.resolver.route("a", "q", None)
    send(broker)
    broker.registry.create_queue(broker.addresses["a"], queue_config("late"), auto_created=True)
    send(broker)
    assert counts(broker, "q", "late") == [2, 1]
    broker.registry.delete_queue(broker.queues["other"], NOW_MS)
    assert broker.bindings.is_current(route)
    assert broker.bindings.is_current(to_queue)
    broker.registry.delete_queue(broker.queues["q"], NOW_MS)
    assert not broker.bindings.is_current(route)
    assert not broker.bindings.is_current(to_queue)
    send(broker)
    assert counts(broker, "late") == [2]


def test_routes_end_with_their_address() -> None:
    """Another address of the name is another address."""
    broker = broker_of()
    route = broker.resolver.route("a", None, MULTICAST)
    broker.registry.delete_address(broker.addresses["a"])
    broker.resolver.obtain_address("a", MULTICAST)
    assert not broker.bindings.is_current(route)
    assert broker.resolver.renewed(route).address is broker.addresses["a"]


def test_a_route_by_a_wildcard_address_grows_old() -> None:
    """The anycast queue that took the messages was on a wildcard address: without it the address needs its own."""
    broker = broker_of()
    broker.registry.create_queue(
        broker.resolver.obtain_address("news.*", ANYCAST), queue_config("all", "news.*", ANYCAST), auto_created=True
    )
    send(broker, "news.sport", routing_type=ANYCAST)
    assert counts(broker, "all") == [1]
    assert "news.sport" not in broker.queues
    route = broker.resolver.route("news.sport", None, ANYCAST)
    assert broker.bindings.is_current(route)
    broker.registry.delete_queue(broker.queues["all"], NOW_MS)
    assert not broker.bindings.is_current(route)
    broker.resolver.renewed(route)
    assert "news.sport" in broker.queues


@pytest.mark.interpreted
def test_a_plan_keeps_no_queue_that_is_gone() -> None:
    """Also where nobody sends any more: dead queues would fill the memory."""
    broker = broker_of(queue_config())
    send(broker)
    queue = weakref.ref(broker.queues["q"])
    broker.registry.delete_queue(broker.queues["q"], NOW_MS)
    broker.dispatch(NOW_MS)
    gc.collect()
    assert queue() is None


# ---- wildcard addresses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "address", "reached"),
    [
        ("news.#", "news.sport", True),
        ("news.#", "news", True),
        ("news.*", "news.sport", True),
        ("news.*", "news.sport.golf", False),
        ("news.*", "news", False),
        ("*.sport", "news.sport", True),
        ("#", "anything.at.all", True),
        ("news.*", "newspaper.x", False),
    ],
)
def test_queue_on_a_wildcard_address(pattern: str, address: str, reached: bool) -> None:
    """It gets what is sent to every address that matches, and its messages weigh on the address they were sent to."""
    broker = broker_of(queue_config("all", pattern), addresses=[address])
    send(broker, address)
    assert counts(broker, "all") == [int(reached)]
    assert broker.addresses[address].account.message_count == int(reached)


def test_wildcard_queue_beside_the_address_own() -> None:
    """Both multicast queues get the message; it is charged once."""
    broker = broker_of(queue_config("own", "news.sport"), queue_config("all", "news.#"))
    send(broker, "news.sport")
    assert counts(broker, "own", "all") == [1, 1]
    assert broker.addresses["news.sport"].account.message_count == 1
    assert broker.addresses["news.#"].account.message_count == 0


def test_a_message_to_the_pattern_itself() -> None:
    """It goes to that address, and is not matched against others."""
    broker = broker_of(queue_config("own", "news.sport"), queue_config("all", "news.#"), queue_config("every", "#"))
    send(broker, "news.#")
    assert counts(broker, "own", "all", "every") == [0, 1, 0]


def test_wildcard_queue_that_comes_and_goes() -> None:
    """Bindings count from the moment they are made, until they are removed."""
    broker = broker_of(addresses=["news.sport"])
    send(broker, "news.sport")
    address = broker.resolver.obtain_address("news.#", MULTICAST)
    queue = broker.resolver.create_subscription_queue("s", address, durable=False, selector=None)
    send(broker, "news.sport")
    assert queue.message_count == 1
    broker.registry.delete_queue(queue, 0)
    send(broker, "news.sport")
    assert broker.addresses["news.sport"].account.message_count == 0
    assert broker.addresses["news.sport"].unrouted_message_count == 2


def test_wildcards_switched_off() -> None:
    """Then the characters mean nothing."""
    syntax = WildcardSyntax(routing_enabled=False)
    broker = broker_of(queue_config("all", "news.#"), addresses=["news.sport"], wildcards=syntax)
    send(broker, "news.sport")
    assert counts(broker, "all") == [0]
