"""Clients behind a load balancer: who they are to limits, log and operators (PROXY protocol)."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.kit.certificates import PASSWORD, Authority
from tests.kit.client import Closed, StompSocket, connected, frame, is_greeted
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, WAIT_S, BrokerProcess, configuration, eventually, for_the_module, running
from tests.kit.tls import trusting, uri

PROXIED = "tcp://127.0.0.1:0?anycastPrefix=/queue/;proxyProtocolEnabled=true"
LINE = b"PROXY TCP4 192.0.2.7 127.0.0.1 1234 61613\r\n"
AUTHORITY = Authority()
OWN = AUTHORITY.issue("broker")
ACCEPTORS = {
    "stomp": PROXIED,
    "few": f"{PROXIED};maxConnectionsBeforeLogin=2",
    "tls": uri("STOMP", keyStorePath="broker.pem", keyStorePassword=PASSWORD, proxyEnabled="true"),
    "elsewhere": f"{PROXIED};proxyNetworks=192.0.2.0/24",
    "web": f"{HTTP};proxyProtocolEnabled=true",
    "http": HTTP,
}


broker = for_the_module(
    partial(running, configuration(ACCEPTORS), beside={"broker.pem": OWN.key_pem(PASSWORD) + OWN.chain_pem()})
)


@contextmanager
def come(port: int, header: bytes) -> Iterator[StompSocket]:
    with StompSocket(port) as client:
        client.raw(header)
        yield client


def test_the_client_is_who_the_header_says(broker: BrokerProcess) -> None:
    with come(broker.port, LINE + frame("CONNECT", {"accept-version": "1.2", "client-id": "behind"})) as client:
        assert client.expect("CONNECTED").header("version") == "1.2"
        (found,) = [each for each in broker.api("/api/connections")["data"] if each["clientID"] == "behind"]
        assert found["remoteAddress"] == "192.0.2.7:1234"
        assert found["proxyProtocolVersion"] == "V1"
        assert found["proxyAddress"] == f"{LOOPBACK}:{client.socket.getsockname()[1]}"


def test_a_client_of_its_own_has_no_proxy(tmp_path: Path) -> None:
    with running(configuration(), tmp_path) as process, StompSocket(process.port) as client:
        client.connect()
        (found,) = process.api("/api/connections")["data"]
        assert (found["proxyAddress"], found["proxyProtocolVersion"]) == (None, None)


def test_before_tls(broker: BrokerProcess) -> None:
    plain = socket.create_connection((LOOPBACK, broker.ports["tls"]), WAIT_S)
    plain.sendall(LINE)
    with trusting(AUTHORITY).wrap_socket(plain, server_hostname="localhost") as secured:
        secured.sendall(frame("CONNECT", {"accept-version": "1.2", "client-id": "secured"}))
        assert secured.recv(9) == b"CONNECTED"
        (found,) = [each for each in broker.api("/api/connections")["data"] if each["clientID"] == "secured"]
        assert found["remoteAddress"] == "192.0.2.7:1234"


def test_http(broker: BrokerProcess) -> None:
    with socket.create_connection((LOOPBACK, broker.ports["web"]), WAIT_S) as web:
        web.sendall(LINE + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert web.recv(15) == b"HTTP/1.1 200 OK"


def test_limits_count_clients_and_not_the_proxy(broker: BrokerProcess) -> None:
    """Many clients of one load balancer are many peers; two of one address are one."""
    port, elsewhere = broker.ports["few"], LINE.replace(b".2.7 ", b".2.8 ")
    with come(port, LINE) as one, come(port, LINE), come(port, elsewhere) as other:
        before = {f"192.0.2.{number}:1234" for number in (7, 8)}
        eventually(
            "three are counted",
            lambda: [
                each["remoteAddress"]
                for each in broker.api("/api/connections")["data"]
                if each["remoteAddress"] in before
            ],
            lambda seen: len(seen) == 3,
        )
        with come(port, LINE) as third:
            assert "2 connections from your address have not logged in yet" in third.expect("ERROR").text
        other.connect()
        one.connect()


def test_who_has_no_header_or_comes_from_elsewhere_is_closed_and_told_of(broker: BrokerProcess) -> None:
    for port, sent, words in (
        (broker.port, frame("CONNECT", {"accept-version": "1.2"}), "it does not begin with a header of the PROXY"),
        (broker.ports["elsewhere"], LINE, "it comes from outside of proxyNetworks (192.0.2.0/24): add the address"),
    ):
        with come(port, sent) as client, pytest.raises((Closed, ConnectionResetError)):
            client.receive()
        broker.await_said(words)


@pytest.mark.parametrize(("option", "version"), [("send-proxy", "V1"), ("send-proxy-v2", "V2")])
def test_behind_haproxy(broker: BrokerProcess, tmp_path: Path, option: str, version: str) -> None:
    """Its health checks are connections without a client; they are neither refused nor told of."""
    haproxy = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if haproxy is None:
        pytest.skip("haproxy is not installed")
    port = free_port()
    file = tmp_path / "haproxy.cfg"
    file.write_text(
        "defaults\n mode tcp\n timeout connect 60s\n timeout client 60s\n timeout server 60s\n"
        f"listen stomp\n bind {LOOPBACK}:{port}\n"
        f" server broker {LOOPBACK}:{broker.port} {option} check check-send-proxy inter 20ms\n"
    )
    told = broker.said
    process = subprocess.Popen([haproxy, "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
    try:
        eventually("haproxy listens", lambda: is_greeted(port), bool)
        with connected(port, client_id=f"haproxy {version}") as client:
            own = client.socket.getsockname()
            (found,) = [
                each for each in broker.api("/api/connections")["data"] if each["clientID"] == f"haproxy {version}"
            ]
            assert found["remoteAddress"] == f"{own[0]}:{own[1]}"
            assert found["proxyProtocolVersion"] == version
            client.ask("SEND", {"destination": "/queue/q"}, b"through it")
            client.subscribe("/queue/q")
            message = client.message()
            assert message.body == b"through it"
            client.acknowledge(message)
    finally:
        process.terminate()
        process.wait(WAIT_S)
    assert "PROXY protocol" not in broker.said.removeprefix(told)
