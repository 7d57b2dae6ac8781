"""What must be true of every queue and address whenever a broker rests."""

from __future__ import annotations

from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message
from tests.kit.in_process import InProcessBroker


def check(world: InProcessBroker) -> None:
    """What must be true whenever the broker rests."""
    broker = world.broker
    held: dict[str, list[Message]] = {name: [] for name in broker.queues}
    for connection in world.stats.connections:
        session = connection.session
        for subscription in session.subscriptions.by_key.values():
            if subscription.consumer.destructive:
                held[subscription.queue.name] += [entry.message for entry in subscription.consumer.held.values()]
        for transaction in session.transactions.by_name.values():
            for queue, consumer, entry in transaction.acknowledged + transaction.refused:
                if consumer.destructive:
                    held[queue.name].append(entry.message)
    kept = [message for queue in broker.queues.values() for message in _check_queue(queue, held[queue.name])]
    for address in broker.addresses.values():  # messages on a wildcard's queue count at the address they were sent to
        there = {message.id: message for message in kept if message.account is address.account}.values()
        assert address.account.message_count == len(there), address.name
        assert address.account.size_bytes == sum(message.memory_bytes for message in there), address.name


def _check_queue(queue: Queue, held: list[Message]) -> list[Message]:
    counters = queue.contents.counters
    ready = [entry.message for entry in queue.contents.order]
    messages = ready + held + [entry.message for entry in queue.contents.scheduled.values()]
    assert queue.message_count == len(messages), queue.name
    assert counters.held_count == len(held), queue.name
    left = counters.acknowledged + counters.killed + counters.expired + counters.replaced
    assert counters.added == queue.message_count + left, queue.name
    assert len({message.id for message in messages}) == len(messages), queue.name
    assert counters.size_bytes == sum(message.size_bytes for message in messages), queue.name
    assert counters.held_size_bytes == sum(message.size_bytes for message in held), queue.name
    assert counters.durable_count == sum(message.head.persistent for message in messages), queue.name
    return messages
