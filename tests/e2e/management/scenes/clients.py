"""Scenes of the operations on sessions, producers, transactions and connections."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.e2e.management.scene import Scene, rows
from tests.e2e.management.told import Told
from tests.kit.client import Closed, StompSocket

_CLIENTS: list[StompSocket] = []


def _with_client(told: Told) -> None:
    client = told.client(client_id="desk", login="ann")
    client.subscribe("/queue/jobs")
    client.ask("SEND", {"destination": "/queue/orders"}, b"hello")
    _CLIENTS.append(client)


def _with_transaction(told: Told) -> None:
    _with_client(told)
    client = _CLIENTS[-1]
    client.ask("BEGIN", {"transaction": "tx-1"})
    client.ask("SEND", {"destination": "/queue/orders", "transaction": "tx-1"}, b"in it")


def _gone(_told: Told) -> None:
    while _CLIENTS:
        _CLIENTS.pop().close()


def _is_closed(told: Told, answer: Any) -> None:
    client = _CLIENTS.pop()
    assert "An operator has closed" in (client.expect("ERROR").header("message") or "")
    with pytest.raises(Closed):
        client.receive()
    assert answer is True or answer["closed"] in ("s1", 1)


def _holds_count(count: int) -> Any:
    def check(told: Told, answer: Any) -> None:
        assert told.ask("GET", "/api/transactions")[1]["count"] == 0
        assert told.queue("orders")["messageCount"] == count

    return check


def _sender(told: Told, answer: Any) -> None:
    (row,) = answer["data"]
    assert (row["address"], row["sessionID"], int(row["msgSent"]), row["clientID"]) == ("orders", "s1", 1, "desk")
    assert int(row["msgSizeSent"]) > 5
    assert int(row["creationTime"]) > 0


def _sender_in_texts(told: Told, answer: str) -> None:
    (row,) = json.loads(answer)["data"]
    assert (row["address"], row["sessionID"], row["msgSent"], row["clientID"]) == ("orders", "s1", "1", "desk")


def _was_closed(told: Told, answer: bool) -> None:
    assert answer is True
    _is_closed(told, {"closed": 1})


CLIENTS: Final[dict[str, Scene]] = {
    "listSessions": Scene({}, rows("id", {"s1"}), _with_client, _gone),
    "closeSessionWithID": Scene({"session": "s1"}, _is_closed, _with_client, _gone, by_bean=_was_closed),
    "listProducers": Scene({}, _sender, _with_client, _gone, by_bean=_sender_in_texts),
    "closeConsumerWithID": Scene({"consumer": "1"}, _is_closed, _with_client, _gone, by_bean=_was_closed),
    "listTransactions": Scene({}, rows("id", {"s1:tx-1"}), _with_transaction, _gone),
    "rollbackTransaction": Scene({"transaction": "s1:tx-1"}, _holds_count(1), _with_transaction, _gone),
    "commitTransaction": Scene({"transaction": "s1:tx-1"}, _holds_count(2), _with_transaction, _gone),
    "closeConnectionsForAddress": Scene({"ip-address": "127.0.0.1"}, _is_closed, _with_client, _gone),
    "closeConnectionsForUser": Scene({"user-name": "ann"}, _is_closed, _with_client, _gone),
    "closeConsumerConnectionsForAddress": Scene({"address": "jobs"}, _is_closed, _with_client, _gone),
}
