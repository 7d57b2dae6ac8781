"""Scenes of the operations on the broker, queues, addresses, consumers and connections."""

from __future__ import annotations

from typing import Final

from tests.e2e.management.scene import TWO_SENT, Exactly, Rows, Scene, Shows, at_the_desk, is_closed

BASICS: Final[dict[str, Scene]] = {
    "getBroker": Scene({}, {"name": "e2e", "queueCount": 3, "addressCount": 3, "messageCount": 0}),
    "listQueues": Scene({}, Rows("name", {"orders", "jobs", "odd / name"})),
    "listAddresses": Scene({}, Rows("name", {"orders", "jobs", "odd"})),
    "listConsumers": Scene({}, Rows("clientID", {"desk"}), at_the_desk),
    "listConnections": Scene({}, Rows("clientID", {"desk"}), at_the_desk),
    "queue.getAttributes": Scene({"queue": "odd / name"}, {"name": "odd / name", "address": "odd", "durable": True}),
    "address.getAttributes": Scene({"address": "jobs"}, {"name": "jobs", "queueCount": 1, "routingTypes": "ANYCAST"}),
    "queue.pause": Scene({"queue": "orders"}, {"name": "orders", "paused": True}),
    "queue.resume": Scene({"queue": "orders"}, {"paused": False}, "/api/queues/orders/pause"),
    "queue.removeAllMessages": Scene(
        {"queue": "orders", "count": "2"},
        [{"removed": 2}, Shows("/api/queues/orders", {"messageCount": 0})],
        TWO_SENT,
    ),
    "destroyQueue": Scene(
        {"queue": "orders"},
        [Exactly({"removed": 2}), Shows("/api/queues/orders", None)],
        TWO_SENT,
        by_bean=Shows("/api/queues/orders", None),
    ),
    "closeConnectionWithID": Scene({"connection": "1"}, is_closed, at_the_desk),
}
