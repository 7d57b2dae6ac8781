"""Brokers for ``artemis-py data``, the command, and the lines of its files."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.kit.client import StompSocket
from tests.kit.forks import run_text
from tests.kit.process import HTTP, STOMP, SWEPT, BrokerProcess, configuration, running

ADDRESSES = """\
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="later"><anycast><queue name="later"/></anycast></address>
      <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
"""
SETTINGS = """<max-size-messages>{in_memory}</max-size-messages><page-size-bytes>4K</page-size-bytes>
<redelivery-delay>0</redelivery-delay>"""
FIRST = '{"export":{"format":1,"id":"x"}}\n'
END = '{"end":{}}\n'
BINARY = bytes(range(256))
LARGE = os.urandom(1 << 20) * 2


@contextmanager
def a_broker(
    folder: Path,
    name: str,
    addresses: str = "",
    *,
    creates: bool = False,
    core: str = "",
    settings: str = "",
    http: str = HTTP,
) -> Iterator[BrokerProcess]:
    """A broker with a journal; without ``creates`` clients get no queue that is not there. ``settings`` are those of
    all addresses.
    """
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "broker.log").unlink(missing_ok=True)  # what an earlier run of it said
    creation = f"<auto-create-queues>{creates}</auto-create-queues><auto-create-addresses>{creates}"
    settings += f"{creation}</auto-create-addresses>".lower()
    text = configuration(
        {"stomp": STOMP, "http": http}, folder=place, name=name, core=SWEPT + core, addresses=addresses,
        settings=f'<address-setting match="#">{settings}</address-setting>',
    )  # fmt: skip
    with running(text, place) as broker:
        yield broker


def stocked(folder: Path, name: str = "old", in_memory: int = 5) -> AbstractContextManager[BrokerProcess]:
    """A broker with queues, of which so many messages are in memory, and the others in pages."""
    return a_broker(folder, name, ADDRESSES, creates=True, settings=SETTINGS.format(in_memory=in_memory))


def an_export(folder: Path, broker: BrokerProcess) -> Path:
    """What a running broker has."""
    path = folder / "out.jsonl"
    told = data("exp", "--url", broker.url, "--output", path)
    assert told.returncode == 0, told.stderr
    return path


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


def whole_messages(path: Path) -> list[dict[str, Any]]:
    """The messages of a file, each with the pieces of its body, which come behind it."""
    found: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines():
        ((kind, value),) = json.loads(line).items()
        if kind == "message":
            found.append({**value, "pieces": b""})
        elif kind == "piece":
            found[-1]["pieces"] += base64.b64decode(value)
    assert all(len(message["pieces"]) == message.get("piece_bytes", 0) for message in found)
    return found


def noted_by(path: Path, ending: str = "imported") -> Any:
    """What a command that reads or writes a file has noted beside it; empty while there is nothing whole."""
    try:
        return json.loads(Path(f"{path}.{ending}").read_text("utf-8").partition("\n")[0])
    except (OSError, ValueError):
        return Counter()


def send_many_things(client: StompSocket) -> None:
    tomorrow = round((time.time() + 86_400) * 1000)
    sent: list[tuple[str, bytes, dict[str, object]]] = [
        # five in memory, the others in pages
        *(("/queue/orders", b"%d" % number, {"color": "green\\cblue", "priority": number % 3}) for number in range(20)),
        ("/queue/orders", BINARY, {}),
        ("/queue/orders", LARGE, {"kind": "large"}),
        ("/queue/orders", b"transient: it did not survive the stop", {"persistent": "false"}),
        ("/topic/news", "für zwei".encode(), {}),
        ("/topic/news", b"second", {}),
        ("/queue/later", b"tomorrow", {"AMQ_SCHEDULED_TIME": tomorrow}),
        ("/queue/later", b"today", {"expires": tomorrow}),
    ]
    for destination, body, headers in sent:
        client.ask("SEND", {"destination": destination, "persistent": "true", **headers}, body)
    client.subscribe("/queue/news::news.a", id="a")
    first = client.message()
    client.acknowledge(first)
    second = client.message()
    client.send("NACK", {"id": second.header("ack")})
    again = client.message()
    assert again.header("redelivered") == "true"
    client.ask("UNSUBSCRIBE", {"id": "a"})
