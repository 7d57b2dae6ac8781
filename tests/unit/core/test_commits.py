"""A transaction with an id is carried out once, wherever its messages go and whatever becomes of the addresses."""

from __future__ import annotations

from random import Random

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.memory import Holdings
from artemis_py.core.publish.duplicates import NO_ADDRESS, Commits
from artemis_py.core.transactions import Transaction
from artemis_py.errors import AddressFullError, DuplicateError
from artemis_py.message import Account
from artemis_py.record_log import MemoryLog, RecoveredState
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.core import NOW_MS, broker_of, queue_config, send
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk


def transaction_of(broker: Broker, *addresses: str) -> Transaction:
    """One message for each address."""
    transaction = Transaction()
    for address in addresses:
        send(broker, address, within=transaction)
    return transaction


def test_an_id_is_remembered_by_its_commit() -> None:
    broker = broker_of(queue_config())
    commits = broker.commits
    assert not commits.has_seen("one", "")
    transaction_of(broker, "a").commit(broker, NOW_MS, "one")
    assert commits.has_seen("one", "")
    assert not commits.has_seen("two", "")


def test_it_belongs_to_no_address() -> None:
    """Ids of messages do: they go with an address that is deleted."""
    broker = broker_of(queue_config("q", "a"), queue_config("r", "b"))
    transaction_of(broker, "a").commit(broker, NOW_MS, "one")
    assert broker.commits.has_seen("one", "")
    assert broker.addresses["a"].duplicate_ids is None


def test_a_commit_that_fails_leaves_its_id_free() -> None:
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 1, "address_full_policy": "FAIL"}})
    with pytest.raises(AddressFullError):
        transaction_of(broker, "a", "a").commit(broker, NOW_MS, "one")
    assert not broker.commits.has_seen("one", "")


def test_the_record_stands_in_the_transaction_s_group() -> None:
    """Else a crash could keep the id and lose the messages, or the other way round."""
    log = SimStore(SimDisk(Random(1)), JournalSettings()).records
    broker = broker_of(queue_config(), log=log)
    transaction_of(broker, "a").commit(broker, NOW_MS, "one")
    transaction_of(broker, "a").commit(broker, NOW_MS, "two", "d1")
    assert log.of("duplicate_id") == [(NO_ADDRESS, "one"), (NO_ADDRESS, "two\0d1")]
    groups = [operation[1] for _, operation in log.operations if operation[0] == "group"]
    assert [group[-1][0] for group in groups] == ["duplicate_id"] * 2, "inside the group"


def test_ids_come_back_after_a_restart() -> None:
    kept = RecoveredState(duplicate_ids={NO_ADDRESS: ["one", "two\0d1"]})
    commits = Broker(BrokerConfig(), MemoryLog(), NOW_MS, kept).commits
    assert commits.has_seen("one", "d9")
    assert commits.has_seen("two", "d1")
    with pytest.raises(DuplicateError):
        commits.has_seen("two", "d2")


@pytest.mark.parametrize(
    ("first", "second", "is_other"), [("d1", "d1", False), ("d1", "d2", True), ("", "d2", False), ("d1", "", False)]
)
def test_the_same_id_with_other_messages_is_an_error(first: str, second: str, is_other: bool) -> None:
    commits = Commits(10, Holdings(Account()), keeps=True)
    commits.remember("one", first, MemoryLog())
    if is_other:
        with pytest.raises(DuplicateError, match="with other messages"):
            commits.has_seen("one", second)
    else:
        assert commits.has_seen("one", second)


@pytest.mark.parametrize(("size", "seen"), [(2, ["b", "c"]), (3, ["a", "b", "c"]), (0, [])])
def test_the_last_so_many_are_remembered(size: int, seen: list[str]) -> None:
    commits = Commits(size, Holdings(Account()), keeps=True)
    for commit_id in "abc":
        commits.remember(commit_id, "", MemoryLog())
    assert [commit_id for commit_id in "abc" if commits.has_seen(commit_id, "")] == seen


def test_ids_that_are_not_kept_are_not_written() -> None:
    log = SimStore(SimDisk(Random(1)), JournalSettings()).records
    commits = Commits(10, Holdings(Account()), keeps=False)
    commits.remember("one", "", log)
    assert commits.has_seen("one", "")
    assert log.of("duplicate_id") == []
