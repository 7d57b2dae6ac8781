"""What the model found, each as small as it can be told, with the reason why it matters. The world compares broker and
model after every step; what is not seen there is asserted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.kit.core import ids
from tests.model.letters import Spec
from tests.model.plans import (
    FLOW_CONTROL,
    LEVELS,
    LVQ,
    PAUSE,
    REJECT,
    RING,
    SHARED,
    SORTED,
    STANDARD,
    STICKY,
    AddressPlan,
    Plan,
    QueuePlan,
)
from tests.model.soak import run_world
from tests.model.trade import Trade

pytestmark = pytest.mark.model

A = Spec(key="a")
DURABLE = Spec(persistent=True)
DELAYED = AddressPlan(redelivery_delay=200, multiplier=1.0, redelivery_delay_max=200)


def world_of(*queues: QueuePlan, address: AddressPlan | None = None) -> Trade:
    """A world with these queues."""
    return Trade(Plan(queues, address or AddressPlan()))


# ---- alerts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "queue",
    [QueuePlan(ring_size=1), QueuePlan(policy="RING", depth_messages=1), QueuePlan(kind=LVQ)],
    ids=["ring-size", "ring", "last-value"],
)
def test_what_goes_as_it_comes_does_not_get_old(queue: QueuePlan) -> None:
    """Else the age of a message that a ring gave up, or a newer value replaced, is told for ever."""
    world = world_of(replace(queue, alerts=True))
    world.publish(A, A)
    assert world.pairs[0].queue.contents.order.count == 1
    world.subscribe(settles=True)
    world.turn()
    world.turn(1000)
    alerts = world.pairs[0].queue.alerts
    assert alerts is not None
    assert "MESSAGE_AGE_ALERT" not in alerts.alerts.raised


def test_what_a_transaction_acknowledged_still_gets_old_when_the_rest_is_removed() -> None:
    """It is on the queue until COMMIT."""
    world = world_of(QueuePlan(alerts=True))
    world.subscribe()
    world.publish(A)
    world.turn()
    world.begin()
    world.settle_in_transaction(world.seats[0])
    world.purge()
    world.turn(1000)
    alerts = world.pairs[0].queue.alerts
    assert alerts is not None
    assert alerts.alerts.raised["MESSAGE_AGE_ALERT"] == 1


# ---- holding back ------------------------------------------------------------------------------------


def test_a_held_value_replaces_only_what_nobody_waits_for() -> None:
    """Consumers with room have the older value first, however many messages come at once."""
    world = world_of(QueuePlan(kind=LVQ, holds=True))
    world.subscribe()
    world.publish(A, replace(A, held_ms=500))
    world.turn()
    assert len(world.seats[0].reader.held) == 1


def test_what_is_scheduled_is_not_due_before_it_is_valid() -> None:
    """Who sets both times wants both; before and after a restart, and on a queue that does not hold back the schedule
    alone counts.
    """
    world = world_of(QueuePlan(holds=True), QueuePlan())
    world.publish(Spec(persistent=True, held_ms=500), delay_ms=100)
    world.turn(100)
    assert [ids(world.pairs[0].queue.contents.order), ids(world.pairs[1].queue.contents.order)] == [[], [1]]
    world.restart(100)
    world.turn()
    assert [ids(world.pairs[0].queue.contents.order), ids(world.pairs[1].queue.contents.order)] == [[], [1]]
    world.turn(301)
    assert ids(world.pairs[0].queue.contents.order) == [1]


# ---- limits ------------------------------------------------------------------------------------------


def test_commit_asks_consumers_before_it_is_refused() -> None:
    """As a message that is sent alone does: what a consumer with room takes makes room."""
    world = world_of(QueuePlan(policy=REJECT, depth_messages=1))
    world.publish(DURABLE)
    world.subscribe(settles=True, connection=2)
    world.begin()
    world.send_in_transaction(DURABLE)
    world.commit()
    world.turn()
    assert world.pairs[0].queue.contents.counters.acknowledged == 2


@pytest.mark.parametrize("settles", [False, True], ids=["client", "auto"])
def test_what_expires_between_others_does_not_let_senders_go_on_too_early(settles: bool) -> None:
    """What a consumer was just given is part of the depth (or, settled on send, no longer)."""
    world = world_of(QueuePlan(policy=FLOW_CONTROL, depth_messages=2, resume_percent=50))
    world.publish(Spec(), Spec(), Spec(ttl_ms=100))
    assert world.pairs[0].queue.flow.stopped
    world.advance(100)
    world.subscribe(settles=settles)
    world.dispatch()
    assert world.pairs[0].queue.flow.stopped == (not settles)


def test_an_outdated_value_goes_when_it_returns_with_others() -> None:
    """It was picked, a newer one fell due, and then the consumer left before anything was written."""
    world = world_of(QueuePlan(kind=LVQ, policy=FLOW_CONTROL, depth_bytes=200, resume_percent=50))
    world.publish(A, delay_ms=100)
    world.publish(Spec(key="a", body_bytes=90), Spec(key="b", body_bytes=90))
    seat = world.subscribe(settles=True)
    world.dispatch()
    world.advance(100)
    world.unsubscribe(seat)
    assert sorted(ids(world.pairs[0].queue.contents.order)) == [1, 3]


def test_a_ring_gives_up_the_oldest_of_all_whose_leases_end_together() -> None:
    """Whoever held them: it is trimmed when all are back."""
    world = world_of(QueuePlan(policy="RING", depth_messages=1, lease_ms=400))
    first, second = (world.subscribe(connection=connection, backlog=1) for connection in (1, 2))
    for _ in range(2):
        world.publish(DURABLE)
        world.turn()
    assert world.seats[0].reader.held
    assert world.seats[1].reader.held
    for seat in (first, second):
        world.set_room(seat, 0)
    world.advance(400)
    assert ids(world.pairs[0].queue.contents.order) == [2]


# ---- time --------------------------------------------------------------------------------------------


def test_what_was_handed_over_and_came_back_expires_at_its_time() -> None:
    """It never stood on the queue before, so nobody had noted when it is over."""
    world = world_of(QueuePlan(ttl_max=250))
    seat = world.subscribe(settles=True)
    world.publish(Spec())
    assert seat.consumer.handed
    world.unsubscribe(seat)
    assert ids(world.pairs[0].queue.contents.order) == [1]
    world.turn(250)
    assert ids(world.pairs[0].queue.contents.order) == []


def test_a_consumer_of_the_future_gets_what_is_committed_after_it_came() -> None:
    """It was sent before, but it arrives now; nobody else might ever take it."""
    world = world_of(QueuePlan(replay_s=0))
    world.begin(connection=2)
    world.send_in_transaction(Spec(), connection=2)
    world.publish(Spec())
    world.subscribe()
    world.commit(connection=2)
    world.turn()
    assert len(world.seats[0].reader.held) == 1
    assert world.pairs[0].queue.contents.order.count == 1


# ---- restarts ----------------------------------------------------------------------------------------


def test_order_inside_a_group_survives_a_restart() -> None:
    """Another attempt that is due goes to its place in the group, and stays there."""
    world = world_of(QueuePlan(kind=STANDARD, groups=SHARED), address=DELAYED)
    world.publish(*[replace(DURABLE, group="g")] * 3)
    seat = world.subscribe()
    world.turn()
    world.settle(seat, 1, refuses=True)
    world.turn(200)
    world.unsubscribe(seat)
    assert ids(world.pairs[0].queue.contents.order) == [1, 2, 3]
    world.restart()
    assert ids(world.pairs[0].queue.contents.order) == [1, 2, 3]


def test_a_queue_finds_what_came_together_in_its_order_after_a_restart() -> None:
    """Also when another queue of the address, which is asked first, took only some of it."""
    world = world_of(QueuePlan(red_only=True), QueuePlan())
    world.publish(replace(DURABLE, color="blue"), DURABLE, replace(DURABLE, color="blue"))
    world.restart()
    assert ids(world.pairs[1].queue.contents.order) == [1, 2, 3]


# ---- group-rebalance-pause-dispatch ------------------------------------------------------------------


def test_a_rebalance_that_pauses_closes_the_gate_again() -> None:
    """With consumers-before-dispatch, groups are handed out anew when so many are there again."""
    queue = QueuePlan(
        kind=LEVELS, groups="STANDARD", rebalances="rebalance-and-pause", consumers_before=3, delay_before=50
    )
    world = world_of(queue)
    world.publish(Spec(group="g"), Spec(group="h"))
    first = world.subscribe()
    world.turn(50)
    assert len(world.seats[0].reader.held) == 2
    world.subscribe()
    world.publish(Spec(group="i"))
    world.settle(first, 1, cumulative=True)
    world.turn()
    assert world.pairs[0].queue.contents.order.count == 1
    world.turn(50)
    assert ids(world.pairs[0].queue.contents.order) == []


# ---- what is due in one tick -------------------------------------------------------------------------


def test_senders_wait_when_it_was_too_deep_before_one_expired() -> None:
    """Two that were scheduled fall due at 250 ms, one expires at 400 ms, and the clock is read at 1,000 ms."""
    depth = QueuePlan(policy="PRODUCER_FLOW_CONTROL", depth_messages=2, resume_percent=0, alerts=True)
    later = [("red", 4, False, 0, 3, "a", None, 0, False)] * 2
    short = [("red", 4, False, 400, 90, "a", "h", 0, False)]
    seat = {
        "number": 0, "connection": 2, "settles": True, "browses": False, "selector": None, "no_local": False,
        "window": -1, "priority": 0, "room": 1, "replay_s": None, "alone": False,
    }  # fmt: skip
    steps: list[tuple[str, dict[str, Any]]] = [
        ("subscribe", seat),
        ("publish", {"specs": later, "connection": 2, "delay_ms": 250}),
        ("publish", {"specs": short, "connection": 1, "delay_ms": 0}),
        ("end", {"connection": 2, "failed": True}),
        ("turn", {"ms": 1000}),
    ]
    run_world(Plan((depth,), AddressPlan()), steps)


# ---- what leaves while another is picked -------------------------------------------------------------


@pytest.mark.parametrize("browses", [False, True], ids=["consumer", "browser"])
@pytest.mark.parametrize("short_count", [1, 2])
def test_senders_wait_for_what_is_picked_when_others_expired(short_count: int, *, browses: bool) -> None:
    """The limit is two, and senders go on at one. Of three messages some have expired when the next one is picked. That
    one still counts, and it counts once where it is only shown.
    """
    depth = QueuePlan(policy="PRODUCER_FLOW_CONTROL", depth_messages=2, resume_percent=50)
    short, lasting = ("red", 4, False, 150, 90, "a", None, 0, False), ("red", 4, False, 0, 90, "b", None, 0, False)
    seat = {
        "number": 0, "connection": 2, "settles": False, "browses": browses, "selector": "color = 'red'",
        "no_local": False, "window": 50, "priority": 0, "room": 0, "replay_s": None, "alone": False,
    }  # fmt: skip
    steps: list[tuple[str, dict[str, Any]]] = [
        ("subscribe", seat),
        ("publish", {"specs": [short] * short_count + [lasting] * (3 - short_count), "connection": 1, "delay_ms": 0}),
        ("turn", {"ms": 200}),
        ("set_room", {"pick": 0, "room": 1 << 30}),
        ("turn", {"ms": 0}),
    ]
    run_world(Plan((depth,), AddressPlan()), steps)


# ---- barriers ------------------------------------------------------------------------------------


BARRIER = Spec(key="b")


def test_senders_go_on_when_one_that_fell_due_replaced_another_and_the_rest_was_taken() -> None:
    """The one that was replaced left. What that means for senders is asked after consumers took the others."""
    world = world_of(QueuePlan(kind=LVQ, policy=FLOW_CONTROL, depth_bytes=250, resume_percent=0))
    world.subscribe(settles=True)
    world.publish(Spec(body_bytes=90), Spec(), A, Spec(key="a", body_bytes=90), delay_ms=100)
    model = world.pairs[0].model
    assert model.senders_wait
    world.turn(200)
    assert "value replaced" in model.happened
    assert not model.senders_wait


def test_a_subscription_that_is_changed_keeps_the_barrier_that_waits_to_be_written() -> None:
    """It is not held, so it cannot go back, and the others have it already."""
    world = world_of(QueuePlan(barriers=True))
    seats = [world.subscribe(connection=number, backlog=2) for number in (1, 2)]
    world.publish(BARRIER, A)
    world.dispatch()
    assert all(seat.consumer.barrier is not None for seat in world.seats)
    world.replace(seats[0], "color = 'red'", no_local=False, backlog=1)
    world.write()
    world.turn()
    world.turn()
    assert world.pairs[0].model.happened >= {"barrier", "barrier to several"}
    assert [len(world.seats[index].reader.held) for index in (0, 1)] in ([1, 0], [0, 1])


def test_a_barrier_that_nobody_was_sent_waits_again() -> None:
    """Both had it and left before it was written: it is there for the next, before what stands behind it."""
    world = world_of(QueuePlan(barriers=True))
    for number in (1, 2):
        world.subscribe(connection=number)
    world.publish(BARRIER, A)
    world.dispatch()
    for seat in list(world.seats):
        world.unsubscribe(seat)
    assert "barrier came back" in world.pairs[0].model.happened
    world.subscribe(connection=3)
    world.turn()
    assert not world.seats[0].reader.held
    world.turn()
    assert len(world.seats[0].reader.held) == 1


def test_a_subscription_that_is_changed_is_asked_again_while_a_barrier_is_out() -> None:
    """It did not want the barrier, which waits for another one's connection. Now it does."""
    world = world_of(QueuePlan(barriers=True))
    world.subscribe(connection=1)
    waited_for = world.subscribe(connection=2, room=0)
    changed = world.subscribe(connection=3, selector="color = 'red'")
    world.publish(Spec("blue", key="b"))
    world.turn()
    assert changed.reader.number not in world.pairs[0].model.barrier_got
    world.replace(changed, None, no_local=False, backlog=1)
    world.turn()
    assert changed.reader.number in world.pairs[0].model.barrier_got
    world.set_room(waited_for, 1000)
    world.turn()
    assert world.pairs[0].queue.message_count == 0


