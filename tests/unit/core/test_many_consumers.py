"""Very many consumers on one queue: equal ones read together, and nobody is looked at more than a turn allows."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from tests.kit.core import (
    NOW_MS,
    consumer_on,
    head_of,
    ids,
    lines_run,
    send,
    turn,
    with_queue,
)

UNITS = 400
MANY = 3000


def _rest(broker: Broker, units: int = 10**9) -> int:
    """Turns until nothing is to be done; how many."""
    for count in range(10_000):
        if not broker.has_ready:
            return count
        broker.budget.refill(units)
        turn(broker)
    raise AssertionError("no end of it")


@pytest.mark.interpreted
@pytest.mark.parametrize("groups", [False, True])
def test_consumers_that_want_the_same_look_at_each_message_once(monkeypatch: pytest.MonkeyPatch, groups: bool) -> None:
    broker, queue = with_queue()
    for color in ("red", "blue"):
        header: dict[str, Any] = {"JMSXGroupID": "g"} if groups else {}
        send(broker, "a", 300, head=head_of("a", color=color, **header))
    asked: list[int] = []
    wants = Consumer.wants
    monkeypatch.setattr(Consumer, "wants", lambda self, message: asked.append(message.id) or wants(self, message))
    consumers = [consumer_on(broker, queue, selector=f"color{' ' * (n % 3)} = 'blue'") for n in range(50)]
    others = [consumer_on(broker, queue, selector="color = 'green'") for _ in range(50)]
    _rest(broker)
    assert len(asked) <= 2 * 600
    assert sorted(id for consumer in consumers for id in consumer.held) == list(range(301, 601))
    assert [list(consumer.held) for consumer in others] == [[]] * 50
    assert ids(queue.contents.order) == list(range(1, 301))


def test_what_one_of_them_gives_back_another_one_gets() -> None:
    broker, queue = with_queue()
    send(broker, "a", 10, head=head_of("a", color="red"))
    first = consumer_on(broker, queue, selector="color = 'red'")
    second = consumer_on(broker, queue, selector="color = 'red'", room=0)
    _rest(broker)
    assert len(first.held) == 10
    broker.detach(queue, first, failed=False, now_ms=NOW_MS)
    second.room_bytes = 1 << 20
    queue.wake(second)
    _rest(broker)
    assert list(second.held) == list(range(1, 11))
    broker.detach(queue, second, failed=False, now_ms=NOW_MS)
    third = consumer_on(broker, queue, selector="color = 'red'")
    _rest(broker)
    assert list(third.held) == list(range(1, 11))


def test_who_wants_something_else_is_not_kept_from_it() -> None:
    """By what it heard of its own connection, by when it came, or because it only looks."""
    broker, queue = with_queue()
    send(broker, "a", 4, head=head_of("a", color="red"), origin=7)
    consumer_on(broker, queue, selector="color = 'red'", no_local=7)
    late = consumer_on(broker, queue, selector="color = 'red'", since_ms=NOW_MS + 1, after_id=9)
    browsers = [consumer_on(broker, queue, selector="color = 'red'", browses=True) for _ in range(2)]
    _rest(broker)
    assert [[entry.message.id for entry in browser.held.values()] for browser in browsers] == [[1, 2, 3, 4]] * 2
    other = consumer_on(broker, queue, selector="color = 'red'")
    _rest(broker)
    assert (list(other.held), list(late.held)) == ([1, 2, 3, 4], [])


def test_a_deep_queue_is_read_in_slices_by_all_of_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn has so many looks, whoever takes them, and all of them together are one walk."""
    broker, queue = with_queue()
    send(broker, "a", 5000, head=head_of("a", color="red"))
    for _ in range(40):
        consumer_on(broker, queue, selector="color = 'blue'")
    turns = _rest(broker, UNITS)
    assert turns <= 5000 // UNITS + 4


def test_an_arrival_costs_a_turn_the_same_however_many_found_nothing() -> None:
    costs = []
    for count in (MANY, 4 * MANY):
        broker, queue = with_queue()
        for number in range(count):
            consumer_on(broker, queue, selector=f"number = '{number % 5}'")
        send(broker, "a", 1, head=head_of("a", number="9"))
        _rest(broker)
        head = head_of("a", number="8")
        costs.append(lines_run(lambda broker=broker, head=head: send(broker, "a", head=head)))  # type: ignore[misc]
        while broker.has_ready:
            broker.budget.refill(UNITS)
            costs[-1] = max(costs[-1], lines_run(lambda broker=broker: turn(broker)))  # type: ignore[misc]
    assert costs[1] <= costs[0] * 1.2, costs


def test_each_of_very_many_is_found_by_its_message() -> None:
    broker, queue = with_queue()
    consumers = [consumer_on(broker, queue, selector=f"number = '{number}'") for number in range(MANY)]
    _rest(broker, UNITS)
    wanted = [0, 7, 1500, 2999]
    for number in wanted:
        send(broker, "a", 1, head=head_of("a", number=str(number)))
    _rest(broker, UNITS)
    assert [number for number in range(MANY) if consumers[number].held] == wanted


def test_who_takes_over_from_one_that_leaves_is_found_among_very_many() -> None:
    broker, queue = with_queue()
    consumers = [consumer_on(broker, queue, selector="color = 'red'", room=0) for _ in range(MANY)]
    taker = consumer_on(broker, queue, selector="color = 'red'")
    send(broker, "a", 3, head=head_of("a", color="red"))
    _rest(broker, UNITS)
    assert list(taker.held) == [1, 2, 3]
    for consumer in consumers[2000:2500]:
        consumer.room_bytes = 1 << 20  # nobody says so: it is found when it is looked for
    broker.detach(queue, taker, failed=False, now_ms=NOW_MS)
    _rest(broker, UNITS)
    assert sorted(id for consumer in consumers for id in consumer.held) == [1, 2, 3]
