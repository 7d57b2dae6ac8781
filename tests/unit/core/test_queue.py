"""A queue as a whole: what it costs, who gets what, and what becomes of what was picked and never sent."""

from __future__ import annotations

from functools import partial

import pytest

from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.attributes import amend, amended
from tests.kit.core import (
    NOW_MS,
    broker_of,
    consumer_on,
    counting,
    head_of,
    ids,
    lines_run,
    queue_config,
    send,
    turn,
    with_queue,
)

MANY = 10_000


# ---- cost: selectors -----------------------------------------------------------------------------


@pytest.mark.interpreted
def test_a_filtered_consumer_tests_no_entry_twice() -> None:
    """Ten thousand that do not match, a hundred dispatches, arrivals in between: each is tested once."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, selector="AMQSize > 1000")
    asked = counting(consumer)
    send(broker, count=MANY)
    for _ in range(100):
        turn(broker)
        queue.wake(consumer)
        send(broker)
    turn(broker)
    assert asked.call_count == MANY + 100
    send(broker, body=b"x" * 2000)
    turn(broker)
    assert list(consumer.held) == [MANY + 101]
    assert asked.call_count == MANY + 101


@pytest.mark.interpreted
def test_a_filtered_consumer_goes_on_where_it_was() -> None:
    """With a window of one message: each acknowledgement costs the way to the next match, no more."""
    broker, queue = with_queue()
    for number in range(300):
        send(broker, body=b"x" * (500 if number % 100 == 99 else 1))
    consumer = consumer_on(broker, queue, selector="AMQSize > 400", window_bytes=0)
    asked = counting(consumer)
    looks = []
    for expected in (100, 200, 300):
        turn(broker)
        looks.append(asked.call_count)
        assert list(consumer.held) == [expected]
        queue.acknowledge(consumer, [consumer.let_go(expected)])
        queue.wake(consumer)
    turn(broker)
    assert looks == [100, 200, 300]
    assert asked.call_count == 300


@pytest.mark.interpreted
def test_a_return_is_tested_again_but_alone() -> None:
    """What comes back is offered to everybody; what stood there all the time is not."""
    broker, queue = with_queue()
    filtered = consumer_on(broker, queue, selector="AMQSize > 1000")
    asked = counting(filtered)
    send(broker, count=100)
    turn(broker)
    plain = consumer_on(broker, queue)
    turn(broker)
    assert asked.call_count == 100
    queue.pause()
    queue.release(plain, [plain.let_go(id) for id in (5, 50)], failed=True, now_ms=NOW_MS)
    broker.detach(queue, plain, failed=False, now_ms=NOW_MS)
    queue.resume()
    turn(broker)
    assert asked.call_count == 200
    assert queue.contents.order.count == 100


@pytest.mark.interpreted
def test_several_filtered_consumers_ask_each_for_itself() -> None:
    """Disjoint selectors split the queue: nothing is tested more often than there are consumers."""
    broker, queue = with_queue()
    texts = ("AMQSize > 50", "AMQSize < 50")
    consumers = [consumer_on(broker, queue, selector=text) for text in texts]
    selectors = [counting(consumer) for consumer in consumers]
    for number in range(200):
        send(broker, body=b"x" * (100 if number % 2 else 1))
    turn(broker)
    assert [len(consumer.held) for consumer in consumers] == [100, 100]
    assert all(asked.call_count <= 200 for asked in selectors)


def test_consumers_without_selector_pay_nothing_for_the_depth() -> None:
    """One more delivery runs as many lines from a long queue as from a short one."""
    costs = []
    for depth in (10, MANY):
        broker, queue = with_queue()
        send(broker, count=depth)
        consumer = consumer_on(broker, queue, window_bytes=0)
        queue.dispatch(NOW_MS)
        queue.acknowledge(consumer, [consumer.let_go(1)])
        queue.wake(consumer)
        costs.append(lines_run(partial(queue.dispatch, NOW_MS)))
        assert list(consumer.held) == [2]
    assert costs[0] == costs[1]


def test_arrivals_on_a_queue_of_parked_consumers() -> None:
    """A thousand consumers without room are not looked at for each message."""
    costs = []
    for count in (1, 1000):
        broker, queue = with_queue()
        for _ in range(count):
            consumer_on(broker, queue, room=0)
        send(broker)
        turn(broker)
        costs.append(lines_run(lambda broker=broker: (send(broker), turn(broker))))  # type: ignore[misc]
    assert costs[0] == costs[1]


def test_a_full_ring_costs_the_same_at_any_size() -> None:
    """One more message gives up one, whatever stands behind it."""
    costs = []
    for size in (10, MANY):
        broker, _ = with_queue(ring_size=size)
        send(broker, count=size)
        costs.append(lines_run(partial(send, broker)))
    assert costs[0] == costs[1]


def test_expiry_scan_looks_only_at_what_expires() -> None:
    """Ten thousand messages that do not, one that does."""
    costs = []
    for count in (10, MANY):
        broker, queue = with_queue()
        send(broker, count=count)
        send(broker, expires_ms=NOW_MS + 10)
        costs.append(lines_run(partial(queue.expire_due, NOW_MS + 10)))
        assert queue.contents.counters.expired == 1
    assert costs[0] == costs[1]


# ---- who gets what -------------------------------------------------------------------------------


def test_round_robin_over_messages() -> None:
    """Each consumer every third one; who is out of credit is passed over."""
    broker, queue = with_queue()
    consumers = [consumer_on(broker, queue), consumer_on(broker, queue, window_bytes=0), consumer_on(broker, queue)]
    send(broker, count=7)
    turn(broker)
    assert [list(consumer.held) for consumer in consumers] == [[1, 4, 6], [2], [3, 5, 7]]


def test_browser_sees_all_and_takes_nothing() -> None:
    """In order, once each, also what arrives while it looks; the consumer beside it gets everything."""
    broker, queue = with_queue()
    send(broker, count=3)
    browser = consumer_on(broker, queue, browses=True)
    turn(broker)
    consumer = consumer_on(broker, queue)
    send(broker)
    turn(broker)
    assert list(browser.held) == [1, 2, 3, 4]
    assert list(consumer.held) == [1, 2, 3, 4]
    assert queue.message_count == 4


def test_browser_is_not_shown_a_redelivery() -> None:
    """It has seen the message; a second time would leave a count behind for ever."""
    broker = broker_of(queue_config(), settings={"a": {"redelivery_delay": 100}})
    queue = broker.queues["q"]
    send(broker)
    browser = consumer_on(broker, queue, browses=True)
    turn(broker)
    consumer = consumer_on(broker, queue)
    turn(broker)
    queue.release(consumer, [consumer.let_go(1)], failed=True, now_ms=NOW_MS)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    turn(broker, NOW_MS + 100)
    assert queue.contents.counters.read_count == len(browser.held) == 1
    broker.detach(queue, browser, failed=False, now_ms=NOW_MS)
    assert (queue.contents.delivering_count, queue.message_count) == (0, 1)


def test_browser_does_not_own_an_exclusive_queue() -> None:
    """It came first, but takes nothing from anybody."""
    broker, queue = with_queue(exclusive=True)
    browser, consumer = consumer_on(broker, queue, browses=True), consumer_on(broker, queue)
    send(broker, count=2)
    turn(broker)
    assert (list(browser.held), list(consumer.held)) == ([1, 2], [1, 2])


def test_gate_opened_by_a_consumer_without_room() -> None:
    """Those who waited are served at once, not when something else happens."""
    broker, queue = with_queue(consumers_before_dispatch=2)
    first = consumer_on(broker, queue)
    send(broker)
    turn(broker)
    assert list(first.held) == []
    consumer_on(broker, queue, room=0)
    turn(broker)
    assert list(first.held) == [1]


@pytest.mark.parametrize(
    ("old_ms", "new_ms", "opens_ms"), [(600_000, 1000, 1000), (600_000, 100, 200), (1000, 5000, 5000), (-1, 1000, 1200)]
)
def test_another_delay_counts_for_a_queue_that_waits(old_ms: int, new_ms: int, opens_ms: int) -> None:
    """From its first consumer on; where none counted before, from the change on, which comes 200 ms later."""
    broker, queue = with_queue(consumers_before_dispatch=2, delay_before_dispatch=old_ms)
    send(broker)
    consumer = consumer_on(broker, queue)
    turn(broker)
    amend(queue, amended(queue, {"delay_before_dispatch": new_ms}), NOW_MS + 200)
    for now_ms in range(NOW_MS + 200, NOW_MS + opens_ms, 100):
        turn(broker, now_ms)
        assert list(consumer.held) == []
    assert broker.clock.due_ms <= NOW_MS + opens_ms
    turn(broker, NOW_MS + opens_ms)
    assert list(consumer.held) == [1]


def test_without_a_delay_a_queue_waits_for_the_consumers() -> None:
    broker, queue = with_queue(consumers_before_dispatch=2, delay_before_dispatch=1000)
    send(broker)
    consumer = consumer_on(broker, queue)
    amend(queue, amended(queue, {"delay_before_dispatch": -1}), NOW_MS)
    turn(broker, NOW_MS + 5000)
    assert list(consumer.held) == []


# ---- picked and never sent -----------------------------------------------------------------------


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("settles", [False, True])
def test_what_was_never_written_is_on_the_queue_as_before(settles: bool, failed: bool) -> None:
    """A consumer goes in the turn in which it was picked: no attempt counts, nothing is lost."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, settles=settles)
    send(broker, count=3)
    broker.dispatch(NOW_MS)
    assert ids(consumer.outbox) == [1, 2, 3]
    broker.detach(queue, consumer, failed=failed, now_ms=NOW_MS)
    assert [(entry.message.id, entry.attempts, entry.redelivered) for entry in queue.contents.order] == [
        (1, 0, False), (2, 0, False), (3, 0, False),
    ]  # fmt: skip
    assert (queue.message_count, queue.contents.counters.acknowledged) == (3, 0)


