"""Jolokia's protocol over a real broker: requests in each form, errors, options, permissions, web pages."""

from __future__ import annotations

import json
import urllib.request
from functools import partial
from typing import Final
from urllib.parse import quote as escaped

import pytest

from tests.e2e.management.beans import BASE, BROKER, address_bean, execute, queue_bean, read
from tests.e2e.management.told import ADDRESSES, Told, operated
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess, configuration, for_the_module
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e
ALL: Final = "org.apache.activemq.artemis:*"


calm = for_the_module(partial(operated, configuration(addresses=ADDRESSES)))
"""A broker for tests that change nothing."""


# ---- reading ---------------------------------------------------------------------------------------


def test_a_person_reads_a_queue_with_curl(told: Told) -> None:
    """The order of the properties means nothing."""
    told.send("/queue/orders", "xx")
    name = escaped(queue_bean("orders"))
    assert told.asked("GET", f"{BASE}/read/{name}/MessageCount")["value"] == 2
    turned = ",".join(reversed(queue_bean("orders").partition(":")[2].split(",")))
    assert read(told, f"org.apache.activemq.artemis:{turned}", "MessageCount") == 2


@pytest.mark.parametrize("broker", ["told", "told_to_store"])
def test_the_id_of_the_broker_is_the_same_everywhere(request: pytest.FixtureRequest, broker: str) -> None:
    """That of the log, if there is one."""
    told: Told = request.getfixturevalue(broker)
    shown = told.ask("GET", "/api/broker")[1]
    assert len(shown["nodeID"]) >= 32
    assert read(told, BROKER, "NodeID") == shown["nodeID"]
    assert json.loads(shown["status"])["server"]["nodeId"] == shown["nodeID"]
    if broker == "told_to_store":
        assert told.ask("GET", "/api/journal")[1]["id"] == shown["nodeID"]


def test_each_base_answers(calm: Told) -> None:
    for base in ("/console/jolokia", "/jolokia", "/api/jolokia"):
        for path in ("", "/", "/version"):
            status, answer = calm.ask("GET", base + path)
            assert (status, answer["value"]["protocol"]) == (200, "8.0")


def test_a_name_with_a_slash_is_escaped_in_a_path(calm: Told) -> None:
    name = escaped(queue_bean("odd / name", "odd").replace("/", "!/"), safe="!")
    assert calm.asked("GET", f"{BASE}/read/{name}/Name")["value"] == "odd / name"
    assert calm.asked("GET", f"{BASE}?p=/read/{name}/Name")["value"] == "odd / name"


def test_values_and_lists_of_values(calm: Told) -> None:
    both = calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/Name,QueueCount")
    assert both["value"] == {"Name": "e2e", "QueueCount": 3}
    answer = calm.asked("POST", BASE, {"type": "read", "mbean": BROKER, "attribute": ["Name"]})
    assert answer["value"] == {"Name": "e2e"}
    assert answer["request"] == {"mbean": BROKER, "attribute": ["Name"], "type": "read"}
    assert read(calm, address_bean("orders"), "RoutingTypes") == ["ANYCAST"]
    assert calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/QueueNames/1")["value"] == "jobs"
    assert calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/QueueNames/7")["value"] is None
    assert calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/QueueNames?maxCollectionSize=1")["value"] == ["orders"]


def test_what_cannot_be_read(calm: Told) -> None:
    answer = calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/Nonsense")
    assert (answer["status"], answer["error_type"]) == (404, "javax.management.AttributeNotFoundException")
    answer = calm.asked("GET", f"{BASE}/read/{escaped(BROKER)}/Name,Nonsense?ignoreErrors=true")
    assert answer["value"]["Name"] == "e2e"
    assert answer["value"]["Nonsense"].startswith("ERROR: No such attribute: Nonsense")
    answer = calm.asked("POST", BASE, {"type": "read", "mbean": f"{BROKER},component=none,*"})
    assert (answer["status"], answer["error_type"]) == (404, "javax.management.InstanceNotFoundException")
    answer = calm.asked("POST", BASE, {"type": "read", "mbean": ALL, "attribute": "Nonsense"})
    assert (answer["status"], answer["error_type"]) == (400, "java.lang.IllegalArgumentException")
    answer = calm.asked("POST", BASE, {"type": "read", "mbean": "no name"})
    assert answer["status"] == 400
    assert "request" not in answer


