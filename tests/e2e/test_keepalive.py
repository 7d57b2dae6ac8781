"""A client that is gone without a word is found by the system: Linux shows its timer on every accepted socket."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.client import StompSocket
from tests.kit.process import HTTP, LOOPBACK, STOMP, BrokerProcess, configuration

pytestmark = pytest.mark.e2e

KEEPALIVE = 2
IDLE_S = 60
TICKS_A_SECOND = 100


def timer_of(server_port: int, client: socket.socket) -> tuple[int, float]:
    """The timer that runs for the broker's end of a connection (0: none), and in how many seconds it rings."""
    client_port = client.getsockname()[1]
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        _, local, remote, _, _, timer, *_ = line.split()
        if (int(local.split(":")[1], 16), int(remote.split(":")[1], 16)) == (server_port, client_port):
            kind, _, ticks = timer.partition(":")
            return int(kind, 16), int(ticks, 16) / TICKS_A_SECOND
    return -1, 0.0


@pytest.mark.parametrize(("parameter", "kind"), [("", KEEPALIVE), (";tcpKeepAlive=false", 0)], ids=["default", "off"])
def test_the_system_asks_clients_that_are_silent(
    start_broker: Callable[[str], BrokerProcess], parameter: str, kind: int
) -> None:
    broker = start_broker(configuration({"stomp": STOMP + parameter, "http": HTTP + parameter}))
    with StompSocket(broker.port) as silent, StompSocket(broker.port) as greeted, socket.socket() as http:
        http.connect((LOOPBACK, broker.ports["http"]))
        answer = greeted.connect(heart_beat="0,999999999999")
        assert answer.header("heart-beat") == "300000,30000"
        greeted.subscribe("/queue/keepalive")
        for port, client in ((broker.port, silent.socket), (broker.port, greeted.socket), (broker.ports["http"], http)):
            found, after_s = broker.eventually(
                "the connection's timer",
                lambda port=port, client=client: timer_of(port, client),  # type: ignore[misc]
                lambda seen: seen[0] == kind,
            )
            assert after_s <= IDLE_S + 1, found
