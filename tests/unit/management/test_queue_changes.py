"""What operators create and change of queues: at once, and after a restart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from artemis_py.config.tables.queue_settings import NAMES, parts_of
from artemis_py.core.queue.attributes import REFUSALS
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from tests.kit.life import Life
from tests.unit.management.operated import Operated, operated_bench

ROOT = Path(__file__).parents[3]


# ---- create ------------------------------------------------------------------------------------------


def test_a_queue_is_created_as_asked() -> None:
    one, operated = operated_bench()
    row = operated.do(
        "createQueue", name="work", address="tasks", routing_type="anycast", filter_string="x = '1'", max_consumers=2,
        lease_period="5s", durable=False,
    )  # fmt: skip
    assert (row["address"], row["routingType"], row["filter"], row["maxConsumers"]) == (
        "tasks",
        "ANYCAST",
        "x = '1'",
        2,
    )
    assert (row["durable"], row["life"], row["leasedCount"]) == (False, "created", 0)
    one.send("no", to="/queue/tasks")
    one.send("yes", "x:1", to="/queue/tasks")
    assert one.queue("work").message_count == 1


def test_what_cannot_be_created() -> None:
    _, operated = operated_bench(settings="<auto-create-addresses>false</auto-create-addresses>")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"name": "q"}, "Queue q already exists on address q"),
        ({"name": "new"}, "Address new does not exist; create it first, or set auto-create-address"),
        ({"name": "a::b"}, "'a::b' is not a name of a queue"),
        ({"name": "x", "routing_type": "BOTH"}, "routing-type must be ANYCAST or MULTICAST, not 'BOTH'"),
        ({"name": "x", "address": "q", "filter_string": "x ="}, "filter of queue 'x' is not a valid selector"),
        ({"name": "x", "address": "q", "ring_size": -2}, "ring-size has a wrong value '-2'; allowed: -1 (no ring)"),
        (
            {"name": "x", "address": "q", "queue_type": "standard", "last_value_key": "k"},
            "queue 'x' has queue-type and last-value-key, which ask for different queue types",
        ),
        (
            {"name": "x", "address": "q", "group_type": "SHARED_GROUPS", "group_buckets": 3},
            "queue 'x' has shared groups, which do not stay with a consumer, and group-buckets",
        ),
        ({"name": "x", "address": "q", "recovery_point": "epoch"}, "without journal-retention-directory"),
    ]
    for arguments, said in refused:
        with pytest.raises(BrokerError) as caught:
            operated.do("createQueue", **arguments)
        assert said in str(caught.value)
    assert operated.do("createQueue", name="q", ignore_if_exists=True)["name"] == "q"
    assert operated.do("createQueue", name="new", auto_create_address=True)["address"] == "new"


def test_a_created_queue_is_there_after_a_restart() -> None:
    life = Life("")
    operated = Operated(life.broker)
    operated.do(
        "createQueue", name="work", routing_type="ANYCAST", filter_string="x = 1", max_consumers=2, ring_size=3,
        dead_letter_address="dead", auto_delete=True, auto_delete_delay=7,
    )  # fmt: skip
    operated.do("updateQueue", queue="work", max_consumers=5, filter_string="", consumers_before_dispatch=1)
    operated.do("queue.disable", queue="work")
    life = life.again()
    queue = life.broker.broker.queues["work"]
    operated = Operated(life.broker)
    row = operated.do("queue.getAttributes", queue="work")
    shown = {name: row[name] for name in ("maxConsumers", "ringSize", "filter", "enabled", "life", "autoDelete")}
    assert shown == {
        "maxConsumers": 5, "ringSize": 3, "filter": None, "enabled": False, "life": "created", "autoDelete": True,
    }  # fmt: skip
    assert row["consumersBeforeDispatch"] == 1
    assert queue.auto_delete is not None
    assert queue.auto_delete.delay_ms == 7
    assert queue.reference.rules.dead_letter_address == "dead"
    operated.do("destroyQueue", queue="work", auto_delete_address=True)
    life = life.again()
    assert "work" not in life.broker.broker.queues
    assert "work" not in life.broker.broker.addresses


def test_a_declared_queue_is_as_the_file_says_after_a_restart() -> None:
    """But for its ring-size, and whether it is paused."""
    life = Life("max-consumers='4'")
    operated = Operated(life.broker)
    row = operated.do("updateQueue", queue="q", max_consumers=2, ring_size=9, filter_string="a = 1")
    assert (row["maxConsumers"], row["ringSize"], row["filter"]) == (2, 9, "a = 1")
    operated.do("queue.disable", queue="q")
    operated.do("queue.pause", queue="q")
    row = Operated(life.again().broker).do("queue.getAttributes", queue="q")
    shown = {name: row[name] for name in ("maxConsumers", "ringSize", "filter", "enabled", "paused", "life")}
    assert shown == {
        "maxConsumers": 4, "ringSize": 9, "filter": None, "enabled": True, "paused": True, "life": "declared",
    }  # fmt: skip
    assert row["declaredAt"].rpartition(":")[2].isdecimal()


# ---- update ------------------------------------------------------------------------------------------


def test_a_filter_counts_from_now_on() -> None:
    one, operated = operated_bench()
    one.send("before")
    operated.do("updateQueue", queue="q", filter_string="kind = 'good'")
    one.send("bad")
    one.send("good", "kind:good")
    assert one.count() == 2
    operated.do("updateQueue", queue="q", filter_string="")
    one.send("any")
    assert one.count() == 3


def test_a_disabled_queue_is_passed_by() -> None:
    one, operated = operated_bench()
    one.send("a")
    operated.do("queue.disable", queue="q")
    one.send("lost")
    one.subscribe("c")
    assert one.got("c") == ["a"]
    operated.do("queue.enable", queue="q")
    one.send("b")
    assert one.got("c") == ["b"]


def test_exclusive_while_consumers_are_there() -> None:
    """The first one gets everything; the others keep what they have, and get more when it is over."""
    one, operated = operated_bench()
    for name in ("c1", "c2"):
        one.subscribe(name, "consumer-window-size:-1")
    operated.do("updateQueue", queue="q", exclusive=True)
    for body in "abcd":
        one.send(body)
    assert (one.got("c1"), one.got("c2")) == (["a", "b", "c", "d"], [])
    operated.do("updateQueue", queue="q", exclusive=False)
    for body in "efgh":
        one.send(body)
    assert (len(one.got("c1")), len(one.got("c2"))) == (2, 2)


def test_another_routing_type() -> None:
    one, operated = operated_bench()
    assert operated.do("updateQueue", queue="q", routing_type="MULTICAST")["routingType"] == "MULTICAST"
    one.send("anycast")
    one.write("producer", "SEND", "destination:/topic/q", body="multicast")
    one.subscribe("c", to="q::q")
    assert one.got("c") == ["multicast"]
    assert operated.do("address.getAttributes", address="q")["routingTypes"] == "ANYCAST,MULTICAST"


def test_fewer_consumers_before_dispatch() -> None:
    one, operated = operated_bench("consumers-before-dispatch='2'")
    one.send("a")
    one.subscribe("c")
    assert one.got("c") == []
    operated.do("updateQueue", queue="q", consumers_before_dispatch=1)
    assert one.got("c") == ["a"]


def test_a_ring_and_a_depth() -> None:
    one, operated = operated_bench("overflow-policy='REJECT' max-depth-messages='1'")
    one.send("a")
    operated.do("updateQueue", queue="q", max_depth_messages=2)
    one.send("b")
    assert one.count() == 2
    _, operated = operated_bench("overflow-policy='REJECT'")
    with pytest.raises(BrokerError, match="another kind of queue when it is full"):
        operated.do("updateQueue", queue="q", max_depth_messages=2)


def test_groups_change_when_nothing_is_out() -> None:
    one, operated = operated_bench()
    for name in ("c1", "c2"):
        one.subscribe(name, "consumer-window-size:-1")
    one.send("a", "JMSXGroupID:red")
    frames = {name: one.messages(name) for name in ("c1", "c2")}
    with pytest.raises(BrokerError, match="messages of its groups are with consumers"):
        operated.do("updateQueue", queue="q", group_type="NONE")
    for name, some in frames.items():
        for frame in some:
            one.settle(name, frame)
    operated.do("updateQueue", queue="q", group_type="NONE")
    for body in "bcde":
        one.send(body, "JMSXGroupID:red")
    assert (len(one.got("c1")), len(one.got("c2"))) == (2, 2)


@pytest.mark.parametrize(
    ("attributes", "changes", "said"),
    [
        ("", {"durable": False}, "durable stays as it is, because it decides whether the queue is in the journal"),
        ("", {"last_value_key": "k"}, "last-value-key stays as it is, because it decides the order"),
        ("", {"max_message_ttl": 5}, "max-message-ttl stays as it is, because it is worked out for each message"),
        ("", {"fairness_model": "fast"}, "fairness-model stays as it is, because the queue would begin to limit"),
        ("", {"max_backlog": 5}, "the queue would begin to limit backlogs, or end it"),
        ("", {"max_consumers": 0}, "it has 1 consumer, more than max-consumers 0"),
        ("", {"durable": False, "max_consumers": 0}, "restart); it has 1 consumer, more than max-consumers 0"),
        ("target-queue-depth='2'", {"ring_size": 5}, "is a ring, which gives up the oldest messages"),
    ],
)
def test_what_stays_as_it_is(attributes: str, changes: dict[str, Any], said: str) -> None:
    """All of a request is refused, and nothing has changed."""
    one, operated = operated_bench(attributes)
    one.subscribe("c")
    before = operated.do("queue.getAttributes", queue="q")
    with pytest.raises(BrokerError) as caught:
        operated.do("updateQueue", queue="q", purge_on_no_consumers=True, **changes)
    assert said in str(caught.value)
    assert operated.do("queue.getAttributes", queue="q") == before


def test_the_same_values_change_nothing() -> None:
    """A console sends all of them."""
    _, operated = operated_bench("last-value-key='k'")
    row = operated.do("updateQueue", queue="q", last_value_key="k", durable=True, max_consumers=-1)
    assert row["lastValueKey"] == "k"


def test_an_unknown_queue() -> None:
    _, operated = operated_bench()
    with pytest.raises(NotFoundError, match="there is no queue 'r'"):
        operated.do("updateQueue", queue="r")


def test_a_wrong_routing_type() -> None:
    _, operated = operated_bench()
    with pytest.raises(BadRequestError, match="routing-type must be ANYCAST or MULTICAST"):
        operated.do("updateQueue", queue="q", routing_type="x")


def test_the_page_names_what_is_refused() -> None:
    page = (ROOT / "docs" / "destinations.md").read_text("utf-8")
    table = page.partition("## Which attributes can change")[2].partition("\n## ")[0]
    named = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])
    }
    assert named == {name.replace("_", "-") for name in NAMES if not REFUSALS.keys().isdisjoint(parts_of(name))}


# ---- groups and counters -----------------------------------------------------------------------------


def test_a_group_finds_another_consumer() -> None:
    one, operated = operated_bench()
    one.subscribe("c1", "consumer-window-size:0")
    one.send("a", "JMSXGroupID:red")
    one.subscribe("c2", "consumer-window-size:0")
    one.send("b", "JMSXGroupID:red")
    assert (one.got("c1"), one.got("c2")) == (["a"], [])
    assert operated.do("queue.resetGroup", queue="q", group="red") == {"reset": 1}
    assert one.got("c2") == ["b"]
    with pytest.raises(NotFoundError, match="no consumer of queue q has the group 'blue'"):
        operated.do("queue.resetGroup", queue="q", group="blue")
    assert operated.do("queue.resetAllGroups", queue="q") == {"reset": 1}
    assert operated.do("queue.resetAllGroups", queue="q") == {"reset": 0}


def test_buckets_stand_for_groups() -> None:
    one, operated = operated_bench("group-buckets='4'")
    one.subscribe("c1")
    one.send("a", "JMSXGroupID:red")
    assert operated.do("queue.resetGroup", queue="q", group="red") == {"reset": 1}


def test_shared_groups_are_not_reset() -> None:
    _, operated = operated_bench("group-type='SHARED_GROUPS' group-key='k'")
    with pytest.raises(BrokerError, match="shared groups"):
        operated.do("queue.resetAllGroups", queue="q")


def test_many_groups_are_reset_in_steps() -> None:
    one, operated = operated_bench()
    one.subscribe("c1", "consumer-window-size:-1")
    for number in range(600):
        one.send("x", f"JMSXGroupID:{number}")
    assert operated.do("queue.resetAllGroups", queue="q") == {"reset": 600}
    assert operated.steps >= 3


@pytest.mark.parametrize("counter", ["Added", "Acknowledged", "Expired", "Killed"])
def test_a_counter_begins_again(counter: str) -> None:
    one, operated = operated_bench()
    one.send("a")
    counters = one.queue().contents.counters
    setattr(counters, counter.lower(), 7)
    assert operated.do(f"queue.resetMessages{counter}", queue="q") == {"was": 7}
    assert getattr(counters, counter.lower()) == 0
    assert one.count() == 1


# ---- the end -----------------------------------------------------------------------------------------


def test_a_queue_goes_with_its_consumers() -> None:
    one, operated = operated_bench()
    one.subscribe("c")
    one.send("a")
    assert one.got("c") == ["a"]
    with pytest.raises(BrokerError, match="has 1 consumer"):
        operated.do("destroyQueue", queue="q")
    assert operated.do("destroyQueue", queue="q", remove_consumers=True, auto_delete_address=True) == {"removed": 1}
    (error,) = one.frames("c")
    assert error.header("message") == "An operator has deleted the queue q"
    assert "q" not in one.world.broker.addresses


def test_auto_delete_of_a_queue() -> None:
    """What the queue says counts before the address-settings."""
    one, operated = operated_bench()
    operated.do("createQueue", name="short", routing_type="ANYCAST", auto_delete=True, auto_delete_message_count=1)
    operated.do("createQueue", name="long", routing_type="ANYCAST")
    for name in ("short", "long"):
        one.send("x", to=f"/queue/{name}")
        one.subscribe(f"c-{name}", to=name)
        one.lose(f"c-{name}")
    for _ in range(3):
        one.world.advance(31_000)
    assert "short" not in one.world.broker.queues
    assert one.count("long") == 1