def test_nothing_is_written(calm: Told) -> None:
    answer = calm.asked("POST", BASE, {"type": "write", "mbean": BROKER, "attribute": "Name", "value": "x"})
    assert (answer["status"], answer["error"]) == (
        404,
        "javax.management.AttributeNotFoundException : Read-only attribute: Name",
    )


# ---- finding and describing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("org.apache.activemq.artemis:broker=*", 1),
        ('org.apache.activemq.artemis:broker="*"', 1),
        ('org.apache.activemq.artemis:broker="e2e",component=acceptors,name=*', 2),
        ("org.apache.activemq.artemis:component=addresses,address=*,subcomponent=queues,routing-type=*,queue=*,*", 3),
        ('org.apache.activemq.artemis:broker="e2e",component=addresses,address="o*",subcomponent=queues,*', 2),
        ('org.apache.activemq.artemis:queue="jobs",*', 1),
        ('org.apache.activemq.artemis:queue="job",*', 0),
        ("*:broker=*", 1),
        ("java.lang:*", 0),
        (ALL, 9),
    ],
)
def test_patterns(calm: Told, pattern: str, count: int) -> None:
    assert len(calm.asked("POST", BASE, {"type": "search", "mbean": pattern})["value"]) == count


def test_names_come_in_the_order_that_is_asked_for(calm: Told) -> None:
    pattern = {"type": "search", "mbean": "org.apache.activemq.artemis:queue=*,*"}
    assert queue_bean("orders") in calm.asked("POST", BASE, {**pattern, "config": {"canonicalNaming": False}})["value"]
    assert queue_bean("orders") not in calm.asked("POST", BASE, pattern)["value"]


def test_the_description_is_small_with_a_cache(calm: Told) -> None:
    """What tools look at: the classes of the broker and of addresses, and whether anything may be called."""
    plain = calm.asked("GET", f"{BASE}/list")["value"]["org.apache.activemq.artemis"]
    cached = calm.asked("GET", f"{BASE}/list?listCache=true")["value"]
    named = cached["domains"]["org.apache.activemq.artemis"]
    assert named.keys() == plain.keys()
    assert {key: cached["cache"][name] for key, name in named.items()} == plain
    broker = plain['broker="e2e"']
    assert broker["class"].endswith(".ActiveMQServerControlImpl")
    assert broker["canInvoke"] is True
    assert broker["attr"]["Name"]["type"] == "java.lang.String"
    assert plain['address="orders",broker="e2e",component=addresses']["class"].endswith(".AddressControlImpl")
    queue = plain[
        'address="orders",broker="e2e",component=addresses,queue="orders",routing-type="anycast",subcomponent=queues'
    ]
    assert [one["args"] for one in queue["op"]["pause"]] == [
        [],
        [{"name": "persist", "type": "boolean", "desc": "persist"}],
    ]


def test_parts_of_the_description(calm: Told) -> None:
    base = '/list/org.apache.activemq.artemis/broker="e2e"'.replace('"', "%22")
    assert calm.asked("GET", f"{BASE}{base}/attr/Uptime/type")["value"] == "java.lang.String"
    assert calm.asked("GET", f"{BASE}{base}/op/closeConnectionWithID")["value"]["ret"] == "boolean"
    assert calm.asked("GET", f"{BASE}/list?maxDepth=1")["value"] == {"org.apache.activemq.artemis": "1"}
    assert calm.asked("GET", f"{BASE}/list?maxDepth=2")["value"]["org.apache.activemq.artemis"]['broker="e2e"'] == "1"
    assert calm.asked("GET", f"{BASE}/list/none")["value"] == {}
    assert calm.asked("GET", f"{BASE}/list/org.apache.activemq.artemis/none=1")["status"] == 400


# ---- executing -------------------------------------------------------------------------------------


