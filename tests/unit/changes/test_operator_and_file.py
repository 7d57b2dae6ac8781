"""An operator's update and a reload change a queue in the same way: what one holds back until a restart, the other
refuses, and whatever was changed last is in force.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from artemis_py.config.changes import RESTART, plan_of
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import HONOURED, settings_of
from artemis_py.core.broker import Broker
from artemis_py.core.queue.attributes import amend, amended
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import own_settings
from artemis_py.core.queue_reference import AutoDelete
from artemis_py.errors import BrokerError
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, queue_config, redeploy, send, turn
from tests.unit.changes.fingerprint import facts
from tests.unit.changes.test_each_setting import _BASES, values_of

_ROWS: Final = {row.attribute: row for row in settings_of(QueueConfig).values()}
_PAIRS: Final = ((0, 1), (None, 0))


def update(broker: Broker, **values: Any) -> Queue:
    queue = broker.queues["q"]
    amend(queue, amended(queue, values), NOW_MS)
    return queue


@pytest.mark.parametrize("pair", _PAIRS)
@pytest.mark.parametrize("base", _BASES)
@pytest.mark.parametrize("attribute", [row.attribute for row in _ROWS.values() if row.treatment == HONOURED])
def test_an_update_does_what_a_reload_does(attribute: str, base: str, pair: tuple[int | None, int]) -> None:
    values = values_of(_ROWS[attribute])
    old = {} if pair[0] is None else {attribute: values[pair[0]]}
    new = {attribute: values[pair[1]]}
    if attribute == "default_publish_target" and "underlying_address" not in {**_BASES[base], **old}:
        pytest.skip("only a view has one")
    if attribute == "ring_size" and base == "with a depth":
        pytest.skip("a ring-size has no effect there, and an operator is told so")
    makers = [{**_BASES[base], **each} for each in (old, old, old, new)]
    updated, start, reloaded, after = (broker_of(queue_config(**each)) for each in makers)
    if redeploy(reloaded, after.config).held:
        with pytest.raises(BrokerError, match="stays as it is"):
            update(updated, **new)
        assert facts(updated) == facts(start)
        assert updated.queues["q"].own == start.queues["q"].own
        return
    queue = update(updated, **new)
    by_update, by_reload, by_start = (facts(each) for each in (updated, reloaded, after))
    for each in (by_update, by_reload, by_start):
        del each["queue"]["ring_size_changed"]  # where the ring-size of an operator is kept
    assert by_update == by_reload == by_start
    if attribute != "ring_size":
        assert queue.own == reloaded.queues["q"].own, "what is in force is known"
        assert redeploy(updated, start.config).held == {}
        assert facts(updated) == facts(start), "the file counts again"
        assert queue.own == start.queues["q"].own


@pytest.mark.parametrize(
    "values",
    [{"max_consumers": 5}, {"filter": "a = 1"}, {"enabled": False}, {"exclusive": True}, {"expiry_policy": "DISCARD"}],
)
def test_an_update_after_a_reload_and_a_reload_after_that(values: dict[str, Any]) -> None:
    one, two = broker_of(queue_config()), broker_of(queue_config(max_consumers=3, max_live_consumers=2))
    broker = broker_of(queue_config())
    for wanted in (two, one, two):
        redeploy(broker, wanted.config)
        assert facts(broker) == facts(wanted)
        update(broker, **values)
        assert facts(broker) != facts(wanted)
        config = amended(broker.queues["q"], {})
        assert broker.queues["q"].own == own_settings(config, broker.addresses["a"].settings, declared=True)


def test_what_waits_for_a_restart_does_not_stop_an_update() -> None:
    broker, wanted = broker_of(queue_config()), broker_of(queue_config(sort_key="k", max_consumers=3))
    assert redeploy(broker, wanted.config).held
    queue = update(broker, max_consumers=4)
    assert queue.consumer_registry.consumers_max == 4
    assert queue.own is not None
    assert queue.own.sort_key is None, "it is not in force"
    with pytest.raises(BrokerError, match="sort-key stays as it is, because it decides the order"):
        update(broker, sort_key="other")


_BARRIERS: Final = {"barrier_expression": "a = 1"}
_FULL: Final = {"overflow_policy": "REJECT", "max_depth_messages": 9}


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (_BARRIERS, "has barrier-expression or target-queue-depth and is a ring"),
        (_FULL, r"has overflow-policy REJECT and ring-size \d, which both define"),
        ({"file_backed_metadata": True}, "has file-backed-metadata, with which messages beyond a depth go to pages"),
    ],
    ids=["barriers", "a depth", "file-backed"],
)
def test_nobody_makes_a_ring_of_a_queue_that_may_not_be_one(attributes: dict[str, Any], said: str) -> None:
    """Neither an operator, in two ways, nor a reload that has to leave something else until a restart."""
    broker, start, ring = (broker_of(queue_config(**each)) for each in (attributes, attributes, {"ring_size": 5}))
    refused = f"ring-size stays as it is, because with it the queue {said}"
    with pytest.raises(BrokerError, match=refused):
        broker.queue_operations.set_ring_size("q", 5)
    with pytest.raises(BrokerError, match=said):
        broker.queue_changes.update(broker.queues["q"], {"ring_size": 5}, None, AutoDelete())
    broker.queue_operations.set_ring_size("q", -1)
    assert str(broker.queues["q"].flow.overflow.depth) == str(start.queues["q"].flow.overflow.depth)
    assert redeploy(broker, ring.config).held == {"q": {*attributes, "ring_size"}}
    assert broker.queues["q"].own == start.queues["q"].own
    with pytest.raises(BrokerError, match=refused):
        update(broker, ring_size=6)
    (row,) = (one for one in plan_of(start.config, ring.config).changes if one.setting == "ring-size")
    assert (row.effect, row.note) == (RESTART, "not with what waits for a restart, too")


def test_a_ring_size_of_an_operator_stays_until_the_file_has_another() -> None:
    declared = (queue_config(), queue_config(max_consumers=3), queue_config(ring_size=7))
    plain, other, ring = (broker_of(each) for each in declared)
    broker = broker_of(queue_config())
    queue = update(broker, ring_size=4, max_consumers=9)
    for wanted, most in ((plain, -1), (other, 3)):
        redeploy(broker, wanted.config)
        assert (queue.ring_size_changed, queue.consumer_registry.consumers_max) == (4, most)
        assert queue.flow.overflow.excess(6, 6) == 2
    update(broker, max_consumers=2)
    redeploy(broker, plain.config)
    assert queue.ring_size_changed == 4, "another update leaves it alone"
    redeploy(broker, ring.config)
    assert queue.ring_size_changed is None
    assert queue.flow.overflow.excess(9, 9) == 2
    update(broker, ring_size=-1)
    assert queue.flow.overflow.excess(9, 9) == 0
    redeploy(broker, ring.config)
    assert queue.flow.overflow.excess(9, 9) == 0, "the file says what it said before"


def test_a_queue_of_notifications_stays_a_ring() -> None:
    broker, wanted = (
        broker_of(queue_config(address="n", max_consumers=most), management_notification_address="n") for most in (2, 3)
    )
    limit = broker.queues["q"].flow.overflow
    redeploy(broker, wanted.config)
    assert broker.queues["q"].consumer_registry.consumers_max == 3
    assert type(broker.queues["q"].flow.overflow) is type(limit)


def test_groups_change_at_once_when_nothing_of_them_is_out() -> None:
    for settled in (True, False):
        broker, wanted = broker_of(queue_config()), broker_of(queue_config(group_key="k"))
        queue = broker.queues["q"]
        consumer = consumer_on(broker, queue)
        send(broker, head=head_of(JMSXGroupID="red"))
        turn(broker)
        assert len(list(consumer.held)) == 1
        assert queue.grouping.groups is not None
        before = queue.grouping.groups.rule
        if settled:
            queue.acknowledge(consumer, consumer.let_go_all())
        redeploy(broker, wanted.config)
        rule = queue.grouping.rule
        assert rule != before
        groups = queue.grouping.groups
        assert (groups is None or groups.rule == rule) is settled


@pytest.mark.parametrize("values", [{"filter": "a = 1"}, {"enabled": False}])
@pytest.mark.parametrize("way", ["update", "reload"])
@pytest.mark.parametrize(
    "reader", [{"address": "b.#"}, {"address": "v", "underlying_address": "b.c", "default_publish_target": "b.c"}]
)
def test_plans_of_other_addresses_see_the_change(way: str, values: dict[str, Any], reader: dict[str, Any]) -> None:
    near_by = queue_config("near", "b.c")
    broker = broker_of(queue_config("far", **reader), near_by)
    far, near = broker.queues["far"], broker.queues["near"]
    send(broker, "b.c")
    assert (far.message_count, near.message_count) == (1, 1)
    plan = broker.bindings.plan_for(broker.addresses["b.c"])
    if way == "update":
        broker.queue_changes.update(far, values, None, AutoDelete())
    else:
        redeploy(broker, broker_of(queue_config("far", **reader, **values), near_by).config)
    send(broker, "b.c")
    assert (far.message_count, near.message_count) == (1, 2)
    assert broker.bindings.plan_for(broker.addresses["b.c"]) is not plan, "what a message costs is worked out anew"
