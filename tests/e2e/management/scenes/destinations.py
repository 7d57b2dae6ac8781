"""Scenes of the operations that create and change queues and addresses."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import NOTHING, TWO_SENT, Exactly, Scene, Shows, Wanted
from tests.e2e.management.told import Told

_NEWS: Final = "/api/addresses?address=news"
_DIVERT: Final = "/api/diverts?name=twice&address=orders&forwarding-address=jobs"


def _acknowledged(told: Told) -> None:
    told.send("/queue/orders", "xx")
    with told.client() as client:
        client.subscribe("/queue/orders")
        client.acknowledge(client.message())


def _grouped(told: Told) -> None:
    """A consumer has the group red."""
    told.send("/queue/orders", JMSXGroupID="red")
    client = told.guest()
    client.subscribe("/queue/orders")
    client.message()


def _sent_on(told: Told, _answer: Any, *, count: int) -> None:
    """A message that is sent to orders goes there, and to jobs if a divert is there."""
    told.send("/queue/orders")
    assert [told.queue(name)["messageCount"] for name in ("orders", "jobs")] == [1, count]


def _attempts(told: Told, _answer: Any, *, count: str) -> None:
    """The setting max-delivery-attempts of orders is in force so."""
    (row,) = told.asked("GET", "/api/settings/orders?where=name=max-delivery-attempts")["data"]
    assert row["value"] == count


_GONE: Final = Shows("/api/addresses/news", None)
_NO_GROUP: Final[list[Wanted]] = [
    NOTHING,
    lambda told, _: told.asked("POST", "/api/queues/orders/reset-groups") == {"reset": 0},
]

DESTINATIONS: Final[dict[str, Scene]] = {
    "createQueue": Scene(
        {"name": "work"},
        {"name": "work", "address": "work", "life": "created", "durable": True, "declaredAt": None},
        by_bean=[
            lambda _, answer: answer is None or json.loads(answer)["name"] == "work",
            Shows("/api/queues/work", {"life": "created"}),
        ],
    ),
    "updateQueue": Scene({"queue": "jobs"}, {"name": "jobs", "maxConsumers": 3}),
    "queue.enable": Scene({"queue": "orders"}, {"enabled": True}, "/api/queues/orders/disable"),
    "queue.disable": Scene({"queue": "orders"}, {"enabled": False}),
    "queue.setRingSize": Scene({"queue": "orders", "ring-size": "5"}, {"ringSize": 5}),
    "queue.resetMessagesAdded": Scene(
        {"queue": "orders"}, {"was": 2}, TWO_SENT, by_bean=[NOTHING, Shows("/api/queues/orders", {"messagesAdded": 0})]
    ),
    "queue.resetMessagesAcknowledged": Scene(
        {"queue": "orders"},
        {"was": 1},
        _acknowledged,
        by_bean=[NOTHING, Shows("/api/queues/orders", {"messagesAcked": 0})],
    ),
    "queue.resetMessagesExpired": Scene(
        {"queue": "orders"}, {"was": 0}, by_bean=[NOTHING, Shows("/api/queues/orders", {"messagesExpired": 0})]
    ),
    "queue.resetMessagesKilled": Scene(
        {"queue": "orders"},
        {"was": 1},
        lambda told: (told.send("/queue/orders"), told.asked("POST", "/api/queues/orders/purge")),
        by_bean=[NOTHING, Shows("/api/queues/orders", {"messagesKilled": 0})],
    ),
    "queue.resetGroup": Scene({"queue": "orders", "group": "red"}, {"reset": 1}, _grouped, by_bean=_NO_GROUP),
    "queue.resetAllGroups": Scene({"queue": "orders"}, {"reset": 1}, _grouped, by_bean=_NO_GROUP),
    "createAddress": Scene({"address": "news"}, {"name": "news", "routingTypes": "MULTICAST", "autoCreated": False}),
    "updateAddress": Scene({"address": "news", "routing-types": "ANYCAST"}, {"routingTypes": "ANYCAST"}, _NEWS),
    "deleteAddress": Scene(
        {"address": "news"},
        [Exactly({"removed": 0, "queues": 0}), _GONE],
        _NEWS,
        by_bean=[NOTHING, _GONE],
    ),
    "address.pause": Scene({"address": "orders"}, {"paused": True}),
    "address.resume": Scene({"address": "orders"}, {"paused": False}, "/api/addresses/orders/pause"),
    "address.block": Scene({"address": "orders"}, {"blocked": True}),
    "address.unblock": Scene({"address": "orders"}, {"blocked": False}, "/api/addresses/orders/block"),
    "createDivert": Scene(
        {"name": "twice", "address": "orders", "forwarding-address": "jobs", "exclusive": "false"},
        partial(_sent_on, count=1),
    ),
    "updateDivert": Scene({"name": "twice", "forwarding-address": "shop"}, partial(_sent_on, count=0), _DIVERT),
    "destroyDivert": Scene({"name": "twice"}, partial(_sent_on, count=0), _DIVERT),
    "addAddressSettings": Scene(
        {"address": "orders", "settings": '{"maxDeliveryAttempts": 3}'},
        partial(_attempts, count="3"),
    ),
    "removeAddressSettings": Scene(
        {"address": "orders"},
        partial(_attempts, count="10"),
        "/api/settings?address=orders&values=max-delivery-attempts=3",
    ),
    "address.purge": Scene(
        {"address": "orders"}, [{"removed": 2}, Shows("/api/queues/orders", {"messageCount": 0})], TWO_SENT
    ),
}