def test_operations_are_chosen_by_their_signatures(told: Told) -> None:
    bean = queue_bean("orders")
    assert execute(told, bean, "pause(boolean)", True) is None
    assert read(told, bean, "Paused") is True
    assert execute(told, bean, "resume") is None
    assert read(told, bean, "Paused") is False
    told.send("/queue/orders", "xx")
    by_get = told.asked("GET", f"{BASE}/exec/{escaped(bean)}/removeAllMessages()")
    assert (by_get["status"], "send the same as JSON with POST" in by_get["error"]) == (403, True)
    assert execute(told, bean, "removeAllMessages()") == 2


@pytest.mark.parametrize(
    ("operation", "arguments", "said"),
    [
        ("pause", [], "is overloaded. Signatures found: (),(boolean)"),
        ("pause(int)", [1], "exists. Known signatures: (),(boolean)"),
        ("none", [], "No operation none found on MBean"),
        ("resume", [1], "requires 0 parameters, not 1 as given"),
        ("pa use(", [], "No operation pa use( found"),
    ],
)
def test_operations_that_are_none(calm: Told, operation: str, arguments: list[object], said: str) -> None:
    bean = queue_bean("orders")
    answer = calm.asked("POST", BASE, {"type": "exec", "mbean": bean, "operation": operation, "arguments": arguments})
    assert (answer["status"], answer["error_type"]) == (400, "java.lang.IllegalArgumentException")
    assert said in answer["error"]


def test_arguments_have_their_types(calm: Told) -> None:
    answer = calm.asked(
        "POST", BASE, {"type": "exec", "mbean": BROKER, "operation": "listQueues", "arguments": ["", "one", 1]}
    )
    assert (answer["status"], answer["error_type"]) == (400, "java.lang.NumberFormatException")
    options = {"field": "name", "operation": "EQUALS", "value": "jobs"}
    for given in (options, json.dumps(options)):
        rows = json.loads(execute(calm, BROKER, "listQueues(java.lang.String,int,int)", given, "1", 10))
        assert [row["name"] for row in rows["data"]] == ["jobs"]
        assert (rows["data"][0]["maxConsumers"], rows["count"]) == ("3", 1)
    page = calm.asked("GET", f"{BASE}/exec/{escaped(BROKER)}/listQueues/%22%22/2/1")["value"]
    assert [row["name"] for row in json.loads(page)["data"]] == ["jobs"]
    everything = calm.asked("GET", f"{BASE}/exec/{escaped(BROKER)}/listQueues/[null]/-1/-1")["value"]
    assert len(json.loads(everything)["data"]) == 3
    assert execute(calm, BROKER, "closeConnectionWithID", "77") is False


def test_what_tools_call_that_changes_nothing(calm: Told) -> None:
    assert execute(calm, BROKER, "listNetworkTopology()") == "[]"
    assert execute(calm, BROKER, "listAddresses(java.lang.String)", ",") == "orders,jobs,odd"
    assert execute(calm, BROKER, "getQueueNames(java.lang.String)", "MULTICAST") == []
    assert execute(calm, queue_bean("orders"), "flushExecutor") is None
    assert execute(calm, queue_bean("orders"), "countMessages()") == 0


# ---- several requests, and none --------------------------------------------------------------------


def test_each_request_of_a_list_has_its_own_answer(told: Told) -> None:
    answers = told.asked(
        "POST",
        f"{BASE}/",
        [
            {"type": "read", "mbean": BROKER, "attribute": "Name", "config": {"includeRequest": False}},
            7,
            {"type": "none"},
            {"type": "exec", "mbean": queue_bean("orders"), "operation": "pause()"},
            {"type": "read", "mbean": queue_bean("orders"), "attribute": "Paused"},
        ],
    )
    assert [answer["status"] for answer in answers] == [200, 400, 400, 200, 200]
    assert "request" not in answers[0]
    assert answers[4]["value"] is True
    assert told.asked("POST", f"{BASE}/", []) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no request of Jolokia"),
        (b"\xff", "no request of Jolokia"),
        (b"[" * 100 + b"]" * 100, "nested"),
        (b"[" + b"1," * 1000 + b"1]", "the limit is 1000"),
    ],
)
def test_what_is_no_request_is_refused(calm: Told, body: bytes, said: str) -> None:
    status, answer = calm.ask("POST", BASE, body)
    assert (status, answer["status"]) == (400, 400)
    assert said in answer["error"]


