"""Brokers that ``artemis-py data imp`` writes to, and what they have then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.data_command import data
from tests.kit.client import StompSocket
from tests.kit.http import ask
from tests.kit.process import HTTP, STOMP, SWEPT, BrokerProcess, configuration, running


@contextmanager
def a_broker(
    folder: Path,
    name: str,
    addresses: str = "",
    *,
    creates: bool = False,
    more: str = "",
    settings: str = "<auto-create-queues>",
    http_more: str = "",
) -> Iterator[BrokerProcess]:
    """A broker with a journal; without ``creates`` clients get no queue that is not there. ``settings`` of all
    addresses come before whether it creates queues.
    """
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "broker.log").unlink(missing_ok=True)  # what an earlier run of it said
    created = str(creates).lower()
    text = configuration(
        {"stomp": STOMP, "http": HTTP + http_more},
        folder=place,
        name=name,
        core=SWEPT + more,
        addresses=addresses,
        settings=f"""<address-setting match="#">{settings}{created}</auto-create-queues>
        <auto-create-addresses>{created}</auto-create-addresses></address-setting>""",
    )
    with running(text, place) as broker:
        yield broker


def asked(broker: BrokerProcess, method: str, path: str, body: object = None) -> Any:
    """The answer to a request."""
    reply = ask(broker.ports["http"], method, path, body, content_type="application/json")
    assert reply.status < 300, reply.body
    return reply.json


def rows(broker: BrokerProcess, what: str) -> dict[str, Any]:
    """All queues or addresses by name, with what they are."""
    found = asked(broker, "GET", f"/api/{what}?size=1000")["data"]
    return {row["name"]: row for row in found}


def send(client: StompSocket, destination: str, count: int, **headers: object) -> None:
    """Messages."""
    for number in range(count):
        client.ask("SEND", {"destination": destination, "persistent": "true", **headers}, b"%d" % number)


def an_export(folder: Path, broker: BrokerProcess) -> Path:
    """What a running broker has."""
    path = folder / "out.jsonl"
    told = data("exp", "--url", broker.url, "--output", path)
    assert told.returncode == 0, told.stderr
    return path
