"""Notifications as messages: on the address that Artemis has for them, with its headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.client import StompSocket
from tests.kit.frames import ServerFrame
from tests.kit.process import configuration, running

pytestmark = pytest.mark.e2e
WHERE = "activemq.notifications"


def listening(told: Told, **headers: Any) -> StompSocket:
    """A client that listens, behind the notifications about itself."""
    client = told.client()
    client.subscribe(WHERE, ack="auto", **headers)
    return client


def of_type(client: StompSocket, type: str) -> ServerFrame:
    """The next notification of a type."""
    while True:
        message = client.message()
        if message.header("_AMQ_NotifType") == type:
            return message


def test_a_listener_is_told_of_itself_first(told: Told) -> None:
    with listening(told) as client:
        added = client.message()
        assert (added.header("_AMQ_NotifType"), added.header("_AMQ_Address")) == ("BINDING_ADDED", WHERE)
        created = client.message()
        assert (created.header("_AMQ_NotifType"), created.header("_AMQ_ConsumerCount")) == ("CONSUMER_CREATED", "1")
        assert created.header("_AMQ_RoutingName") == added.header("_AMQ_RoutingName")
        assert created.header("destination") == WHERE
        assert created.body == b""
        client.nothing_waits()


def test_a_selector_chooses_notifications(told: Told) -> None:
    selector = "_AMQ_NotifType = 'CONSUMER_CREATED' AND _AMQ_RoutingName = 'jobs'"
    with listening(told, selector=selector) as client, told.client(login="ann", client_id="me") as other:
        other.subscribe("/queue/orders")
        other.subscribe("/queue/jobs", id="2", selector="a='b'")
        message = client.message()
        expected = {
            "_AMQ_RoutingName": "jobs",
            "_AMQ_Address": "jobs",
            "_AMQ_ConsumerCount": "1",
            "_AMQ_User": "ann",
            "_AMQ_Client_ID": "me",
            "_AMQ_FilterString": "a='b'",
            "_AMQ_Distance": "0",
        }
        assert {name: message.header(name) for name in expected} == expected
        assert int(message.header("_AMQ_NotifTimestamp") or 0) > 1_600_000_000_000
        client.nothing_waits()


def test_sessions_are_not_told_of_if_the_configuration_says_so(tmp_path: Path) -> None:
    silent = "<suppress-session-notifications>true</suppress-session-notifications>"
    other = f"{silent}<management-notification-address>told.here</management-notification-address>"
    with running(configuration(core=other, addresses=ADDRESSES), tmp_path) as broker:
        told = Told(broker)
        with told.client() as client:
            client.subscribe("told.here", ack="auto")
            told.client().close()
            assert of_type(client, "CONNECTION_DESTROYED").header("destination") == "told.here"
            client.nothing_waits_but_messages()
            kinds = {one.header("_AMQ_NotifType") for one in client.take_waiting()}
            assert "SESSION_CREATED" not in kinds


def test_a_durable_subscription_hears_what_happened_meanwhile(told: Told) -> None:
    durable = {"durable_subscription_name": "listening"}
    with told.client(client_id="me") as client:
        client.subscribe(WHERE, **durable)
    told.client(client_id="other").close()
    with told.client(client_id="me") as client:
        client.subscribe(WHERE, **durable)
        while of_type(client, "SESSION_CREATED").header("_AMQ_Client_ID") != "other":
            pass


def test_what_a_client_may_not_do_there(told: Told) -> None:
    with told.client() as client:
        client.send("SEND", {"destination": WHERE}, b"forged")
        assert "only the broker sends" in client.expect("ERROR").text


def test_nothing_waits_for_a_slow_listener_beyond_its_ring(told: Told) -> None:
    """A storm of connections and a hundred listeners that read nothing: each queue keeps the last ones, and the broker
    goes on.
    """
    listeners = [listening(told, selector="_AMQ_NotifType <> 'CONSUMER_CREATED'") for _ in range(100)]
    for client in listeners:
        client.ask("UNSUBSCRIBE", {"id": "1"})
        client.subscribe(WHERE, ack="client-individual", consumer_window_size="0")
    before_bytes = told.broker.memory_bytes
    for _ in range(30):
        clients = [StompSocket(told.broker.port) for _ in range(25)]
        for client in clients:
            client.send("CONNECT", {"accept-version": "1.2", "host": "x"})
        for client in clients:
            client.expect("CONNECTED")
            client.close()
    with told.client() as client:
        client.ask("SEND", {"destination": "/queue/orders"}, b"x")
    status, found = told.ask("GET", f"/api/queues?where=address%3D{WHERE}&size=200&fields=name,messageCount,ringSize")
    assert (status, found["count"]) == (200, 100)
    assert all(row["ringSize"] == 2000 and 2000 <= row["messageCount"] <= 2001 for row in found["data"])
    assert told.broker.memory_bytes - before_bytes < 150_000_000
    for client in listeners:
        client.close()


def test_thousands_of_clients_that_come_at_once(told: Told) -> None:
    """A listener that reads hears of every one of them, in order."""
    total = 4_000
    with listening(told, selector="_AMQ_NotifType = 'SESSION_CREATED'") as listener:
        expected: list[str] = []
        heard: list[str] = []
        for start in range(0, total, 100):
            clients = [StompSocket(told.broker.port) for _ in range(100)]
            for number, client in enumerate(clients, start):
                client.send("CONNECT", {"accept-version": "1.2", "host": "x", "client-id": str(number)})
                expected.append(str(number))
            for client in clients:
                client.expect("CONNECTED")
                client.close()
            while len(heard) < start + 100:
                heard.append(listener.message().header("_AMQ_Client_ID") or "")
        assert sorted(heard, key=int) == expected