@pytest.mark.parametrize("way", ["changes", "leaves"])
def test_who_does_not_want_a_barrier_any_more_is_not_waited_for(way: str) -> None:
    """Its connection took nothing when the barrier went out. Now it wants others, or it leaves as it has room."""
    world = world_of(QueuePlan(barriers=True))
    got_it = world.subscribe(connection=1)
    waited_for = world.subscribe(connection=2, room=0)
    world.publish(Spec("blue", key="b"))
    world.turn()
    if way == "changes":
        world.replace(waited_for, "color = 'red'", no_local=False, backlog=1)
        world.turn()
    else:
        world.set_room(waited_for, 1000)
        world.unsubscribe(waited_for)
        world.unsubscribe(got_it)
    assert world.pairs[0].queue.message_count == 0


@pytest.mark.parametrize(
    "plan", [QueuePlan(barriers=True, live_max=1), QueuePlan(barriers=True)], ids=["waits", "looks"]
)
def test_who_comes_before_a_barrier_is_written_and_gets_none_does_not_hold_it(plan: QueuePlan) -> None:
    """It is not served, or only looks, and its connection takes nothing. The barrier is done all the same."""
    world = world_of(plan)
    world.subscribe(connection=1)
    world.publish(BARRIER)
    world.dispatch()
    world.subscribe(connection=2, browses=not plan.live_max, room=0)
    world.write()
    world.turn()
    assert world.pairs[0].queue.message_count == 0