@pytest.mark.parametrize("failed", [False, True])
def test_what_was_handed_over_and_never_written_goes_on_the_queue(failed: bool) -> None:
    """It never stood there, but nobody has seen it either; later arrivals stay behind it."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, settles=True)
    send(broker, count=2, plain=True)
    queue.pause()
    send(broker, plain=True)
    broker.detach(queue, consumer, failed=failed, now_ms=NOW_MS)
    assert ids(queue.contents.order) == [1, 2, 3]
    counters = queue.contents.counters
    assert (counters.added, counters.acknowledged, queue.message_count) == (3, 0, 3)
    assert counters.size_bytes == sum(entry.message.size_bytes for entry in queue.contents.order)
    assert broker.addresses["a"].account.message_count == 3


def test_sent_and_unsent_are_told_apart() -> None:
    """What was written failed with its connection, what was not did not."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue)
    send(broker)
    turn(broker)
    send(broker)
    broker.dispatch(NOW_MS)
    broker.detach(queue, consumer, failed=True, now_ms=NOW_MS)
    assert [(entry.attempts, entry.redelivered) for entry in queue.contents.order] == [(1, True), (0, False)]


def test_purge_leaves_what_is_in_delivery() -> None:
    """It stays with its consumer, and can be acknowledged."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, window_bytes=0)
    send(broker, count=3, head=head_of("a", persistent=True))
    send(broker, due_ms=NOW_MS + 1000)
    turn(broker)
    assert queue.unheld_count == 3
    queue.purge(PURGED, NOW_MS)
    assert (queue.message_count, queue.contents.delivering_count, queue.contents.counters.killed) == (1, 1, 3)
    queue.acknowledge(consumer, [consumer.let_go(1)])
    turn(broker, NOW_MS + 1000)
    assert queue.message_count == 0
    assert (queue.contents.counters.durable_count, queue.contents.counters.size_bytes) == (0, 0)


def test_what_was_picked_and_never_written_expires_all_the_same() -> None:
    """Its time ran out while the consumer had it: when it is back, the next scan takes it."""
    broker, queue = with_queue()
    consumer = consumer_on(broker, queue, settles=True)
    send(broker, expires_ms=NOW_MS + 100)
    broker.dispatch(NOW_MS)
    assert len(consumer.outbox) == 1
    queue.expire_due(NOW_MS + 200)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS + 200)
    assert queue.message_count == 1
    queue.expire_due(NOW_MS + 200)
    assert (queue.message_count, queue.contents.counters.expired) == (0, 1)
