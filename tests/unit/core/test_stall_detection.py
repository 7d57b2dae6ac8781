"""A queue that delivers nothing because backlogs are used up says so, and a queue that is only busy does not."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import HELD_UP, Event
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.delivery import FIRST_MS
from artemis_py.core.queue.queue import Queue
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, queue_config, send, told, turn, with_queue

ONE_EACH: dict[str, Any] = {"max_per_subscription_backlog": 1}
ONCE: dict[str, Any] = {"delivery_semantics": "at-most-once", "max_per_subscription_backlog": 1}


def stuck(attributes: dict[str, Any], consumers: int = 1, **options: Any) -> tuple[Broker, Queue, list[Consumer]]:
    """A queue whose consumers have as much as they may, with one message more."""
    broker, queue = with_queue(**attributes)
    backlog = options.pop("backlog_max", 1)
    found = [consumer_on(broker, queue, backlog_max=backlog, **options) for _ in range(consumers)]
    send(broker, count=consumers * backlog + 1)
    turn(broker)
    told(broker, HELD_UP)
    return broker, queue, found


def later(broker: Broker, after_ms: int) -> list[Event]:
    """What is told so long after the start, in ms."""
    turn(broker, NOW_MS + after_ms)
    return told(broker, HELD_UP)


def test_it_is_told_after_a_while_and_then_less_and_less_often() -> None:
    broker, _, (consumer,) = stuck({**ONE_EACH, "lease_period": 3_600_000})
    times = [after_ms for after_ms in range(1000, 400_000, 1000) if later(broker, after_ms)]
    assert times == [10_000, 30_000, 70_000, 150_000, 310_000]
    broker, _, (consumer,) = stuck({**ONE_EACH, "lease_period": 3_600_000})
    assert later(broker, FIRST_MS - 1) == []
    (event,) = later(broker, FIRST_MS)
    assert event.fields == {
        "reason": "consumer-backlogs", "quiet_ms": FIRST_MS, "ready": 1, "consumers": 1, "full": 1, "held": 1,
        "consumer": consumer.id, "oldest_ms": FIRST_MS,
        "why": "1 of 1 consumers hold 1 message and have room for no more (max-backlog); "
        f"consumer {consumer.id} has had the oldest for 10 s",
    }  # fmt: skip


def test_a_busy_queue_has_full_backlogs_all_the_time_and_is_not_held_up() -> None:
    broker, queue, (consumer,) = stuck(ONE_EACH)
    for after_ms in range(1000, 100_000, 1000):
        send(broker, count=1, now_ms=NOW_MS + after_ms)
        queue.acknowledge(consumer, consumer.let_go_all())
        queue.wake(consumer)
        assert later(broker, after_ms) == []
    assert queue.contents.order.count > 0
    assert later(broker, 99_000 + FIRST_MS - 1) == []
    assert len(later(broker, 99_000 + FIRST_MS)) == 1, "it has come to rest"


def test_what_is_sent_at_most_once_and_not_acknowledged_holds_up_too() -> None:
    broker, queue, (consumer,) = stuck(ONCE, settles=True, acks=True)
    (event,) = later(broker, FIRST_MS)
    assert (event.fields["full"], event.fields["held"], "oldest_ms" in event.fields) == (1, 1, False)
    queue.acknowledge(consumer, consumer.let_go_all())
    queue.wake(consumer)
    assert later(broker, FIRST_MS + 1) == []
    assert queue.contents.order.count == 0


def test_the_backlog_of_the_queue() -> None:
    broker, *_ = stuck({"max_backlog": 2, "max_per_subscription_backlog": 9}, backlog_max=9)
    (event,) = later(broker, FIRST_MS)
    assert event.fields["reason"] == "max-backlog"
    assert event.fields["why"] == "its backlog is used up: 2 messages in delivery, of max-backlog 2"
    assert (event.fields["ready"], event.fields["in_delivery"], event.fields["unconfirmed"]) == (8, 2, 0)


def test_consumers_that_want_nothing_are_counted_but_are_no_reason_alone() -> None:
    broker, queue, _ = stuck(ONE_EACH, consumers=2)
    consumer_on(broker, queue, selector="color = 'red'", backlog_max=1)
    turn(broker)
    (event,) = later(broker, FIRST_MS)
    assert (event.fields["consumers"], event.fields["full"]) == (3, 2)
    broker = broker_of(queue_config(**ONE_EACH))
    consumer_on(broker, broker.queues["q"], selector="color = 'red'", backlog_max=1)
    send(broker)
    turn(broker)
    assert later(broker, FIRST_MS) == []


def test_consumers_in_line_are_not_counted() -> None:
    broker, *_ = stuck({**ONE_EACH, "max_live_consumers": 1}, consumers=3)
    (event,) = later(broker, FIRST_MS)
    assert (event.fields["consumers"], event.fields["full"]) == (1, 1)


@pytest.mark.parametrize("what", ["pause", "leave", "take", "purge"])
def test_it_ends_when_there_is_another_reason_or_none(what: str) -> None:
    broker, queue, (consumer,) = stuck(ONE_EACH)
    if what == "pause":
        queue.pause()
    elif what == "leave":
        broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    elif what == "take":
        queue.acknowledge(consumer, consumer.let_go_all())
        queue.wake(consumer)
    else:
        queue.purge(PURGED, NOW_MS)
    assert [later(broker, after_ms) for after_ms in (1, FIRST_MS, 5 * FIRST_MS)] == [[], [], []]
    assert broker.timers.next_due_ms() is None, "nobody looks at it any more"


def test_it_begins_again() -> None:
    broker, queue, (consumer,) = stuck(ONE_EACH)
    assert len(later(broker, FIRST_MS)) == 1
    queue.acknowledge(consumer, consumer.let_go_all())
    queue.wake(consumer)
    assert later(broker, FIRST_MS + 500) == []
    send(broker, now_ms=NOW_MS + FIRST_MS + 500)
    assert later(broker, FIRST_MS + 600) == []
    times = [after_ms for after_ms in range(11_000, 60_000, 1000) if later(broker, after_ms)]
    assert times == [30_000, 50_000], "the wait of 20 s that had begun, and then the first one again"


def test_an_earlier_alarm_of_the_queue_changes_nothing() -> None:
    broker, queue, _ = stuck(ONE_EACH)
    broker.timers.alarms.set_by(queue.id, NOW_MS + 5_000)
    assert later(broker, 5_001) == []
    assert broker.timers.next_due_ms() == NOW_MS + FIRST_MS
    assert len(later(broker, FIRST_MS)) == 1
    broker.timers.alarms.set_by(queue.id, NOW_MS + 15_000)
    assert later(broker, 15_000) == []
    assert len(later(broker, 30_000)) == 1


def test_setting_the_clock_does_not_make_it_earlier() -> None:
    broker, *_ = stuck(ONE_EACH)
    broker.clock.set_ahead(3_600_000)
    assert later(broker, 3_600_000 + 5_000) == []
    assert len(later(broker, 3_600_000 + FIRST_MS)) == 1


def test_many_consumers_are_looked_at_in_slices() -> None:
    broker, queue, consumers = stuck(ONE_EACH, consumers=3000)
    spent = []
    for _ in range(6):
        assert told(broker, HELD_UP) == []
        broker.host.budget.refill(1000)
        queue.look_again(NOW_MS + FIRST_MS)
        spent.append(1000 - broker.host.budget.left)
    (event,) = told(broker, HELD_UP)
    assert (event.fields["consumers"], event.fields["full"], event.fields["held"]) == (3000, 3000, 3000)
    assert spent == [65, 65, 65, 65, 65, 56]
    broker.host.budget.refill(1 << 30)
    for consumer in consumers[:10]:
        broker.detach(queue, consumer, failed=False, now_ms=NOW_MS + FIRST_MS)
    queue.purge(PURGED, NOW_MS + FIRST_MS)
    send(broker)
    events = [event for _ in range(8) for event in later(broker, 3 * FIRST_MS)]
    assert (events[0].fields["consumers"], events[0].fields["full"]) == (2990, 2990), "each look counts anew"


def test_a_queue_without_consumers_waits_for_nothing() -> None:
    broker = broker_of(queue_config(**ONE_EACH))
    send(broker)
    turn(broker)
    assert broker.timers.next_due_ms() is None


def test_a_queue_without_attributes_of_amps_has_nothing_of_it() -> None:
    broker = broker_of(queue_config())
    assert broker.queues["q"].stall_detection is None
    consumer_on(broker, broker.queues["q"], window_bytes=1)
    send(broker, count=5)
    turn(broker)
    assert later(broker, FIRST_MS) == []
    assert broker.timers.next_due_ms() is None


def test_a_barrier_that_waits_for_what_was_sent_before_says_for_what() -> None:
    broker, queue = with_queue(barrier_expression="color = 'red'")
    consumer = consumer_on(broker, queue, backlog_max=5)
    send(broker, count=2, plain=True)
    send(broker, head=head_of("a", color="red"))
    turn(broker)
    told(broker, HELD_UP)
    (event,) = later(broker, FIRST_MS)
    assert event.fields == {
        "reason": "barrier", "quiet_ms": FIRST_MS, "ready": 0, "behind": 1, "in_delivery": 2,
        "why": "1 message waits at a barrier: it goes out when everything before it is done (2 in delivery)",
    }  # fmt: skip
    queue.acknowledge(consumer, consumer.let_go_all())
    assert later(broker, 2 * FIRST_MS) == []


def test_messages_over_the_target_depth_say_how_many_are_active() -> None:
    broker, queue = with_queue(target_queue_depth=2)
    consumer_on(broker, queue, backlog_max=5)
    send(broker, count=5)
    turn(broker)
    told(broker, HELD_UP)
    (event,) = later(broker, FIRST_MS)
    assert event.fields["reason"] == "target-queue-depth"
    assert event.fields["why"] == "3 messages wait to become active: 2 are, of target-queue-depth 2"
