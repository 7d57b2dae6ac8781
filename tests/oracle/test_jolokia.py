"""The same requests of Jolokia to our broker and to a real Artemis: the answers have the same shape.

What our beans have, Artemis' beans have under the same name and type, but for what is named here. Answers differ only
in numbers, in texts for people, and in what Artemis has besides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from artemis_py.management.artemis.beans import KINDS
from artemis_py.management.artemis.operations import BEAN_OPERATIONS
from tests.kit.http import ask
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, configuration, running
from tests.oracle.artemis_broker import LOG, artemis_command
from tests.oracle.brokers import listening

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
DOMAIN: Final = "org.apache.activemq.artemis"
BROKER: Final = f'{DOMAIN}:broker="e2e"'
QUEUE: Final = f'{BROKER},component=addresses,address="{{0}}",subcomponent=queues,routing-type="anycast",queue="{{0}}"'
ORDERS: Final = QUEUE.format("orders")
ADDRESSES: Final = {"type": "search", "mbean": f"{DOMAIN}:component=addresses,*"}
QUEUES: Final = """\
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="odd"><anycast><queue name="odd / name"/></anycast></address>
      <address name="news"><multicast/></address>
"""
DIVERT: Final = """\
    <diverts>
      <divert name="copy"><address>orders</address><forwarding-address>odd</forwarding-address></divert>
    </diverts>
"""
_BOOTSTRAP: Final = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="oracle"/>
  <server configuration="file:{folder}/broker.xml"/>
  <web path="web"><binding name="artemis" uri="http://127.0.0.1:{port}">
    <app name="console" url="console" war="console.war"/>
  </binding></web>
</broker>
"""

REQUESTS: Final[list[dict[str, Any]]] = [
    {"type": "version"},
    {"type": "read", "mbean": ORDERS, "attribute": "MessageCount"},
    {"type": "read", "mbean": ORDERS, "attribute": ["MessageCount", "Paused"]},
    {"type": "READ", "mbean": ORDERS, "attribute": ["Name"]},
    {"type": "read", "mbean": f'{DOMAIN}:component=addresses,broker="e2e",address="orders"', "attribute": "QueueNames"},
    {"type": "read", "mbean": BROKER, "attribute": "Nonsense"},
    {"type": "read", "mbean": BROKER, "attribute": ["Name", "Nonsense"], "config": {"ignoreErrors": True}},
    {"type": "read", "mbean": BROKER, "attribute": "Name", "config": {"includeRequest": False}},
    {"type": "read", "mbean": f"{BROKER},component=none", "attribute": "Name"},
    {"type": "read", "mbean": "nonsense", "attribute": "Name"},
    {"type": "read", "mbean": f"{DOMAIN}:broker=*,component=none,*", "attribute": "Name"},
    {"type": "read", "mbean": f"{DOMAIN}:broker=*", "attribute": "Nonsense"},
    {"type": "read", "mbean": f"{DOMAIN}:queue=\"o*\",*", "attribute": "MessageCount"},
    {"type": "read", "mbean": f"{DOMAIN}:queue=\"o*\",*", "attribute": ["MessageCount", "Name"]},
    {
        "type": "read",
        "mbean": f"{DOMAIN}:component=acceptors,name=\"stomp\",*",
        "attribute": "Parameters",
        "path": "*/*/protocols",
    },
    {
        "type": "read",
        "mbean": f"{DOMAIN}:component=acceptors,name=\"stomp\",*",
        "attribute": "Parameters",
        "path": "*/Parameters/protocols",
    },
    {"type": "read", "mbean": ORDERS, "attribute": "Name", "path": "a/b"},
    {"type": "write", "mbean": ORDERS, "attribute": "Name", "value": "x"},
    {"type": "write", "mbean": ORDERS, "attribute": "Nonsense", "value": "x"},
    {"type": "search", "mbean": f"{DOMAIN}:broker=*"},
    {"type": "search", "mbean": f"{DOMAIN}:queue=\"o*\",*"},
    {"type": "search", "mbean": f"{DOMAIN}:queue=\"o*\",*", "config": {"canonicalNaming": False}},
    {"type": "search", "mbean": f"{DOMAIN}:queue=orders,*"},
    {"type": "search", "mbean": "none:*"},
    {"type": "exec", "mbean": ORDERS, "operation": "pause()"},
    {"type": "read", "mbean": ORDERS, "attribute": "Paused"},
    {"type": "exec", "mbean": ORDERS, "operation": "resume"},
    {"type": "exec", "mbean": ORDERS, "operation": "pause"},
    {"type": "exec", "mbean": ORDERS, "operation": "pause(int)", "arguments": [1]},
    {"type": "exec", "mbean": ORDERS, "operation": "nonsense"},
    {"type": "exec", "mbean": ORDERS, "operation": "resume", "arguments": [1]},
    {"type": "exec", "mbean": ORDERS, "operation": "removeAllMessages()"},
    {"type": "exec", "mbean": ORDERS, "operation": "flushExecutor"},
    {"type": "exec", "mbean": ORDERS, "operation": "countMessages()"},
    {"type": "exec", "mbean": f"{DOMAIN}:*", "operation": "pause()"},
    {"type": "exec", "mbean": BROKER, "operation": "listQueues", "arguments": ["", "x", 1]},
    {"type": "exec", "mbean": BROKER, "operation": "listNetworkTopology"},
    {"type": "exec", "mbean": BROKER, "operation": "closeConnectionWithID", "arguments": ["77"]},
    {"type": "exec", "mbean": BROKER, "operation": "destroyQueue(java.lang.String)", "arguments": ["none"]},
    {"type": "list", "path": "none"},
    {"type": "list", "path": f"{DOMAIN}/none=1"},
    {"type": "list", "path": f'{DOMAIN}/broker="e2e"/class'},
]  # fmt: skip


