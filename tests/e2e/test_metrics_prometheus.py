"""A real broker, a real Prometheus that scrapes it every second, a client, and what Prometheus then knows."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.ports import free_ports
from tests.kit.process import eventually
from tests.kit.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WAIT_S = 120.0

CONFIGURATION = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>metrics-test</name>
    <persistence-enabled>false</persistence-enabled>
    <security-enabled>false</security-enabled>
    <global-max-size>10MiB</global-max-size>
    <address-queue-scan-period>100</address-queue-scan-period>
    <acceptors>
      <acceptor name="stomp">tcp://127.0.0.1:{stomp_port}?protocols=STOMP</acceptor>
      <acceptor name="http">tcp://127.0.0.1:{http_port}?protocols=HTTP</acceptor>
    </acceptors>
    <addresses>
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="latest"><anycast><queue name="latest" ring-size="2"/></anycast></address>
      <address name="secret"><anycast><queue name="secret"/></anycast></address>
    </addresses>
    <address-settings>
      <address-setting match="secret"><enable-metrics>false</enable-metrics></address-setting>
    </address-settings>
  </core>
</configuration>
"""

PROMETHEUS = """\
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: artemis
    static_configs:
      - targets: ["127.0.0.1:{http_port}"]
"""


@dataclass(frozen=True)
class Server:
    """A process and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def eventually(self, what: str, probe: Callable[[], object], expected: object) -> None:
        """Asks until the answer is the expected one; fails with the last answer, or when the process has ended."""

        def probe_alive() -> object:
            seen = probe()
            if seen != expected:
                code = self.process.poll()
                assert code is None, f"ended with {code}: {self.log.read_text()}"
            return seen

        try:
            eventually(what, probe_alive, lambda seen: seen == expected, WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()}") from None


def http_status(url: str) -> int:
    """The status of a GET; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@contextmanager
def running(command: list[str], log: Path, ready_url: str) -> Iterator[Server]:
    """A process, from its readiness to its end by SIGTERM."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        server = Server(process, log)
        server.eventually(ready_url, lambda: http_status(ready_url), 200)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class StompClient:
    """As little STOMP as the traffic needs."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self._pending = b""
        self.send("CONNECT", {"accept-version": "1.2", "host": "broker"})
        assert self.receive().startswith("CONNECTED\n")

    def send(self, command: str, headers: dict[str, str], body: str = "") -> None:
        lines = [command, *(f"{name}:{value}" for name, value in headers.items())]
        self._socket.sendall(("\n".join(lines) + "\n\n" + body + "\0").encode())

    def receive(self) -> str:
        """The next frame."""
        while b"\0" not in self._pending:
            data = self._socket.recv(65536)
            assert data, "the broker closed the connection"
            self._pending += data
        frame, _, self._pending = self._pending.partition(b"\0")
        return frame.decode().lstrip("\n")

    def request(self, command: str, headers: dict[str, str], body: str = "") -> None:
        """Sends a frame and waits for its receipt."""
        self.send(command, {**headers, "receipt": "r"}, body)
        assert self.receive().startswith("RECEIPT\n")

    def publish(self, destination: str, count: int) -> None:
        for number in range(count):
            self.request("SEND", {"destination": destination, "destination-type": "ANYCAST"}, f"message {number}")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def ports() -> list[int]:
    """For STOMP, HTTP and Prometheus."""
    return free_ports(3)


@pytest.fixture
def broker(tmp_path: Path, ports: list[int]) -> Iterator[Server]:
    """A broker of CONFIGURATION."""
    file = tmp_path / "broker.xml"
    file.write_text(CONFIGURATION.format(stomp_port=ports[0], http_port=ports[1]))
    command = [sys.executable, "-m", "artemis_py", "run", str(file)]
    with running(command, tmp_path / "broker.log", f"http://127.0.0.1:{ports[1]}/health/ready") as server:
        yield server


