"""Lists as people and programs read them, what is refused, and the audit log."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from artemis_py.cli.operations import VIEWS
from tests.e2e.management.told import Told
from tests.kit.process import ports_left_out

pytestmark = pytest.mark.e2e

# ---- lists -----------------------------------------------------------------------------------------


def test_a_list_as_a_person_reads_it(told: Told) -> None:
    told.send("/queue/jobs", "xxx")
    printed = told.command("queue", "ls", "--fields", "name,messageCount,durable", "--sort", "messageCount:desc")
    lines = [line.split() for line in printed.stdout.splitlines()]
    assert lines[0] == ["name", "messageCount", "durable"]
    assert lines[1] == ["jobs", "3", "yes"]
    assert lines[-1] == ["3", "queues"]
    printed = told.command("queue", "ls", "--where", "messageCount>0")
    assert printed.stdout.splitlines()[-1] == "1 queue"
    printed = told.command("queue", "ls", "--size", "2", "--page", "2")
    assert printed.stdout.splitlines()[-1] == "1 of 3 queues: page 2 of 2 (--page, --size)"
    printed = told.command("queue", "stat", "--where", "messageCount>0")
    assert printed.stdout.split()[:10] == list(VIEWS["queue ls"][0].fields)
    assert told.command("consumer", "ls").stdout == "no consumers\n"


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


def test_options_as_artemis_takes_them(told: Told) -> None:
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
        ("GET", "/api/queues?page=two", 400, "page must be a number, not 'two'"),
        ("GET", "/api/queues?page=-", 400, "page must be a number, not '-'"),
        ("GET", "/api/queues?where=%FF", 400, "the query is not UTF-8, or has more than 100 arguments"),
        ("GET", "/api/queues?options=7", 400, "options must be a JSON object, not '7'"),
        ("POST", "/api/queues/none/pause", 404, "there is no queue 'none'"),
        ("DELETE", "/api/connections/77", 404, "there is no connection 77"),
        ("DELETE", "/api/connections/x", 400, "connection must be a number, not 'x'"),
    ],
)
def test_what_is_refused(told: Told, method: str, path: str, status: int, said: str) -> None:
    assert told.ask(method, path) == (status, {"error": said})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "the body is not JSON: "),
        (b"[1]", "the body must be a JSON object with the arguments by name"),
        (b'{"name": 1}', "queue.pause has no argument 'name'; it has queue"),
    ],
)
def test_a_body_that_makes_no_sense(told: Told, body: bytes, said: str) -> None:
    status, answer = told.ask("POST", "/api/queues/orders/pause", body)
    assert (status, answer["error"][: len(said)]) == (400, said)
    assert told.queue("orders")["paused"] is False


def test_a_queue_with_consumers_is_not_deleted(told: Told) -> None:
    with told.client() as client:
        client.subscribe("/queue/jobs")
        status, answer = told.ask("DELETE", "/api/queues/jobs")
        assert (status, answer["error"]) == (409, "Queue jobs has 1 consumer; close its connection first")
        printed = told.command("queue", "delete", "jobs", "--yes")
        assert printed.returncode == 1
        assert printed.stderr.startswith("artemis-py: 127.0.0.1:")
        assert printed.stderr.endswith(": Queue jobs has 1 consumer; close its connection first\n")


# ---- the audit log ---------------------------------------------------------------------------------


def test_each_change_is_told(told: Told) -> None:
    """Also one that is refused; who only looks is not. Arguments that were not given are left out."""
    told.ask("POST", "/api/queues/orders/pause")
    told.ask("DELETE", "/api/queues/none")
    told.ask("GET", "/api/queues")
    told.ask("POST", "/api/queues", b'{"name": "notes", "exclusive": true}')
    told.ask("POST", "/api/settings", b'{"address": "x", "values": ["max-size-bytes=1M", "page-size-bytes=100K"]}')
    told.ask("POST", "/api/settings", b'{"address": "x", "settings": "{}"}')
    said = told.broker.said.replace("'", "")
    said_lines = ports_left_out([line for line in said.splitlines() if "AUD-1001" in line])
    lines = [line.partition("operation=")[2] for line in said_lines]
    done, asked = "result=done request of an operator", "request of an operator"
    settings, nothing = "max-size-bytes=1M,page-size-bytes=100K", "no setting is given, such as max-size-bytes=10M"
    assert lines == [
        f'queue.pause queue=orders user="" from=127.0.0.1:PORT {done}',
        f'destroyQueue queue=none user="" from=127.0.0.1:PORT result="there is no queue none" {asked}',
        f'createQueue name=notes exclusive=true user="" from=127.0.0.1:PORT {done}',
        f'addAddressSettings address=x values="{settings}" user="" from=127.0.0.1:PORT {done}',
        f'addAddressSettings address=x settings={{}} user="" from=127.0.0.1:PORT result="{nothing}" {asked}',
    ]
    told.ask("DELETE", "/api/queues/notes")
    told.ask("DELETE", "/api/settings/x")
