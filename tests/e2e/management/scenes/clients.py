"""Scenes of the operations on sessions, producers, transactions and connections."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.management.scene import Rows, Scene, Shows, at_the_desk, is_closed
from tests.e2e.management.told import Told


def _with_transaction(told: Told) -> None:
    client = at_the_desk(told)
    client.ask("BEGIN", {"transaction": "tx-1"})
    client.ask("SEND", {"destination": "/queue/orders", "transaction": "tx-1"}, b"in it")


def _sender(_told: Told, answer: Any) -> None:
    """In the answer of a bean numbers are texts."""
    (row,) = answer["data"]
    assert (row["address"], row["sessionID"], int(row["msgSent"]), row["clientID"]) == ("orders", "s1", 1, "desk")
    assert int(row["msgSizeSent"]) > 5
    assert int(row["creationTime"]) > 0


_NO_TRANSACTION: Final = Shows("/api/transactions", {"count": 0})

CLIENTS: Final[dict[str, Scene]] = {
    "listSessions": Scene({}, Rows("id", {"s1"}), at_the_desk),
    "closeSessionWithID": Scene({"session": "s1"}, is_closed, at_the_desk),
    "listProducers": Scene({}, _sender, at_the_desk),
    "closeConsumerWithID": Scene({"consumer": "1"}, is_closed, at_the_desk),
    "listTransactions": Scene({}, Rows("id", {"s1:tx-1"}), _with_transaction),
    "rollbackTransaction": Scene(
        {"transaction": "s1:tx-1"},
        [_NO_TRANSACTION, Shows("/api/queues/orders", {"messageCount": 1})],
        _with_transaction,
    ),
    "commitTransaction": Scene(
        {"transaction": "s1:tx-1"},
        [_NO_TRANSACTION, Shows("/api/queues/orders", {"messageCount": 2})],
        _with_transaction,
    ),
    "closeConnectionsForAddress": Scene({"ip-address": "127.0.0.1"}, is_closed, at_the_desk),
    "closeConnectionsForUser": Scene({"user-name": "ann"}, is_closed, at_the_desk),
    "closeConsumerConnectionsForAddress": Scene({"address": "jobs"}, is_closed, at_the_desk),
}