def test_the_type_of_the_answer(calm: Told) -> None:
    for query, type in (
        ("", "application/json"),
        ("?mimeType=text/plain", "text/plain"),
        ("?mimeType=a", "application/json"),
    ):
        with urllib.request.urlopen(f"{calm.broker.url}{BASE}/version{query}", timeout=WAIT_S) as answer:
            assert answer.headers["Content-Type"] == f"{type}; charset=utf-8"


def test_each_change_is_told(told: Told) -> None:
    execute(told, queue_bean("orders"), "pause()")
    told.asked(
        "POST",
        BASE,
        {"type": "exec", "mbean": BROKER, "operation": "destroyQueue(java.lang.String)", "arguments": ["none"]},
    )
    read(told, BROKER, "Name")
    told.send("/queue/orders", "xx")
    execute(told, queue_bean("orders"), "moveMessages(java.lang.String,java.lang.String)", "", "jobs")
    execute(told, queue_bean("orders"), "removeMessage(long)", 99999)
    lines = [line.partition("operation=")[2] for line in told.broker.said.splitlines() if "AUD-1001" in line]
    assert [line.split()[0] for line in lines] == [
        "queue.pause", "destroyQueue", "queue.moveMessages", "queue.removeMessage",
    ]  # fmt: skip
    assert "result=done" in lines[0]
    assert "AMQ229017" in lines[1]
    assert 'result="moved 2"' in lines[2]
    assert 'result="queue orders has no message 99999 (any more)"' in lines[3]


# ---- who may ---------------------------------------------------------------------------------------


secured = for_the_module(secured_broker)


MINE: Final = 'org.apache.activemq.artemis:broker="secured"'
QUEUE: Final = f'{MINE},component=addresses,address="jobs",subcomponent=queues,routing-type="anycast",queue="jobs"'


@pytest.mark.parametrize(
    ("request_", "statuses"),
    [
        ({"type": "read", "mbean": QUEUE, "attribute": "MessageCount"}, (403, 200, 200)),
        ({"type": "read", "mbean": QUEUE}, (403, 200, 200)),
        ({"type": "read", "mbean": "org.apache.activemq.artemis:*", "attribute": "Name"}, (403, 200, 200)),
        ({"type": "search", "mbean": "org.apache.activemq.artemis:*"}, (403, 200, 200)),
        ({"type": "list"}, (403, 200, 200)),
        ({"type": "exec", "mbean": MINE, "operation": "listQueues", "arguments": ["", 1, 1]}, (403, 200, 200)),
        ({"type": "exec", "mbean": QUEUE, "operation": "flushExecutor"}, (403, 200, 200)),
        ({"type": "exec", "mbean": QUEUE, "operation": "resume"}, (403, 403, 200)),
        ({"type": "version"}, (200, 200, 200)),
    ],
)
def test_each_type_for_each_user(secured: BrokerProcess, request_: object, statuses: tuple[int, ...]) -> None:
    assert secured.ask("POST", BASE, request_).status == 401
    for user, status in zip(("eve", "bob", "ann"), statuses, strict=True):
        reply = secured.ask("POST", BASE, request_, Authorization=basic(user))
        answer = reply.json
        assert (reply.status, answer["status"]) == (200, status), (user, answer)
        if status == 403:
            assert answer["error_type"] == "java.lang.SecurityException"


def test_web_pages_of_others_get_nothing(secured: BrokerProcess) -> None:
    """No ``Origin`` is fine with a login; the broker's own pages may ask; others may not. No link changes anything."""
    origin = f"http://{LOOPBACK}:{secured.ports['http']}"
    for origins, status in (({}, 200), ({"Origin": origin}, 200), ({"Origin": "http://elsewhere.example"}, 403)):
        assert secured.ask("POST", BASE, {"type": "version"}, Authorization=basic("ann"), **origins).status == status
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    path = f"{BASE}/exec/{escaped(QUEUE)}/resume()"
    for headers in (link, {}, {"Origin": origin}):
        answer = secured.ask("GET", path, Authorization=basic("ann"), **headers).json
        assert (answer["status"], answer["error_type"]) == (403, "java.lang.SecurityException")
    assert secured.ask("GET", f"{BASE}/read/{escaped(QUEUE)}/Paused", Authorization=basic("ann")).json["status"] == 200
