"""An hour of clients that come and go in every way: memory, descriptors and threads of the broker stay as they are.

``--churn-minutes N`` sets how long (``make soak``: 60). ``tests/unit/holdings/test_churn.py`` counts objects instead.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from tests.kit.churn_scripts import visits
from tests.kit.process import HTTP, STOMP, BrokerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(0)]

SOAK_MINUTES = 60
OPEN_MAX = 30
"""Visits that are over and not dropped yet: so all kinds of them are open at once."""
LOOK_EVERY_S = 1.0
GROWTH_MAX = 0.05
GROWTH_BYTES_MAX = 6 << 20
"""What the median of the last third may be above that of the second: a share of it, and so many bytes."""

CONFIGURATION = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled>
  <name>churn</name>
  <journal-directory>journal</journal-directory><paging-directory>paging</paging-directory>
  <bindings-directory>bindings</bindings-directory><large-messages-directory>large</large-messages-directory>
  <journal-file-size>1MiB</journal-file-size><journal-datasync>false</journal-datasync>
  <address-queue-scan-period>200</address-queue-scan-period>
  <id-cache-size>1000</id-cache-size>
  <acceptors>
    <acceptor name="stomp">{stomp};stompMinLargeMessageSize=100000;handshakeTimeout=2000</acceptor>
    <acceptor name="http">{http}</acceptor>
  </acceptors>
  <address-settings><address-setting match="#">
    <dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
    <id-cache-size>1000</id-cache-size><default-ring-size>100</default-ring-size>
    <auto-delete-queues-message-count>-1</auto-delete-queues-message-count>
  </address-setting></address-settings>
  <addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>
</core></configuration>
"""


class Look(NamedTuple):
    """What the process takes."""

    memory_bytes: int
    descriptors: int
    threads: int


def test_nothing_grows(
    start_broker: Callable[[str], BrokerProcess],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes an hour, or ``--churn-minutes``."""
    options = request.config.option
    if options.churn_minutes is None and request.config.getoption("--hypothesis-profile") != "soak":
        pytest.skip("an hour: make soak, or --churn-minutes N")
    minutes = SOAK_MINUTES if options.churn_minutes is None else options.churn_minutes
    monkeypatch.chdir(tmp_path)
    broker = start_broker(CONFIGURATION.format(stomp=STOMP, http=HTTP))
    rounds, chance = visits(options.seed), random.Random(options.seed)
    open_now: list[socket.socket] = []
    looks: list[Look] = []
    started, looked, count = time.monotonic(), 0.0, 0
    while (elapsed := time.monotonic() - started) < 60 * minutes:
        visit = chance.choice(next(rounds))
        client = socket.create_connection(("127.0.0.1", broker.ports["http" if visit.http else "stomp"]), 20)
        open_now.append(client)
        if visit.name == "unread":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for step in visit.steps:
            client.sendall(step.send)
            received = b""
            while step.awaited and step.awaited not in received:
                data = client.recv(65536)
                assert data, f"{visit.name}: the broker closed the connection after {received[-300:]!r}"
                received += data
        count += 1
        if len(open_now) >= OPEN_MAX:
            open_now.pop(0).close()
        if elapsed - looked >= LOOK_EVERY_S:
            looked = elapsed
            folder = Path(f"/proc/{broker.process.pid}")
            looks.append(Look(broker.memory_bytes, len(os.listdir(folder / "fd")), len(os.listdir(folder / "task"))))
    for client in open_now:
        client.close()
    broker.await_metric(0, "artemis_connection_count")
    third = len(looks) // 3
    before, after = looks[third : 2 * third], looks[2 * third :]
    print(f"{count} visits; second third {before[0]} … {before[-1]}; last third {after[0]} … {after[-1]}")
    print("MiB:", *[one.memory_bytes >> 20 for one in looks[:: max(len(looks) // 30, 1)]])
    settled, ended = median(one.memory_bytes for one in before), median(one.memory_bytes for one in after)
    assert ended <= settled * (1 + GROWTH_MAX) + GROWTH_BYTES_MAX, [one.memory_bytes >> 20 for one in looks]
    assert median(one.descriptors for one in after) <= median(one.descriptors for one in before) + 3
    assert max(one.threads for one in after) <= max(one.threads for one in before) + 1
    held = broker.metric("artemis_held_bytes", kind="connections")
    assert held == 0, f"{held} bytes are counted for connections, and none is open"
    for kind in ("input", "output", "transactions", "subscriptions"):
        assert broker.metric("artemis_held_bytes", kind=kind) == 0, kind
