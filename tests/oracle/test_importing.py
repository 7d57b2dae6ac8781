"""``artemis-py data imp`` into a real Artemis that makes no queues for clients: what an export has is there then."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.broker_process import LOOPBACK
from tests.oracle.artemis_broker import ArtemisBroker, artemis_broker, artemis_home
from tests.oracle.client import WAIT_S, Client
from tests.oracle.configuration import Profile
from tests.oracle.scenario import Scenario

pytestmark = [pytest.mark.timeout(300), pytest.mark.oracle]

_NONE = "<auto-create-queues>false</auto-create-queues><auto-create-addresses>false</auto-create-addresses>"
SETTINGS = tuple(
    f'<address-setting match="{match}">{_NONE}</address-setting>' for match in ("in.#", "artemis-py.#", "stocks")
)
ADDRESSES = [
    {"name": "in.ring", "routing_types": ["ANYCAST"]},
    {"name": "in.both", "routing_types": ["ANYCAST", "MULTICAST"], "paused": True},
    {"name": "stocks", "routing_types": ["MULTICAST"], "auto_created": True},
]
QUEUES: list[dict[str, Any]] = [
    {
        "name": "in.ring",
        "address": "in.ring",
        "routing_type": "ANYCAST",
        "ring_size": 3,
        "attributes": {"exclusive": True},
    },
    {
        "name": "in.durable",
        "address": "in.both",
        "routing_type": "MULTICAST",
        "filter": "kind = 'big'",
        "attributes": {"max_consumers": 2},
    },
    {"name": "in.stopped", "address": "in.both", "routing_type": "ANYCAST", "paused": True},
    {"name": "in.closed", "address": "in.closed", "routing_type": "ANYCAST", "attributes": {"enabled": False}},
    {
        "name": "in.ours",
        "address": "in.ours",
        "routing_type": "ANYCAST",
        "attributes": {
            "overflow_policy": "REJECT",
            "max_depth_messages": 50,
            "lease_period": 60_000,
            "last_value": False,
        },
    },
    {
        "name": "brief",
        "address": "stocks",
        "routing_type": "MULTICAST",
        "auto_created": True,
        "auto_delete": [True, 3_600_000, 0],
    },
]
SHOWN = {
    "in.ring": {"ringSize": "3", "exclusive": "true", "routingType": "ANYCAST", "address": "in.ring"},
    "in.durable": {"maxConsumers": "2", "filter": "kind = 'big'", "routingType": "MULTICAST", "address": "in.both"},
    "in.stopped": {"paused": "true", "enabled": "true"},
    "in.closed": {"enabled": "false"},
    "in.ours": {"durable": "true", "lastValue": "false"},
    "brief": {"autoCreated": "true", "autoDelete": "true", "address": "stocks"},
}


@pytest.fixture(scope="module")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtemisBroker]:
    """A real Artemis; skips without one."""
    home = artemis_home()
    if home is None:
        pytest.skip("no Artemis: neither ARTEMIS_HOME nor apache-artemis-* in a folder of .cache, or no Java")
    declared = Scenario("importing", "clients get no queues", (), settings=SETTINGS)
    with artemis_broker(Profile("importing", 100, (declared,)), tmp_path_factory.mktemp("artemis"), home) as broker:
        yield broker


def an_export(path: Path) -> Path:
    """A file with a message on each queue."""
    lines: list[dict[str, Any]] = [{"export": {"format": 1, "id": path.name}}]
    lines += [{"address": one} for one in ADDRESSES] + [{"queue": one} for one in QUEUES]
    for number, queue in enumerate(QUEUES):
        message = {"id": number, "address": queue["address"], "queues": [queue["name"]], "text": f"for {queue['name']}"}
        lines.append({"message": {**message, "headers": [["kind", "big"], ["destination", "old"]]}})
    lines.append({"end": {}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def imported(artemis: ArtemisBroker, path: Path) -> subprocess.CompletedProcess[str]:
    """The command."""
    url = f"stomp://{LOOPBACK}:{artemis.ports['stomp']}"
    command = [sys.executable, "-m", "artemis_py", "data", "imp", str(path), "--stomp", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_an_import_makes_the_queues(artemis: ArtemisBroker, tmp_path: Path) -> None:
    for made in (6, 0):
        told = imported(artemis, an_export(tmp_path / "out.jsonl"))
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.endswith(f", and made {made} queues\n")
        for name, shown in SHOWN.items():
            row = artemis._row("listQueues", "name", name)
            assert row is not None
            assert {key: str(row[key]) for key in shown} == shown
            assert int(row["messageCount"]) == 1
    assert artemis._ask("address.in.both", attribute="paused") is True
    assert sorted(artemis._ask("address.in.both", attribute="routingTypes")) == ["ANYCAST", "MULTICAST"]
    assert [name for name in artemis._ask("broker", attribute="queueNames") if name.startswith("artemis-py")] == []
    client = Client(artemis.ports["stomp"], "1.2")
    client.send("CONNECT", {"accept-version": "1.2", "host": "oracle"})
    assert client.answer().command == "CONNECTED"
    client.request("SUBSCRIBE", {"destination": "stocks::brief", "id": "1", "ack": "auto"})
    message = client.message(WAIT_S)
    assert message is not None
    assert message.text == "for brief"
    client.close()


def test_a_queue_that_artemis_refuses(artemis: ArtemisBroker, tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    queue = {"name": "in.bad", "address": "in.bad", "routing_type": "ANYCAST", "filter": "kind = = 'big'"}
    message = {"id": 1, "address": "in.bad", "queues": ["in.bad"], "text": "x", "headers": []}
    lines = [{"export": {"format": 1, "id": "r"}}, {"queue": queue}, {"message": message}, {"end": {}}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    told = imported(artemis, path)
    assert told.returncode == 1
    assert told.stderr.startswith("MISSING queue in.bad: AMQ229020"), told.stderr
    assert told.stderr.endswith("; 1 message of it was not imported (later: --queue in.bad)\n")
