"""More clients than the process may have file descriptors: it lives, stores, answers scrapes, and says it once."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.certificates import Authority
from tests.kit.client import StompSocket, connected
from tests.kit.http import HttpClient
from tests.kit.process import HTTP, LOOPBACK, STOMP, WAIT_S, needs_descriptors, retained, started
from tests.kit.tls import trusting, uri

pytestmark = pytest.mark.e2e

LIMIT = 256
CLIENTS = 1000
LIMITED = (LIMIT // 2, LIMIT)
"""As after ``ulimit -S -n``: the soft limit the broker may raise itself."""
LOG_BYTES_MAX = 100_000


ACCEPTORS: Final = {"stomp": f"{STOMP};handshakeTimeout=600000", "http": HTTP}
PAGES: Final = '<address-setting match="pages.#"><max-size-bytes>20K</max-size-bytes></address-setting>'


def _many(stack: ExitStack, port: int) -> list[StompSocket]:
    needs_descriptors(len(os.listdir("/proc/self/fd")) + CLIENTS + 100)
    return [stack.enter_context(StompSocket(port)) for _ in range(CLIENTS)]


SILENT: Final = {
    "silent": b"",
    "half a request": b"GET /api/queues HTTP/1.1\r\nHost: local",
    "half a body": b"POST /messages/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    "idle": b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "waiting for a message": (
        b"POST /api/messages/q/take?timeout=50 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    ),
    "events": b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a handshake never begun": None,
    "a handshake never finished": b"\x16\x03\x01\x02\x00\x01",
}
"""What clients of HTTP send before they do nothing more; the last two are those of HTTPS."""


@pytest.mark.parametrize("data", SILENT.values(), ids=SILENT.keys())
def test_health_and_metrics_answer_whatever_the_others_do(tmp_path: Path, data: bytes | None) -> None:
    authority = Authority()
    key = authority.issue("localhost").pem(tmp_path / "key.pem")
    queue = '<address name="q"><anycast><queue name="q"/></anycast></address>'
    https = uri("HTTP", keyStorePath=key, handshakeTimeout=600000)
    file = configured(tmp_path, addresses=queue, acceptors={**ACCEPTORS, "https": https})
    context = trusting(authority)
    with started(file, descriptors=LIMITED) as broker, ExitStack() as stack:
        working = stack.enter_context(connected(broker.port))
        _many(stack, broker.port)
        broker.await_metric(1, "artemis_acceptors_paused")
        port = broker.ports["https" if data is None or data.startswith(b"\x16") else "http"]
        for _ in range(LIMIT // 4):
            client = stack.enter_context(socket.create_connection((LOOPBACK, port), WAIT_S))
            with suppress(OSError):  # those who came first may have been ended
                client.sendall(data or b"")
        for _ in range(3):
            assert broker.ask("GET", "/health/live").status == 200
            assert broker.ask("GET", "/metrics").status == 200
            with HttpClient(broker.ports["https"], tls=context) as web:
                assert web.ask("GET", "/health/ready").status == 200
        for _ in range(10):
            working.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, bytes(300_000))
        assert broker.metric("process_open_fds") < LIMIT
        assert broker.stop() == 0, broker.said
    assert "Traceback" not in broker.said


def test_a_request_takes_the_place_of_whoever_is_idle(tmp_path: Path) -> None:
    """Not only health and metrics: as long as somebody is idle, nobody who asks is turned away."""
    with started(configured(tmp_path, acceptors=ACCEPTORS), descriptors=LIMITED) as broker, ExitStack() as stack:
        _many(stack, broker.port)
        broker.await_metric(1, "artemis_acceptors_paused")
        for _ in range(LIMIT // 4):
            stack.enter_context(socket.create_connection((LOOPBACK, broker.ports["http"]), WAIT_S))
        found: list[int] = []
        for _ in range(16):
            client = stack.enter_context(HttpClient(broker.ports["http"]))  # it stays open, idle as the others
            found.append(client.ask("GET", "/api/queues").status)
        assert found == [200] * 16


def test_readers_of_the_log_leave_descriptors_to_storage(tmp_path: Path) -> None:
    acceptors = {**ACCEPTORS, "slow": f"{HTTP};maxLogBytesPerSecond=1"}
    file = configured(tmp_path, core=retained(tmp_path), acceptors=acceptors)
    with started(file, descriptors=LIMITED) as broker, ExitStack() as stack:
        working = stack.enter_context(connected(broker.port))
        for number in range(20):
            working.ask("SEND", {"destination": f"/queue/{number}", **PERSISTENT}, bytes(15_000))
        statuses = set()
        for _ in range(LIMIT // 2):
            reader = stack.enter_context(socket.create_connection((LOOPBACK, broker.ports["slow"]), WAIT_S))
            reader.sendall(b"GET /log/segments/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            statuses.add(reader.recv(12)[9:])
            assert statuses <= {b"200", b"503", b""}, "no segment is called gone"
            working.ask("SEND", {"destination": f"/queue/{len(statuses)}", **PERSISTENT}, bytes(15_000))
        assert statuses >= {b"200", b"503"}
        assert broker.ask("GET", "/health/live").status == 200
        assert broker.stop() == 0, broker.said
    assert "Traceback" not in broker.said


def test_a_thousand_connections_and_few_descriptors(tmp_path: Path) -> None:
    file = configured(tmp_path, settings=PAGES, acceptors=ACCEPTORS)
    with started(file, descriptors=LIMITED) as broker, ExitStack() as stack:
        working = stack.enter_context(connected(broker.port))
        idle = _many(stack, broker.port)
        broker.await_metric(1, "artemis_acceptors_paused")
        assert broker.metric("artemis_descriptors_max") == LIMIT
        assert LIMIT // 2 < broker.metric("artemis_connection_count") < LIMIT
        for address in ("q", *(f"pages.{number}" for number in range(40))):
            working.ask("SEND", {"destination": f"/queue/{address}", **PERSISTENT}, bytes(15_000))
            working.ask("SEND", {"destination": f"/queue/{address}", **PERSISTENT}, bytes(15_000))
        for _ in range(10):
            working.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, bytes(300_000))
        assert broker.metric("process_open_fds") < LIMIT
        for client in idle:
            client.reset()
        broker.await_metric(0, "artemis_acceptors_paused")
        with connected(broker.port) as late:
            late.subscribe("/queue/q", ack="client")
            assert len(late.message().body) == 15_000
        broker.await_metric(1, "artemis_connection_count")
        assert broker.stop() == 0, broker.said
    assert (
        broker.said.count("accepts no connections until others are closed") <= 4
    )  # the last one tells how often it was held back
    assert "Traceback" not in broker.said
    assert len(broker.said) < LOG_BYTES_MAX
