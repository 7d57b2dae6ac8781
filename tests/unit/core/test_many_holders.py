"""Many consumers of one queue: leases that end together, and runs of messages in one turn."""

from __future__ import annotations

import gc
from itertools import chain, repeat
from typing import Final
from unittest.mock import Mock, patch
from weakref import WeakSet

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import DEAD, LEASE_EXPIRED
from artemis_py.core.queue.queue import Queue
from artemis_py.record_log import Actor, MemoryLog
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, ids, queue_config, send, turn

LEASE_MS: Final = 1000
MESSAGES: Final = 1200
"""More than two slices."""
DURABLE: Final = head_of(persistent=True)


def leased(log: MemoryLog, attempts_max: int, consumers: int) -> tuple[Broker, Queue, list[Consumer]]:
    """A queue whose messages are leased to so many consumers in turns."""
    settings = {"#": {"max_delivery_attempts": attempts_max}}
    config = queue_config(lease_period=LEASE_MS, max_per_subscription_backlog=-1)
    broker = broker_of(config, log=log, settings=settings)
    queue = broker.queues["q"]
    readers = [consumer_on(broker, queue, backlog_max=MESSAGES) for _ in range(consumers)]
    for reader in readers:
        reader.actor = Mock(spec=Actor)
    send(broker, count=MESSAGES, head=DURABLE)
    turn(broker)
    return broker, queue, readers


@pytest.mark.parametrize("attempts_max", [-1, 1])
def test_each_holder_is_told_to_the_log_with_its_own_messages(attempts_max: int) -> None:
    """Whether they go back or are dead then."""
    log = MemoryLog()
    broker, queue, readers = leased(log, attempts_max, consumers=7)
    holders = {message_id: reader.actor for reader in readers for message_id in list(reader.held)}
    assert len(holders) == MESSAGES
    for reader in readers:
        reader.room_bytes = 0
    with patch.object(log, "attempted", return_value=0) as attempted, patch.object(log, "settled") as settled:
        turn(broker, NOW_MS + LEASE_MS)
    failed = {
        message.id: (actor, cause) for _, message, _, _, actor, cause in (call.args for call in attempted.mock_calls)
    }
    buried = {
        message.id: actor
        for _, messages, reason, actor in (call.args for call in settled.mock_calls)
        for message in messages
        if reason == DEAD
    }
    assert queue.contents.leases is not None
    assert queue.contents.leases.ended_count == MESSAGES
    assert failed == {message_id: (actor, LEASE_EXPIRED) for message_id, actor in holders.items()}
    assert buried == ({} if attempts_max < 0 else holders)
    assert ids(queue.contents.order) == ([] if attempts_max > 0 else sorted(holders))


class Client:
    """Who owns a consumer."""


@pytest.mark.parametrize("fails", [False, True])
def test_messages_and_holders_are_let_go_when_their_leases_have_ended(fails: bool) -> None:
    """Or when the work that ends them breaks off."""
    log = MemoryLog()
    broker, queue, readers = leased(log, -1, consumers=2)
    clients = [Client(), Client()]
    left = WeakSet(clients)
    for reader, client in zip(readers, clients, strict=True):
        reader.room_bytes = 0
        reader.owner = client
    done = MESSAGES // 2 if fails else MESSAGES
    with patch.object(log, "attempted", side_effect=chain([0] * done, repeat(RuntimeError))) as attempted:
        for _ in range(100):
            broker.budget.refill(1000)
            turn(broker, NOW_MS + LEASE_MS)
    assert not broker.agenda.tasks
    assert attempted.call_count > done if fails else attempted.call_count == done
    attempted.reset_mock(side_effect=True)
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
    broker, queue, readers = leased(MemoryLog(), -1, consumers=20)
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
