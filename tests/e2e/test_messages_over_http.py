"""Messages published and taken with requests, as curl, webhooks and Debezium Server send them."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from tests.kit.client import connected
from tests.kit.http import Reply, ask
from tests.kit.process import (
    HTTP,
    LOOPBACK,
    STOMP,
    SWEPT,
    WAIT_S,
    BrokerProcess,
    configuration,
    eventually,
    for_each_test,
    for_the_module,
    running,
    started,
)
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e
ADDRESSES: Final = """
<address name="orders"><anycast><queue name="orders"/></anycast></address>
<address name="small"><anycast><queue name="small"/></anycast></address>
<address name="blocking"><anycast><queue name="blocking"/></anycast></address>
<address name="dropping"><anycast><queue name="dropping"/></anycast></address>
<address name="ring"><anycast><queue name="ring" ring-size="1"/></anycast></address>
<address name="nothing"><anycast>
<queue name="nothing" overflow-policy="RING" max-depth-messages="0"/></anycast></address>
<address name="both"><multicast><queue name="both.ring" overflow-policy="RING" max-depth-messages="0"/>
<queue name="both.all"/></multicast></address>
<address name="red"><anycast><queue name="red"><filter string="colour = 'red'"/></queue></anycast></address>
<address name="disabled"><anycast><queue name="disabled" enabled="false"/></anycast></address>
<address name="purged"><anycast><queue name="purged" purge-on-no-consumers="true"/></anycast></address>
<address name="taken"><anycast><queue name="taken"/></anycast></address>
<address name="lost"><anycast><queue name="lost"/></anycast></address>
<address name="kept"><anycast><queue name="kept"><filter string="colour = 'red'"/></queue></anycast></address>
<address name="volatile"><anycast><queue name="volatile"><durable>false</durable></queue></anycast></address>
<address name="mixed"><multicast><queue name="mixed.not"><durable>false</durable></queue><queue name="mixed.durable"/>
</multicast></address>
<address name="large"><anycast><queue name="large"/></anycast></address>
<address name="doubled"><anycast><queue name="doubled"/></anycast></address>
<address name="once"><anycast><queue name="once" delivery-semantics="at-most-once"/></anycast></address>
"""
SETTINGS: Final = """
<address-setting match="#"><dead-letter-address>dead</dead-letter-address>
<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources></address-setting>
<address-setting match="small"><max-size-messages>2</max-size-messages>
<address-full-policy>FAIL</address-full-policy></address-setting>
<address-setting match="dropping"><max-size-messages>1</max-size-messages>
<address-full-policy>DROP</address-full-policy></address-setting>
<address-setting match="kept"><send-to-dla-on-no-route>true</send-to-dla-on-no-route></address-setting>
<address-setting match="blocking"><max-size-messages>1</max-size-messages>
<address-full-policy>BLOCK</address-full-policy></address-setting>
"""
DIVERTS: Final = """
<divert name="to-ring"><address>lost</address><forwarding-address>nothing</forwarding-address>
<exclusive>true</exclusive></divert>
<divert name="astray"><address>astray</address><forwarding-address>nobody</forwarding-address>
<exclusive>true</exclusive></divert>
<divert name="to-nobody"><address>large</address><forwarding-address>nobody</forwarding-address></divert>
<divert name="to-small-ring"><address>doubled</address><forwarding-address>ring</forwarding-address></divert>
<divert name="to-orders"><address>taken</address><forwarding-address>orders</forwarding-address>
<exclusive>true</exclusive></divert>
"""
LARGE_BYTES: Final = 100_000
HTTP_WITH_LIMITS: Final = f"{HTTP};stompMinLargeMessageSize={LARGE_BYTES};maxBodyBytes=3000000"


def publish(broker: BrokerProcess, body: bytes, path: str = "/messages/orders", **headers: str) -> Reply:
    reply = broker.ask("POST", path, body, **headers)
    assert reply.status == 200, reply.body
    return reply


def take(broker: BrokerProcess, path: str = "/messages/orders/take") -> dict[str, Any]:
    reply = broker.ask("POST", path, accept="application/json")
    assert reply.status == 200, reply.body
    return dict(reply.json)


_configuration = partial(
    configuration,
    {"stomp": STOMP, "http": HTTP_WITH_LIMITS},
    core=f"{SWEPT}<diverts>{DIVERTS}</diverts>",
    addresses=ADDRESSES,
    settings=SETTINGS,
)


web = for_each_test(lambda folder: running(_configuration(), folder))
unmoved = for_the_module(lambda folder: running(_configuration(), folder))
"""A broker for requests that change nothing."""


# ---- publish ---------------------------------------------------------------------------------------


def stomp_message(web: BrokerProcess, queue: str = "orders") -> tuple[dict[str, str], bytes]:
    """What a STOMP consumer gets."""
    with connected(web.port) as client:
        client.subscribe(f"/queue/{queue}", ack="auto")
        found = client.message()
        return found.headers, found.body


def test_a_message_has_what_the_request_says(web: BrokerProcess) -> None:
    path = "/api/messages/orders?priority=7&correlation-id=c%3A1&header=orderType%3A%20new&persistent=false&keep=x-git*"
    reply = publish(web,
        b"{}", path, Content_Type="application/json", Artemis_Colour="red", Artemis_JMSXGroupID="g",
        X_Git_Event="push", X_Other="no", traceparent="00-1-2-01", Cookie="secret=1",
    )  # fmt: skip
    answer = json.loads(reply.body)
    assert answer.pop("messageID") > 0
    assert answer == {
        "address": "orders", "routed": True, "duplicate": False, "queues": 1, "dropped": 0, "persistent": False,
        "size": 2,
    }  # fmt: skip
    headers, body = stomp_message(web)
    assert body == b"{}"
    wanted = {
        "priority": "7", "correlation-id": "c:1", "orderType": "new", "persistent": "false", "x-git-event": "push",
        "content-type": "application/json", "colour": "red", "JMSXGroupID": "g", "traceparent": "00-1-2-01",
    }  # fmt: skip
    assert {name: headers.get(name) for name in wanted} == wanted
    assert not {"x-other", "cookie", "host", "authorization"} & {name.lower() for name in headers}


def test_a_binary_event_is_taken_once(web: BrokerProcess) -> None:
    """A retried request is confirmed and changes nothing; the same id of another source is another event."""
    event = {"ce_specversion": "1.0", "ce_id": "41", "ce_source": "/shop", "ce_type": "order.created"}
    for _ in range(3):
        publish(web, b"{}", Content_Type="application/json", **event)
    publish(web, b"{}", Content_Type="application/json", **{**event, "ce_source": "/other"})
    assert web.count("orders") == 2
    headers, _ = stomp_message(web)
    assert {name: value for name, value in headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0", "ce-id": "41", "ce-source": "/shop", "ce-type": "order.created",
    }  # fmt: skip


def test_an_idempotency_key_is_a_duplicate_id(web: BrokerProcess) -> None:
    for _ in range(2):
        publish(web, b"x", Idempotency_Key='"key-1"')
    for _ in range(2):
        publish(web, b"x", "/messages/orders?duplicate-id=key-2")
    assert web.count("orders") == 2


def test_a_structured_event_is_kept_as_it_is(web: BrokerProcess) -> None:
    body = json.dumps(
        {"specversion": "1.0", "id": "9", "source": "/s", "type": "t", "n": 5, "yes": True, "data": {"a": "b"}}
    ).encode()
    for _ in range(2):
        publish(web, body, Content_Type="application/cloudevents+json; charset=utf-8")
    assert web.count("orders") == 1
    headers, got = stomp_message(web)
    assert got == body
    assert (headers["ce-id"], headers["ce-type"], headers["ce-n"], headers["ce-yes"]) == ("9", "t", "5", "true")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "is not JSON"),
        (b"[]", "a structured CloudEvent is a JSON object"),
        (b'{"specversion":"1.0","id":"1","source":"/s"}', "type is missing"),
        (b'{"specversion":"1.0","id":7,"source":"/s","type":"t"}', "id is missing, or no text"),
    ],
)
def test_a_wrong_structured_event_is_refused(unmoved: BrokerProcess, body: bytes, said: str) -> None:
    reply = unmoved.ask("POST", "/messages/orders", body, Content_Type="application/cloudevents+json")
    assert reply.status == 400
    assert said in reply.error


def test_a_scheduled_message_waits(web: BrokerProcess) -> None:
    publish(web, b"later", "/messages/orders?delay=3000")
    assert web.ask("POST", "/messages/orders/take").status == 204
    assert web.ask("POST", "/messages/orders/take?timeout=50").body == b"later"


def test_a_routing_type_makes_a_queue(web: BrokerProcess) -> None:
    reply = web.ask("POST", "/messages/new.topic", b"x")
    assert (reply.status, json.loads(reply.body)["routed"]) == (409, False)
    assert "address new.topic has no queue that would take it" in reply.error
    assert "routing-type=ANYCAST" in reply.error
    assert publish(web, b"x", "/messages/new.queue?routing-type=ANYCAST").json["routed"] is True
    assert take(web, "/messages/new.queue/take")["body"] == "x"


@pytest.mark.parametrize(
    ("path", "headers", "said"),
    [
        ("?prority=1", {}, "there is no argument 'prority'"),
        ("?priority=12", {}, "priority must be 0 to 9"),
        ("?priority=1&priority=2", {}, "priority was given 2 times"),
        ("?expires=soon", {}, "expires is not a number"),
        ("?header=nocolon", {}, "header is NAME:VALUE"),
        ("?header=destination:other", {}, "the header 'destination' is the broker's own"),
        ("", {"Artemis_Message_Id": "7"}, "the header 'message-id' is the broker's own"),
        ("?reply-to=/temp-queue/x", {}, "/temp-… belongs to a connection of STOMP"),
        ("?routing-type=BOTH", {}, "destination-type must be ANYCAST or MULTICAST"),
    ],
)
def test_what_makes_no_sense_is_refused(unmoved: BrokerProcess, path: str, headers: dict[str, str], said: str) -> None:
    reply = unmoved.ask("POST", f"/messages/orders{path}", b"x", **headers)
    assert (reply.status, said in reply.error) == (400, True), reply.body
    assert unmoved.count("orders") == 0


def test_a_full_address_answers_at_once(web: BrokerProcess) -> None:
    """And blocks nobody: FAIL and BLOCK are the same for a client that can try again."""
    for queue, room in (("small", 2), ("blocking", 1)):
        for _ in range(room):
            publish(web, b"x", f"/messages/{queue}")
        reply = web.ask("POST", f"/messages/{queue}", b"x")
        assert (reply.status, reply.headers["Retry-After"]) == (429, "1")
        assert reply.error == f"Address {queue} is full"
        stomp_message(web, queue)
        publish(web, b"x", f"/messages/{queue}")


@pytest.mark.parametrize("persistent", ["true", "false"])
@pytest.mark.parametrize("body", [b"x", b"x" * LARGE_BYTES], ids=["small", "large"])
@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("dropping", 429, "address dropping is full, and drops messages"),
        ("nothing", 429, "queue nothing dropped it at once"),
        ("lost", 429, "queue nothing dropped it at once"),
        ("astray", 409, "a divert took it, and address nobody has no queue that would take it; the message is nowhere"),
        ("red", 409, "queue red has a filter that does not match it; the message is nowhere"),
        ("disabled", 409, "queue disabled is disabled; the message is nowhere"),
        ("red::red", 409, "queue red has a filter that does not match it"),
        ("purged", 409, "queue purged has no consumer, and keeps nothing without one (purge-on-no-consumers); "),
        ("temp-queue.0123456789abcdef0123456789abcdef.x", 409, "a temporary destination whose client has gone; "),
        ("dead", 409, "address dead has no queue that would take it; the message is nowhere; create a queue first"),
    ],
)
def test_what_is_nowhere_is_not_answered_with_2xx(
    unmoved: BrokerProcess, name: str, status: int, said: str, body: bytes, persistent: str
) -> None:
    """Whatever has lost it: a policy, a ring, a filter; also behind a divert."""
    while name == "dropping" and unmoved.count(name) < 1:
        publish(unmoved, b"first", f"/messages/{name}")
    reply = unmoved.ask("POST", f"/messages/{name}?persistent={persistent}", body)
    assert (reply.status, json.loads(reply.body)["routed"]) == (status, False), reply.body
    assert said in reply.error
    assert "the message is nowhere" in reply.error
    assert reply.headers["Retry-After"] == ("1" if status == 429 else None)


def test_an_answer_counts_the_queues_that_have_the_message(web: BrokerProcess) -> None:
    """With those behind a divert, and without those that dropped it at once."""
    wanted = {"both": (1, 1), "taken": (1, 0), "ring": (1, 0), "orders": (1, 0)}
    for name, (queues, dropped) in wanted.items():
        found = publish(web, b"x", f"/messages/{name}").json
        assert (found["queues"], found["dropped"], found["routed"]) == (queues, dropped, True), name
    assert publish(web, b"newer", "/messages/ring").json["queues"] == 1
    assert take(web, "/messages/ring/take")["body"] == "newer"
    assert (web.count("both.all"), web.count("both.ring"), web.count("orders")) == (1, 0, 2)


def test_a_copy_that_gets_lost_changes_nothing_for_its_original(web: BrokerProcess) -> None:
    """No queue takes it, or its ring drops it, or its address has had its duplicate id."""
    publish(web, b"important", "/messages/ring?priority=9&duplicate-id=1")
    for name, dropped in (("large", 0), ("doubled", 1)):
        found = publish(web, b"x", f"/messages/{name}?priority=0").json
        assert (found["routed"], found["queues"], found["dropped"]) == (True, 1, dropped), name
    found = publish(web, b"x", "/messages/doubled?duplicate-id=1").json
    assert (found["routed"], found["queues"], found["duplicate"], found["messageID"] > 0) == (True, 1, False, True)
    assert (web.count("large"), web.count("doubled"), web.count("ring")) == (1, 2, 1)


def test_a_message_of_low_priority_does_not_enter_a_full_ring(web: BrokerProcess) -> None:
    publish(web, b"important", "/messages/ring?priority=9")
    assert web.ask("POST", "/messages/ring?priority=0", b"x").status == 429
    assert take(web, "/messages/ring/take")["body"] == "important"


def test_without_a_route_it_may_be_at_the_dead_letter_address(web: BrokerProcess) -> None:
    found = publish(web, b"x", "/messages/kept").json
    assert (found["routed"], found["queues"]) == (False, 1)
    assert web.count("DLQ.kept") == 1


def test_what_was_not_kept_may_be_published_again_under_its_id(web: BrokerProcess) -> None:
    """Its duplicate id is not remembered: the second request must not be confirmed for a message that is nowhere."""
    for _ in range(2):
        assert web.ask("POST", "/messages/red", b"x", Idempotency_Key="1").status == 409
        assert web.ask("POST", "/messages/nothing", b"x", Idempotency_Key="1").status == 429
        assert web.ask("POST", "/messages/lost", b"x", Idempotency_Key="1").status == 429
        assert web.ask("POST", "/messages/astray", b"x", Idempotency_Key="1").status == 409
    assert web.ask("POST", "/api/queues?name=far&address=nobody").status < 300
    assert publish(web, b"x", "/messages/astray", Idempotency_Key="1").json["queues"] == 1
    assert publish(web, b"x", "/messages/astray", Idempotency_Key="1").json["duplicate"] is True
    assert publish(web, b"x", "/messages/red?header=colour:red", Idempotency_Key="1").json["queues"] == 1
    found = publish(web, b"x", "/messages/red?header=colour:red", Idempotency_Key="1").json
    assert (found["duplicate"], found["queues"]) == (True, 0)
    assert web.count("red") == 1


def test_a_batch_of_events_is_refused(unmoved: BrokerProcess) -> None:
    reply = unmoved.ask("POST", "/messages/orders", b"[]", Content_Type="application/cloudevents-batch+json")
    assert (reply.status, "publish each event by itself" in reply.error) == (400, True)


# ---- the address of management -----------------------------------------------------------------------


def _managed(web: BrokerProcess, resource: str, operation: str, body: bytes, kind: str = "OperationName") -> Reply:
    query = f"header=_AMQ_ResourceName:{resource}&header=_AMQ_{kind}:{operation}"
    return web.ask("POST", f"/messages/activemq.management?{query}", body)


def test_a_management_message_is_answered_with_its_result(web: BrokerProcess) -> None:
    """And a failure is none of 2xx: a request has no other place where it would be told."""
    publish(web, b"x")
    reply = _managed(web, "queue.orders", "countMessages", b"[]")
    assert (reply.status, json.loads(reply.body)) == (200, {"address": "activemq.management", "result": 1})
    reply = _managed(web, "queue.orders", "messageCount", b"", "Attribute")
    assert json.loads(reply.body)["result"] == 1
    assert json.loads(_managed(web, "queue.orders", "moveMessage", b'[7, "red"]').body)["result"] is False
    assert json.loads(_managed(web, "queue.orders", "pause", b"[]").body)["result"] is None


@pytest.mark.parametrize(
    ("resource", "operation", "body", "status", "said"),
    [
        ("queue.orders", "explode", b"[]", 400, "no operation explode/0"),
        ("queue.nowhere", "countMessages", b"[]", 400, "Cannot find resource"),
        ("queue.orders", "countMessages", b"{", 400, "not a JSON array"),
        ("broker", "destroyQueue", b'["nowhere"]', 409, "nowhere"),
        ("address.orders", "sendMessage", b"[]", 400, "no operation sendMessage/0"),
        ("queue.orders", "countMessages", b" " * 70_000, 400, "at most 65536 bytes"),
        ("queue.orders", "countMessages", b" " * 200_000, 400, "at most 65536 bytes"),
    ],
)
def test_a_management_message_that_fails_is_an_error(
    unmoved: BrokerProcess, resource: str, operation: str, body: bytes, status: int, said: str
) -> None:
    reply = _managed(unmoved, resource, operation, body)
    assert reply.status == status, reply.body
    assert said in reply.error


def test_a_large_body_goes_to_a_file_and_comes_back(web: BrokerProcess) -> None:
    body = os.urandom(2_000_000)
    publish(web, body, Content_Type="image/x")
    reply = web.ask("POST", "/messages/orders/take", accept="application/json")
    assert (reply.headers["Content-Type"], reply.body == body) == ("image/x", True)
    assert web.ask("DELETE", reply.headers["Location"]).status == 204
    eventually("no body", lambda: web.metric("artemis_large_messages"), lambda seen: seen == 0)


def test_a_body_over_the_limit_is_refused(unmoved: BrokerProcess) -> None:
    with socket.create_connection((LOOPBACK, unmoved.ports["http"]), WAIT_S) as link:
        link.sendall(b"POST /messages/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000001\r\n\r\n")
        answer = link.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 "), answer
    assert b"at most 3000000 bytes are allowed (maxBodyBytes of the acceptor)" in answer


def test_other_requests_keep_their_small_limit(unmoved: BrokerProcess) -> None:
    with socket.create_connection((LOOPBACK, unmoved.ports["http"]), WAIT_S) as link:
        link.sendall(b"POST /api/queues/orders/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n")
        assert link.makefile("rb").read().startswith(b"HTTP/1.1 413 ")


# ---- take ------------------------------------------------------------------------------------------


def test_a_message_is_taken_and_acknowledged(web: BrokerProcess) -> None:
    publish(web, b"one", Content_Type="text/plain", Artemis_Colour="red")
    reply = web.ask("POST", "/messages/orders/take")
    assert (reply.status, reply.body, reply.headers["Content-Type"]) == (200, b"one", "text/plain")
    assert (reply.headers["Artemis-Queue"], reply.headers["Artemis-Colour"]) == ("orders", "red")
    assert web.ask("POST", "/messages/orders/take").status == 204
    assert web.count("orders") == 1
    place = f"/messages/orders/{reply.headers['Artemis-Receipt']}"
    assert web.ask("DELETE", place).status == 204
    assert web.count("orders") == 0
    again = web.ask("DELETE", place)
    assert (again.status, "with this receipt" in again.error) == (404, True)


def test_a_message_given_back_is_delivered_again(web: BrokerProcess) -> None:
    publish(web, b"one")
    first = take(web)
    assert (first["deliveryCount"], first["body"]) == (1, "one")
    assert web.ask("POST", f"/messages/orders/{first['receipt']}/nack").status == 204
    assert take(web)["deliveryCount"] == 2


def test_a_lease_ends(web: BrokerProcess) -> None:
    publish(web, b"one")
    first = take(web, "/messages/orders/take?lease=0.2")
    second = take(web, "/messages/orders/take?timeout=50")
    assert (second["messageID"], second["deliveryCount"]) == (first["messageID"], 2)
    assert web.ask("DELETE", f"/messages/orders/{first['receipt']}").status == 404
    assert web.ask("DELETE", f"/messages/orders/{second['receipt']}").status == 204


def test_a_request_waits_for_a_message(web: BrokerProcess) -> None:
    found: list[Reply] = []
    thread = threading.Thread(target=lambda: found.append(web.ask("POST", "/messages/orders/take?timeout=50&ack=auto")))
    thread.start()
    web.await_metric(1, "artemis_consumer_count", queue="orders")
    publish(web, b"now")
    thread.join(WAIT_S)
    assert (found[0].body, found[0].headers["Artemis-Receipt"]) == (b"now", None)
    assert web.count("orders") == 0
    web.await_metric(0, "artemis_consumer_count", queue="orders")


def test_a_client_that_left_loses_nothing(web: BrokerProcess) -> None:
    """Even if its message would have been acknowledged when it was sent."""
    with socket.create_connection((LOOPBACK, web.ports["http"]), WAIT_S) as link:
        link.sendall(
            b"POST /messages/orders/take?timeout=50&ack=auto HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        )
        web.await_metric(1, "artemis_consumer_count", queue="orders")
    publish(web, b"kept")
    assert take(web, "/messages/orders/take?timeout=50")["body"] == "kept"


def test_what_clients_that_left_never_got_was_never_delivered(web: BrokerProcess) -> None:
    request = b"POST /messages/orders/take?timeout=50 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    links = [socket.create_connection((LOOPBACK, web.ports["http"]), WAIT_S) for _ in range(8)]
    for link in links:
        link.sendall(request)
    web.await_metric(8, "artemis_consumer_count", queue="orders")
    for link in links:
        link.close()
    publish(web, b"kept")
    taken = take(web, "/messages/orders/take?timeout=50")
    assert (taken["body"], taken["deliveryCount"]) == ("kept", 1)


def test_a_selector_chooses(web: BrokerProcess) -> None:
    publish(web, b"1", Artemis_Colour="red")
    publish(web, b"2", Artemis_Colour="blue")
    assert take(web, "/messages/orders/take?selector=colour%3D'blue'")["body"] == "2"
    reply = web.ask("POST", "/messages/orders/take?selector=%3D")
    assert (reply.status, "selector" in reply.error) == (400, True)


def test_bytes_are_base64_in_json(web: BrokerProcess) -> None:
    publish(web, b"\xff\x00")
    assert base64.b64decode(take(web)["bodyBase64"]) == b"\xff\x00"


def test_a_queue_that_settles_at_once(web: BrokerProcess) -> None:
    publish(web, b"gone", "/messages/once")
    assert take(web, "/messages/once/take")["body"] == "gone"
    assert web.count("once") == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("POST", "/messages/order/take", 404, "there is no queue 'order'; did you mean orders?"),
        ("POST", "/messages/orders/take?timeout=99", 400, "timeout must be a number of seconds from 0 to 50, not '99'"),
        ("POST", "/messages/orders/take?timeout=nan", 400, "timeout must be a number"),
        ("POST", "/messages/orders/take?lease=0", 400, "a lease of 0 s is over"),
        ("POST", "/messages/orders/take?ack=never", 400, "ack must be client or auto"),
        ("DELETE", "/messages/orders/none", 404, "with this receipt"),
        ("POST", "/messages/orders/none/nack", 404, "with this receipt"),
    ],
)
def test_what_cannot_be_taken(unmoved: BrokerProcess, method: str, path: str, status: int, said: str) -> None:
    reply = unmoved.ask(method, path)
    assert (reply.status, said in reply.error) == (status, True), reply.body


def test_a_look_takes_nothing(web: BrokerProcess) -> None:
    """HEAD, a link in a browser, and the picture of a page, which says nothing of itself over plain http."""
    publish(web, b"x")
    navigated = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document", "Sec_Fetch_Site": "cross-site"}
    for path in ("/messages/orders?ack=auto", "/api/messages/orders", "/messages/orders/take?ack=auto"):
        looks: list[tuple[str, dict[str, Any]]]
        looks = [("HEAD", {}), ("GET", {}), ("GET", navigated), ("GET", {"accept": "image/*"})]
        for method, headers in looks:
            reply = web.ask(method, path, **headers)
            assert (reply.status, reply.headers["Allow"]) == (405, "POST")
    advice = web.ask("GET", "/messages/orders").error
    assert "POST /messages/orders/take, or look at the queue with GET /api/queues/orders/messages" in advice
    assert web.metric("artemis_delivering_message_count", queue="orders") == 0
    assert web.count("orders") == 1


def test_the_form_of_another_page_does_nothing(web: BrokerProcess) -> None:
    """A browser names the page in each POST, whatever its type and scheme. Here nobody logs in; elsewhere it would send
    what it remembers of a login, and the answer is the same.
    """
    publish(web, b"x")
    taken = take(web)
    changes = ["/messages/orders", "/messages/orders/take?ack=auto", f"/messages/orders/{taken['receipt']}/nack",
               "/api/queues/orders/purge", "/api/queues", "/jolokia", "/console/jolokia/"]  # fmt: skip
    types = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    origins = ("http://evil.example", "null", "http://localhost:3000")
    logins: tuple[dict[str, str], ...] = ({}, {"Authorization": basic("ann")})
    for path, type, origin, login in itertools.product(changes, types, origins, logins):
        reply = web.ask("POST", path, b'{"type": "list"}', Origin=origin, Content_Type=type, **login)
        assert reply.status == 403, (path, type, origin)
    assert web.count("orders") == 1
    assert web.ask("DELETE", f"/messages/orders/{taken['receipt']}").status == 204


def test_answers_are_as_described(web: BrokerProcess) -> None:
    described = json.loads(web.ask("GET", "/api/openapi.json").body)["paths"]
    sent = publish(web, b"x").json
    jsonschema.validate(
        sent, described["/api/messages/{name}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    )
    schema = described["/api/messages/{name}/take"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(take(web), schema)


# ---- recorded requests -----------------------------------------------------------------------------

DEBEZIUM: Final = (
    b"POST /messages/orders HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: 36\r\n"
    b"User-Agent: Java-http-client/21.0.4\r\ncontent-type: application/json\r\nX-DEBEZIUM-__OP: Yw==\r\n"
    b"X-DEBEZIUM-ID: NDI=\r\n\r\n"
    b'{"before":null,"after":{"id":42} }  '
)
DEBEZIUM_EVENT: Final = json.dumps(
    {
        "id": "name:shop;lsn:29274832;txId:565;ts_ms:1795641564041;snapshot:false",
        "source": "/debezium/postgresql/shop",
        "specversion": "1.0", "type": "io.debezium.connector.postgresql.DataChangeEvent", "datacontenttype":
        "application/json", "iodebeziumop": "c", "data": {"payload": {"after": {"id": 42}}},
    }
).encode()  # fmt: skip
GITHUB: Final = (
    b"POST /messages/orders?keep=x-github-*&keep=x-hub-signature-256 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
    b"User-Agent: GitHub-Hookshot/b0d1f5b\r\nX-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\r\n"
    b"X-GitHub-Event: ping\r\nX-Hub-Signature-256: sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06\r\n"
    b"Content-Type: application/json\r\nContent-Length: 17\r\n\r\n"
    b'{"zen":"Be kind"}'
)
KNATIVE: Final = (
    b"POST /messages/orders HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 15\r\n"
    b"Ce-Id: 8b25bd2d\r\nCe-Source: /apis/v1/pings\r\nCe-Specversion: 1.0\r\nCe-Time: 2026-01-31T20:00:00Z\r\n"
    b"Ce-Type: dev.knative.sources.ping\r\nContent-Type: application/json\r\nPrefer: reply\r\n"
    b"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nAccept-Encoding: gzip\r\n\r\n"
    b'{"message":"x"}'
)
CURL: Final = (
    b"POST /messages/orders HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n"
    b"Content-Length: 5\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nhello"
)


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        (DEBEZIUM, {"X-DEBEZIUM-__OP": "Yw==", "X-DEBEZIUM-ID": "NDI=", "content-type": "application/json"}),
        (GITHUB, {"x-github-event": "ping", "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958"}),
        (KNATIVE, {"ce-type": "dev.knative.sources.ping", "_AMQ_DUPL_ID": "/apis/v1/pings 8b25bd2d",
                   "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
        (CURL, {"persistent": "true"}),
    ],
    ids=["debezium", "github", "knative", "curl"],
)  # fmt: skip
def test_a_recorded_request(web: BrokerProcess, recorded: bytes, wanted: dict[str, str]) -> None:
    with socket.create_connection((LOOPBACK, web.ports["http"]), WAIT_S) as link:
        link.sendall(recorded)
        assert link.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
    headers, body = stomp_message(web)
    assert body == recorded.partition(b"\r\n\r\n")[2]
    assert {name: headers.get(name) for name in wanted} == wanted


def test_debezium_retries_without_doubles(web: BrokerProcess) -> None:
    """The sink sends again what was not answered; the offset moves on after a 2xx."""
    for _ in range(5):
        publish(web, DEBEZIUM_EVENT, Content_Type="application/cloudevents+json")
    assert web.count("orders") == 1


# ---- permissions -----------------------------------------------------------------------------------


def test_permissions_are_those_of_the_address(tmp_path: Path) -> None:
    """Not those of management: eve may send and consume, and see nothing else."""
    with secured_broker(tmp_path) as broker:
        port = broker.ports["http"]
        assert ask(port, "POST", "/messages/jobs", b"x").status == 401
        assert ask(port, "POST", "/messages/jobs", b"x", Authorization=basic("eve", "wrong")).status == 401
        eve, ann = basic("eve"), basic("ann")
        assert ask(port, "POST", "/messages/jobs", b"x", Authorization=eve).status == 200
        taken = ask(port, "POST", "/messages/jobs/take", Authorization=eve)
        assert taken.answer == (200, b"x")
        place = taken.headers["Location"]
        assert ask(port, "DELETE", place, Authorization=ann).status == 404
        assert ask(port, "DELETE", place, Authorization=eve).status == 204
        assert ask(port, "POST", "/messages/locked", b"x", Authorization=eve).status == 200
        refused = ask(port, "POST", "/messages/locked/take", Authorization=eve)
        assert (refused.status, "permission='CONSUME'" in refused.error) == (403, True)
        assert ask(port, "POST", "/messages/none.such/take", Authorization=eve).status == 404
        assert ask(port, "POST", "/messages/locked/take", Authorization=ann).body == b"x"
        refused = ask(port, "POST", "/messages/mops.broker", b"x", Authorization=eve)
        assert (refused.status, "does not have permission" in refused.error) == (403, True)


# ---- kill -9 ---------------------------------------------------------------------------------------


def test_persistent_is_what_a_restart_finds(tmp_path: Path) -> None:
    """A durable queue has it, also behind a divert, or beside others."""
    wanted = {"small": True, "taken": True, "volatile": False, "mixed": True, "mixed::mixed.not": False}
    queues = {"small": 1, "orders": 2, "volatile": 0, "mixed.durable": 1, "mixed.not": 0}
    file = tmp_path / "broker.xml"
    file.write_text(_configuration(folder=tmp_path), "utf-8")
    with started(file) as broker:
        for name, persistent in wanted.items():
            assert publish(broker, b"x", f"/messages/{name}").json["persistent"] is persistent, name
        assert publish(broker, b"x", "/messages/orders?persistent=false").json["persistent"] is False
        for is_repeated in (False, True):
            found = publish(broker, b"x", "/messages/orders?duplicate-id=9").json
            assert (found["duplicate"], found["persistent"]) == (is_repeated, not is_repeated)
        broker.kill()
    with started(file) as broker:
        assert {name: broker.count(name) for name in queues} == queues


def test_without_a_journal_no_message_is_persistent(web: BrokerProcess) -> None:
    assert publish(web, b"x").json["persistent"] is False


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    """Small and large ones, and acknowledgements; what was not sent whole is nowhere."""
    file = tmp_path / "broker.xml"
    file.write_text(_configuration(folder=tmp_path), "utf-8")
    with started(file) as broker:
        large = os.urandom(LARGE_BYTES * 3)
        confirmed: list[int] = []

        def send_on() -> None:
            for number in range(100_000):
                try:
                    reply = broker.ask("POST", "/messages/orders", b"%d" % number)
                except (OSError, http.client.HTTPException):
                    return
                if reply.status == 200:
                    confirmed.append(number)

        publish(broker, b"to be acknowledged")
        assert broker.ask("DELETE", broker.ask("POST", "/messages/orders/take").headers["Location"]).status == 204
        publish(broker, large, "/messages/small")
        unfinished = socket.create_connection((LOOPBACK, broker.ports["http"]), WAIT_S)
        unfinished.sendall(b"POST /messages/blocking HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        sender = threading.Thread(target=send_on)
        sender.start()
        eventually("some are confirmed", lambda: len(confirmed), lambda seen: seen > 30)
        broker.kill()
        sender.join(WAIT_S)
        unfinished.close()
    with started(file) as broker:
        count = broker.count("orders")
        assert len(confirmed) <= count <= len(confirmed) + 1
        with connected(broker.port) as client:
            client.subscribe("/queue/orders", ack="auto")
            found = [client.message().body for _ in range(count)]
        assert [b"%d" % number for number in confirmed] == found[: len(confirmed)]
        assert broker.ask("POST", "/messages/small/take").body == large
        assert broker.count("blocking") == 0
