"""Messages taken over HTTP: a wait, and a lease, end at their time, in turns, whatever the wall clock shows."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import CONNECTIONS
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import NotFoundError
from artemis_py.server.messages.take import HttpMessages, Requester, Taken, TakeOptions
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.stomp.service import StompService, Traffic
from tests.kit.in_process import InProcessBroker, configuration, counted_names

pytestmark = pytest.mark.wire

HOUR_MS = 3_600_000
steps = pytest.mark.parametrize("step_ms", [0, HOUR_MS, -HOUR_MS])
CORE = """<addresses>
    <address name="q"><anycast><queue name="q"/></anycast></address>
    <address name="hasty"><anycast><queue name="hasty"/></anycast></address>
  </addresses>
  <address-settings>
    <address-setting match="#"><max-delivery-attempts>-1</max-delivery-attempts></address-setting>
    <address-setting match="hasty">
      <slow-consumer-threshold>1</slow-consumer-threshold><slow-consumer-policy>KILL</slow-consumer-policy>
      <slow-consumer-check-period>1</slow-consumer-check-period>
    </address-setting>
  </address-settings>"""


class World:
    """A broker whose messages clients of HTTP take. Somebody has set its clock before."""

    def __init__(self, queue: str = "q") -> None:
        config = configuration(CORE)
        self.broker = InProcessBroker(config)
        turns = self.turns = self.broker.turns
        calls = turns.calls = OperatorRequests(
            self.broker.loop.as_loop(), turns.broker.clock, turns.schedule, lambda call: turns.when_durable(0, call)
        )
        service = StompService(turns.broker, config.acceptors[0], Traffic(), counted_names(), turns.large)
        self.messages = HttpMessages(self.broker.loop.as_loop(), turns, calls, service, None)
        self.queue = self.broker.queue(queue)
        self.broker.set_clock(HOUR_MS // 2)

    def send(self, count: int = 1) -> None:
        frame = f"SEND\ndestination:/queue/{self.queue.name}\n\nx\0".encode()
        self.broker.client("sender").send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        self.broker.client("sender").send(frame * count)

    def ask(self, **options: Any) -> asyncio.Future[Taken | None]:
        """Ask for a message."""
        answer = self.messages.take(Requester(), self.queue.name, TakeOptions(**options), lambda: False)
        self.broker.settle()
        return answer

    def take(self, **options: Any) -> Taken:
        """Take a message that is there."""
        taken = self.ask(**options).result()
        assert taken is not None
        return taken

    def acknowledge(self, taken: Taken) -> asyncio.Future[Any]:
        assert taken.receipt is not None
        done = self.messages.acknowledge(Requester(), self.queue.name, taken.receipt)
        self.broker.settle()
        return done

    @property
    def ready_count(self) -> int:
        """How many messages are on the queue, and held by nobody."""
        return self.queue.contents.ready_count

    @property
    def watched_count(self) -> int:
        """How many takers wait for a time."""
        return len(self.turns.watches.alarms.times)

    def assert_nobody_is_here(self) -> None:
        """Nothing is left of the takers."""
        assert (len(self.messages), self.watched_count, len(self.turns.watches._connections)) == (0, 0, 0)
        assert self.queue.consumer_count == 0
        assert self.turns.guard.holdings.of(CONNECTIONS) == 0


@pytest.fixture
def world() -> World:
    return World()


@steps
def test_a_lease_ends_at_its_time(world: World, step_ms: int) -> None:
    world.send()
    taken = world.take(lease_s=4)
    world.broker.set_clock(step_ms)
    world.broker.advance(3_900)
    assert (len(world.messages), world.ready_count) == (1, 0)
    world.broker.advance(200)
    assert world.ready_count == 1
    with pytest.raises(NotFoundError):
        world.acknowledge(taken)
    world.broker.client("sender").drop()
    world.assert_nobody_is_here()
    assert world.take().delivery_count == 2


@steps
def test_a_wait_ends_at_its_time(world: World, step_ms: int) -> None:
    answer = world.ask(timeout_s=4)
    world.broker.set_clock(step_ms)
    world.broker.advance(3_900)
    assert not answer.done()
    world.broker.advance(200)
    assert answer.result() is None
    world.assert_nobody_is_here()


def test_without_a_wait_the_answer_comes_at_once(world: World) -> None:
    assert world.ask().result() is None
    world.assert_nobody_is_here()


def test_a_lease_begins_when_the_message_is_there(world: World) -> None:
    """And the wait is over: its end ends nothing."""
    answer = world.ask(timeout_s=4, lease_s=4)
    world.broker.advance(3_000)
    world.send()
    assert answer.done()
    world.broker.advance(3_900)
    assert len(world.messages) == 1
    world.broker.advance(200)
    assert (len(world.messages), world.ready_count) == (0, 1)


def test_what_is_acknowledged_has_no_lease_any_more(world: World) -> None:
    world.send()
    done = world.acknowledge(world.take(lease_s=4))
    assert done.result() == {}
    world.broker.client("sender").drop()
    world.assert_nobody_is_here()
    world.broker.advance(5_000)
    assert world.queue.message_count == 0


def test_who_waits_no_more_is_forgotten(world: World) -> None:
    answer = world.ask(timeout_s=4)
    assert world.watched_count == 1
    answer.cancel()
    world.broker.settle()
    world.assert_nobody_is_here()
    world.send()
    world.broker.advance(5_000)
    assert world.ready_count == 1


def test_a_lease_that_ends_as_its_message_is_acknowledged_ends_nothing(world: World) -> None:
    world.send()
    taken = world.take(lease_s=4)
    assert taken.receipt is not None
    world.broker.loop.now_ms += 4_000
    done = world.messages.acknowledge(Requester(), "q", taken.receipt)
    world.broker.settle()
    assert done.result() == {}
    assert world.queue.message_count == 0


def test_many_leases_that_end_at_once_take_many_turns(world: World) -> None:
    count = 300
    world.send(count)
    answers = [world.ask(lease_s=4) for _ in range(count)]
    assert all(answer.done() for answer in answers)
    assert len(world.messages) == count
    open_counts = [count]
    world.turns.on_end = lambda: open_counts.append(len(world.messages))
    world.turns.units = 100
    world.broker.advance(4_000)
    ended = [before - after for before, after in pairwise(open_counts)]
    assert (sum(ended), max(ended)) == (count, 25)
    assert world.ready_count == count


@pytest.mark.interpreted
def test_a_lease_that_fails_to_end_leaves_the_others_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send(3)
    taken = [world.take(lease_s=4) for _ in range(3)]
    release = Queue.release

    def faulty(queue: Queue, consumer: Consumer, entries: list[Entry], **rest: Any) -> Any:
        if entries[0].message.id == taken[1].message_id:
            raise ValueError("no")
        return release(queue, consumer, entries, **rest)

    monkeypatch.setattr(Queue, "release", faulty)
    world.broker.advance(5_000)
    assert (len(world.messages), world.ready_count) == (0, 2)
    assert world.turns.stats.faults.counts["take"] == 1


def test_who_is_too_slow_for_its_queue_loses_the_message() -> None:
    world = World("hasty")
    world.send(3)
    taken = world.take(lease_s=60)
    waits = world.ask(timeout_s=50, selector="x = 1")
    world.broker.advance(2_000)
    assert (world.ready_count, world.queue.consumer_count) == (3, 0)
    assert waits.result() is None
    with pytest.raises(NotFoundError):
        world.acknowledge(taken)
    assert sum(world.turns.stats.faults.counts.values()) == 0
    world.broker.client("sender").drop()
    world.assert_nobody_is_here()
