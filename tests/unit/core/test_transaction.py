"""A transaction takes effect as a whole, or not at all."""

from __future__ import annotations

from random import Random

import pytest

from artemis_py.core.transactions import Transaction
from artemis_py.errors import AddressFullError
from artemis_py.message import MESSAGE_OVERHEAD_BYTES
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, ids, queue_config, send, turn, with_queue
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk


def test_abort_forgets_sends() -> None:
    """Nothing is counted, nothing held."""
    broker = broker_of(queue_config())
    transaction = Transaction()
    send(broker, within=transaction)
    transaction.abort(NOW_MS)
    assert broker.queues["q"].contents.counters.added == 0
    assert broker.addresses["a"].account.message_count == 0


def test_refused_at_commit() -> None:
    """NACK in a transaction: back to the queue at COMMIT, and at ABORT too."""
    for ends in ("commit", "abort"):
        broker, queue = with_queue()
        consumer = consumer_on(broker, queue)
        send(broker)
        turn(broker)
        transaction = Transaction()
        transaction.refused.append((queue, consumer, consumer.let_go(1)))
        queue.pause()
        assert queue.contents.order.count == 0
        if ends == "commit":
            transaction.commit(broker, NOW_MS)
        else:
            transaction.abort(NOW_MS)
        assert [entry.attempts for entry in queue.contents.order] == [1]


@pytest.mark.parametrize("ends", ["commit", "refuse", "abort"])
def test_queue_deleted_before_the_end(ends: str) -> None:
    """A subscription's queue goes with the subscription; what its transaction still holds must leave the address."""
    broker = broker_of(addresses=["a"])
    queue = broker.resolver.create_subscription_queue("q", broker.addresses["a"], durable=False, selector=None)
    consumer = consumer_on(broker, queue)
    send(broker, head=head_of("a", persistent=True))
    turn(broker)
    transaction = Transaction()
    taken = transaction.refused if ends == "refuse" else transaction.acknowledged
    taken.append((queue, consumer, consumer.let_go(1)))
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    assert queue.deleted
    if ends == "abort":
        transaction.abort(NOW_MS)
    else:
        transaction.commit(broker, NOW_MS)
    account = broker.addresses["a"].account
    assert (account.message_count, account.size_bytes, queue.message_count, queue.contents.counters.size_bytes) == (
        0,
        0,
        0,
        0,
    )


# ---- full addresses ------------------------------------------------------------------------------


def test_fail_refuses_the_whole() -> None:
    """One too many: COMMIT is an error, nothing arrives, and after the abort what was acknowledged is back."""
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 3, "address_full_policy": "FAIL"}})
    queue = broker.queues["q"]
    consumer = consumer_on(broker, queue)
    send(broker)
    turn(broker)
    transaction = Transaction()
    transaction.acknowledged.append((broker.queues["q"], consumer, consumer.let_go(1)))
    for _ in range(3):
        send(broker, within=transaction)
    with pytest.raises(AddressFullError):
        transaction.commit(broker, NOW_MS)
    assert (queue.contents.counters.added, queue.contents.counters.acknowledged) == (1, 0)
    transaction.abort(NOW_MS)
    assert ids(queue.contents.order) == [1]


def test_fail_takes_what_fits() -> None:
    """Exactly up to the limit, by messages and by bytes."""
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 3, "address_full_policy": "FAIL"}})
    transaction = Transaction()
    for _ in range(3):
        send(broker, within=transaction)
    transaction.commit(broker, NOW_MS)
    assert broker.queues["q"].message_count == 3
    one = head_of("a").size_bytes + 1 + MESSAGE_OVERHEAD_BYTES
    for count, fits in ((2, True), (3, False)):
        broker = broker_of(queue_config(), settings={"a": {"max_size_bytes": 2 * one, "address_full_policy": "FAIL"}})
        transaction = Transaction()
        for _ in range(count):
            send(broker, within=transaction)
        if fits:
            transaction.commit(broker, NOW_MS)
        else:
            with pytest.raises(AddressFullError):
                transaction.commit(broker, NOW_MS)
        assert broker.queues["q"].message_count == (2 if fits else 0)


def test_acknowledgements_alone_are_never_blocked() -> None:
    """Or the address would never have room again."""
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 1, "address_full_policy": "BLOCK"}})
    consumer = consumer_on(broker, broker.queues["q"])
    send(broker)
    turn(broker)
    transaction = Transaction()
    transaction.acknowledged.append((broker.queues["q"], consumer, consumer.let_go(1)))
    assert broker.addresses["a"].is_full
    assert transaction.blocked_by() is None
    transaction.commit(broker, NOW_MS)
    assert not broker.addresses["a"].is_full


def test_a_limit_of_another_address_does_not_matter() -> None:
    """Each address is asked for its own messages."""
    broker = broker_of(
        queue_config("q", "a"), queue_config("r", "b"),
        settings={"#": {"max_size_messages": 2, "address_full_policy": "FAIL"}},
    )  # fmt: skip
    transaction = Transaction()
    for address in ("a", "b", "a", "b"):
        send(broker, address, within=transaction)
    transaction.commit(broker, NOW_MS)
    assert [broker.queues[name].message_count for name in ("q", "r")] == [2, 2]


# ---- duplicates ----------------------------------------------------------------------------------


def test_duplicate_id_is_remembered_from_commit_on() -> None:
    """An aborted transaction leaves no trace."""
    broker = broker_of(queue_config())
    head = head_of("a", duplicate_id="7")
    for ends, added in (("abort", 0), ("commit", 1)):
        transaction = Transaction()
        send(broker, head=head, within=transaction)
        if ends == "abort":
            transaction.abort(NOW_MS)
        else:
            transaction.commit(broker, NOW_MS)
        assert broker.queues["q"].contents.counters.added == added
    send(broker, head=head)
    assert broker.queues["q"].contents.counters.added == 1


# ---- the log -------------------------------------------------------------------------------------


def test_a_commit_is_one_group_of_records() -> None:
    """Only persistent messages are written, and all of them between the same marks."""
    log = SimStore(SimDisk(Random(1)), JournalSettings()).records
    broker = broker_of(queue_config(), addresses=["b"], log=log)
    transaction = Transaction()
    for persistent in (True, False, True, False):
        send(broker, head=head_of("a", persistent=persistent), within=transaction)
    transaction.commit(broker, NOW_MS)
    (group,) = (given for _, (kind, *given) in log.operations if not kind.endswith("_changed"))
    assert [name for name, *_ in group[0]] == ["published", "published"]