Asked = Callable[[object], Any]
"""A broker: its answer to one of Jolokia's requests, or to a list of them."""


def jolokia(port: int, request: object) -> Any:
    """The answer on this port."""
    headers = {"Content_Type": "application/json", "Origin": f"http://{LOOPBACK}:{port}"}
    answer = ask(port, "POST", "/console/jolokia/", request, **headers)
    assert answer.status == 200, answer.body
    return answer.json


@pytest.fixture(scope="module")
def artemis(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Nobody logs in."""
    if not (home / "web" / "console.war").exists():
        pytest.skip("no Artemis with a console")
    port, web_port = free_port(), free_port()
    acceptors = {"stomp": f"tcp://{LOOPBACK}:{port}?protocols=STOMP"}
    bootstrap = _BOOTSTRAP.replace("{port}", str(web_port))
    options = ["-Dhawtio.authenticationEnabled=false"]
    text, folder = configuration(acceptors, core=DIVERT, addresses=QUEUES), tmp_path_factory.mktemp("artemis")
    command = artemis_command(text, folder, home, bootstrap, options)
    with listening(command, (port, web_port), folder / LOG, folder):
        yield partial(jolokia, web_port)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with running(configuration(core=DIVERT, addresses=QUEUES), tmp_path_factory.mktemp("ours")) as broker:
        yield partial(jolokia, broker.ports["http"])


def shape(answer: Any, request: dict[str, Any]) -> Any:
    """What must be the same: all but the text of an error behind its class, and the time."""
    found = {name: value for name, value in answer.items() if name != "timestamp"}
    if "error" in found:
        found["error"] = found["error"].partition(" : ")[0]
    if request["type"] == "version":
        found["value"] = found["value"]["protocol"]
    if isinstance(found.get("value"), list):
        found["value"] = sorted(found["value"])
    if "attribute" in found.get("request", {}) and isinstance(request.get("attribute"), list):
        found["request"]["attribute"] = request["attribute"]  # Artemis makes a text of a list with one
    return found


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: re.sub(r"\W+", "-", json.dumps(one))[:100])
def test_an_answer_has_the_same_shape(ours: Asked, artemis: Asked, request_: dict[str, Any]) -> None:
    assert shape(ours(request_), request_) == shape(artemis(request_), request_)


def test_a_list_of_requests(ours: Asked, artemis: Asked) -> None:
    requests = [REQUESTS[0], REQUESTS[1], REQUESTS[5]]
    pairs = zip(requests, ours(requests), artemis(requests), strict=True)
    assert all(shape(our, request) == shape(their, request) for request, our, their in pairs)
    assert ours([]) == artemis([]) == []


OWN: Final = {
    "listAcceptors",
    "listBridges",
    "listDiverts",
    "listDisks",
    "listJobs",
    "listSchedules",
    "listTransactions",
    "traceMessage",
}
"""What Artemis has not."""
OWN_OVERLOADS: Final = {("int", "retryMessages", "java.lang.String")}
"""Artemis retries all messages of a queue; ours also those that a filter chooses."""
OWN_ATTRIBUTES: Final = {"NonDestructive"}


@pytest.fixture(scope="module")
def described(artemis: Asked) -> dict[str, dict[str, Any]]:
    """Artemis' beans by class."""
    beans = artemis({"type": "list", "path": DOMAIN})["value"].values()
    return {bean["class"]: bean for bean in beans}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.component)
