"""``GET /api/events``: what happens, as it happens, to everybody who listens, and never more than somebody reads."""

from __future__ import annotations

import http.client
import json
import signal
import socket
from pathlib import Path

import pytest

from tests.e2e.events.event_stream import EventStream
from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.client import StompSocket
from tests.kit.process import LOOPBACK, WAIT_S, configuration, eventually, running
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e


def test_it_says_hello_and_tells_what_happens(told: Told) -> None:
    with EventStream(told.broker) as events:
        assert (events.status, events.response.getheader("Content-Type")) == (200, "text/event-stream")
        hello = events.next()
        assert (hello.kind, hello.data["broker"]) == ("hello", "e2e")
        with told.client(client_id="me", login="ann") as client:
            client.subscribe("/queue/orders", selector="a='b'")
        assert events.notification("CONNECTION_CREATED")["remoteAddress"].startswith("127.0.0.1:")
        session = events.notification("SESSION_CREATED")
        assert (session["user"], session["clientID"], session["protocol"]) == ("ann", "me", "STOMP")
        created = events.notification("CONSUMER_CREATED")
        assert (created["queue"], created["address"], created["filter"]) == ("orders", "orders", "a='b'")
        assert (created["consumerCount"], created["session"]) == (1, session["session"])
        assert events.notification("CONSUMER_CLOSED")["consumerCount"] == 0
        assert events.notification("SESSION_CLOSED")["session"] == session["session"]
        assert events.notification("CONNECTION_DESTROYED")["connection"] == session["connection"]


def test_queues_and_addresses_that_come_and_go(told: Told) -> None:
    with EventStream(told.broker) as events, told.client() as client:
        client.ask("SEND", {"destination": "/queue/new"}, b"x")
        assert events.notification("ADDRESS_ADDED")["address"] == "new"
        assert events.notification("BINDING_ADDED")["queue"] == "new"
        told.asked("DELETE", "/api/queues/new")
        gone = events.notification("BINDING_REMOVED")
        assert (gone["queue"], gone["routingType"], gone["filter"]) == ("new", "ANYCAST", "")
        assert events.notification("ADDRESS_REMOVED")["address"] == "new"


def test_what_an_operator_does_and_expiry_are_told(told: Told) -> None:
    with EventStream(told.broker) as events:
        told.command("queue", "pause", "orders")
        operation = events.notification("OPERATION")
        assert (operation["queue"], operation["operation"], operation["code"]) == ("orders", "pause", "QUE-1016")
        with told.client() as client:
            for _ in range(3):
                client.ask("SEND", {"destination": "/queue/jobs", "expires": "1"}, b"x")
            client.send("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs"})
            expired = events.notification("MESSAGE_EXPIRED")
            assert (expired["queue"], expired["count"]) == ("jobs", 3)


def test_only_the_types_that_were_asked_for(told: Told) -> None:
    with EventStream(told.broker, type=("SESSION_CREATED,SESSION_CLOSED",)) as events:
        assert events.next().kind == "hello"
        told.client().close()
        assert [events.next().data["type"] for _ in range(2)] == ["SESSION_CREATED", "SESSION_CLOSED"]


def test_who_comes_again_gets_what_was_missed(told: Told) -> None:
    with EventStream(told.broker) as events:
        told.client().close()
        last = events.until("notification", lambda data: data["type"] == "SESSION_CREATED")
    told.client(client_id="meanwhile").close()
    with EventStream(told.broker, Last_Event_ID=last.id) as events:
        assert events.notification("SESSION_CREATED")["clientID"] == "meanwhile"
    with EventStream(told.broker, Last_Event_ID="00000000-7") as events:
        assert events.next().kind == "hello"
        assert events.next().data == {"count": -1}


def test_a_list_is_told_whole_and_then_what_changes(told: Told) -> None:
    watch = "queues?fields=messageCount,consumerCount&sort=name&size=50"
    with EventStream(told.broker, watch) as events:
        state = events.until("state").data
        assert (state["watch"], state["key"], state["count"]) == (watch, "name", 3)
        assert [row["name"] for row in state["data"]] == ["jobs", "odd / name", "orders"]
        assert state["data"][0] == {"name": "jobs", "messageCount": 0, "consumerCount": 0}
        told.send("/queue/orders", "xx")
        changes = events.until("changes").data
        assert changes["data"] == [{"name": "orders", "messageCount": 2}]
        assert "order" not in changes
        told.send("/queue/kept")
        changes = events.until("changes").data
        assert changes["order"] == ["jobs", "kept", "odd / name", "orders"]
        assert changes["data"] == [{"name": "kept", "messageCount": 1, "consumerCount": 0}]
        assert changes["count"] == 4
        told.ask("DELETE", "/api/queues/kept")
        changes = events.until("changes").data
        assert (changes["order"], changes["data"]) == (["jobs", "odd / name", "orders"], [])


def test_one_thing_and_what_goes_wrong_with_it(told: Told) -> None:
    with EventStream(told.broker, "queues/odd%20%2F%20name", "queues/later", "broker") as events:
        state = events.until("state", lambda data: data["watch"].startswith("queues")).data
        assert (state["data"]["name"], state["data"]["paused"]) == ("odd / name", False)
        problem = events.until("problem").data
        assert (problem["watch"], "later" in problem["error"]) == ("queues/later", True)
        told.asked("POST", "/api/queues/odd%20%2F%20name/pause")
        changes = events.until("changes", lambda data: data["watch"].startswith("queues")).data
        assert changes["data"] == {"paused": True, "persistedPause": True, "state": "paused", "severity": 1}
        told.send("/queue/later")
        later = events.until("state", lambda data: data["watch"] == "queues/later").data
        assert later["data"]["messageCount"] == 1
        broker = events.until("changes", lambda data: data["data"].get("messageCount") == 1).data
        assert broker["watch"] == "broker"


