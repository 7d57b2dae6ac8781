"""Messages of a queue as operators see and change them: paged, large, very many, and through a kill."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.e2e.management.scenes.messages import browsed
from tests.e2e.management.told import Told, operated
from tests.kit.http import ask
from tests.kit.process import HTTP, STOMP, configuration, for_the_module, started

pytestmark = pytest.mark.e2e

ACCEPTORS: Final = {"stomp": f"{STOMP};stompMinLargeMessageSize=20000", "http": HTTP}
ADDRESSES: Final = "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in ("jobs", "done", "graves")
)
SETTINGS: Final = """\
      <address-setting match="#">
        <dead-letter-address>graves</dead-letter-address>
        <max-delivery-attempts>1</max-delivery-attempts>
      </address-setting>
"""
PAGES: Final = "<max-size-messages>200</max-size-messages><page-size-bytes>20000</page-size-bytes>"
TURN_SHARE_MAX: Final = 0.2
"""Of the time of all turns: none of the works is done in one. tests/unit/test_handling_turns.py has the real bound."""
LONG_S: Final = 600


def managed(folder: Path, *, jobs: str = "", persistence: bool = True) -> AbstractContextManager[Told]:
    """A broker with the queues jobs, done and graves. ``jobs``: settings of the first."""
    settings = f'{SETTINGS}<address-setting match="jobs">{jobs}</address-setting>'
    core = "<max-disk-usage>100</max-disk-usage>"
    text = configuration(
        ACCEPTORS, folder=folder, persists=persistence, core=core, addresses=ADDRESSES, settings=settings
    )
    return operated(text, folder)


def send_numbers(told: Told, queue: str, count: int) -> None:
    """Persistent messages whose bodies are numbers from 0 on; the last one is confirmed."""
    with told.client() as client:
        for number in range(count):
            headers = {"destination": f"/queue/{queue}", "persistent": "true", "parity": number % 2}
            (client.ask if number == count - 1 else client.send)("SEND", headers, str(number).encode())


def numbers(told: Told, queue: str, query: str = "") -> list[int]:
    """The bodies on a queue."""
    found: list[int] = []
    while True:
        page = f"?size=1000&fields=BodyPreview&page={len(found) // 1000 + 1}"
        rows = browsed(told, queue, page + query)
        found += [int(row["BodyPreview"]) for row in rows]
        if len(rows) < 1000:
            return found


def test_paged_messages_are_seen_and_moved(tmp_path: Path) -> None:
    with managed(tmp_path, jobs=PAGES) as told:
        send_numbers(told, "jobs", 3000)
        assert told.queue("jobs")["pagedCount"] > 2000
        assert numbers(told, "jobs") == list(range(3000))
        (deep,) = browsed(told, "jobs", "?size=1&page=2951")
        assert (deep["BodyPreview"], deep["state"]) == ("2950", "paged")
        status, whole = told.ask("GET", f"/api/queues/jobs/messages/{deep['messageID']}")
        assert (status, whole["body"], whole["headers"]["parity"]) == (200, "2950", "0")
        filter = quote("parity = '1'")
        counted = told.ask("GET", f"/api/queues/jobs/count?filter={filter}")[1]
        assert (counted["count"], counted["lookedAt"], counted["groups"]) == (1500, 3000, {})
        groups = told.ask("GET", "/api/queues/jobs/count?group-by=parity")[1]
        assert groups["groups"] == {"0": 1500, "1": 1500}
        status, answer = told.ask("POST", f"/api/queues/jobs/move?target=done&filter={filter}")
        assert (status, answer["moved"]) == (200, 1500)
        assert numbers(told, "done") == list(range(1, 3000, 2))
        assert numbers(told, "jobs") == list(range(0, 3000, 2))


@pytest.mark.parametrize("jobs", ["", PAGES], ids=["memory", "pages"])
def test_a_kill_during_a_move_loses_and_doubles_nothing(tmp_path: Path, jobs: str) -> None:
    """Each message is on one of the queues, once: after each of several kills."""
    count = 2500
    with managed(tmp_path, jobs=jobs) as told:
        send_numbers(told, "jobs", count)
    moved: list[int] = []
    for _ in range(2):
        with started(tmp_path / "broker.xml") as broker, ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask, broker.ports["http"], "POST", "/api/queues/jobs/move?target=done")
            begun = Told(broker).queue("done")["messageCount"] + 50
            broker.eventually(
                "moved",
                lambda: Told(broker).queue("done")["messageCount"],
                lambda count: count > begun,  # noqa: B023
            )
            broker.kill()
            assert isinstance(asked.exception(), (OSError, HTTPException)) or asked.result().status == 200
        with managed(tmp_path, jobs=jobs) as told:
            left, there = numbers(told, "jobs"), numbers(told, "done")
            assert Counter(left + there) == Counter(range(count))
            moved.append(len(there))
    assert moved[0] < count, "the move was over before the kill"
    with managed(tmp_path, jobs=jobs) as told:
        told.ask("POST", "/api/queues/jobs/move?target=done")
        assert (told.queue("jobs")["messageCount"], numbers(told, "done")) == (0, list(range(count)))


def test_with_50_000_messages_turns_stay_short(tmp_path: Path) -> None:
    """A browse, a count with a filter that matches nothing, and a move: none makes a turn long."""
    count = 50_000
    with managed(tmp_path, persistence=False) as told:
        with told.client() as client:
            for start in range(0, count, 1000):
                for _ in range(999):
                    client.send("SEND", {"destination": "/queue/jobs"}, b"x")
                client.ask("SEND", {"destination": "/queue/jobs"}, str(start).encode())
        (last,) = browsed(told, "jobs", f"?size=1&page={count}")
        assert last["BodyPreview"] == str(count - 1000)
        nothing = told.ask("GET", f"/api/queues/jobs/count?filter={quote('region = 9')}")[1]
        assert (nothing["count"], nothing["lookedAt"]) == (0, count)
        told.asked("GET", f"/api/queues/jobs/messages/{last['messageID']}")
        status, answer = told.ask("POST", "/api/queues/jobs/move?target=done", wait_s=LONG_S)
        assert (status, answer["moved"]) == (200, count)
        (row,) = told.ask("GET", "/api/dead-letters?queue=done")[1]["data"]
        assert (row["originalQueue"], row["cause"], row["count"]) == ("jobs", None, count)
        assert told.broker.longest_turn_share < TURN_SHARE_MAX


def test_a_large_body_is_fetched_whole(tmp_path: Path) -> None:
    """As a download that no browser carries out, whatever its sender says that it is."""
    page = b"<script>alert(1)</script>" + b"x" * 3_000_000
    with managed(tmp_path) as told:
        with told.client() as client:
            headers = {"destination": "/queue/jobs", "persistent": "true", "content-type": "text/html"}
            client.ask("SEND", {**headers, "content-length": len(page)}, page)
        (row,) = browsed(told, "jobs")
        assert (row["largeMessage"], row["BodyPreview"], row["contentType"]) == (True, None, "text/html")
        path = f"/api/queues/jobs/messages/{row['messageID']}"
        assert told.ask("GET", path)[1]["body"] is None
        reply = told.broker.ask("GET", f"{path}/body")
        assert reply.answer == (200, page)
        answered = reply.headers
        assert answered["Content-Disposition"] == f'attachment; filename="message-{row["messageID"]}.bin"'
        assert (answered["Content-Type"], answered["X-Content-Type-Options"]) == ("text/html", "nosniff")
        assert answered["Content-Length"] == str(len(page))
        saved = tmp_path / "body"
        printed = told.command("message", "body", "jobs", str(row["messageID"]), "--output", str(saved))
        assert (printed.returncode, printed.stderr, saved.read_bytes()) == (0, "", page)
        again = told.command("message", "body", "jobs", str(row["messageID"]), "--output", str(saved))
        assert (again.returncode, "cannot be written: File exists" in again.stderr) == (1, True)
        assert told.ask("POST", "/api/queues/jobs/move?target=done")[1]["moved"] == 1
        assert told.ask("GET", path)[0] == 404
        (moved,) = browsed(told, "done")
        assert told.broker.ask("GET", f"/api/queues/done/messages/{moved['messageID']}/body").body == page


def test_a_content_type_that_is_none_is_bytes(tmp_path: Path) -> None:
    with managed(tmp_path) as told:
        told.send("/queue/jobs", persistent="true", **{"content-type": "text/html\\r\\nX-Evil: 1"})
        reply = told.broker.ask("GET", "/api/queues/jobs/messages/1/body")
        assert (reply.status, reply.body, reply.headers["Content-Type"]) == (200, b"x", "application/octet-stream")
        assert "X-Evil" not in reply.headers


def test_what_a_consumer_has_is_told_and_left_alone(tmp_path: Path) -> None:
    with managed(tmp_path) as told:
        told.send("/queue/jobs", "ab", persistent="true")
        client = told.client()
        client.subscribe("/queue/jobs", ack="client", consumer_window_size="0")
        client.expect("MESSAGE")
        first, second = browsed(told, "jobs")
        assert (first["state"], first["connection"] > 0, first["deliveryCount"]) == ("delivering", True, 1)
        assert first["heldBy"] == f"consumer {first['consumer']} of connection {first['connection']}"
        assert (second["state"], second["heldBy"]) == ("ready", None)
        assert told.ask("POST", "/api/queues/jobs/messages/1/remove") == (
            409,
            {"error": "message 1 of queue jobs is in delivery, and left alone; close its consumer first"},
        )
        answer = told.ask("POST", "/api/queues/jobs/move?target=done")[1]
        assert (answer["moved"], answer["inDelivery"], answer["inDeliveryMessages"]) == (1, 1, [1])
        client.close()


def test_dead_letters_go_back_at_a_rate(tmp_path: Path) -> None:
    """First a rehearsal, which changes nothing; then a job, which can be stopped."""
    with managed(tmp_path) as told:
        told.send("/queue/jobs", [str(number) for number in range(40)], persistent="true")
        with told.client() as client:  # which fails once
            client.subscribe("/queue/jobs", ack="client-individual")
            for _ in range(40):
                client.message()
        told.broker.await_count("graves", 40)
        (row,) = told.ask("GET", "/api/dead-letters")[1]["data"]
        assert (row["originalQueue"], row["cause"], row["count"]) == ("jobs", "max_deliveries", 40)
        rehearsal = told.ask("POST", "/api/dead-letters/retry?origin=jobs&dry-run=true")[1]
        assert (rehearsal["count"], rehearsal["groups"][0]["cause"]) == (40, "max_deliveries")
        assert told.queue("graves")["messageCount"] == 40
        begun = told.ask("POST", "/api/dead-letters/retry?rate=10")[1]
        assert (begun["planned"], begun["job"]) == (40, 1)
        told.broker.eventually("some", lambda: told.queue("jobs")["messageCount"], lambda count: count >= 3)
        assert told.queue("jobs")["messageCount"] < 40
        stopped = told.ask("DELETE", "/api/jobs/1")[1]
        assert (stopped["state"], stopped["done"] < 40) == ("stopped", True)
        begun = told.ask("POST", "/api/dead-letters/retry?rate=1000&cause=max_deliveries")[1]
        told.broker.eventually("all", lambda: told.queue("jobs")["messageCount"], lambda count: count == 40)
        done = told.broker.eventually(
            "done",
            lambda: told.ask("GET", "/api/jobs?where=id%3D2")[1]["data"][0],
            lambda row: row["state"] == "done",
        )
        assert (done["done"], done["planned"], done["remark"]) == (begun["planned"], begun["planned"], None)
        assert sorted(numbers(told, "jobs")) == list(range(40))


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/messages/77", 404, "queue jobs has no message 77 (any more)"),
        ("GET", "/messages/77/body", 404, "queue jobs has no message 77 (any more)"),
        ("POST", "/messages/77/remove", 404, "queue jobs has no message 77 (any more)"),
        (
            "GET",
            "/messages?which=lost",
            400,
            "there is no state 'lost'; there are all, delivering, ready, behind, paged,",
        ),
        ("GET", "/messages?size=1001", 400, "size"),
        ("GET", "/messages?filter=%3D", 400, "the filter makes no sense: "),
        ("POST", "/move?target=jobs", 400, "jobs is the queue itself; name another one"),
        ("POST", "/move?target=joobs", 404, "there is no queue or address 'joobs' to put messages on"),
        ("POST", "/priority?priority=10", 400, "priority must be 0 to 9, not 10"),
        ("POST", "/remove", 400, "filter is missing: "),
    ],
)
def test_what_is_refused(told_once: Told, method: str, path: str, status: int, said: str) -> None:
    found, answer = told_once.ask(method, f"/api/queues/jobs{path}")
    assert (found, said in answer["error"]) == (status, True), answer


told_once = for_the_module(partial(managed, persistence=False))
"""A broker for all that is refused."""
