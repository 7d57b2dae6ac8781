"""The same requests of Jolokia to our broker and to a real Artemis: the answers have the same shape.

What our beans have, Artemis' beans have under the same name and type, but for what is named here. Answers differ only
in numbers, in texts for people, and in what Artemis has besides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from artemis_py.management.artemis.beans import KINDS
from artemis_py.management.artemis.operations import BEAN_OPERATIONS
from tests.kit.process import HTTP, LOOPBACK, STOMP, running
from tests.oracle.artemis_broker import artemis_home
from tests.oracle.jolokia_broker import CONFIGURATION, JolokiaBroker, artemis_with_web

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
DOMAIN: Final = "org.apache.activemq.artemis"
BROKER: Final = f'{DOMAIN}:broker="e2e"'
QUEUE: Final = f'{BROKER},component=addresses,address="{{0}}",subcomponent=queues,routing-type="anycast",queue="{{0}}"'
ORDERS: Final = QUEUE.format("orders")
CREATE: Final = "createQueue(java.lang.String,boolean)"

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


@pytest.fixture(scope="module")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JolokiaBroker]:
    home = artemis_home()
    if home is None or not (home / "web" / "console.war").exists():
        pytest.skip("no Artemis with a console: neither ARTEMIS_HOME nor apache-artemis-* in .cache, or no Java")
    with artemis_with_web(tmp_path_factory.mktemp("artemis"), home) as broker:
        yield broker


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JolokiaBroker]:
    acceptors = f'<acceptor name="stomp">{STOMP}</acceptor><acceptor name="http">{HTTP}</acceptor>'
    with running(CONFIGURATION.format(acceptors=acceptors), tmp_path_factory.mktemp("ours")) as broker:
        yield JolokiaBroker(f"http://{LOOPBACK}:{broker.ports['http']}")


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
def test_an_answer_has_the_same_shape(ours: JolokiaBroker, artemis: JolokiaBroker, request_: dict[str, Any]) -> None:
    assert shape(ours.ask(request_), request_) == shape(artemis.ask(request_), request_)


def test_a_list_of_requests(ours: JolokiaBroker, artemis: JolokiaBroker) -> None:
    requests = [REQUESTS[0], REQUESTS[1], REQUESTS[5]]
    pairs = zip(requests, ours.ask(requests), artemis.ask(requests), strict=True)
    assert all(shape(our, request) == shape(their, request) for request, our, their in pairs)
    assert ours.ask([]) == artemis.ask([]) == []


OWN: Final = {
    "listAcceptors",
    "listBridges",
    "listDiverts",
    "listDisks",
    "listJobs",
    "listTransactions",
    "traceMessage",
}
"""What Artemis has not."""
OWN_OVERLOADS: Final = {("int", "retryMessages", "java.lang.String")}
"""Artemis retries all messages of a queue; ours also those that a filter chooses."""
OWN_ATTRIBUTES: Final = {"NonDestructive"}


@pytest.fixture(scope="module")
def described(artemis: JolokiaBroker) -> dict[str, dict[str, Any]]:
    """Artemis' beans by class."""
    beans = artemis.ask({"type": "list", "path": DOMAIN})["value"].values()
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


def test_lists_of_operations_have_the_same_shape(ours: JolokiaBroker, artemis: JolokiaBroker) -> None:
    options = json.dumps(
        {"field": "name", "operation": "CONTAINS", "value": "o", "sortField": "name", "sortOrder": "desc"}
    )
    request = {"type": "exec", "mbean": BROKER, "operation": "listQueues", "arguments": [options, 1, 10]}
    our, their = (json.loads(broker.ask(request)["value"]) for broker in (ours, artemis))
    assert our.keys() == their.keys() == {"data", "count"}
    names = [row["name"] for row in their["data"] if not row["name"].startswith("$")]
    assert [row["name"] for row in our["data"]] == names
    common = our["data"][0].keys() & their["data"][0].keys()
    assert {"name", "address", "messageCount", "durable", "maxConsumers", "routingType"} <= common
    row = {row["name"]: row for row in their["data"]}["orders"]
    same = {row["name"]: row for row in our["data"]}["orders"]
    assert {name: same[name] for name in common - {"id"}} == {name: row[name] for name in common - {"id"}}


def test_beans_have_the_same_names(ours: JolokiaBroker, artemis: JolokiaBroker, tmp_path: Path) -> None:
    def named(broker: JolokiaBroker) -> set[str]:
        found = broker.ask({"type": "search", "mbean": f"{DOMAIN}:component=addresses,*"})["value"]
        return {name for name in found if "$sys" not in name and "activemq" not in name.partition(":")[2]}

    assert named(ours) == named(artemis)
