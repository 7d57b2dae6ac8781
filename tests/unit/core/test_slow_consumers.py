"""Slow consumers are found at the check period, reported or killed, with a clock that the test moves."""

from __future__ import annotations

from typing import Any

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import CONSUMER_SLOW
from artemis_py.core.queue.queue import Queue
from tests.kit.core import NOW_MS, broker_of, consumer_on, queue_config, redeploy, send, told, turn

PERIOD_MS = 5_000


def made(**settings: Any) -> tuple[Broker, Queue]:
    """A queue whose consumers must settle two messages a second, looked at every five seconds."""
    values = {"slow_consumer_threshold": 2, "slow_consumer_check_period": 5, **settings}
    broker = broker_of(queue_config(), settings={"#": values})
    return broker, broker.queues["q"]


def settle(queue: Queue, consumer: Consumer, count: int) -> None:
    """The client acknowledges so many messages."""
    for message_id in list(consumer.held)[:count]:
        queue.acknowledge(consumer, [consumer.let_go(message_id)])


def test_a_consumer_that_settles_too_little_is_told_of() -> None:
    broker, queue = made()
    slow, fast = consumer_on(broker, queue), consumer_on(broker, queue)
    send(broker, count=100)
    turn(broker)
    turn(broker, NOW_MS + PERIOD_MS)
    assert not told(broker, CONSUMER_SLOW), "the first look only begins to measure"
    settle(queue, slow, 9)
    settle(queue, fast, 10)
    turn(broker, NOW_MS + 2 * PERIOD_MS)
    (event,) = told(broker, CONSUMER_SLOW)
    assert (event.fields["consumer"], event.fields["settled"], event.fields["span_ms"]) == (slow.id, 9, PERIOD_MS)
    assert event.fields["reason"] == "slow-consumer"
    assert event.fields["policy"] == "NOTIFY"
    assert not broker.slow_consumers.killed
    settle(queue, slow, 10)
    settle(queue, fast, 10)
    turn(broker, NOW_MS + 3 * PERIOD_MS)
    assert not told(broker, CONSUMER_SLOW), "both are fast enough"


def test_kill_hands_them_over_with_a_reason() -> None:
    broker, queue = made(slow_consumer_policy="KILL")
    consumer = consumer_on(broker, queue)
    send(broker, count=50)
    turn(broker)
    turn(broker, NOW_MS + PERIOD_MS)
    turn(broker, NOW_MS + 2 * PERIOD_MS)
    (found,) = broker.slow_consumers.killed
    assert found.consumer is consumer
    assert "settled 0 messages in 5 s, and slow-consumer-threshold is 2 MESSAGES_PER_SECOND" in found.reason


def test_listeners_are_told() -> None:
    broker, queue = made()
    broker.notifications.is_listened_to = True
    consumer = consumer_on(broker, queue)
    send(broker, count=50)
    turn(broker)
    turn(broker, NOW_MS + PERIOD_MS)
    turn(broker, NOW_MS + 2 * PERIOD_MS)
    (notification,) = [one for one in broker.notifications.take(100) if one.type == "CONSUMER_SLOW"]
    shown = {name: notification.fields[name] for name in ("queue", "consumer", "consumerCount", "settled", "reason")}
    assert shown == {"queue": "q", "consumer": consumer.id, "consumerCount": 1, "settled": 0, "reason": "slow-consumer"}


def test_nobody_is_to_blame_where_too_little_comes() -> None:
    broker, queue = made(slow_consumer_policy="KILL")
    consumer_on(broker, queue)
    for second in range(0, 60, 5):
        send(broker, count=9)
        turn(broker, NOW_MS + second * 1000)
        consumer = queue.distribution.consumers[0]
        settle(queue, consumer, 9)
        turn(broker, NOW_MS + second * 1000 + 1)
    assert not told(broker, CONSUMER_SLOW)


