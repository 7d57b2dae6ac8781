"""More clients than the process may have file descriptors: it lives, stores, answers scrapes, and says it once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.broker_process import HTTP, BrokerProcess, needs_descriptors
from tests.e2e.stomp_socket import StompSocket, connected
from tests.e2e.test_journal_files import PERSISTENT, configured

pytestmark = pytest.mark.e2e

LIMIT = 256
CLIENTS = 1000
LOG_BYTES_MAX = 100_000


@contextmanager
def _limited(file: Path) -> Iterator[BrokerProcess]:
    """A broker that may have few descriptors, as after ``ulimit -S -n``: the soft limit it may raise itself."""
    broker = BrokerProcess(["run", str(file)], file.with_suffix(".log"), descriptors=(LIMIT // 2, LIMIT))
    try:
        broker.await_ready()
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The configuration of a broker with small files, and pages, and large bodies, and an HTTP acceptor."""
    file = configured(tmp_path)
    text = file.read_text("utf-8")
    http = f'<acceptor name="http">{HTTP}</acceptor></acceptors>'
    pages = '<address-setting match="pages.#"><max-size-bytes>20K</max-size-bytes></address-setting></address-settings>'
    text = text.replace("</acceptors>", http).replace("</address-settings>", pages)
    text = text.replace("protocols=STOMP;", "protocols=STOMP;handshakeTimeout=600000;")
    file.write_text(text, "utf-8")
    return file


def _many(stack: ExitStack, port: int) -> list[StompSocket]:
    needs_descriptors(len(os.listdir("/proc/self/fd")) + CLIENTS + 100)
    return [stack.enter_context(StompSocket(port)) for _ in range(CLIENTS)]


def test_a_thousand_connections_and_few_descriptors(file: Path) -> None:
    with _limited(file) as broker, ExitStack() as stack:
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
    assert broker.said.count("accepts no connections until others are closed") <= 3
    assert "Traceback" not in broker.said
    assert len(broker.said) < LOG_BYTES_MAX