@pytest.mark.parametrize("way", ["commit would wait", "commit would be refused", "sent", "falls due"])
def test_a_barrier_that_is_over_keeps_nobody_out(way: str) -> None:
    """The last consumer that was to get it has left, and no dispatch came since: before a full queue refuses anything,
    or has senders wait, it sees that the barrier is done, and there is room.
    """
    before = [A] if way == "commit would wait" else []
    policy = REJECT if way == "commit would be refused" else FLOW_CONTROL
    resume_percent = 100 if before else 0
    world = world_of(QueuePlan(barriers=True, policy=policy, depth_messages=1, resume_percent=resume_percent))
    got_it, waited_for = world.subscribe(connection=1), world.subscribe(connection=2, room=0)
    world.publish(BARRIER, *before)
    world.turn()
    world.set_room(got_it, 0)
    world.unsubscribe(waited_for)
    assert world.pairs[0].queue.flow.stopped == bool(before)
    if way.startswith("commit"):
        world.begin()
        world.send_in_transaction(A)
        world.commit()
    else:
        world.publish(A, delay_ms=100 if way == "falls due" else 0)
    world.turn(100)
    assert not world.transactions
    assert world.pairs[0].queue.message_count == len(before) + 1


def test_a_rebalance_that_pauses_does_not_wait_for_a_barrier() -> None:
    """It is out until a connection takes it, which gets nothing during the pause: that would last for ever."""
    world = world_of(QueuePlan(barriers=True, groups=STICKY, rebalances=PAUSE))
    world.publish(Spec(group="g"))
    first = world.subscribe(connection=1)
    world.turn()
    world.settle(first, 0)
    stalled = world.subscribe(connection=2, room=0)
    world.publish(BARRIER)
    world.turn()
    assert world.pairs[0].model.barrier_out is not None
    world.subscribe(connection=3)
    world.set_room(stalled, 1000)
    world.turn()
    assert world.pairs[0].queue.message_count == 0


