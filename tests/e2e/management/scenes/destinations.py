"""Scenes of the operations that create and change queues and addresses."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.e2e.management.scene import NOTHING, Check, Scene, both, gives, holds, posted, sent, shows
from tests.e2e.management.told import Told

_NEWS: Final = "/api/addresses?address=news"
_DIVERT: Final = "/api/diverts?name=twice&address=orders&forwarding-address=jobs"


def _acknowledged(told: Told) -> None:
    told.send("orders", 2)
    with told.client() as client:
        client.subscribe("/queue/orders")
        client.acknowledge(client.message())


def _grouped(told: Told) -> None:
    """A consumer has the group red."""
    told.send("orders", 1, JMSXGroupID="red")
    client = told.guest()
    client.subscribe("/queue/orders")
    client.message()


def _no_group(told: Told, answer: Any) -> None:
    assert answer is None
    assert told.ask("POST", "/api/queues/orders/reset-groups")[1] == {"reset": 0}


def _is_made(told: Told, answer: Any) -> None:
    assert answer is None or json.loads(answer)["name"] == "work"
    assert told.queue("work")["life"] == "created"


def _zero(field: str) -> Check:
    """The bean says nothing, and the queue has counted nothing since."""
    return both(NOTHING, shows("/api/queues/orders", **{field: 0}))


def _diverts(count: int) -> Check:
    """A message that is sent to orders goes to so many of orders and jobs."""

    def check(told: Told, _answer: Any) -> None:
        told.send("orders", 1)
        assert [told.queue(name)["messageCount"] for name in ("orders", "jobs")] == [1, count]

    return check


def _attempts(count: str) -> Check:
    """The setting max-delivery-attempts of orders is in force so."""

    def check(told: Told, _answer: Any) -> None:
        (row,) = told.ask("GET", "/api/settings/orders?where=name=max-delivery-attempts")[1]["data"]
        assert row["value"] == count

    return check


_GONE: Final = shows("/api/addresses/news")

DESTINATIONS: Final[dict[str, Scene]] = {
    "createQueue": Scene(
        {"name": "work"},
        holds(name="work", address="work", life="created", durable=True, declaredAt=None),
        by_bean=_is_made,
    ),
    "updateQueue": Scene({"queue": "jobs"}, holds(name="jobs", maxConsumers=3)),
    "queue.enable": Scene({"queue": "orders"}, holds(enabled=True), posted("/api/queues/orders/disable")),
    "queue.disable": Scene({"queue": "orders"}, holds(enabled=False)),
    "queue.setRingSize": Scene({"queue": "orders", "ring-size": "5"}, holds(ringSize=5)),
    "queue.resetMessagesAdded": Scene(
        {"queue": "orders"}, holds(was=2), sent("orders", 2), by_bean=_zero("messagesAdded")
    ),
    "queue.resetMessagesAcknowledged": Scene(
        {"queue": "orders"}, holds(was=1), _acknowledged, by_bean=_zero("messagesAcked")
    ),
    "queue.resetMessagesExpired": Scene({"queue": "orders"}, holds(was=0), by_bean=_zero("messagesExpired")),
    "queue.resetMessagesKilled": Scene(
        {"queue": "orders"},
        holds(was=1),
        lambda told: (told.send("orders", 1), posted("/api/queues/orders/purge")(told)),
        by_bean=_zero("messagesKilled"),
    ),
    "queue.resetGroup": Scene({"queue": "orders", "group": "red"}, holds(reset=1), _grouped, by_bean=_no_group),
    "queue.resetAllGroups": Scene({"queue": "orders"}, holds(reset=1), _grouped, by_bean=_no_group),
    "createAddress": Scene({"address": "news"}, holds(name="news", routingTypes="MULTICAST", autoCreated=False)),
    "updateAddress": Scene(
        {"address": "news", "routing-types": "ANYCAST"}, holds(routingTypes="ANYCAST"), posted(_NEWS)
    ),
    "deleteAddress": Scene(
        {"address": "news"},
        both(gives({"removed": 0, "queues": 0}), _GONE),
        posted(_NEWS),
        by_bean=both(NOTHING, _GONE),
    ),
    "address.pause": Scene({"address": "orders"}, holds(paused=True)),
    "address.resume": Scene({"address": "orders"}, holds(paused=False), posted("/api/addresses/orders/pause")),
    "address.block": Scene({"address": "orders"}, holds(blocked=True)),
    "address.unblock": Scene({"address": "orders"}, holds(blocked=False), posted("/api/addresses/orders/block")),
    "createDivert": Scene(
        {"name": "twice", "address": "orders", "forwarding-address": "jobs", "exclusive": "false"}, _diverts(1)
    ),
    "updateDivert": Scene({"name": "twice", "forwarding-address": "shop"}, _diverts(0), posted(_DIVERT)),
    "destroyDivert": Scene({"name": "twice"}, _diverts(0), posted(_DIVERT)),
    "addAddressSettings": Scene(
        {"address": "orders", "settings": '{"maxDeliveryAttempts": 3}'},
        _attempts("3"),
    ),
    "removeAddressSettings": Scene(
        {"address": "orders"}, _attempts("10"), posted("/api/settings?address=orders&values=max-delivery-attempts=3")
    ),
    "address.purge": Scene(
        {"address": "orders"}, both(holds(removed=2), shows("/api/queues/orders", messageCount=0)), sent("orders", 2)
    ),
}
