"""STOMP over TLS with real sockets: handshakes that succeed and fail, client certificates, names, large bodies."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import stomp
from websockets.sync.client import connect

from artemis_py.cli.main import main
from tests.e2e.stomp_py_client import Listener
from tests.kit.certificates import DAY, PASSWORD, Authority, Issued
from tests.kit.client import StompSocket, connected, is_greeted
from tests.kit.process import LOOPBACK, WAIT_S, configuration, needs_descriptors, running
from tests.kit.tls import OPENSSL, TlsBroker, needs_openssl, shake, uri

HTTP = "tcp://127.0.0.1:0?protocols=HTTP"
HANDSHAKES = "artemis_tls_handshakes_total"
SUITE = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@dataclass
class World(TlsBroker):
    """With two clients."""

    client: Issued
    revoked: Issued


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority()
    client, revoked = authority.issue("client"), authority.issue("revoked")
    authority.pem(folder / "trust.pem")
    authority.revoke(folder / "revoked.pem", revoked)
    own = {"keyStorePath": authority.issue("broker").pem(folder / "broker.pem", PASSWORD), "keyStorePassword": PASSWORD}
    trust = {**own, "trustStorePath": folder / "trust.pem"}
    acceptors = {
        "stomp": uri("STOMP", **own, anycastPrefix="/queue/"),
        "need": uri("STOMP", **trust, needClientAuth="true"),
        "want": uri("STOMP", **trust, wantClientAuth="true"),
        "crl": uri("STOMP", **trust, needClientAuth="true", crlPath=folder / "revoked.pem"),
        "sni": uri("STOMP", **own, sniHost="(local|other)host"),
        "old": uri("STOMP", **own, enabledProtocols="TLSv1.2", enabledCipherSuites=SUITE),
        "suites": uri("STOMP", **own, enabledCipherSuites=f"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,{SUITE}"),
        "thirteen": uri("STOMP", **own, enabledCipherSuites="TLS_AES_128_GCM_SHA256"),
        "new": uri("STOMP", **own, enabledProtocols="TLSv1.3"),
        "hurried": uri("STOMP", **own, handshakeTimeout=300),
        "brief": uri("STOMP", **own, handshakeTimeout=60000, sslHandshakeTimeout=1),
        "patient": uri("STOMP", **own, handshakeTimeout=1000, sslHandshakeTimeout=0),
        "narrow": uri("STOMP", **own, maxUnsentBytes=1048576),
        "few": uri("STOMP", **own, connectionsAllowed=1),
        "http": HTTP,
    }
    with running(configuration(acceptors), folder) as broker:
        yield World(broker, folder, authority, client, revoked)
        assert PASSWORD not in broker.said


def test_messages_and_receipts_travel(world: World) -> None:
    with connected(world.broker.ports["stomp"], "1.2", world.context()) as client:
        client.subscribe("tls.travels", ack="auto")
        for number in range(200):
            client.send("SEND", {"destination": "tls.travels"}, b"%d" % number * 100)
        assert [client.expect("MESSAGE").body for _ in range(200)] == [b"%d" % number * 100 for number in range(200)]


@pytest.mark.parametrize("size_bytes", [16_383, 16_385, 70_000, 3_000_000, 6_000_000])
def test_large_bodies_travel_both_ways(world: World, size_bytes: int) -> None:
    body = bytes(range(256)) * (size_bytes // 256 + 1)
    with connected(world.broker.ports["stomp"], "1.2", world.context()) as client:
        client.subscribe(f"tls.large.{size_bytes}", ack="auto")
        client.ask("SEND", {"destination": f"tls.large.{size_bytes}"}, body[:size_bytes])
        assert client.expect("MESSAGE").body == body[:size_bytes]


def test_a_client_that_reads_nothing_is_cut_off_and_others_go_on(world: World) -> None:
    with ExitStack() as stack:
        lazy = stack.enter_context(StompSocket(world.broker.ports["narrow"], tls=world.context()))
        lazy.connect()
        lazy.subscribe("tls.lazy", ack="auto")
        busy = stack.enter_context(StompSocket(world.broker.ports["stomp"], tls=world.context()))
        busy.connect()
        for _ in range(400):
            busy.send("SEND", {"destination": "tls.lazy"}, b"x" * 50_000)
        busy.ask("SEND", {"destination": "tls.elsewhere"}, b"here")
        world.broker.eventually(
            "cut off", lambda: world.broker.metric("artemis_consumer_count", queue="tls.lazy"), lambda n: n == 0
        )


def test_a_client_may_end_its_side_and_still_gets_its_receipt(world: World) -> None:
    connection = shake(world.broker.ports["stomp"], world.context())
    connection.settimeout(WAIT_S)
    connection.sendall(
        b"CONNECT\naccept-version:1.2\nhost:x\n\n\0SEND\ndestination:/queue/tls.end\nreceipt:last\n\nhello\0"
    )
    raw = socket.socket(fileno=connection.detach())
    with raw:
        raw.shutdown(socket.SHUT_WR)
        raw.settimeout(WAIT_S)
        while raw.recv(65536):
            pass
    with connected(world.broker.ports["stomp"], "1.2", world.context()) as reader:
        reader.subscribe("/queue/tls.end", ack="auto")
        assert reader.expect("MESSAGE").body == b"hello"


def test_an_error_arrives_before_an_orderly_end(world: World) -> None:
    with connected(world.broker.ports["stomp"], "1.2", world.context()) as client:
        client.raw(b"NONSENSE\n\n\0")
        assert "NONSENSE" in str(client.expect("ERROR"))
        client.socket.suppress_ragged_eofs = False  # type: ignore[attr-defined]
        assert client.socket.recv(10) == b""  # an end of TLS, or this raises


def test_the_limit_of_connections_answers_with_an_error(world: World) -> None:
    with (
        StompSocket(world.broker.ports["few"], tls=world.context()) as first,
        StompSocket(world.broker.ports["few"], tls=world.context()) as second,
    ):
        first.connect()
        assert "allows 1 connection" in str(second.expect("ERROR"))


# ---- client certificates -------------------------------------------------------------------------


def test_needed_certificates(world: World) -> None:
    stranger = Authority("Stranger").issue("client")
    old = world.authority.issue("old", since=-2 * DAY, until=-DAY)
    assert is_greeted(world.broker.ports["need"], world.context(world.client))
    assert not is_greeted(world.broker.ports["need"], world.context())
    assert not is_greeted(world.broker.ports["need"], world.context(stranger))
    assert not is_greeted(world.broker.ports["need"], world.context(old))
    world.broker.await_said(
        re.compile("ART-2003 acceptor=need from=127.0.0.1:\\d+ warning: no TLS connection: it has no certificate")
    )
    world.broker.await_said(re.compile("acceptor=need .*its certificate is not accepted: certificate has expired"))


def test_wanted_certificates(world: World) -> None:
    assert is_greeted(world.broker.ports["want"], world.context(world.client))
    assert is_greeted(world.broker.ports["want"], world.context())
    assert not is_greeted(world.broker.ports["want"], world.context(Authority("Stranger").issue("client")))


def test_revoked_certificates(world: World) -> None:
    assert is_greeted(world.broker.ports["crl"], world.context(world.client))
    assert not is_greeted(world.broker.ports["crl"], world.context(world.revoked))
    world.broker.await_said(re.compile("acceptor=crl .*its certificate is not accepted: certificate revoked"))


def test_stomp_py_with_a_certificate(world: World) -> None:
    port = world.broker.ports["need"]
    pem = world.client.pem(world.folder / "stomp-py.pem")
    connection = stomp.StompConnection12([("localhost", port)], heartbeats=(0, 0))
    connection.set_ssl(
        [("localhost", port)], ca_certs=str(world.folder / "trust.pem"), cert_file=str(pem), key_file=str(pem)
    )
    listener = Listener()
    connection.set_listener("", listener)
    connection.connect(wait=True)
    connection.subscribe("tls.stomp-py", "1", ack="auto")
    connection.send("tls.stomp-py", "x" * 100_000, content_type="text/plain")
    assert listener.messages.get(timeout=WAIT_S).body == "x" * 100_000
    connection.disconnect()
    assert listener.gone.wait(WAIT_S)


# ---- names, versions, suites ---------------------------------------------------------------------


def test_names(world: World) -> None:
    context = world.context()
    shake(world.broker.ports["sni"], context).close()
    context.check_hostname = False
    shake(world.broker.ports["sni"], context, None).close()  # a client that names no server is accepted, as in Artemis
    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        shake(world.broker.ports["sni"], context, "localhost.example.com")
    world.broker.await_said(re.compile("acceptor=sni .*it asked for a server name that sniHost does not match"))


def test_versions_and_suites(world: World) -> None:
    with (
        shake(world.broker.ports["old"], world.context()) as old,
        shake(world.broker.ports["new"], world.context()) as new,
    ):
        assert old.version() == "TLSv1.2"
        assert (old.cipher() or [""])[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
        assert new.version() == "TLSv1.3"
    context = world.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        shake(world.broker.ports["new"], context)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        shake(world.broker.ports["old"], context)


@needs_openssl
@pytest.mark.parametrize(
    ("acceptor", "options", "is_accepted"),
    [
        ("stomp", ["-tls1_3"], True),
        ("stomp", ["-tls1_2"], True),
        ("stomp", ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], False),
        ("old", ["-tls1_3"], False),
        ("old", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"], True),
        ("old", ["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], False),
        ("suites", ["-tls1_2"], True),
        ("suites", ["-tls1_3"], False),
        ("thirteen", ["-tls1_2"], False),
        ("thirteen", ["-tls1_3"], True),
        ("new", ["-tls1_2"], False),
        ("need", ["-tls1_2"], False),
    ],
)
def test_openssl_agrees(world: World, acceptor: str, options: list[str], is_accepted: bool) -> None:
    assert OPENSSL is not None
    address = f"localhost:{world.broker.ports[acceptor]}"
    done = subprocess.run(
        [OPENSSL, "s_client", "-connect", address, "-CAfile", world.folder / "trust.pem",
         "-verify_return_error", "-brief", *options],
        input=b"", capture_output=True, check=False, timeout=WAIT_S,
    )  # fmt: skip
    assert (done.returncode == 0) is is_accepted, done.stderr


# ---- clients that do not shake hands -------------------------------------------------------------


def test_plain_text_is_answered_and_told(world: World) -> None:
    before = world.broker.metric(HANDSHAKES, acceptor="stomp", result="plain")
    with StompSocket(world.broker.ports["stomp"]) as client:
        client.send("CONNECT", {"accept-version": "1.2", "host": "x"})
        assert client.expect("ERROR").header("message") == "This port speaks TLS only"
    with socket.create_connection((LOOPBACK, world.broker.ports["stomp"]), WAIT_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400 Bad Request")
    world.broker.await_said(re.compile("acceptor=stomp .*it speaks STOMP without TLS; it must use TLS on this port"))
    world.broker.eventually(
        "counted",
        lambda: world.broker.metric(HANDSHAKES, acceptor="stomp", result="plain"),
        lambda count: count == before + 2,
    )


def test_a_handshake_has_a_deadline(world: World) -> None:
    begun_s = time.monotonic()
    with socket.create_connection((LOOPBACK, world.broker.ports["hurried"]), WAIT_S) as client:
        client.sendall(b"\x16\x03\x01")
        assert client.recv(10) == b""
    assert time.monotonic() - begun_s >= 0.29
    world.broker.await_said(
        re.compile(r"acceptor=hurried .*took longer than 0.3 s \(sslHandshakeTimeout or handshakeTimeout")
    )


def test_the_deadline_of_the_handshake_alone(world: World) -> None:
    """``sslHandshakeTimeout`` is in seconds, comes before ``handshakeTimeout``, and 0 means no limit."""
    with socket.create_connection((LOOPBACK, world.broker.ports["patient"]), WAIT_S) as patient:
        with socket.create_connection((LOOPBACK, world.broker.ports["brief"]), WAIT_S) as client:
            assert client.recv(10) == b""
        world.broker.await_said(re.compile(r"acceptor=brief .*took longer than 1 s"))
        with world.context().wrap_socket(patient, server_hostname="localhost") as client:
            client.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            assert client.recv(10).startswith(b"CONNECTED")


def test_failures_are_told_at_a_limited_rate(world: World) -> None:
    before = world.broker.metric(HANDSHAKES, acceptor="new", result="failed")
    for _ in range(20):
        with socket.create_connection((LOOPBACK, world.broker.ports["new"]), WAIT_S) as client:
            client.sendall(b"\x16\x03\x01\x00\x02\x01\x00garbage")
            client.recv(1000)
    world.broker.eventually(
        "counted",
        lambda: world.broker.metric(HANDSHAKES, acceptor="new", result="failed"),
        lambda count: count >= before + 20,
    )
    assert len(re.findall("acceptor=new from=127.0.0.1:\\d+ warning: no TLS connection", world.broker.said)) <= 6


def test_slow_handshakes_stop_nobody(world: World) -> None:
    """More than the limit: the oldest are closed, and everybody else connects and works at once."""
    needs_descriptors(2_000)
    with ExitStack() as stack:
        slow = []
        for _ in range(1_050):
            client = stack.enter_context(socket.create_connection((LOOPBACK, world.broker.ports["stomp"]), WAIT_S))
            client.sendall(b"\x16\x03\x01\x02")
            slow.append(client)
        with connected(world.broker.ports["stomp"], "1.2", world.context()) as quick:
            quick.ask("SEND", {"destination": "tls.slow"}, b"x")
        assert slow[0].recv(10) == b""
        assert world.broker.metric(HANDSHAKES, acceptor="stomp", result="crowded") >= 50


def test_records_that_are_no_tls_end_the_connection(world: World) -> None:
    connection = shake(world.broker.ports["stomp"], world.context())
    raw = socket.socket(fileno=connection.detach())
    with raw:
        raw.settimeout(WAIT_S)
        raw.sendall(b"CONNECT\n\n\0 this is not encrypted")
        while raw.recv(65536):
            pass
    world.broker.await_said(re.compile("acceptor=stomp from=127.0.0.1:\\d+ warning: TLS connection closed: "))


def test_memory_of_tls_is_counted_and_given_back(world: World) -> None:
    world.broker.await_metric(0, "artemis_held_bytes", kind="tls")
    with connected(world.broker.ports["stomp"], "1.2", world.context()):
        assert world.broker.metric("artemis_held_bytes", kind="tls") > 0
    world.broker.await_metric(0, "artemis_held_bytes", kind="tls")


# ---- other ways in -------------------------------------------------------------------------------


def test_websocket_over_tls(world: World) -> None:
    url = f"wss://localhost:{world.broker.ports['stomp']}/"
    with connect(url, ssl=world.context(), subprotocols=["v12.stomp"], max_size=None, open_timeout=WAIT_S) as client:  # type: ignore[list-item]
        client.send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        assert bytes(client.recv(WAIT_S, decode=False)).startswith(b"CONNECTED\n")
        client.send(b"SUBSCRIBE\nid:1\ndestination:tls.web\nack:auto\nreceipt:1\n\n\0")
        assert bytes(client.recv(WAIT_S, decode=False)).startswith(b"RECEIPT\n")
        client.send(b"SEND\ndestination:tls.web\n\n" + b"x" * 50_000 + b"\0")
        assert b"x" * 50_000 in bytes(client.recv(WAIT_S, decode=False))


def test_perf_measures_over_tls(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    url, trust = f"stomp+ssl://localhost:{world.broker.ports['stomp']}", str(world.folder / "trust.pem")
    arguments = ["perf", url, "--trust", trust, "--warmup", "0", "--scenario"]
    assert main([*arguments, "1t,1,2,5,6,8t", "--messages", "500"]) == 0
    assert "over TLS" in capsys.readouterr().out
    assert main(["perf", url, "--scenario", "1t"]) != 0
    assert "belong together" in capsys.readouterr().err
    other = Authority("Other").pem(world.folder / "other.pem")
    assert main(["perf", url, "--trust", str(other), "--scenario", "1t"]) != 0
    assert "no TLS with stomp+ssl://localhost" in str(capsys.readouterr())


@needs_openssl
def test_the_documented_steps(tmp_path: Path) -> None:
    """Every command under the heading TLS of docs/security.md, as it stands there."""
    text = (Path(__file__).resolve().parents[2] / "docs/security.md").read_text("utf-8")
    section = text.partition("\n## TLS\n")[2].partition("\n## ")[0]
    (make, use), (acceptor,) = (
        re.findall(r"```sh\n(.*?)```", section, re.S),
        re.findall(r"```xml\n(.*?)```", section, re.S),
    )
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", make], cwd=tmp_path, env=environment, check=True, capture_output=True)
    found = re.search(r'name="(\w+)">(tcp://[^<]+)<', acceptor)
    assert found is not None
    anywhere = (
        found[2]
        .replace("0.0.0.0:61614", "127.0.0.1:0")
        .replace("protocols=STOMP", "protocols=STOMP;anycastPrefix=/queue/")
    )
    with running(configuration({found[1]: anywhere}), tmp_path) as broker:
        use = use.replace("localhost:61614", f"localhost:{broker.ports[found[1]]}")
        done = subprocess.run(
            ["sh", "-ec", use], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Verification: OK" in done.stderr
        assert "transient 100 B over TLS" in done.stdout
