"""Each operation of the table, on a real broker: over HTTP, and as a command."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import jsonschema
import pytest

from artemis_py.management.table import OPERATIONS
from tests.e2e.broker_process import HTTP, LOOPBACK, STOMP, WAIT_S, BrokerProcess, configuration, running
from tests.e2e.stomp_socket import Closed, StompSocket

pytestmark = pytest.mark.e2e

BY_ID: Final = {operation.id: operation for operation in OPERATIONS}

ADDRESSES: Final = """
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="jobs"><anycast><queue name="jobs" max-consumers="3"/></anycast></address>
      <address name="odd"><anycast><queue name="odd / name"/></anycast></address>
"""


@dataclass
class Told:
    """A broker, and what one can do with it."""

    broker: BrokerProcess

    @property
    def url(self) -> str:
        """Its HTTP acceptor."""
        return f"http://{LOOPBACK}:{self.broker.ports['http']}"

    def ask(self, method: str, path: str) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        request = urllib.request.Request(self.url + path, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command prints."""
        arguments = [sys.executable, "-m", "artemis_py", *words, "--url", self.url]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=WAIT_S, check=False)

    def client(self, **headers: object) -> StompSocket:
        """A client that is connected."""
        client = StompSocket(self.broker.port)
        client.connect(**headers)
        return client

    def send(self, queue: str, count: int) -> None:
        """Messages for a queue."""
        with self.client() as client:
            for _ in range(count):
                client.ask("SEND", {"destination": f"/queue/{queue}"}, b"x")

    def queue(self, name: str) -> dict[str, Any]:
        """What is told of a queue."""
        status, found = self.ask("GET", f"/api/queues/{quote(name, safe='')}")
        assert status == 200, found
        return dict(found)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own."""
    with running(configuration({"stomp": STOMP, "http": HTTP}, addresses=ADDRESSES), tmp_path) as broker:
        yield Told(broker)


# ---- each operation --------------------------------------------------------------------------------


@dataclass
class Scene:
    """What is there before, the arguments, and what is right afterwards."""

    arguments: dict[str, str]
    check: Callable[[Told, Any], object]
    before: Callable[[Told], object] = lambda _: None
    after: Callable[[Told], object] = lambda _: None


def _are(kind: str, names: set[str]) -> Callable[[Told, Any], None]:
    def check(_told: Told, answer: Any) -> None:
        assert {row[kind] for row in answer["data"]} == names
        assert answer["count"] == len(names)

    return check


def _holds(**values: object) -> Callable[[Told, Any], None]:
    def check(_told: Told, answer: Any) -> None:
        assert {name: answer[name] for name in values} == values

    return check


def _with_consumer(told: Told) -> None:
    client = told.client(client_id="desk")
    client.subscribe("/queue/jobs", selector="x = 1")
    _CLIENTS.append(client)


def _gone(_told: Told) -> None:
    while _CLIENTS:
        _CLIENTS.pop().close()


def _is_closed(told: Told, answer: Any) -> None:
    client = _CLIENTS.pop()
    error = client.expect("ERROR")
    assert "An operator has closed this connection" in (error.header("message") or "")
    with pytest.raises(Closed):
        client.expect("MESSAGE")


def _there_is_no(name: str) -> Callable[[Told, Any], None]:
    def check(told: Told, answer: Any) -> None:
        assert answer == {"removed": 2}
        assert told.ask("GET", f"/api/queues/{name}")[0] == 404

    return check


_CLIENTS: list[StompSocket] = []
SCENES: Final[dict[str, Scene]] = {
    "getBroker": Scene({}, _holds(name="e2e", queueCount=3, addressCount=3, messageCount=0)),
    "listQueues": Scene({}, _are("name", {"orders", "jobs", "odd / name"})),
    "listAddresses": Scene({}, _are("name", {"orders", "jobs", "odd"})),
    "listConsumers": Scene({}, _are("clientID", {"desk"}), _with_consumer, _gone),
    "listConnections": Scene({}, _are("clientID", {"desk"}), _with_consumer, _gone),
    "queue.getAttributes": Scene({"queue": "odd / name"}, _holds(name="odd / name", address="odd", durable=True)),
    "address.getAttributes": Scene({"address": "jobs"}, _holds(name="jobs", queueCount=1, routingTypes="ANYCAST")),
    "queue.pause": Scene({"queue": "orders"}, _holds(name="orders", paused=True)),
    "queue.resume": Scene(
        {"queue": "orders"}, _holds(paused=False), lambda told: told.ask("POST", "/api/queues/orders/pause")
    ),
    "queue.removeAllMessages": Scene(
        {"queue": "orders"},
        lambda told, answer: (
            (answer, told.queue("orders")["messageCount"]) == ({"removed": 2}, 0) or pytest.fail(answer)
        ),
        lambda told: told.send("orders", 2),
    ),
    "destroyQueue": Scene({"queue": "orders"}, _there_is_no("orders"), lambda told: told.send("orders", 2)),
    "closeConnectionWithID": Scene({"connection": "1"}, _is_closed, _with_consumer, _gone),
}


def test_no_operation_is_left_out() -> None:
    assert set(SCENES) == set(BY_ID)


@pytest.mark.parametrize("way", ["HTTP", "command"])
@pytest.mark.parametrize("id", SCENES)
def test_each_operation(told: Told, id: str, way: str) -> None:
    """Its answer is what its description says."""
    operation, scene = BY_ID[id], SCENES[id]
    scene.before(told)
    if way == "HTTP":
        path = operation.path
        for name, value in scene.arguments.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        status, answer = told.ask(operation.method, path)
        assert status == 200, answer
    else:
        printed = told.command(*operation.command.split(), *scene.arguments.values(), "--json")
        assert (printed.returncode, printed.stderr) == (0, "")
        answer = json.loads(printed.stdout)
    description = told.ask("GET", "/api/openapi.json")[1]
    described = description["paths"][operation.path][operation.method.lower()]
    assert described["operationId"] == id
    jsonschema.validate(answer, described["responses"]["200"]["content"]["application/json"]["schema"])
    scene.check(told, answer)
    scene.after(told)


# ---- lists -----------------------------------------------------------------------------------------


def test_a_list_as_a_person_reads_it(told: Told) -> None:
    told.send("jobs", 3)
    printed = told.command("queue", "ls", "--fields", "name,messageCount,durable", "--sort", "messageCount:desc")
    lines = [line.split() for line in printed.stdout.splitlines()]
    assert lines[0] == ["name", "messageCount", "durable"]
    assert lines[2] == ["jobs", "3", "yes"]
    assert lines[-1] == ["3", "queues"]
    printed = told.command("queue", "ls", "--where", "messageCount>0")
    assert printed.stdout.splitlines()[-1] == "1 queue"
    printed = told.command("queue", "ls", "--size", "2", "--page", "2")
    assert printed.stdout.splitlines()[-1] == "1 of 3 queues: page 2 of 2 (--page, --size)"
    assert told.command("consumer", "ls").stdout == "no consumer\n"


def test_what_a_client_sends_is_no_order_to_a_terminal(told: Told) -> None:
    client = told.client(client_id="\x1b[31m[bold]red")
    printed = told.command("connection", "ls")
    assert "\x1b" not in printed.stdout
    assert "\\x1b[31m[bold]red" in printed.stdout
    client.close()


def test_two_thousand_rows_are_found(told: Told) -> None:
    """A page of them, sorted."""
    count = 2000
    with told.client() as client:
        for number in range(count):
            client.send("SEND", {"destination": f"/queue/many.{number}"}, b"x")
        client.ask("SEND", {"destination": "/queue/many.7"}, b"x")
        status, answer = told.ask("GET", "/api/queues?where=name~many&sort=messageCount:desc&size=1000")
    assert (status, answer["count"], len(answer["data"])) == (200, count, 1000)
    assert (answer["data"][0]["name"], answer["data"][0]["messageCount"]) == ("many.7", 2)


def test_connections_come_in_the_order_in_which_they_were_made(told: Told) -> None:
    clients = [told.client(client_id=f"c{number}") for number in range(12)]
    _, answer = told.ask("GET", "/api/connections?fields=clientID")
    assert [row["clientID"] for row in answer["data"]] == [f"c{number}" for number in range(12)]
    for client in clients:
        client.close()


def test_what_artemis_console_sends(told: Told) -> None:
    options = json.dumps(
        {"field": "name", "operation": "CONTAINS", "value": "o", "sortField": "name", "sortOrder": "desc"}
    )
    _, answer = told.ask("GET", f"/api/queues?fields=name&options={quote(options)}")
    assert answer["data"] == [{"name": "orders"}, {"name": "odd / name"}, {"name": "jobs"}]


# ---- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/api/queues/order", 404, "there is no queue 'order'; did you mean orders?"),
        ("GET", "/api/queues?page=two", 400, "page is a number, and 'two' is none"),
        ("GET", "/api/queues?where=%FF", 400, "the query is no UTF-8, or has more than 100 arguments"),
        ("GET", "/api/queues?options=7", 400, "options must be a JSON object, not '7'"),
        ("POST", "/api/queues/none/pause", 404, "there is no queue 'none'"),
        ("DELETE", "/api/connections/77", 404, "there is no connection 77"),
        ("DELETE", "/api/connections/x", 400, "connection is a number, and 'x' is none"),
    ],
)
def test_what_is_refused(told: Told, method: str, path: str, status: int, said: str) -> None:
    assert told.ask(method, path) == (status, {"error": said})


def test_a_queue_with_consumers_is_not_deleted(told: Told) -> None:
    with told.client() as client:
        client.subscribe("/queue/jobs")
        status, answer = told.ask("DELETE", "/api/queues/jobs")
        assert (status, answer["error"]) == (409, "Queue jobs has 1 consumer; close its connection first")
        printed = told.command("queue", "delete", "jobs")
        assert printed.returncode == 1
        assert printed.stderr == "artemis-py: Queue jobs has 1 consumer; close its connection first\n"


# ---- the audit log ---------------------------------------------------------------------------------


def test_each_change_is_told(told: Told) -> None:
    """Also one that is refused; who only looks is not."""
    told.ask("POST", "/api/queues/orders/pause")
    told.ask("DELETE", "/api/queues/none")
    told.ask("GET", "/api/queues")
    said = told.broker.said.replace("'", "")
    lines = [line.partition("operation=")[2] for line in said.splitlines() if "AUD-1001" in line]
    end = "operation carried out or refused"
    assert lines == [
        f'queue.pause queue=orders user="" from=127.0.0.1 result=done {end}',
        f'destroyQueue queue=none user="" from=127.0.0.1 result="there is no queue none" {end}',
    ]