def test_all_that_watch_the_same_get_the_same(told: Told) -> None:
    streams = [EventStream(told.broker, "queues") for _ in range(10)]
    for one in streams:
        one.until("state")
    told.send("/queue/orders")
    seen = {json.dumps(one.until("changes").data) for one in streams}
    assert len(seen) == 1
    for one in streams:
        one.close()


REFUSALS = [
    ("?watch=nothing", 404, "there is nothing to watch at 'nothing'"),
    ("?watch=queues/orders/pause", 404, "nothing to watch"),
    ("?watch=queues%3Fsize%3D201", 400, "size must be 1 to 200"),
    ("?watch=queues%3Fno%3D1", 400, "no argument 'no'"),
    ("?type=NOTHING", 400, "no notifications of type 'NOTHING'"),
    ("?no=1", 400, "events have no argument 'no'"),
    ("?" + "&".join(f"watch=queues/{number}" for number in range(17)), 400, "may watch 16 things, not 17"),
    ("?type=%ff", 400, "not UTF-8"),
]


def test_what_makes_no_sense_is_refused(told: Told) -> None:
    for query, status, text in REFUSALS:
        connection = http.client.HTTPConnection(LOOPBACK, told.broker.ports["http"], timeout=WAIT_S)
        connection.request("GET", f"/api/events{query}")
        answer = connection.getresponse()
        assert (query, answer.status) == (query, status)
        assert text in json.loads(answer.read())["error"]
        connection.close()


def test_a_head_request_ends(told: Told) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, told.broker.ports["http"], timeout=WAIT_S)
    for _ in range(60):
        connection.request("HEAD", "/api/events")
        assert connection.getresponse().read() == b""
    connection.close()


def test_fifty_may_listen_and_places_are_free_again(told: Told) -> None:
    streams = [EventStream(told.broker) for _ in range(50)]
    assert {one.status for one in streams} == {200}
    with EventStream(told.broker) as refused:
        assert (refused.status, refused.response.getheader("Retry-After")) == (503, "5")
        assert "50 clients" in json.loads(refused.response.read())["error"]
    told.asked("GET", "/api/broker")
    for number, one in enumerate(streams):
        if number % 2:
            one.close()
        else:
            one.socket.shutdown(socket.SHUT_WR)
            assert one.until("hello")
            assert one.response.read() == b""

    def status() -> int:
        with EventStream(told.broker) as one:
            return one.status

    eventually("a place is free", status, lambda seen: seen == 200)


def test_who_goes_on_sending_is_cut_off(told: Told) -> None:
    with EventStream(told.broker) as events:
        events.next()
        events.socket.sendall(b"GET /api/broker HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            events.response.read()


def test_one_that_reads_nothing_loses_events_and_is_told_how_many(told: Told) -> None:
    with (
        EventStream(told.broker, type=("SESSION_CREATED",)) as slow,
        EventStream(told.broker, type=("SESSION_CREATED",)) as quick,
    ):
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
        before_bytes = told.broker.memory_bytes
        name = "x" * 8_000
        total = 1000
        for number in range(total):
            with StompSocket(told.broker.port) as client:
                client.connect(client_id=f"{name}{number}")
            assert quick.notification("SESSION_CREATED")["clientID"] == f"{name}{number}"
        assert told.broker.memory_bytes - before_bytes < 40_000_000
        count = lost = 0
        while count + lost < total:
            event = slow.next()
            count += event.kind == "notification"
            lost += event.data["count"] if event.kind == "lost" else 0
        assert lost > 0
        assert count + lost == total


def test_streams_end_when_the_broker_stops(tmp_path: Path) -> None:
    with running(configuration(addresses=ADDRESSES), tmp_path) as broker:
        with EventStream(broker, "queues") as events:
            events.until("state")
            broker.process.send_signal(signal.SIGTERM)
            while events.response.readline():
                pass
        assert broker.process.wait(WAIT_S) == 0


def test_it_takes_the_permissions_of_what_is_watched(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker:
        statuses = {
            who: EventStream(broker, "queues", Authorization=basic(who)).status for who in ("ann", "bob", "eve")
        }
        assert statuses == {"ann": 200, "bob": 200, "eve": 403}
        assert EventStream(broker).status == 401
        with EventStream(broker, Authorization=basic("bob")) as events:
            events.next()
            with StompSocket(broker.port) as client:
                client.connect(login="eve", passcode="eve's secret")
                client.send("SUBSCRIBE", {"id": "1", "destination": "locked"})
                assert client.receive().command == "ERROR"
            denied = events.until("notification", lambda data: data.get("address") == "locked").data
            assert (denied["type"], denied["user"]) == ("SECURITY_PERMISSION_VIOLATION", "eve")
            assert denied["permission"] == "CONSUME"
            with StompSocket(broker.port) as client:
                client.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": "eve", "passcode": "no"})
                assert client.receive().command == "ERROR"
            assert events.notification("SECURITY_AUTHENTICATION_VIOLATION")["user"] == "eve"
            assert EventStream(broker, Authorization=basic("mallory", "guess")).status == 401
            refused = events.notification("SECURITY_AUTHENTICATION_VIOLATION")
            assert (refused["user"], refused["remoteAddress"]) == ("mallory", LOOPBACK)
            assert (refused["reason"], refused["protocol"]) == ("User name or password is invalid", "HTTP")
            assert EventStream(broker).status == 401  # it has shown nothing, so it is asked, and nobody is told
            assert EventStream(broker, Authorization=basic("trudy", "guess")).status == 401
            assert events.notification("SECURITY_AUTHENTICATION_VIOLATION")["user"] == "trudy"
