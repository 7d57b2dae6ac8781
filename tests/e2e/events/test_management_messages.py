"""Management over STOMP, as Artemis' clients use it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.management.manager import WHERE, Manager
from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.client import StompSocket, connected
from tests.kit.process import configuration, ports_left_out, running, started
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e


@pytest.fixture
def manager(told: Told) -> Manager:
    return Manager(told.client())


def test_attributes_and_operations(told: Told, manager: Manager) -> None:
    told.send("/queue/orders", "xxx")
    assert manager.read("queue.orders", "messageCount") == 3
    assert manager.read("queue.orders", "MessageCount") == 3
    assert manager.ask("queue.orders", "getMessageCount") == (True, 3)
    assert manager.read("address.orders", "queueNames") == ["orders"]
    assert set(manager.read("broker", "queueNames")) >= {"orders", "jobs", "odd / name"}
    assert manager.ask("queue.orders", "pause") == (True, None)
    assert manager.read("queue.orders", "paused") is True
    assert manager.ask("queue.orders", "pause", True) == (True, None)
    assert manager.ask("queue.orders", "resume") == (True, None)
    assert manager.ask("queue.orders", "removeAllMessages") == (True, 3)
    assert manager.ask("queue.odd / name", "getMessageCount") == (True, 0)
    assert manager.ask("broker", "destroyQueue", "orders") == (True, None)
    assert told.ask("GET", "/api/queues/orders")[0] == 404


def test_the_example_on_the_page_of_operations(told: Told, manager: Manager) -> None:
    """A frame as the page shows it."""
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
    lines = page.partition("  ```text\n")[2].partition("  ```\n")[0].replace("\n  ", "\n").strip()
    told.ask("POST", "/api/queues?name=orders.parked&routing-type=ANYCAST")
    for region in ("eu", "us"):
        manager.client.ask("SEND", {"destination": "/queue/orders", "region": region}, b"x")
    manager.client.raw(lines.encode() + b"\0")
    reply = manager.client.message()
    assert (reply.header("_AMQ_OperationSucceeded"), reply.body) == ("true", b"[1]")
    assert (told.queue("orders")["messageCount"], told.queue("orders.parked")["messageCount"]) == (1, 1)


@pytest.mark.parametrize(("operation", "succeeded"), [("pause", "true"), ("explode", "false")])
def test_the_receipt_says_whether_it_succeeded(manager: Manager, operation: str, succeeded: str) -> None:
    """Without a reply-to nothing else does."""
    headers = {"_AMQ_ResourceName": "queue.orders", "_AMQ_OperationName": operation}
    client = manager.client
    client.send("SEND", {"destination": "activemq.management", "receipt": 1, **headers}, b"[]")
    assert f"_AMQ_OperationSucceeded:{succeeded}" in client.expect("RECEIPT").lines
    client.send("SEND", {"destination": "/queue/orders", "receipt": 2}, b"x")
    assert client.expect("RECEIPT").lines == ("receipt-id:2",)


def test_lists_are_json_in_a_text(manager: Manager) -> None:
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": "jobs"})
    done, text = manager.ask("broker", "listQueues", options, 1, 10)
    assert done
    answer = json.loads(text)
    assert (answer["count"], answer["data"][0]["name"], answer["data"][0]["messageCount"]) == (1, "jobs", "0")


WRONG = [
    ("queue.nothing", "pause", (), "AMQ229067: Cannot find resource with name queue.nothing"),
    ("nothing", "pause", (), "AMQ229067: Cannot find resource with name nothing"),
    ("broker.x", "getVersion", (), "AMQ229067: Cannot find resource with name broker.x"),
    ("queue.orders", "nothing", (), "AMQ229069: no operation nothing/0"),
    ("queue.orders", "pause", (1, 2), "AMQ229069: no operation pause/2"),
    ("broker", "listConnections", ("", 1, "x"), 'For input string: "x"'),
    ("broker", "destroyQueue", ("nothing",), "AMQ229017: there is no queue 'nothing'"),
]


def test_what_is_wrong_is_said_in_the_reply(manager: Manager) -> None:
    for resource, operation, arguments, why in WRONG:
        assert manager.ask(resource, operation, *arguments) == (False, why)
    headers = {"_AMQ_ResourceName": "queue.orders", "_AMQ_Attribute": "nothing"}
    assert manager.reply(headers) == (False, "Problem while retrieving attribute nothing")
    assert manager.reply({"_AMQ_ResourceName": "broker"})[0] is False
    assert manager.reply({"_AMQ_OperationName": "pause"})[0] is False
    for body in (b"no json", b'{"a": 1}', b"[" * 60_000, b"\xff"):
        sent = {"destination": WHERE, "reply-to": "/temp-queue/replies", "_AMQ_ResourceName": "broker"}
        manager.client.send("SEND", {**sent, "_AMQ_OperationName": "destroyQueue"}, body)
        reply = manager.client.message()
        assert reply.header("_AMQ_OperationSucceeded") == "false"
        assert "JSON array" in json.loads(reply.body)[0]
    assert manager.ask("queue.orders", "isPaused") == (True, False)


def test_a_reply_names_the_request(manager: Manager) -> None:
    sent = {"destination": WHERE, "reply-to": "/temp-queue/replies", "correlation-id": "17"}
    manager.client.send("SEND", {**sent, "_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Version"})
    reply = manager.client.message()
    assert (reply.header("correlation-id"), reply.header("destination")) == ("17", "/temp-queue/replies")


def test_without_a_reply_to_it_is_done_all_the_same(told: Told) -> None:
    with told.client() as client:
        headers = {"destination": WHERE, "_AMQ_ResourceName": "queue.orders", "_AMQ_OperationName": "pause"}
        client.ask("SEND", headers)
        assert told.queue("orders")["paused"] is True
        client.ask("SEND", {**headers, "_AMQ_OperationName": "nothing"})
        client.ask("SEND", {**headers, "_AMQ_OperationName": "resume", "reply-to": "nobody.reads.this"})
        assert told.queue("orders")["paused"] is False
        assert told.ask("GET", "/api/addresses/nobody.reads.this")[0] == 404


def test_in_a_transaction_it_is_done_at_once_as_in_artemis(told: Told, manager: Manager) -> None:
    client = manager.client
    client.ask("BEGIN", {"transaction": "t"})
    assert manager.ask("queue.orders", "pause", transaction="t") == (True, None)
    assert told.queue("orders")["paused"] is True
    client.ask("ABORT", {"transaction": "t"})
    assert told.queue("orders")["paused"] is True
    client.send("SEND", {"destination": WHERE, "transaction": "none", "_AMQ_ResourceName": "broker"})
    assert "No transaction" in client.expect("ERROR").text


def test_requests_of_a_connection_are_carried_out_in_order(told: Told) -> None:
    """A purge of many messages is done before the SEND behind it."""
    told_count = 30_000
    with told.client() as client:
        for _ in range(told_count):
            client.send("SEND", {"destination": "/queue/orders"}, b"x")
        client.nothing_waits()
        headers = {"destination": WHERE, "_AMQ_ResourceName": "queue.orders", "_AMQ_OperationName": "removeAllMessages"}
        client.send("SEND", headers)
        client.ask("SEND", {"destination": "/queue/orders"}, b"last")
        assert told.queue("orders")["messageCount"] == 1


def test_a_change_that_was_answered_survives_a_crash(tmp_path: Path) -> None:
    text = configuration(folder=tmp_path, addresses=ADDRESSES)
    file = tmp_path / "broker.xml"
    file.write_text(text)
    with started(file) as broker:
        assert Manager(Told(broker).client()).ask("queue.orders", "pause") == (True, None)
        broker.process.send_signal(signal.SIGKILL)
    with running(text, tmp_path) as again:
        assert Told(again).queue("orders")["paused"] is True


def test_changes_are_in_the_audit_log(told: Told, manager: Manager) -> None:
    manager.ask("queue.orders", "pause")
    manager.ask("broker", "destroyQueue", "nothing")
    said = "\n".join(ports_left_out(told.broker.said.splitlines()))
    assert 'AUD-1001 operation=queue.pause queue=orders user="" from=127.0.0.1:PORT result=done' in said
    assert "AUD-1001 operation=destroyQueue queue=nothing" in said


def test_nobody_reads_or_fills_the_address(told: Told) -> None:
    with told.client() as client:
        client.send("SUBSCRIBE", {"id": "1", "destination": WHERE})
        assert "send them there" in client.expect("ERROR").text
    with told.client() as client:
        sent = {"destination": WHERE, "_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Version", "reply-to": WHERE}
        client.send("SEND", sent)
        assert "nobody queues" in client.expect("ERROR").text
    with told.client() as client:
        client.send("SEND", {"destination": WHERE, "_AMQ_ResourceName": "broker"}, b"x" * 70_000)
        assert "at most 65536 bytes" in client.expect("ERROR").text
    assert told.ask("GET", f"/api/addresses/{WHERE}")[0] == 404


@pytest.mark.parametrize("checks", [False, True])
def test_who_may_manage(tmp_path: Path, checks: bool) -> None:
    """``manage`` on the address, and with management-message-rbac what HTTP asks for, too."""
    rbac = f"<management-message-rbac>{str(checks).lower()}</management-message-rbac>"
    with secured_broker(tmp_path, rbac) as broker:
        bob = Manager(connected(broker.port, login="bob", passcode=USERS["bob"]))
        assert bob.ask("queue.locked", "isPaused") == (True, False)
        done, value = bob.ask("queue.locked", "pause")
        assert done is not checks
        assert not checks or "permission='EDIT' on address mops.queue.locked.pause" in value
        ann = Manager(connected(broker.port, login="ann", passcode=USERS["ann"]))
        assert ann.ask("queue.locked", "isPaused") == (True, not checks)
        assert ann.ask("queue.locked", "resume") == (True, None)
        with StompSocket(broker.port) as eve:
            eve.connect(login="eve", passcode="eve's secret")
            eve.send("SEND", {"destination": WHERE, "_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Version"})
            assert "permission='MANAGE' on address activemq.management" in eve.expect("ERROR").text


def test_the_reply_goes_only_where_the_sender_may_send(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="bob", passcode="bob's secret")
        sent = {"destination": WHERE, "_AMQ_ResourceName": "queue.jobs", "_AMQ_OperationName": "pause"}
        client.send("SEND", {**sent, "reply-to": "mops.mine"})
        assert "permission='SEND'" in client.expect("ERROR").text
        assert Manager(connected(broker.port, login="ann", passcode=USERS["ann"])).ask("queue.jobs", "isPaused") == (
            True,
            False,
        )
