"""Many consumers of one queue: leases that end together, and runs of messages in one turn."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import DEAD, LEASE_EXPIRED
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message
from artemis_py.record_log import Actor, MemoryLog
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, ids, queue_config, send, turn
from tests.kit.thing import Thing

LEASE_MS: Final = 1000
MESSAGES: Final = 1200
"""More than two slices."""
DURABLE: Final = head_of(persistent=True)


@dataclass(eq=False)
class Named(Actor):
    """A consumer, as the log knows it."""

    number: int

    def named(self) -> int:
        return self.number


class StoryLog(MemoryLog):
    """Notes whose deliveries failed, and who buried which message."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[int, tuple[Actor | None, str]] = {}
        self.buried: dict[int, Actor | None] = {}
        self.fails_after = MESSAGES
        """From then on it fails."""

    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        if len(self.failed) == self.fails_after:
            raise RuntimeError("a fault")
        self.failed[message.id] = consumer, cause
        return 0

    def settled(self, queue_id: int, messages: Sequence[Message], reason: str, by: Actor | None = None) -> int:
        if reason == DEAD:
            self.buried |= {message.id: by for message in messages}
        return 0


def leased(log: StoryLog, attempts_max: int, consumers: int) -> tuple[Broker, Queue, list[Consumer]]:
    """A queue whose messages are leased to so many consumers in turns."""
    settings = {"#": {"max_delivery_attempts": attempts_max}}
    config = queue_config(lease_period=LEASE_MS, max_per_subscription_backlog=-1)
    broker = broker_of(config, log=log, settings=settings)
    queue = broker.queues["q"]
    readers = [consumer_on(broker, queue, backlog_max=MESSAGES) for _ in range(consumers)]
    for number, reader in enumerate(readers):
        reader.actor = Named(number)
    send(broker, count=MESSAGES, head=DURABLE)
    turn(broker)
    return broker, queue, readers


@pytest.mark.parametrize("attempts_max", [-1, 1])
def test_each_holder_is_told_to_the_log_with_its_own_messages(attempts_max: int) -> None:
    """Whether they go back or are dead then."""
    log = StoryLog()
    broker, queue, readers = leased(log, attempts_max, consumers=7)
    holders = {message_id: reader.actor for reader in readers for message_id in reader.held}
    assert len(holders) == MESSAGES
    for reader in readers:
        reader.room_bytes = 0
    turn(broker, NOW_MS + LEASE_MS)
    assert queue.contents.leases is not None
    assert queue.contents.leases.ended_count == MESSAGES
    assert log.failed == {message_id: (actor, LEASE_EXPIRED) for message_id, actor in holders.items()}
    assert log.buried == ({} if attempts_max < 0 else holders)
    assert ids(queue.contents.order) == ([] if attempts_max > 0 else sorted(holders))


@pytest.mark.parametrize("fails", [False, True])
def test_messages_and_holders_are_let_go_when_their_leases_have_ended(fails: bool) -> None:
    """Or when the work that ends them breaks off."""
    log = StoryLog()
    broker, queue, readers = leased(log, -1, consumers=2)
    clients = [Thing(), Thing()]
    left = WeakSet(clients)
    for reader, client in zip(readers, clients, strict=True):
        reader.room_bytes = 0
        reader.owner = client
    if fails:
        log.fails_after = MESSAGES // 2
    for _ in range(100):
        broker.budget.refill(1000)
        turn(broker, NOW_MS + LEASE_MS)
    assert not broker.agenda.tasks
    assert len(log.failed) == (MESSAGES // 2 if fails else MESSAGES)
    assert queue.gate.paused == fails
    for reader in readers:
        broker.detach(queue, reader, failed=False, now_ms=NOW_MS + LEASE_MS)
    readers.clear()
    clients.clear()
    del reader, client
    if fails:
        gc.collect()  # the exception refers to itself
    assert not left


def test_who_did_not_let_a_lease_end_is_asked_before_the_others() -> None:
    """All holders are last in line then, however many there are."""
    broker, queue, readers = leased(StoryLog(), -1, consumers=20)
    for reader in readers:
        reader.room_bytes = 0
    idle = [consumer_on(broker, queue, backlog_max=1) for _ in range(3)]
    for reader in readers:
        reader.room_bytes = 1
        queue.wake(reader)
    turn(broker, NOW_MS + LEASE_MS)
    assert sorted(message_id for reader in idle for message_id in reader.held) == [1, 2, 3]


def test_a_turn_ends_however_many_consumers_have_room() -> None:
    """Where each of them is filled before the next, too. The next turn goes on."""
    config = queue_config(fairness_model="fast", max_per_subscription_backlog=10)
    broker = broker_of(config)
    queue = broker.queues["q"]
    readers = [consumer_on(broker, queue, backlog_max=10) for _ in range(200)]
    send(broker, count=2000)
    broker.budget.refill(100)
    queue.dispatch(NOW_MS)
    assert 90 <= sum(len(reader.held) for reader in readers) <= 110
    broker.budget.refill(100_000)
    broker.dispatch(NOW_MS)
    assert all(len(reader.held) == 10 for reader in readers)
