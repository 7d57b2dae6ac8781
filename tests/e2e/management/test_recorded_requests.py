"""What KEDA, the operator of Kubernetes and Telegraf send, byte by byte, and what each needs of the answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.management.told import Told
from tests.kit.client import connected
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e
_LOGIN: Final = basic("ann")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with users; its name is ``secured``."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as one:
        with connected(one.port, login="ann", passcode=USERS["ann"]) as client:
            for _ in range(3):
                client.ask("SEND", {"destination": "jobs"}, b"x")
        yield one


def said_to(port: int, head: str, body: str = "") -> tuple[int, Any]:
    """Status and JSON of the answer to these bytes; lines of the head end as those of HTTP."""
    lines = head.strip().replace("PORT", str(port)).splitlines()
    if body:
        lines.append(f"Content-Length: {len(body.encode())}")
    data = "\r\n".join([*lines, "Connection: close", "", body]).encode()
    with socket.create_connection((LOOPBACK, port), timeout=WAIT_S) as client:
        client.sendall(data)
        answer = HTTPResponse(client)
        answer.begin()
        text = answer.read()
    return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()


# ---- KEDA ------------------------------------------------------------------------------------------

KEDA: Final = (
    "GET /console/jolokia/read/org.apache.activemq.artemis:broker=%22secured%22,component=addresses,"
    "address=%22{0}%22,subcomponent=queues,routing-type=%22anycast%22,queue=%22{0}%22/MessageCount HTTP/1.1\n"
    "Host: 127.0.0.1:PORT\nUser-Agent: Go-http-client/1.1\n{1}Origin: http://127.0.0.1:PORT\nAccept-Encoding: gzip\n"
)


def test_the_scaler_of_keda_reads_the_depth_of_a_queue(broker: BrokerProcess) -> None:
    status, answer = said_to(broker.ports["http"], KEDA.format("jobs", f"Authorization: {_LOGIN}\n"))
    assert status == 200
    assert (answer["value"], answer["status"]) == (3, 200)
    assert isinstance(answer["timestamp"], int)
    assert answer["timestamp"] > 1_700_000_000


def test_the_scaler_of_keda_hears_of_a_wrong_name_and_a_wrong_login(broker: BrokerProcess) -> None:
    status, answer = said_to(broker.ports["http"], KEDA.format("job", f"Authorization: {_LOGIN}\n"))
    assert (status, answer["status"]) == (200, 404)
    assert answer["error_type"] == "javax.management.InstanceNotFoundException"
    assert said_to(broker.ports["http"], KEDA.format("jobs", ""))[0] == 401
    assert said_to(broker.ports["http"], KEDA.format("jobs", f"Authorization: {basic('ann', 'no')}\n"))[0] == 401


# ---- the operator ----------------------------------------------------------------------------------

_HEAD: Final = (
    "{} /console/jolokia/{}/org.apache.activemq.artemis:broker=%22secured%22{} HTTP/1.1\nHost: 127.0.0.1:PORT\n"
    f"User-Agent: arkmq-org-broker-management\nAuthorization: {_LOGIN}\nContent-Type: application/json\n"
    "Accept-Encoding: gzip\n"
)
_EXEC: Final = (
    '{{ "type":"EXEC","mbean":"org.apache.activemq.artemis:broker=\\"secured\\"","operation":"{}","arguments":[{}] }}'
)


@pytest.mark.parametrize("attribute", ["Uptime", "Status", "TotalMessageCount"])
def test_the_operator_reads(broker: BrokerProcess, attribute: str) -> None:
    status, answer = said_to(broker.ports["http"], _HEAD.format("GET", "read", f"/{attribute}"))
    assert (status, answer["status"]) == (200, 200)
    if attribute == "Status":
        state = json.loads(answer["value"])
        assert state["server"]["state"] == "STARTED"
        assert state["server"]["jaas"]["properties"] == {}
        assert state["configuration"]["properties"] == {}
    elif attribute == "TotalMessageCount":
        assert answer["value"] == 3
    else:
        assert "second" in answer["value"] or "minute" in answer["value"]


@pytest.mark.parametrize(
    ("operation", "arguments", "status", "said"),
    [
        ("listBindingsForAddress(java.lang.String)", '"jobs"', 200, "jobs"),
        ("listBindingsForAddress(java.lang.String)", '"none"', 404, "there is no address 'none'"),
        ("createQueue(java.lang.String,java.lang.String,java.lang.String)", '"fresh","fresh","ANYCAST"', 200, None),
        (
            "createQueue(java.lang.String,java.lang.String,java.lang.String)",
            '"jobs","jobs","ANYCAST"',
            500,
            "AMQ229019",
        ),
        ("createAddress(java.lang.String,java.lang.String)", '"jobs","ANYCAST"', 500, "AMQ229204"),
        ("deleteAddress(java.lang.String)", '"none"', 404, "there is no address"),
        ("destroyQueue(java.lang.String)", '"none"', 500, "AMQ229017"),
        ("destroyQueue(java.lang.String)", '"locked"', 200, None),
        ("forceFailover()", "", 400, "No operation forceFailover() found on MBean"),
        ("scaleDown(java.lang.String)", "null", 400, "No operation scaleDown(java.lang.String) found on MBean"),
    ],
)
def test_the_operator_executes(
    broker: BrokerProcess, operation: str, arguments: str, status: int, said: str | None
) -> None:
    found, answer = said_to(broker.ports["http"], _HEAD.format("POST", "exec", ""), _EXEC.format(operation, arguments))
    assert (found, answer["status"]) == (200, status)
    if status == 200:
        assert answer["value"] == said
    else:
        assert said is not None
        assert said in answer["error"]


def test_the_operator_creates_and_updates_queues_by_json(broker: BrokerProcess) -> None:
    queue = json.dumps(json.dumps({"name": "made", "address": "made", "routing-type": "ANYCAST", "max-consumers": 2}))
    head = _HEAD.format("POST", "exec", "")
    for _ in range(2):
        body = _EXEC.format("createQueue(java.lang.String,boolean)", f"{queue},true")
        status, answer = said_to(broker.ports["http"], head, body)
        assert (status, answer["status"]) == (200, 200), answer
        assert json.loads(answer["value"])["max-consumers"] == 2
    change = json.dumps(json.dumps({"name": "made", "max-consumers": 3}))
    status, answer = said_to(broker.ports["http"], head, _EXEC.format("updateQueue(java.lang.String)", change))
    assert json.loads(answer["value"])["max-consumers"] == 3


# ---- Telegraf --------------------------------------------------------------------------------------


def test_telegraf_reads_many_beans_at_once(told: Told) -> None:
    """It finds out by ``request`` which answer is for which of its metrics."""
    queues = (
        "org.apache.activemq.artemis:broker=*,component=addresses,address=*,subcomponent=queues,routing-type=*,queue=*"
    )
    body = (
        f'[{{"type":"read","mbean":"{queues}","attribute":["MessageCount","ConsumerCount"]}},'
        '{"type":"read","mbean":"org.apache.activemq.artemis:broker=*","attribute":"TotalMessageCount"},'
        '{"type":"read","mbean":"org.apache.activemq.artemis:broker=*,component=acceptors,name=*",'
        '"attribute":"Parameters","path":"port"}]'
    )
    head = (
        "POST /console/jolokia/read HTTP/1.1\nHost: 127.0.0.1:PORT\nUser-Agent: Go-http-client/1.1\n"
        "Content-Type: application/json\nAccept-Encoding: gzip\n"
    )
    status, answers = said_to(told.broker.ports["http"], head, body)
    assert status == 200
    assert [answer["status"] for answer in answers] == [200, 200, 200]
    assert len(answers[0]["value"]) == 3
    assert set(answers[0]["request"]["mbean"].partition(":")[2].split(",")) == set(queues.partition(":")[2].split(","))
    assert answers[0]["request"]["attribute"] == ["MessageCount", "ConsumerCount"]
    for name, values in answers[0]["value"].items():
        assert name.startswith("org.apache.activemq.artemis:address=")
        assert values == {"MessageCount": 0, "ConsumerCount": 0}
    assert list(answers[1]["value"].values()) == [{"TotalMessageCount": 0}]
    assert answers[2]["request"]["path"] == "port"


def test_a_path_of_a_secured_broker_hides_what_somebody_may_not_see(broker: BrokerProcess, tmp_path: Path) -> None:
    """Eve may send and consume, and see nothing."""
    head = KEDA.format("jobs", f"Authorization: {basic('eve')}\n")
    status, answer = said_to(broker.ports["http"], head)
    assert (status, answer["status"]) == (200, 403)
    assert "does not have permission='VIEW' on address mops.queue.jobs.getMessageCount" in answer["error"]
