"""A broker that keeps its log, and a reader of it over HTTP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tests.kit.client import connected
from tests.kit.process import DAYS, HTTP, STOMP, BrokerProcess, configuration, started

LITTLE = 'storage-limit="200K"'


PERSISTENT = {"persistent": "true"}


def logged(
    folder: Path, retention: str = DAYS, *, persistence: bool = True, disk_percent_max: int = -1, http: str = HTTP
) -> AbstractContextManager[BrokerProcess]:
    """A broker with everything in ``folder``. ``retention``: how much of its log is kept."""
    core = f"""<journal-file-size>64K</journal-file-size><disk-scan-period>50</disk-scan-period>
    <max-disk-usage>{disk_percent_max}</max-disk-usage>"""
    text = configuration({"stomp": STOMP, "http": http}, folder=folder, persists=persistence, core=core, kept=retention)
    file = folder / "broker.xml"
    file.write_text(text, "utf-8")
    return started(file)


def answer(
    broker: BrokerProcess, path: str, method: str = "GET", body: object = None, **headers: str
) -> tuple[int, bytes]:
    """Its status and its body."""
    reply = broker.ask(method, path, body, **headers)
    return reply.status, reply.body


def bytes_of(broker: BrokerProcess, number: int, first: int = 0, end: int | None = None) -> bytes:
    """Part of a segment."""
    wanted = f"bytes={first}-{'' if end is None else end - 1}"
    status, data = answer(broker, f"/log/segments/{number}", Range=wanted)
    assert status == 206, (number, wanted, data)
    return data


def send(broker: BrokerProcess, count: int, destination: str = "/queue/q", body: bytes = bytes(500)) -> None:
    """So many messages, each receipted."""
    with connected(broker.port) as client:
        for _ in range(count):
            client.ask("SEND", {"destination": destination, **PERSISTENT}, body)
