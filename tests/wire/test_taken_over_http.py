"""Messages taken over HTTP: a wait, and a lease, end at their time, in turns, whatever the wall clock shows."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest

from artemis_py.core.memory import CONNECTIONS
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import NotFoundError
from artemis_py.server.messages.take import HttpMessages, Requester, Taken, TakeOptions
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.stomp.service import StompService, Traffic
from tests.kit.core import breaking
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


class World(InProcessBroker):
    """A broker whose messages clients of HTTP take. Somebody has set its clock before."""

    def __init__(self, queue: str = "q") -> None:
        config = configuration(CORE)
        super().__init__(config)
        turns, loop = self.turns, self.loop.as_loop()
        turns.calls = OperatorRequests(
            loop, self.broker.clock, turns.schedule, lambda call: turns.when_durable(0, call)
        )
        service = StompService(self.broker, config.acceptors[0], Traffic(), counted_names(), turns.large)
        self.messages = HttpMessages(loop, turns, turns.calls, service, None)
        self.taken = self.queue(queue)
        self.set_clock(HOUR_MS // 2)

    def send(self, count: int = 1) -> None:
        frame = f"SEND\ndestination:/queue/{self.taken.name}\n\nx\0".encode()
        self.client("sender").greet().send(frame * count)

    def ask(self, **options: Any) -> asyncio.Future[Taken | None]:
        """Ask for a message."""
        answer = self.messages.take(Requester(), self.taken.name, TakeOptions(**options), lambda: False)
        self.settle()
        return answer

    def take(self, **options: Any) -> Taken:
        """Take a message that is there."""
        taken = self.ask(**options).result()
        assert taken is not None
        return taken

    def acknowledge(self, taken: Taken) -> asyncio.Future[Any]:
        assert taken.receipt is not None
        done = self.messages.acknowledge(Requester(), self.taken.name, taken.receipt)
        self.settle()
        return done

    def assert_nobody_is_here(self) -> None:
        """Nothing is left of the takers."""
        watches = self.turns.watches
        assert (len(self.messages), len(watches.alarms.times), len(watches._connections)) == (0, 0, 0)
        assert self.taken.consumer_count == 0
        assert self.turns.guard.holdings.of(CONNECTIONS) == 0


@steps
def test_a_lease_ends_at_its_time(step_ms: int) -> None:
    world = World()
    world.send()
    taken = world.take(lease_s=4)
    world.set_clock(step_ms)
    world.advance(3_900)
    assert (len(world.messages), world.taken.contents.ready_count) == (1, 0)
    world.advance(200)
    assert world.taken.contents.ready_count == 1
    with pytest.raises(NotFoundError):
        world.acknowledge(taken)
    world.client("sender").drop()
    world.assert_nobody_is_here()
    assert world.take().delivery_count == 2


@steps
def test_a_wait_ends_at_its_time(step_ms: int) -> None:
    world = World()
    answer = world.ask(timeout_s=4)
    world.set_clock(step_ms)
    world.advance(3_900)
    assert not answer.done()
    world.advance(200)
    assert answer.result() is None
    world.assert_nobody_is_here()


def test_without_a_wait_the_answer_comes_at_once() -> None:
    world = World()
    assert world.ask().result() is None
    world.assert_nobody_is_here()


def test_a_lease_begins_when_the_message_is_there() -> None:
    """And the wait is over: its end ends nothing."""
    world = World()
    answer = world.ask(timeout_s=4, lease_s=4)
    world.advance(3_000)
    world.send()
    assert answer.done()
    world.advance(3_900)
    assert len(world.messages) == 1
    world.advance(200)
    assert (len(world.messages), world.taken.contents.ready_count) == (0, 1)


def test_what_is_acknowledged_has_no_lease_any_more() -> None:
    world = World()
    world.send()
    done = world.acknowledge(world.take(lease_s=4))
    assert done.result() == {}
    world.client("sender").drop()
    world.assert_nobody_is_here()
    world.advance(5_000)
    assert world.taken.message_count == 0


def test_who_waits_no_more_is_forgotten() -> None:
    world = World()
    answer = world.ask(timeout_s=4)
    assert len(world.turns.watches.alarms.times) == 1
    answer.cancel()
    world.settle()
    world.assert_nobody_is_here()
    world.send()
    world.advance(5_000)
    assert world.taken.contents.ready_count == 1


def test_a_lease_that_ends_as_its_message_is_acknowledged_ends_nothing() -> None:
    world = World()
    world.send()
    taken = world.take(lease_s=4)
    world.loop.now_ms += 4_000
    assert world.acknowledge(taken).result() == {}
    assert world.taken.message_count == 0


def test_many_leases_that_end_at_once_take_many_turns() -> None:
    world = World()
    count = 300
    world.send(count)
    answers = [world.ask(lease_s=4) for _ in range(count)]
    assert all(answer.done() for answer in answers)
    assert len(world.messages) == count
    open_counts = [count]
    world.turns.on_end = lambda: open_counts.append(len(world.messages))
    world.turns.units = 100
    world.advance(4_000)
    ended = [before - after for before, after in pairwise(open_counts)]
    assert (sum(ended), max(ended)) == (count, 25)
    assert world.taken.contents.ready_count == count


@pytest.mark.interpreted
def test_a_lease_that_fails_to_end_leaves_the_others_alone() -> None:
    world = World()
    world.send(3)
    taken = [world.take(lease_s=4) for _ in range(3)]
    breaks = breaking(Queue.release, lambda _, __, entries: entries[0].message.id == taken[1].message_id, ValueError)
    with patch.object(Queue, "release", breaks):
        world.advance(5_000)
    assert (len(world.messages), world.taken.contents.ready_count) == (0, 2)
    assert world.turns.stats.faults.counts["take"] == 1


def test_who_is_too_slow_for_its_queue_loses_the_message() -> None:
    world = World("hasty")
    world.send(3)
    taken = world.take(lease_s=60)
    waits = world.ask(timeout_s=50, selector="x = 1")
    world.advance(2_000)
    assert (world.taken.contents.ready_count, world.taken.consumer_count) == (3, 0)
    assert waits.result() is None
    with pytest.raises(NotFoundError):
        world.acknowledge(taken)
    assert sum(world.turns.stats.faults.counts.values()) == 0
    world.client("sender").drop()
    world.assert_nobody_is_here()