def test_what_is_settled_when_it_is_sent_counts() -> None:
    broker, queue = made()
    consumer_on(broker, queue, settles=True)
    for period in range(4):
        send(broker, count=30)
        turn(broker, NOW_MS + period * PERIOD_MS)
    assert not told(broker, CONSUMER_SLOW)


def test_units_and_browsers() -> None:
    broker, queue = made(slow_consumer_threshold=60, slow_consumer_threshold_measurement_unit="MESSAGES_PER_MINUTE")
    consumer_on(broker, queue, browses=True)
    assert broker.slow_consumers.alarms.first_ms() is None, "a browser is never slow"
    consumer = consumer_on(broker, queue)
    send(broker, count=100)
    turn(broker)
    turn(broker, NOW_MS + PERIOD_MS)
    settle(queue, consumer, 5)
    turn(broker, NOW_MS + 2 * PERIOD_MS)
    assert not told(broker, CONSUMER_SLOW), "five in five seconds are sixty in a minute"
    settle(queue, consumer, 4)
    turn(broker, NOW_MS + 3 * PERIOD_MS)
    assert [event.fields["consumer"] for event in told(broker, CONSUMER_SLOW)] == [consumer.id]


def test_a_queue_without_consumers_is_not_looked_at() -> None:
    broker, queue = made()
    consumer = consumer_on(broker, queue)
    assert broker.slow_consumers.alarms.first_ms() == NOW_MS + PERIOD_MS
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    turn(broker, NOW_MS + PERIOD_MS)
    assert broker.slow_consumers.alarms.first_ms() is None
    consumer_on(broker, queue)
    assert broker.slow_consumers.alarms.first_ms() is not None
    broker, queue = made(slow_consumer_threshold=-1)
    consumer_on(broker, queue)
    assert broker.slow_consumers.alarms.first_ms() is None


def test_a_shorter_period_counts_from_the_last_look_on() -> None:
    broker, queue = made(slow_consumer_check_period=3600)
    consumer_on(broker, queue)
    send(broker, count=100)
    turn(broker)
    redeploy(broker, made(slow_consumer_check_period=5)[0].config, NOW_MS + 3_000)
    assert broker.slow_consumers.alarms.first_ms() == NOW_MS + PERIOD_MS
    assert broker.clock.due_ms <= NOW_MS + PERIOD_MS
    for period in (1, 2):
        turn(broker, NOW_MS + period * PERIOD_MS)
    assert len(told(broker, CONSUMER_SLOW)) == 1
    redeploy(broker, made(slow_consumer_check_period=1)[0].config, NOW_MS + 3_000)
    turn(broker, NOW_MS + 2 * PERIOD_MS + 1_000)
    assert len(told(broker, CONSUMER_SLOW)) == 1
    turn(broker, NOW_MS + 3 * PERIOD_MS - 1)
    turn(broker, NOW_MS + 3 * PERIOD_MS)
    assert len(told(broker, CONSUMER_SLOW)) == 1, "the time of the look before is void"


def test_a_shorter_period_that_is_over_has_the_queue_looked_at_at_once() -> None:
    broker, queue = made(slow_consumer_check_period=3600)
    consumer_on(broker, queue)
    turn(broker, NOW_MS + 2_000)
    redeploy(broker, made(slow_consumer_check_period=1)[0].config, NOW_MS + 3_000)
    turn(broker, NOW_MS + 3_000)
    assert broker.slow_consumers.alarms.first_ms() == NOW_MS + 4_000


def test_many_consumers_take_several_turns() -> None:
    broker, queue = made(slow_consumer_threshold=12, slow_consumer_threshold_measurement_unit="MESSAGES_PER_MINUTE")
    consumers = [consumer_on(broker, queue, window_bytes=1) for _ in range(3_000)]
    send(broker, count=10_000)
    for period in range(1, 3):
        now_ms = NOW_MS + period * PERIOD_MS
        for _ in range(40):
            broker.budget.refill(400)
            turn(broker, now_ms)
    found = broker.events.counts[CONSUMER_SLOW]
    assert found == len(consumers)
