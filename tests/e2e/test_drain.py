"""SIGTERM with graceful-shutdown-enabled: what is in delivery is settled first, and what is left is said."""

from __future__ import annotations

import json
import signal
import socket
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import StompSocket, connected
from tests.kit.process import BOTH, LOOPBACK, WAIT_S, BrokerProcess, eventually, started

pytestmark = pytest.mark.e2e

LONG_MS = 60_000


GRACEFUL = (
    "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>"
    "<graceful-shutdown-timeout>{}</graceful-shutdown-timeout>"
)


def _told_to_stop(broker: BrokerProcess, count: int) -> None:
    broker.process.send_signal(signal.SIGTERM)
    broker.await_said(f"until clients settle {count} message")


def test_what_is_in_delivery_is_settled_and_nothing_more_is_delivered(tmp_path: Path) -> None:
    with (
        started(configured(tmp_path, core=GRACEFUL.format(LONG_MS), acceptors=BOTH)) as broker,
        connected(broker.port) as client,
    ):
        for body in (b"1", b"2"):
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, body)
        client.subscribe("/queue/q")
        first, second = client.message(), client.message()
        client.send("BEGIN", {"transaction": "t"})
        client.send("ACK", {"id": second.header("ack"), "transaction": "t"})
        _told_to_stop(broker, 2)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, broker.port), WAIT_S)
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(f"http://{LOOPBACK}:{broker.ports['http']}/health/ready", timeout=WAIT_S)
        with refused.value as answer:
            assert (answer.code, json.load(answer)["reason"]) == (503, "the broker is stopping")
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"3")
        client.ask("SEND", {"destination": "/queue/other"}, b"4")
        client.ask("SUBSCRIBE", {"id": "late", "destination": "/queue/q", "ack": "client"})
        client.acknowledge(first)
        client.nothing_waits()
        assert broker.process.poll() is None, "one is in a transaction"
        client.send("COMMIT", {"transaction": "t", "receipt": "committed"})
        client.await_receipt("committed")
        assert client.read_to_end() == []
        assert broker.process.wait(WAIT_S) == 0
        last = broker.said.splitlines()[-1].partition(" BRK-1005 ")[2]
        assert last == "stopped: 2 messages in 2 of 2 queues; 1 not durable and lost with this stop"


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    with (
        started(configured(tmp_path, core=GRACEFUL.format(50), acceptors=BOTH)) as broker,
        connected(broker.port) as client,
    ):
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"1")
        client.subscribe("/queue/q")
        client.message()
        _told_to_stop(broker, 1)
        assert broker.process.wait(WAIT_S) == 0
        assert "waiting for at most 50 ms until" in broker.said
        last = broker.said.splitlines()[-1].partition(" BRK-1005 ")[2]
        assert last == "stopped: 1 message in 1 of 1 queue; 1 of them in delivery, to be delivered again"


def test_a_second_signal_ends_the_wait(tmp_path: Path) -> None:
    with (
        started(configured(tmp_path, core=GRACEFUL.format(-1), acceptors=BOTH)) as broker,
        connected(broker.port) as client,
    ):
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"1")
        client.subscribe("/queue/q")
        client.message()
        _told_to_stop(broker, 1)
        assert "for at most" not in broker.said
        assert broker.stop(signal.SIGINT) == 0, broker.said
        assert "1 of them in delivery" in broker.said


def test_a_client_that_leaves_is_not_waited_for(tmp_path: Path) -> None:
    with started(configured(tmp_path, core=GRACEFUL.format(LONG_MS), acceptors=BOTH)) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"1")
            client.subscribe("/queue/q")
            client.message()
            _told_to_stop(broker, 1)
        code = eventually("the end", broker.process.poll, lambda code: code is not None)
        assert (code, broker.said.splitlines()[-1].partition(" BRK-1005 ")[2]) == (
            0,
            "stopped: 0 messages in 1 queue",
        ), "a dead letter"


def test_a_client_that_does_not_read_is_not_waited_for_after_a_second_signal(tmp_path: Path) -> None:
    """Its output would be waited for, for five seconds. A busy machine may stop a process for long; not every time."""
    took_s: list[float] = []
    while len(took_s) < 3 and (not took_s or took_s[-1] >= 4):
        folder = tmp_path / str(len(took_s))
        folder.mkdir()
        with (
            started(configured(folder, core=GRACEFUL.format(0), acceptors=BOTH)) as broker,
            StompSocket(broker.port, receive_buffer_bytes=4096) as client,
        ):
            client.connect()
            for _ in range(100):
                client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, bytes(90_000))
            client.send("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "consumer-window-size": "-1"})
            broker.eventually("it stalls", lambda: broker.metric("artemis_connections", state="stalled"), bool)
            broker.process.send_signal(signal.SIGTERM)
            broker.await_said(" BRK-1003 stopping")
            began_s = time.monotonic()
            assert broker.stop() == 0
            took_s.append(time.monotonic() - began_s)
    assert took_s[-1] < 4
