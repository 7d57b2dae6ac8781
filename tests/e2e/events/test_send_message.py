"""Artemis' ``sendMessage`` in its forms, by Jolokia and by a management message."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.management.beans import BASE, address_bean, execute, queue_bean
from tests.e2e.management.manager import Manager
from tests.e2e.management.told import Told
from tests.kit.client import connected
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e

SHORT: Final = "sendMessage(java.util.Map,int,java.lang.String,boolean,java.lang.String,java.lang.String)"
LONG: Final = f"{SHORT[:-1]},boolean)"


def test_a_text_with_headers(told: Told) -> None:
    number = execute(
        told, queue_bean("orders"), SHORT, {"region": "eu", "n": 5, "yes": True}, 3, "grüße", True, None, None
    )
    assert isinstance(number, str)
    found = told.asked("GET", f"/api/queues/orders/messages/{number}")
    assert (found["body"], found["type"], found["durable"]) == ("grüße", 3, True)
    assert {name: found["headers"][name] for name in ("region", "n", "yes")} == {
        "region": "eu",
        "n": "5",
        "yes": "true",
    }
    assert told.queue("orders")["messageCount"] == 1


def test_bytes_and_an_id(told: Told) -> None:
    body = base64.b64encode(b"\0\1\xff").decode()
    number = execute(told, queue_bean("orders"), LONG, None, 4, body, False, "", "", True)
    found = told.asked("GET", f"/api/queues/orders/messages/{number}")
    assert (found["type"], found["durable"], found["bodySize"], found["body"]) == (4, False, 3, None)
    assert found["headers"]["JMSMessageID"].startswith("ID:")
    assert told.broker.ask("GET", f"/api/queues/orders/messages/{number}/body").body == b"\0\1\xff"


def test_to_an_address(told: Told) -> None:
    number = execute(told, address_bean("orders"), SHORT, {}, 3, "x", True, None, None)
    assert told.asked("GET", f"/api/queues/orders/messages/{number}")["body"] == "x"


def test_by_a_management_message(told: Told) -> None:
    manager = Manager(told.client())
    done, number = manager.ask("queue.orders", "sendMessage", {"a": "b"}, 3, "x", True, None, None)
    assert done
    assert told.asked("GET", f"/api/queues/orders/messages/{number}")["headers"]["a"] == "b"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([{}, 4, "no base64!", True, None, None], "is Base64"),
        (
            [{"destination": "x"}, 3, "x", True, None, None],
            "destination is not a header that a message can be given here",
        ),
        ([{"receipt": "x"}, 3, "x", True, None, None], "receipt is not a header"),
        (["no map", 3, "x", True, None, None], "is not a JSON object"),
        ([{}, "three", "x", True, None, None], "three"),
    ],
)
def test_what_is_refused_is_nowhere(told: Told, arguments: list[object], said: str) -> None:
    answer = told.asked(
        "POST", BASE, {"type": "exec", "mbean": queue_bean("orders"), "operation": SHORT, "arguments": arguments}
    )
    assert answer["status"] != 200
    assert said in answer["error"]
    assert told.queue("orders")["messageCount"] == 0


def test_an_address_without_a_queue(told: Told) -> None:
    """Nobody is told that a message was sent that is nowhere."""
    told.ask("POST", "/api/addresses?address=nobody")
    body = {
        "type": "exec",
        "mbean": address_bean("nobody"),
        "operation": SHORT,
        "arguments": [{}, 3, "x", True, "", ""],
    }
    answer = told.asked("POST", f"{BASE}/", body)
    assert answer["status"] != 200
    assert "nowhere" in answer["error"]


def test_a_copy_that_no_queue_takes_is_no_loss_of_the_message(told: Told) -> None:
    told.ask("POST", "/api/diverts?name=d&address=orders&forwarding-address=nobody")
    number = execute(told, address_bean("orders"), SHORT, {}, 3, "x", True, None, None)
    assert told.asked("GET", f"/api/queues/orders/messages/{number}")["body"] == "x"
    done, number = Manager(told.client()).ask("address.orders", "sendMessage", {}, 3, "y", True, None, None)
    assert done
    assert told.asked("GET", f"/api/queues/orders/messages/{number}")["body"] == "y"


def test_what_its_address_has_had_is_no_message(told: Told) -> None:
    """The answer would be a number that no message has."""
    headers = {"_AMQ_DUPL_ID": "7"}
    execute(told, queue_bean("orders"), SHORT, headers, 3, "x", True, None, None)
    asked = {"type": "exec", "mbean": queue_bean("orders"), "operation": SHORT}
    answer = told.asked("POST", BASE, {**asked, "arguments": [headers, 3, "x", True, None, None]})
    assert answer["status"] != 200
    assert "address orders has had a message with this duplicate id" in answer["error"]
    done, said = Manager(told.client()).ask("queue.orders", "sendMessage", headers, 3, "x", True, None, None)
    assert (done, "has had a message with this duplicate id" in said) == (False, True)
    assert told.queue("orders")["messageCount"] == 1


# ---- who sends ---------------------------------------------------------------------------------------


def test_who_is_named_must_log_in_and_have_the_right(tmp_path: Path) -> None:
    ours = '<security-setting match="jobs"><permission type="send" roles="editors"/></security-setting>'
    with secured_broker(tmp_path, permissions=ours) as broker:
        ann = Manager(connected(broker.port, login="ann", passcode=USERS["ann"]))
        send = partial(ann.ask, "queue.jobs", "sendMessage", {}, 3, "x", True)
        for password in ("a wrong one", "", None):
            done, told = send("ann", password)
            assert not done
            assert "ann" not in told or "secret" not in told
        done, told = send("bob", USERS["bob"])
        assert not done
        assert "permission='SEND' for queue jobs on address jobs" in told
        assert ann.read("queue.jobs", "messageCount") == 0
        assert send("ann", USERS["ann"])[0]
        assert send(None, None)[0]
        assert ann.read("queue.jobs", "messageCount") == 2
        assert not any(secret in broker.said for secret in (*USERS.values(), "a wrong one"))
