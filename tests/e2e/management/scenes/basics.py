"""Scenes of the operations on the broker, queues, addresses, consumers and connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.e2e.management.scene import Scene, holds, rows
from tests.e2e.management.told import Told
from tests.kit.client import Closed, StompSocket

_CLIENTS: list[StompSocket] = []


def _with_consumer(told: Told) -> None:
    client = told.client(client_id="desk")
    client.subscribe("/queue/jobs", selector="x = 1")
    _CLIENTS.append(client)


def _gone(_told: Told) -> None:
    while _CLIENTS:
        _CLIENTS.pop().close()


def _is_closed(told: Told, answer: Any) -> None:
    client = _CLIENTS.pop()
    error = client.expect("ERROR")
    assert "An operator has closed this connection" in (error.header("message") or "")
    with pytest.raises(Closed):
        client.expect("MESSAGE")


def _there_is_no(name: str) -> Callable[[Told, Any], None]:
    def check(told: Told, answer: Any) -> None:
        assert answer == {"removed": 2}
        assert told.ask("GET", f"/api/queues/{name}")[0] == 404

    return check


BASICS: Final[dict[str, Scene]] = {
    "getBroker": Scene({}, holds(name="e2e", queueCount=3, addressCount=3, messageCount=0)),
    "listQueues": Scene({}, rows("name", {"orders", "jobs", "odd / name"})),
    "listAddresses": Scene({}, rows("name", {"orders", "jobs", "odd"})),
    "listConsumers": Scene({}, rows("clientID", {"desk"}), _with_consumer, _gone),
    "listConnections": Scene({}, rows("clientID", {"desk"}), _with_consumer, _gone),
    "queue.getAttributes": Scene({"queue": "odd / name"}, holds(name="odd / name", address="odd", durable=True)),
    "address.getAttributes": Scene({"address": "jobs"}, holds(name="jobs", queueCount=1, routingTypes="ANYCAST")),
    "queue.pause": Scene({"queue": "orders"}, holds(name="orders", paused=True)),
    "queue.resume": Scene(
        {"queue": "orders"}, holds(paused=False), lambda told: told.ask("POST", "/api/queues/orders/pause")
    ),
    "queue.removeAllMessages": Scene(
        {"queue": "orders", "count": "2"},
        lambda told, answer: (answer["removed"], told.queue("orders")["messageCount"]) == (2, 0) or pytest.fail(answer),
        lambda told: told.send("orders", 2),
    ),
    "destroyQueue": Scene(
        {"queue": "orders"},
        _there_is_no("orders"),
        lambda told: told.send("orders", 2),
        by_bean=lambda told, answer: _there_is_no("orders")(told, {"removed": 2}),
    ),
    "closeConnectionWithID": Scene({"connection": "1"}, _is_closed, _with_consumer, _gone),
}
