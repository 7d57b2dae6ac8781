"""Why a queue delivers nothing, in words and numbers."""

from __future__ import annotations

from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import (
    BACKLOG,
    FEW_CONSUMERS,
    MAX_BACKLOG,
    MOVING,
    NO_CONSUMER,
    PAUSED,
    STEP_FAILED,
    Reason,
    span,
    what_is_leased,
    what_it_holds,
    why_closed,
    why_no_room,
    why_nobody,
)
from tests.kit.core import NOW_MS, consumer_on, send, turn, with_queue


def closed(queue: Queue, *, is_held: bool = False) -> Reason | None:
    """Why the queue lets nothing out, a second after the start."""
    return why_closed(queue.state, NOW_MS + 1000, is_held=is_held)


def test_a_step_that_failed() -> None:
    """Only then is it told."""
    _, queue = with_queue()
    queue.set_aside("dispatch", RuntimeError("x"))
    reason = closed(queue)
    assert (reason and (reason.kind, "'dispatch' failed" in reason.text)) == (STEP_FAILED, True)
    queue.resume()
    queue.pause()
    reason = closed(queue)
    assert (reason and reason.kind) == PAUSED


def test_the_gate() -> None:
    _, queue = with_queue(consumers_before_dispatch=2, delay_before_dispatch=5000)
    reason = closed(queue)
    assert (reason and (reason.kind, reason.fields)) == (FEW_CONSUMERS, {"consumers": 0, "consumers_min": 2})
    broker, queue = with_queue(consumers_before_dispatch=2, delay_before_dispatch=5000)
    consumer_on(broker, queue)
    reason = closed(queue)
    assert reason is not None
    assert reason.text.endswith("delay-before-dispatch opens it in 4 s")
    queue.pause()
    reason = closed(queue)
    assert (reason and reason.kind) == PAUSED
    _, queue = with_queue()
    assert closed(queue) is None
    reason = closed(queue, is_held=True)
    assert (reason and reason.kind) == MOVING


def test_the_backlog_of_the_queue_counts_what_is_out_either_way() -> None:
    broker, queue = with_queue(max_backlog=3, max_per_subscription_backlog=9)
    consumer_on(broker, queue, backlog_max=9)
    send(broker, count=2)
    turn(broker)
    assert closed(queue) is None
    send(broker, count=2)
    turn(broker)
    reason = closed(queue)
    assert reason is not None
    assert reason.fields == {"in_delivery": 3, "unconfirmed": 0, "max_backlog": 3}
    assert reason.text == "its backlog is used up: 3 messages in delivery, of max-backlog 3"
    broker, queue = with_queue(delivery_semantics="at-most-once", max_backlog=2, max_per_subscription_backlog=9)
    consumer_on(broker, queue, settles=True, acks=True, backlog_max=9)
    send(broker, count=3)
    turn(broker)
    reason = closed(queue)
    assert (reason and (reason.kind, reason.fields["unconfirmed"])) == (MAX_BACKLOG, 2)
    assert reason is not None
    assert "no messages in delivery and 2 sent at most once and not acknowledged, of max-backlog 2" in reason.text


def test_nobody_is_there() -> None:
    broker, queue = with_queue()
    reason = why_nobody(queue.state)
    assert (reason and reason.kind) == NO_CONSUMER
    consumer_on(broker, queue, browses=True)
    reason = why_nobody(queue.state)
    assert reason is not None
    assert (reason.text, reason.fields) == ("no consumer is attached, only 1 browsing", {"browsers": 1})
    consumer_on(broker, queue)
    assert why_nobody(queue.state) is None


def test_a_consumer_at_its_backlog() -> None:
    broker, queue = with_queue(lease_period=60_000, max_per_subscription_backlog=2)
    consumer = consumer_on(broker, queue, backlog_max=2)
    send(broker)
    turn(broker)
    broker.tick(NOW_MS + 2500)
    send(broker, count=2, now_ms=NOW_MS + 2500)
    turn(broker, NOW_MS + 2500)
    reason = why_no_room(queue.state, consumer, NOW_MS + 4000, 2)
    assert reason is not None
    assert (reason.kind, reason.fields) == (BACKLOG, {"held": 2, "max_backlog": 2, "oldest_ms": 4000})
    assert "2 of 2 messages held without an acknowledgement, the oldest for 4 s" in reason.text
    held = what_it_holds(queue.state, consumer, NOW_MS + 4000)
    assert held is not None
    assert held.text == "has 2 messages and did not acknowledge, the oldest for 4 s"
    consumer.let_go(next(iter(consumer.held)))
    held = what_it_holds(queue.state, consumer, NOW_MS + 4000)
    assert held is not None
    assert held.fields == {"held": 1, "oldest_ms": 1500}


def test_what_is_sent_at_most_once_has_no_lease() -> None:
    broker, queue = with_queue(delivery_semantics="at-most-once", max_per_subscription_backlog=1)
    consumer = consumer_on(broker, queue, settles=True, acks=True, backlog_max=1)
    assert what_it_holds(queue.state, consumer, NOW_MS) is None
    send(broker, count=2)
    turn(broker)
    reason = why_no_room(queue.state, consumer, NOW_MS + 9, 1)
    assert reason is not None
    assert (reason.kind, reason.fields) == (BACKLOG, {"held": 1, "max_backlog": 1})
    assert "1 of 1 message sent at most once and not acknowledged;" in reason.text
    held = what_it_holds(queue.state, consumer, NOW_MS)
    assert held is not None
    assert held.text == "was sent 1 message at most once and did not acknowledge"
    assert what_is_leased(queue.state, NOW_MS) is None


def test_what_is_leased_and_until_when() -> None:
    broker, queue = with_queue(lease_period=60_000, max_per_subscription_backlog=5)
    assert what_is_leased(queue.state, NOW_MS) is None
    consumer = consumer_on(broker, queue, backlog_max=5)
    send(broker, count=3)
    turn(broker)
    reason = what_is_leased(queue.state, NOW_MS + 15_500)
    assert reason is not None
    assert reason.fields == {"leased": 3, "consumer": consumer.id, "ends_in_ms": 44_500}
    assert reason.text == f"3 messages are leased; the first lease ends in 44.5 s, of consumer {consumer.id}"
    broker, queue = with_queue(max_per_subscription_backlog=5)
    consumer_on(broker, queue, backlog_max=5)
    send(broker)
    turn(broker)
    reason = what_is_leased(queue.state, NOW_MS)
    assert reason is not None
    assert reason.text == "1 message is leased without an end (no lease-period)"
    assert "ends_in_ms" not in reason.fields


def test_leases_go_by_steady_time() -> None:
    broker, queue = with_queue(lease_period=60_000)
    consumer_on(broker, queue, backlog_max=1)
    send(broker)
    turn(broker)
    broker.clock.set_ahead(3_600_000)
    reason = what_is_leased(queue.state, NOW_MS + 3_600_000 + 10_000)
    assert reason is not None
    assert reason.fields["ends_in_ms"] == 50_000


def test_spans() -> None:
    assert [span(ms) for ms in (-5, 0, 1, 1500, 60_000)] == ["0 s", "0 s", "0.001 s", "1.5 s", "60 s"]
    long = [span(1000 * seconds) for seconds in (119, 120, 3585, 3600, 7_500, 90_000, 864_000)]
    assert long == ["119 s", "2 min", "59 min 45 s", "1 h", "2 h 5 min", "1 d 1 h", "10 d"]
