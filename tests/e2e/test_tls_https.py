"""HTTPS: the log arrives byte for byte, also by parts and by slow readers; a client that leaves stops nothing."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.certificates import DAY, Authority
from tests.kit.client import connected
from tests.kit.http import HttpClient
from tests.kit.process import LOOPBACK, STOMP, WAIT_S, configuration, retained, running
from tests.kit.tls import TlsBroker, shake, uri

SEGMENT = "/log/segments/1"


def get(
    world: TlsBroker, path: str, headers: dict[str, str] | None = None, acceptor: str = "https"
) -> tuple[int, bytes]:
    tls = None if acceptor == "http" else world.context()
    with HttpClient(world.broker.ports[acceptor], tls=tls, headers=headers) as client:
        reply = client.ask("GET", path)
        return reply.status, reply.body


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """A broker with a log, over HTTP and HTTPS."""
    folder = tmp_path_factory.mktemp("https")
    authority = Authority()
    soon = authority.issue("soon", until=5 * DAY).pem(folder / "soon.pem")
    own = authority.issue("broker").pem(folder / "broker.pem")
    acceptors = {
        "stomp": STOMP,
        "http": "tcp://127.0.0.1:0?protocols=HTTP",
        "https": uri("HTTP", keyStorePath=own),
        "soon": uri("HTTP", keyStorePath=soon),
        "slow": uri("HTTP", keyStorePath=own, maxLogBytesPerSecond=1_000_000),
    }
    core = f"<journal-file-size>10485760</journal-file-size>{retained(folder)}"
    text = configuration(acceptors, folder=folder, core=core)
    with running(text, folder) as broker:
        with connected(broker.port) as client:
            for number in range(400):
                client.send("SEND", {"destination": "/queue/log", "persistent": "true"}, b"%06d" % number * 8_000)
            client.ask("SEND", {"destination": "/queue/log", "persistent": "true"}, b"last")
        yield TlsBroker(broker, folder, authority)


def test_the_log_is_the_same_over_tls(world: TlsBroker) -> None:
    status, plain = get(world, SEGMENT, acceptor="http")
    assert status == 200
    assert len(plain) > 5_000_000
    assert get(world, SEGMENT) == (200, plain)
    for begin, end in ((0, 0), (1, 131_072), (131_071, 131_073), (1_000_000, 5_000_000)):
        assert get(world, SEGMENT, {"Range": f"bytes={begin}-{end}"}) == (206, plain[begin : end + 1])
    assert (
        json.loads(get(world, "/log")[1])["segments"] == json.loads(get(world, "/log", acceptor="http")[1])["segments"]
    )


def test_several_requests_follow_each_other_on_a_connection(world: TlsBroker) -> None:
    plain = get(world, SEGMENT, acceptor="http")[1]
    with HttpClient(world.broker.ports["https"], tls=world.context()) as client:
        for _ in range(3):
            assert client.ask("GET", SEGMENT, Range="bytes=0-2999999").body == plain[:3_000_000]
            assert client.ask("GET", "/health/live").body == b'{"status": "UP"}\n'


def test_many_read_at_once(world: TlsBroker) -> None:
    plain = get(world, SEGMENT, acceptor="http")[1]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: get(world, SEGMENT), range(8))) == {(200, plain)}


def test_a_slow_reader_gets_everything(world: TlsBroker) -> None:
    plain = get(world, SEGMENT, {"Range": "bytes=0-3999999"}, acceptor="http")[1]
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((LOOPBACK, world.broker.ports["https"]))
    with world.context().wrap_socket(raw, server_hostname="localhost") as client:
        client.settimeout(WAIT_S)
        client.sendall(
            f"GET {SEGMENT} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-3999999\r\nConnection: close\r\n\r\n".encode()
        )
        got = b""
        while piece := client.recv(16_384):
            got += piece
    assert got.partition(b"\r\n\r\n")[2] == plain


def test_clients_that_leave_stop_nothing(world: TlsBroker) -> None:
    for _ in range(20):
        client = shake(world.broker.ports["https"], world.context())
        client.sendall(f"GET {SEGMENT} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        client.recv(1000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert get(world, "/health/live")[0] == 200
    world.broker.eventually(
        "given back", lambda: world.broker.metric("artemis_held_bytes", kind="tls"), lambda held: held == 0
    )


def test_the_speed_limit_holds(world: TlsBroker) -> None:
    begun_s = time.monotonic()
    assert len(get(world, SEGMENT, {"Range": "bytes=0-1499999"}, "slow")[1]) == 1_500_000
    assert time.monotonic() - begun_s > 1.0


def test_curl_reads_metrics_and_health(world: TlsBroker, tmp_path: Path) -> None:
    import shutil

    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not on this machine")
    trust = world.authority.pem(tmp_path / "trust.pem")
    address = f"https://localhost:{world.broker.ports['https']}"
    for path, words in (("/metrics", b"artemis_tls_handshakes_total"), ("/health/ready", b'"status": "UP"')):
        done = subprocess.run([curl, "-sf", "--cacert", trust, address + path], capture_output=True, check=True)
        assert words in done.stdout


def test_expiry_is_a_metric_and_a_warning(world: TlsBroker) -> None:
    soon, later = (
        (world.broker.metric("artemis_tls_certificate_expiry_timestamp_seconds", acceptor=name) - time.time()) / 86_400
        for name in ("soon", "https")
    )
    assert 4.9 < soon < 5.1
    assert later > 3_000
    health = json.loads(get(world, "/health/ready")[1])
    assert health["status"] == "UP"
    (warning,) = health["warnings"]
    assert warning.startswith("acceptor soon: the certificate expires ")
