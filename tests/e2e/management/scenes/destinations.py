"""Scenes of the operations that create and change queues and addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from tests.e2e.management.scene import Scene, holds
from tests.e2e.management.told import Told


def _posted(*paths: str) -> Callable[[Told], None]:
    def before(told: Told) -> None:
        for path in paths:
            status, answer = told.ask("POST", path)
            assert status == 200, answer

    return before


def _sent(queue: str, count: int) -> Callable[[Told], None]:
    return lambda told: told.send(queue, count)


def _acknowledged(told: Told) -> None:
    told.send("orders", 2)
    with told.client() as client:
        client.subscribe("/queue/orders")
        client.acknowledge(client.message())


def _killed(told: Told) -> None:
    told.send("orders", 1)
    _posted("/api/queues/orders/purge")(told)


def _grouped(told: Told) -> None:
    """A consumer has the group red."""
    with told.client() as client:
        client.ask("SEND", {"destination": "/queue/orders", "JMSXGroupID": "red"}, b"x")
    client = told.client()
    client.subscribe("/queue/orders")
    client.message()
    _CLIENTS.append(client)


_CLIENTS: list[Any] = []


def _gone(_told: Told) -> None:
    while _CLIENTS:
        _CLIENTS.pop().close()


def _purged(told: Told, answer: Any) -> None:
    assert answer["removed"] == 2
    assert told.queue("orders")["messageCount"] == 0


def _counts(field: str) -> Callable[[Told, Any], None]:
    """The bean says nothing, and the queue has counted nothing since."""

    def check(told: Told, answer: Any) -> None:
        assert answer is None
        assert told.queue("orders")[field] == 0

    return check


def _no_group(told: Told, answer: Any) -> None:
    assert answer is None
    assert told.ask("POST", "/api/queues/orders/reset-groups")[1] == {"reset": 0}


def _deleted(told: Told, answer: Any) -> None:
    assert answer is None
    _there_is_no_address(told, {"removed": 0, "queues": 0})


def _there_is_no_address(told: Told, answer: Any) -> None:
    assert answer == {"removed": 0, "queues": 0}
    assert told.ask("GET", "/api/addresses/news")[0] == 404


def _nothing(_told: Told, answer: Any) -> None:
    assert answer is None


def _is_made(told: Told, answer: Any) -> None:
    assert answer is None or json.loads(answer)["name"] == "work"
    assert told.queue("work")["life"] == "created"


def _no_longer_there(told: Told, answer: Any) -> None:
    assert answer is None
    assert told.ask("GET", "/api/addresses/news")[0] == 404


_NEWS: Final = "/api/addresses?address=news"

_DIVERT: Final = "/api/diverts?name=twice&address=orders&forwarding-address=jobs"


def _diverts(count: int) -> Callable[[Told, Any], None]:
    """A message that is sent to orders goes to so many of orders and jobs."""

    def check(told: Told, _answer: Any) -> None:
        told.send("orders", 1)
        assert [told.queue(name)["messageCount"] for name in ("orders", "jobs")] == [1, count]

    return check


def _attempts(count: str) -> Callable[[Told, Any], None]:
    """The setting max-delivery-attempts of orders is in force so."""

    def check(told: Told, _answer: Any) -> None:
        (row,) = told.ask("GET", "/api/settings/orders?where=name=max-delivery-attempts")[1]["data"]
        assert row["value"] == count

    return check


DESTINATIONS: Final[dict[str, Scene]] = {
    "createQueue": Scene(
        {"name": "work"},
        holds(name="work", address="work", life="created", durable=True, declaredAt=None),
        by_bean=_is_made,
    ),
    "updateQueue": Scene({"queue": "jobs"}, holds(name="jobs", maxConsumers=3)),
    "queue.enable": Scene({"queue": "orders"}, holds(enabled=True), _posted("/api/queues/orders/disable")),
    "queue.disable": Scene({"queue": "orders"}, holds(enabled=False)),
    "queue.setRingSize": Scene({"queue": "orders", "ring-size": "5"}, holds(ringSize=5)),
    "queue.resetMessagesAdded": Scene(
        {"queue": "orders"}, holds(was=2), _sent("orders", 2), by_bean=_counts("messagesAdded")
    ),
    "queue.resetMessagesAcknowledged": Scene(
        {"queue": "orders"}, holds(was=1), _acknowledged, by_bean=_counts("messagesAcked")
    ),
    "queue.resetMessagesExpired": Scene({"queue": "orders"}, holds(was=0), by_bean=_counts("messagesExpired")),
    "queue.resetMessagesKilled": Scene(
        {"queue": "orders"},
        holds(was=1),
        lambda told: (told.send("orders", 1), _posted("/api/queues/orders/purge")(told)),
        by_bean=_counts("messagesKilled"),
    ),
    "queue.resetGroup": Scene({"queue": "orders", "group": "red"}, holds(reset=1), _grouped, _gone, by_bean=_no_group),
    "queue.resetAllGroups": Scene({"queue": "orders"}, holds(reset=1), _grouped, _gone, by_bean=_no_group),
    "createAddress": Scene({"address": "news"}, holds(name="news", routingTypes="MULTICAST", autoCreated=False)),
    "updateAddress": Scene(
        {"address": "news", "routing-types": "ANYCAST"}, holds(routingTypes="ANYCAST"), _posted(_NEWS)
    ),
    "deleteAddress": Scene({"address": "news"}, _there_is_no_address, _posted(_NEWS), by_bean=_deleted),
    "address.pause": Scene({"address": "orders"}, holds(paused=True)),
    "address.resume": Scene({"address": "orders"}, holds(paused=False), _posted("/api/addresses/orders/pause")),
    "address.block": Scene({"address": "orders"}, holds(blocked=True)),
    "address.unblock": Scene({"address": "orders"}, holds(blocked=False), _posted("/api/addresses/orders/block")),
    "createDivert": Scene(
        {"name": "twice", "address": "orders", "forwarding-address": "jobs", "exclusive": "false"}, _diverts(1)
    ),
    "updateDivert": Scene({"name": "twice", "forwarding-address": "shop"}, _diverts(0), _posted(_DIVERT)),
    "destroyDivert": Scene({"name": "twice"}, _diverts(0), _posted(_DIVERT)),
    "addAddressSettings": Scene(
        {"address": "orders", "settings": '{"maxDeliveryAttempts": 3}'},
        _attempts("3"),
    ),
    "removeAddressSettings": Scene(
        {"address": "orders"}, _attempts("10"), _posted("/api/settings?address=orders&values=max-delivery-attempts=3")
    ),
    "address.purge": Scene({"address": "orders"}, _purged, _sent("orders", 2)),
}