def test_our_attributes_are_those_of_artemis(described: dict[str, dict[str, Any]], kind: Any) -> None:
    if kind.java_class not in described:
        pytest.skip("this Artemis has no bean of the kind: it has no divert")
    theirs = described[kind.java_class]["attr"]
    ours = {one.name: one.type for one in kind.attributes.values()}
    assert {name: theirs[name]["type"] for name in ours if name in theirs} == {
        name: type for name, type in ours.items() if name not in OWN_ATTRIBUTES
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.component)
def test_our_operations_are_those_of_artemis(described: dict[str, dict[str, Any]], kind: Any) -> None:
    if kind.java_class not in described:
        pytest.skip("this Artemis has no bean of the kind: it has no divert")
    theirs: set[tuple[str, str, str]] = set()
    for name, overloads in described[kind.java_class].get("op", {}).items():
        for one in overloads if isinstance(overloads, list) else [overloads]:
            theirs.add((one["ret"], name, ",".join(argument["type"] for argument in one["args"])))
    ours = {
        (one.signature.returns, name, one.signature.types)
        for name, overloads in BEAN_OPERATIONS[kind].items()
        for one in overloads
    }
    assert {one for one in ours - theirs - OWN_OVERLOADS if one[1] not in OWN} == set()


def test_lists_of_operations_have_the_same_shape(ours: Asked, artemis: Asked) -> None:
    options = json.dumps(
        {"field": "name", "operation": "CONTAINS", "value": "o", "sortField": "name", "sortOrder": "desc"}
    )
    request = {"type": "exec", "mbean": BROKER, "operation": "listQueues", "arguments": [options, 1, 10]}
    our, their = (json.loads(broker(request)["value"]) for broker in (ours, artemis))
    assert our.keys() == their.keys() == {"data", "count"}
    names = [row["name"] for row in their["data"] if not row["name"].startswith("$")]
    assert [row["name"] for row in our["data"]] == names
    common = our["data"][0].keys() & their["data"][0].keys()
    assert {"name", "address", "messageCount", "durable", "maxConsumers", "routingType"} <= common
    row = {row["name"]: row for row in their["data"]}["orders"]
    same = {row["name"]: row for row in our["data"]}["orders"]
    assert {name: same[name] for name in common - {"id"}} == {name: row[name] for name in common - {"id"}}


def test_beans_have_the_same_names(ours: Asked, artemis: Asked) -> None:
    our, their = (
        {name for name in broker(ADDRESSES)["value"] if "$sys" not in name and "activemq" not in name.partition(":")[2]}
        for broker in (ours, artemis)
    )
    assert our == their
