"""A broker that keeps its log, and a reader of it over HTTP."""

from __future__ import annotations

from functools import partial

from tests.kit.client import connected
from tests.kit.process import DAYS, BrokerProcess, storing

LITTLE = 'storage-limit="200K"'
PERSISTENT = {"persistent": "true"}


CORE = """<journal-file-size>64K</journal-file-size><disk-scan-period>50</disk-scan-period>
<max-disk-usage>{}</max-disk-usage>"""
logged = partial(storing, core=CORE.format(-1), kept=DAYS)
"""A broker that keeps its log in small files."""


def bytes_of(broker: BrokerProcess, number: int, first: int = 0, end: int | None = None) -> bytes:
    """Part of a segment."""
    wanted = f"bytes={first}-{'' if end is None else end - 1}"
    reply = broker.ask("GET", f"/log/segments/{number}", Range=wanted)
    assert reply.status == 206, (number, wanted, reply.body)
    return reply.body


def send(broker: BrokerProcess, count: int, destination: str = "/queue/q", body: bytes = bytes(500)) -> None:
    """So many messages, every twentieth of which is waited for: no segment has many more of them."""
    with connected(broker.port) as client:
        for first in range(0, count, 20):
            client.publish(destination, [body] * min(20, count - first))
