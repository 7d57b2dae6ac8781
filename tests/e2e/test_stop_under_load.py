"""SIGTERM and SIGINT while clients do all they can: exit code 0, no traceback, and what was confirmed is there."""

from __future__ import annotations

import random
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import BOTH, LOOPBACK, STOP_S, SWEPT, BrokerProcess, retained, started

pytestmark = pytest.mark.e2e

STOPS = 10
STOPS_SOAK = 200
LARGE = bytes(200_000)


class Load:
    """Clients in threads of their own, until their connections end. ``confirmed`` are bodies with a RECEIPT."""

    def __init__(self, port: int, http: int, life: int) -> None:
        self.confirmed: set[bytes] = set()
        self._port = port
        self._http = http
        self._life = life
        self.busy = threading.Semaphore(0)
        """Released once for each client that is at work."""
        steps: tuple[Callable[[int], None], ...] = (
            self._send, self._send, self._send_many, self._send_large, self._commit, self._consume, self._read_log,
            self._come_and_go, self._come_and_go, self._schedule,
        )  # fmt: skip
        self.threads = [
            threading.Thread(target=self._quietly, args=(step, number), daemon=True)
            for number, step in enumerate(steps)
        ]
        for thread in self.threads:
            thread.start()

    def _quietly(self, step: Callable[[int], None], number: int) -> None:
        with suppress(AssertionError, OSError, HTTPException):
            step(number)

    def _bodies(self, number: int) -> Iterator[bytes]:
        """Bodies of one client; it is at work when it asks for the third."""
        count = 0
        while True:
            if count == 2:
                self.busy.release()
            count += 1
            yield b"%d-%d-%d" % (self._life, number, count)

    def _send(self, number: int) -> None:
        with connected(self._port) as client:
            for body in self._bodies(number):
                client.ask("SEND", {"destination": "/queue/kept", **PERSISTENT}, body)
                self.confirmed.add(body)

    def _send_many(self, number: int) -> None:
        with connected(self._port) as client:
            for body in self._bodies(number):
                data = [frame("SEND", {"destination": "/queue/many", **PERSISTENT}, bytes(500)) for _ in range(10)]
                client.raw(b"".join(data))
                client.ask("SEND", {"destination": "/queue/kept", **PERSISTENT}, body)
                self.confirmed.add(body)

    def _send_large(self, number: int) -> None:
        with connected(self._port) as client:
            for body in self._bodies(number):
                client.ask("SEND", {"destination": "/queue/kept", **PERSISTENT}, body + b"-" + LARGE)
                self.confirmed.add(body)

    def _commit(self, number: int) -> None:
        with connected(self._port) as client:
            for body in self._bodies(number):
                client.send("BEGIN", {"transaction": "1"})
                for part in (b"-a", b"-b"):
                    client.send("SEND", {"destination": "/queue/kept", "transaction": "1", **PERSISTENT}, body + part)
                client.ask("COMMIT", {"transaction": "1"})
                self.confirmed.update((body + b"-a", body + b"-b"))

    def _consume(self, number: int) -> None:
        with connected(self._port) as client:
            client.subscribe("/queue/many")
            for _ in self._bodies(number):
                client.acknowledge(client.message())

    def _come_and_go(self, number: int) -> None:
        """Connections that the broker accepts just before it stops, and queues that go with them."""
        for body in self._bodies(number):
            with connected(self._port) as client:
                client.subscribe(f"/queue/{body.decode()}")
                client.send("SEND", {"destination": f"/queue/{body.decode()}", **PERSISTENT}, body)
                client.message()

    def _schedule(self, number: int) -> None:
        """Messages that fall due at any time, also when the broker is about to end: that is a record."""
        with connected(self._port) as client:
            for body in self._bodies(number):
                for delay_ms in range(2, 600, 6):
                    headers = {"destination": "/queue/ring", "AMQ_SCHEDULED_DELAY": delay_ms, **PERSISTENT}
                    client.send("SEND", headers, body)
                client.ask("SEND", {"destination": "/queue/kept", **PERSISTENT}, body)
                self.confirmed.add(body)

    def _read_log(self, number: int) -> None:
        for _ in self._bodies(number):
            urllib.request.urlopen(f"http://{LOOPBACK}:{self._http}/metrics", timeout=120).read()

    def join(self) -> None:
        """Every client has noticed the end."""
        for thread in self.threads:
            thread.join(STOP_S)
            assert not thread.is_alive()


def _configured(folder: Path) -> Path:
    return configured(folder, core=retained(folder) + SWEPT, acceptors=BOTH)


def _stopped_under_load(broker: BrokerProcess, life: int, end: Callable[[BrokerProcess], None]) -> set[bytes]:
    """What was confirmed before the broker's orderly end."""
    load = Load(broker.port, broker.ports["http"], life)
    for _ in load.threads:
        assert load.busy.acquire(timeout=STOP_S)
    end(broker)
    assert broker.process.wait(STOP_S) == 0, broker.said
    assert "Traceback" not in broker.said, broker.said
    assert "warning" not in broker.said.partition("is ready")[2], broker.said
    load.join()
    return load.confirmed


def _once(broker: BrokerProcess) -> None:
    broker.process.send_signal(signal.SIGTERM)


def _twice(broker: BrokerProcess) -> None:
    broker.process.send_signal(signal.SIGTERM)
    broker.process.send_signal(signal.SIGTERM)


def _interrupted(broker: BrokerProcess) -> None:
    broker.process.send_signal(signal.SIGINT)


LONG = pytest.mark.skipif("'slow' not in config.option.markexpr", reason="two hundred stops: make soak")


@pytest.mark.parametrize("stops", [STOPS, pytest.param(STOPS_SOAK, marks=(pytest.mark.slow, LONG))])
def test_many_stops_under_load(tmp_path: Path, rng: random.Random, stops: int) -> None:
    """Once a turn ran after the store was closed, in six of twenty stops."""
    file = _configured(tmp_path)
    confirmed: set[bytes] = set()
    for life in range(stops):
        with started(file) as broker:
            confirmed |= _stopped_under_load(broker, life, rng.choice((_once, _twice, _interrupted)))
    with started(file) as broker, connected(broker.port) as client:
        assert not confirmed - set(_drained(broker, client))


def _drained(broker: BrokerProcess, client: StompSocket) -> Iterator[bytes]:
    """The bodies on the queue, without what makes them large."""
    count = int(broker.metric("artemis_message_count", queue="kept"))
    client.subscribe("/queue/kept", ack="client")
    for _ in range(count):
        yield client.message().body.removesuffix(b"-" + LARGE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    """As soon as it holds its locks: the end is in good order; the next start finds everything as it was."""
    file = _configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"kept")
        assert broker.stop() == 0
    lock = tmp_path / "journal" / "server.lock"
    for _ in range(3):
        with started(file, ready=False) as broker:
            process = f"artemis_py process={broker.process.pid} "
            broker.eventually("the lock", lambda: lock.read_text("ascii").startswith(process), bool)  # noqa: B023
            assert broker.stop(number) == 0, broker.said
    with started(file) as broker:
        broker.await_metric(1, "artemis_message_count", queue="q")
