"""Scenes of the operations on the broker, queues, addresses, consumers and connections."""

from __future__ import annotations

from typing import Final

from tests.e2e.management.scene import Scene, at_the_desk, both, gives, holds, is_closed, posted, rows, sent, shows

BASICS: Final[dict[str, Scene]] = {
    "getBroker": Scene({}, holds(name="e2e", queueCount=3, addressCount=3, messageCount=0)),
    "listQueues": Scene({}, rows("name", {"orders", "jobs", "odd / name"})),
    "listAddresses": Scene({}, rows("name", {"orders", "jobs", "odd"})),
    "listConsumers": Scene({}, rows("clientID", {"desk"}), at_the_desk),
    "listConnections": Scene({}, rows("clientID", {"desk"}), at_the_desk),
    "queue.getAttributes": Scene({"queue": "odd / name"}, holds(name="odd / name", address="odd", durable=True)),
    "address.getAttributes": Scene({"address": "jobs"}, holds(name="jobs", queueCount=1, routingTypes="ANYCAST")),
    "queue.pause": Scene({"queue": "orders"}, holds(name="orders", paused=True)),
    "queue.resume": Scene({"queue": "orders"}, holds(paused=False), posted("/api/queues/orders/pause")),
    "queue.removeAllMessages": Scene(
        {"queue": "orders", "count": "2"},
        both(holds(removed=2), shows("/api/queues/orders", messageCount=0)),
        sent("orders", 2),
    ),
    "destroyQueue": Scene(
        {"queue": "orders"},
        both(gives({"removed": 2}), shows("/api/queues/orders")),
        sent("orders", 2),
        by_bean=shows("/api/queues/orders"),
    ),
    "closeConnectionWithID": Scene({"connection": "1"}, is_closed, at_the_desk),
}
