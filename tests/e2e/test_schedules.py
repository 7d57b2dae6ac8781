"""Messages that are sent again and again by a real broker: through kills, and as operators see and cancel them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from tests.kit.client import connected
from tests.kit.forks import run_text
from tests.kit.http import HttpClient
from tests.kit.process import WAIT_S, BrokerProcess, configuration, for_each_test, started, storing

QUEUE = '<address name="q"><anycast><queue name="q"/></anycast></address>'


def test_each_time_is_there_once_however_often_the_broker_is_killed(tmp_path: Path) -> None:
    chance = random.Random(5)
    file = tmp_path / "broker.xml"
    file.write_text(configuration(folder=tmp_path, addresses=QUEUE))
    times = 30
    headers = {"persistent": "true", "AMQ_SCHEDULED_PERIOD": 100, "AMQ_SCHEDULED_REPEAT": times - 1}
    with started(file) as broker, connected(broker.port) as client:
        client.ask("SEND", {"destination": "/queue/q", **headers}, b"tick")
        broker.kill()
    kills, count = 1, 0
    while count < times:
        with started(file) as broker:
            enough = min(times, count + chance.randint(1, 6))
            count = broker.eventually(
                "some more",
                lambda: broker.count("q"),
                lambda seen: seen >= enough,  # noqa: B023
            )
            broker.kill()
        kills += 1
    assert kills > 4
    with started(file) as broker, connected(broker.port) as client:
        broker.eventually("the end", lambda: broker.api("/api/schedules")["count"], lambda count: count == 0)
        broker.await_count("q", times)
        client.subscribe("/queue/q", ack="auto")
        messages = [client.message() for _ in range(times)]
        assert {message.body for message in messages} == {b"tick"}
        assert len({message.header("scheduledJobId") for message in messages}) == 1
        broker.await_count("q", 0)
        assert broker.stop() == 0


broker = for_each_test(partial(storing, addresses=QUEUE))


def test_it_is_listed_and_cancelled(broker: BrokerProcess) -> None:
    with connected(broker.port) as client:
        client.ask("SEND", {"destination": "/queue/q", "AMQ_SCHEDULED_CRON": "0 9 * * MON-FRI"}, b"a")
        client.ask("SEND", {"destination": "/queue/q", "AMQ_SCHEDULED_PERIOD": 100, "AMQ_SCHEDULED_REPEAT": -1}, b"b")
        rows = {row["cron"]: row for row in broker.api("/api/schedules")["data"]}
        assert rows["0 9 * * MON-FRI"]["destination"] == "q"
        assert (rows[None]["period"], rows[None]["repeat"]) == (100, -1)
        client.subscribe("/queue/q", ack="auto")
        message = client.message()
        assert message.header("scheduledJobId") == str(rows[None]["schedule"])
        url = ["--url", broker.url]
        told = run_text(["schedule", "cancel", str(rows[None]["schedule"]), "--yes", *url], timeout=WAIT_S)
        assert told.returncode == 0, told.stderr
        shown = run_text(["schedule", "ls", *url], timeout=WAIT_S)
        assert "0 9 * * MON-FRI" in shown.stdout
        assert broker.api("/api/schedules")["count"] == 1
        again = run_text(["schedule", "cancel", str(rows[None]["schedule"]), "--yes", *url], timeout=WAIT_S)
        assert again.returncode == 1
        assert "there is no schedule" in again.stderr


def test_over_http(broker: BrokerProcess) -> None:
    """As a header, in any case."""
    headers = {"Artemis-AMQ_SCHEDULED_PERIOD": "100", "Artemis-amq_scheduled_repeat": "1"}
    with HttpClient(broker.ports["http"], headers=headers) as client:
        assert client.ask("POST", "/api/messages/q", b"a").status == 200
    broker.await_count("q", 2)


def test_a_deleted_address_is_told(tmp_path: Path) -> None:
    settings = """<address-setting match="#">
      <auto-create-addresses>false</auto-create-addresses><auto-create-queues>false</auto-create-queues>
    </address-setting>"""
    file = tmp_path / "broker.xml"
    file.write_text(configuration(folder=tmp_path, addresses=QUEUE, settings=settings))
    with started(file) as broker, connected(broker.port) as client:
        headers = {"persistent": "true", "AMQ_SCHEDULED_PERIOD": 100, "AMQ_SCHEDULED_REPEAT": -1}
        client.ask("SEND", {"destination": "/queue/q", **headers}, b"tick")
        assert broker.api("/api/schedules")["data"][0]["state"] == "waits"
        url = ["--url", broker.url]
        deleted = run_text(["address", "delete", "q", "--force", "--yes", *url], timeout=WAIT_S)
        assert deleted.returncode == 0, deleted.stderr
        broker.await_said("ART-1021 schedule=")
        (row,) = broker.api("/api/schedules")["data"]
        assert (row["state"], row["destination"]) == ("no-destination", "q")
        line = next(line for line in broker.said.splitlines() if "ART-1021" in line)
        assert "Address q does not exist and auto-create-addresses is false for it" in line
        due_ms = row["next"]
        broker.eventually("it goes on", lambda: broker.api("/api/schedules")["data"][0]["next"], lambda ms: ms > due_ms)
        assert "no-destination" in run_text(["schedule", "ls", *url], timeout=WAIT_S).stdout
        assert broker.said.count("ART-1021") == 1
        assert broker.stop() == 0