def test_a_subscription_that_is_changed_and_changed_back_gets_what_waits_for_its_group() -> None:
    """The group was its own because of a message that a transaction holds, not the consumer: it was not offered the
    next one again.
    """
    world = world_of(QueuePlan(groups=SHARED))
    reader = world.subscribe(connection=1, backlog=1)
    world.subscribe(connection=2, backlog=1)
    world.publish(Spec(group="g"))
    world.turn()
    world.publish(Spec(group="g"))
    world.turn()
    world.begin(connection=1)
    world.settle_in_transaction(reader, 0)
    for selector in ("AMQExpiration > 0", None):
        world.replace(reader, selector, no_local=False, backlog=1)
    world.turn()
    assert len(world.seats[0].reader.held) == 1


def test_what_is_held_back_expires_in_the_tick_in_which_a_lease_ends() -> None:
    """Two expire before the lease ends, whose value gives way to the newer one: they are told of in this order."""
    world = world_of(
        QueuePlan(kind=LVQ, holds=True, ttl_usual=200, lease_ms=400, policy=FLOW_CONTROL, depth_messages=2)
    )
    world.subscribe(connection=2, backlog=2)
    world.publish(Spec(key="a"))
    world.turn(50)
    world.advance(200)
    world.publish(Spec(key="a", held_ms=250), Spec(key="b"))
    world.advance(200)
    assert world.pairs[0].queue.message_count == 0


