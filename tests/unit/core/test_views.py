"""Views over addresses: which queues a plan has, and when it is made anew."""

from __future__ import annotations

import pytest

from artemis_py.config.settings import QueueConfig
from artemis_py.config.tables.views import View, addresses_in, view_of
from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.message import Message
from tests.kit.core import NOW_MS, broker_of, head_of, ids, lines_run, queue_config, send


def view(name: str, underlying: str, target: str | None = None, address: str = "") -> QueueConfig:
    """A view, declared alone on its address."""
    return queue_config(
        name, address or f"{name}.home", ANYCAST, underlying_address=underlying, default_publish_target=target
    )


def test_the_addresses_in_a_list() -> None:
    assert addresses_in(" a , b.#,a,, ") == ("a", "b.#")
    assert addresses_in(None) == ()


@pytest.mark.parametrize(
    ("underlying", "target", "expected"),
    [
        (None, None, None),
        ("q", "elsewhere", None),
        ("a", None, View(("a",), "a")),
        ("a,b", None, View(("a", "b"), "")),
        ("a,b", " b ", View(("a", "b"), "b")),
        ("q,b", "q", View(("q", "b"), "q")),
    ],
)
def test_what_a_queue_is_a_view_of(underlying: str | None, target: str | None, expected: View | None) -> None:
    assert view_of(underlying, target, "q") == expected


@pytest.mark.parametrize("routing_type", [ANYCAST, MULTICAST, None])
def test_views_are_beside_what_shares_out_and_what_copies(routing_type: str | None) -> None:
    broker = broker_of(
        view("v", "a"), view("w", "b"), queue_config("one", routing_type=ANYCAST),
        queue_config("two", routing_type=ANYCAST), queue_config("all", routing_type=MULTICAST),
    )  # fmt: skip
    for _ in range(4):
        send(broker, "a", routing_type=routing_type)
    counts = {name: queue.message_count for name, queue in broker.queues.items()}
    shared = 0 if routing_type == MULTICAST else 2
    copied = 0 if routing_type == ANYCAST else 4
    assert counts == {"v": 4, "w": 0, "one": shared, "two": shared, "all": copied}


@pytest.mark.parametrize("routing_type", [ANYCAST, MULTICAST, None])
@pytest.mark.parametrize("count", [1, 3])
def test_one_view_and_nothing_else(routing_type: str | None, count: int) -> None:
    """The usual case goes the short way, too."""
    broker = broker_of(view("v", "a"), addresses=("a",))
    assert send(broker, "a", count, routing_type=routing_type) == count
    assert ids(broker.queues["v"].contents.order) == list(range(1, count + 1))
    assert broker.addresses["a"].routed_message_count == count
    assert broker.addresses["a"].account.message_count == count


def test_plans_follow_views_that_come_and_go() -> None:
    broker = broker_of(view("v", "a"), queue_config("q"))
    send(broker, "a")
    late = view("late", "#", "a")
    home = broker.resolver.obtain_address("late.home", ANYCAST)
    queue = broker.registry.create_queue(home, late, auto_created=False)
    send(broker, "a")
    broker.registry.delete_queue(broker.queues["v"], NOW_MS)
    send(broker, "a")
    plan = broker.addresses["a"].plan
    assert plan is not None
    assert [each.name for each in plan.views] == ["late"]
    broker.registry.delete_queue(queue, NOW_MS)
    send(broker, "a")
    assert queue.message_count == 0
    assert broker.queues["q"].message_count == 4
    assert broker.bindings.views.over("a") == []


def test_a_route_to_the_address_of_a_view_is_made_anew_when_that_comes_and_goes() -> None:
    broker = broker_of(queue_config("q", "a"), addresses=("v.home",))
    route = broker.resolver.route("v.home", None, None)
    home = broker.addresses["v.home"]
    queue = broker.registry.create_queue(home, view("v", "a"), auto_created=False)
    through = broker.resolver.renewed(route)
    assert (through.address.name, through.view, through.asked_address) == ("a", queue, "v.home")
    assert broker.resolver.renewed(through) is through
    in_full = broker.resolver.route("v.home", "v", None)
    assert (in_full.asked_address, in_full.asked_queue, in_full.queue) == ("v.home", "v", None)
    broker.registry.delete_queue(queue, NOW_MS)
    again = broker.resolver.renewed(through)
    assert (again.address.name, again.view) == ("v.home", None)


def test_a_message_belongs_to_the_address_on_which_it_is_published() -> None:
    broker = broker_of(view("v", "a"))
    route = broker.resolver.route("v.home", None, ANYCAST)
    head, other = head_of("v.home", color="red"), head_of("v.home", color="blue")
    account = route.address.account
    messages = [Message(each, b"", 1, 0, 0, account, 0) for each in (head, head, other, head)]
    route.take_over(messages)
    assert [message.head.address for message in messages] == ["a"] * 4
    assert [message.head.block for message in messages] == [head.block, head.block, other.block, head.block]
    assert messages[0].head is messages[1].head, "messages with one head still share it"
    assert broker.message(route, head, b"", NOW_MS).head.address == "a"
    assert broker.resolver.route("a", None, None).head_of(head) is head


def test_no_target_is_an_error_of_the_sender() -> None:
    """``check`` refuses such a view; this one was remembered."""
    broker = broker_of(view("v", "a,b"))
    with pytest.raises(NotFoundError, match="no default-publish-target"):
        broker.resolver.route("v.home", None, None)
    with pytest.raises(BrokerError, match="the view v"):
        broker.resolver.obtain_queue("v.home", "other", ANYCAST)


def test_a_message_costs_the_same_with_a_thousand_views_of_other_addresses() -> None:
    costs = []
    for count in (1, 1000):
        broker = broker_of(view("v", "a"), *(view(f"v{number}", f"other.{number}.#") for number in range(count)))
        send(broker, "a")
        costs.append(lines_run(lambda broker=broker: send(broker, "a")))  # type: ignore[misc]
    assert costs[1] == costs[0]