@pytest.fixture
def prometheus_server(broker: Server, prometheus: str, tmp_path: Path, ports: list[int]) -> Iterator[Server]:
    """A Prometheus that scrapes the broker every second."""
    file = tmp_path / "prometheus.yml"
    file.write_text(PROMETHEUS.format(http_port=ports[1]))
    command = [
        prometheus,
        f"--config.file={file}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{ports[2]}",
        "--log.level=warn",
    ]
    with running(command, tmp_path / "prometheus.log", f"http://127.0.0.1:{ports[2]}/-/ready") as server:
        yield server


def test_prometheus_knows_what_the_broker_holds(broker: Server, prometheus_server: Server, ports: list[int]) -> None:
    def ask(expression: str) -> dict[str, float]:
        """The value by queue, or by "" for what belongs to no queue."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[2]}/api/v1/query?{query}", timeout=120) as answer:
            result = json.load(answer)["data"]["result"]
        return {sample["metric"].get("queue", ""): float(sample["value"][1]) for sample in result}

    def expect(expression: str, expected: dict[str, float]) -> None:
        prometheus_server.eventually(expression, lambda: ask(expression), expected)

    expect('up{job="artemis"}', {"": 1})
    expect("artemis_message_count", {"orders": 0, "latest": 0})
    client = StompClient(ports[0])
    client.publish("orders", 3)
    client.publish("latest", 5)
    client.publish("auto", 1)
    client.send(
        "SUBSCRIBE", {"id": "1", "destination": "orders", "ack": "client-individual", "consumer-window-size": "0"}
    )
    message = client.receive()
    assert message.startswith("MESSAGE\n")
    expect('artemis_message_count{broker="metrics-test"}', {"orders": 3, "latest": 2, "auto": 1})
    expect("artemis_delivering_message_count", {"orders": 1, "latest": 0, "auto": 0})
    expect("artemis_messages_added", {"orders": 3, "latest": 5, "auto": 1})
    expect("artemis_messages_replaced", {"orders": 0, "latest": 3, "auto": 0})
    expect('artemis_consumer_count{queue="orders"}', {"orders": 1})
    expect("artemis_connection_count", {"": 1})
    expect('artemis_frames_total{command="SEND",direction="in"}', {"": 9})
    expect('artemis_routed_message_count{address="orders"}', {"": 3})
    expect("artemis_persistent_size > 0", ask("artemis_persistent_size"))
    expect("artemis_address_memory_usage > 0 and artemis_active == 1", ask("artemis_address_memory_usage"))
    expect("histogram_quantile(0.99, rate(artemis_turn_duration_seconds_bucket[30s])) > bool 0", {"": 1})

    ack = re.search(r"^ack:(.*)$", message, re.MULTILINE)
    assert ack is not None
    client.request("ACK", {"id": ack[1]})
    expect("artemis_messages_acknowledged", {"orders": 1, "latest": 0, "auto": 0})
    expect('artemis_message_count{queue="orders"}', {"orders": 2})
    client.close()

    emptying = StompClient(ports[0])
    emptying.send("SUBSCRIBE", {"id": "1", "destination": "auto", "ack": "auto"})
    assert emptying.receive().startswith("MESSAGE\n")
    emptying.close()
    expect("artemis_message_count", {"orders": 2, "latest": 2})
    expect("artemis_connection_count", {"": 0})
    expect("artemis_total_connection_count", {"": 2})


def test_the_shipped_configuration_scrapes_the_shipped_broker(promtool: str) -> None:
    file = ROOT / "monitoring" / "prometheus.yml"
    done = subprocess.run([promtool, "check", "config", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    acceptor = re.search(
        r"tcp://[^<]*?:(?:\$\{\w+:)?(\d+)\}?\?[^<]*protocols=HTTP", (ROOT / "broker.xml").read_text("utf-8")
    )
    assert acceptor is not None
    assert f'targets: ["127.0.0.1:{acceptor[1]}"]' in file.read_text("utf-8")