def test_a_message_handed_over_is_no_depth_when_later_ones_of_the_same_send_are_queued() -> None:
    """A name of a group ends handing over within one SEND: the first message is with the consumer by then."""
    world = world_of(
        QueuePlan(groups=STICKY, policy=FLOW_CONTROL, depth_messages=2), QueuePlan(kind=SORTED, ring_size=0)
    )
    world.subscribe(settles=True)
    world.publish(Spec(), Spec(group="g"), Spec(group="g"), Spec(group="h"))
    assert not world.pairs[0].queue.flow.stopped


def test_senders_go_on_when_enough_was_picked_whatever_else_left() -> None:
    """What is picked for a consumer that settles on send is no part of the depth. So senders go on at once, and not
    only if something else expires in the same dispatch.
    """
    for ttl_ms in (0, 150):
        world = world_of(QueuePlan(policy=FLOW_CONTROL, depth_messages=3, resume_percent=50))
        world.publish(Spec(), Spec(), Spec(), Spec(ttl_ms=ttl_ms))
        assert world.pairs[0].queue.flow.stopped
        world.subscribe(settles=True, backlog=10)
        world.advance(200)
        world.dispatch()
        assert not world.pairs[0].queue.flow.stopped


@pytest.mark.parametrize("policy", [REJECT, FLOW_CONTROL, RING])
def test_what_expires_makes_the_next_active_before_a_full_queue_refuses_or_drops(policy: str) -> None:
    """The queue looked at the one active message, which was over; so a consumer with room came too late for others."""
    world = world_of(QueuePlan(policy=policy, depth_bytes=200, active_max=1))
    world.publish(*[Spec(ttl_ms=150)] * 3)
    world.publish(Spec(body_bytes=90))
    world.now_ms += 200
    world.subscribe(settles=True)
    world.publish(Spec(body_bytes=90))
    queue = world.pairs[0].queue
    assert [entry.message.id for entry in world.seats[0].consumer.outbox] == [4]
    assert (queue.contents.counters.added, queue.contents.counters.replaced, queue.flow.stopped) == (5, 0, False)
