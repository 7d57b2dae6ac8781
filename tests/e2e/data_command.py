"""Brokers for ``artemis-py data``, the command, and the lines of its files."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.kit.client import StompSocket
from tests.kit.forks import run_text
from tests.kit.process import BOTH, configuration

ACCEPTORS = {name: f"{uri};stompMinLargeMessageSize=100000" for name, uri in BOTH.items()}


ADDRESSES = """\
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="later"><anycast><queue name="later"/></anycast></address>
      <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
"""


SETTINGS = """\
      <address-setting match="#">
        <max-size-messages>{in_memory}</max-size-messages>
        <page-size-bytes>4K</page-size-bytes>
        <redelivery-delay>0</redelivery-delay>
      </address-setting>
      <address-setting match="locked"><auto-create-queues>false</auto-create-queues></address-setting>
"""


FIRST = '{"export":{"format":1,"id":"x"}}\n'


END = '{"end":{}}\n'


BINARY = bytes(range(256))


LARGE = os.urandom(1 << 20) * 2


def a_broker(folder: Path, name: str, in_memory: int = 5) -> tuple[str, Path]:
    """A configuration, and the folder of its files."""
    place = folder / name
    place.mkdir()
    settings = SETTINGS.format(in_memory=in_memory)
    text = configuration(ACCEPTORS, folder=place, name=name, core="", addresses=ADDRESSES, settings=settings)
    (place / "broker.xml").write_text(text, "utf-8")
    return text, place


def data(*words: object) -> subprocess.CompletedProcess[str]:
    """The command."""
    return run_text(["data", *map(str, words)], timeout=120)


def a_line(**fields: object) -> str:
    """The line of a message."""
    return json.dumps({"message": {"id": 1, "headers": [], **fields}}) + "\n"


def lines(path: Path, kind: str) -> list[Any]:
    """The lines of a kind."""
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line[kind] for line in found if kind in line]


def noted_by(path: Path, ending: str = "imported") -> Any:
    """What a command that reads or writes a file has noted beside it; empty while there is nothing whole."""
    try:
        return json.loads(Path(f"{path}.{ending}").read_text("utf-8").partition("\n")[0])
    except (OSError, ValueError):
        return Counter()


def take(client: StompSocket, destination: str, count: int) -> list[Any]:
    """The messages of a queue."""
    client.subscribe(destination, id=destination, ack="auto")
    found = [client.message() for _ in range(count)]
    client.ask("UNSUBSCRIBE", {"id": destination})
    return found


def send_many_things(client: StompSocket) -> None:
    def send(destination: str, body: bytes, **headers: object) -> None:
        client.ask("SEND", {"destination": destination, "persistent": "true", **headers}, body)

    for number in range(20):  # five in memory, the others in pages
        send("/queue/orders", b"%d" % number, color="green\\cblue", priority=number % 3)
    send("/queue/orders", BINARY)
    send("/queue/orders", LARGE, kind="large")
    client.ask("SEND", {"destination": "/queue/orders"}, b"transient: it did not survive the stop")
    send("/topic/news", "für zwei".encode())
    send("/topic/news", b"second")
    client.subscribe("/queue/news::news.a", id="a")
    first = client.message()
    client.acknowledge(first)
    second = client.message()
    client.send("NACK", {"id": second.header("ack")})
    again = client.message()
    assert again.header("redelivered") == "true"
    client.ask("UNSUBSCRIBE", {"id": "a"})
    send("/queue/later", b"tomorrow", AMQ_SCHEDULED_TIME=round((time.time() + 86_400) * 1000))
    send("/queue/later", b"today", expires=round((time.time() + 86_400) * 1000))
