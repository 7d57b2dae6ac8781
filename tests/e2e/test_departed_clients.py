"""Clients of HTTP that leave while their answer is awaited: their work ends, and their places are free at once."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pytest

from tests.kit.certificates import Authority
from tests.kit.http import ask
from tests.kit.process import HTTP, LOOPBACK, STOMP, WAIT_S, BrokerProcess, configuration, running
from tests.kit.tls import trusting, uri

pytestmark = pytest.mark.e2e
PLACES: Final = 100
"""How many requests an acceptor answers at a time."""
WAITS: Final = b"POST /api/messages/idle/take?timeout=50 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: to close is to reset."""


@dataclass
class Site:
    broker: BrokerProcess
    context: ssl.SSLContext

    def status(self, acceptor: str = "http") -> int:
        """What a client gets that asks for something that is not always answered."""
        if acceptor == "http":
            return ask(self.broker.ports["http"], "GET", "/api/queues/idle").status
        with self.over_tls() as client:
            client.sendall(b"GET /api/queues/idle HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return int(client.recv(12)[9:])

    def over_tcp(self) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.broker.ports["http"]), WAIT_S)

    def over_tls(self) -> ssl.SSLSocket:
        raw = socket.create_connection((LOOPBACK, self.broker.ports["https"]), WAIT_S)
        return self.context.wrap_socket(raw, server_hostname="localhost")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("departed")
    authority = Authority()
    key = authority.issue("localhost").pem(folder / "key.pem")
    acceptors = {"stomp": STOMP, "http": HTTP, "https": uri("HTTP", keyStorePath=key)}
    queues = '<address name="idle"><anycast><queue name="idle"/></anycast></address>'
    with running(configuration(acceptors, addresses=queues), folder) as broker:
        yield Site(broker, trusting(authority))


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


def _close(client: socket.socket) -> None:
    client.close()


def _filled(site: Site, come: Callable[[], socket.socket], data: bytes) -> list[socket.socket]:
    """All places are in use. Some of the clients may have been refused, or taken for idle ones."""
    clients: list[socket.socket] = []
    while site.broker.metric("artemis_consumer_count", queue="idle") < PLACES:
        assert len(clients) < 3 * PLACES
        clients.append(come())
        clients[-1].sendall(data)
    return clients


WAYS: Final[dict[str, Callable[[socket.socket], None]]] = {"reset": _reset, "closed": _close}


@pytest.mark.parametrize("leave", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("more", [b"", WAITS * 20], ids=["one request", "pipelined"])
@pytest.mark.parametrize("acceptor", ["http", "https"])
def test_clients_that_leave_while_they_wait_for_a_message(
    site: Site, acceptor: str, more: bytes, leave: Callable[[socket.socket], None]
) -> None:
    broker = site.broker
    come = site.over_tcp if acceptor == "http" else site.over_tls
    clients = _filled(site, come, WAITS + more)
    assert site.status(acceptor) == 503, "all places are in use"
    for client in clients:
        leave(client)
    broker.eventually("a place is free", lambda: site.status(acceptor), lambda status: status == 200)
    broker.await_metric(0, "artemis_consumer_count", queue="idle")


def test_one_that_only_sends_no_more_still_gets_an_answer_that_comes_soon(site: Site) -> None:
    for path in ("/api/queues/idle", "/api/queues", "/metrics"):
        with site.over_tcp() as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 200"), answer


def test_one_that_only_sends_no_more_gives_its_place_to_others(site: Site) -> None:
    clients = _filled(site, site.over_tcp, WAITS)
    for client in clients:
        with suppress(OSError):  # of one that was refused
            client.shutdown(socket.SHUT_WR)
    site.broker.eventually("a place is free", site.status, lambda status: status == 200)
    site.broker.await_metric(0, "artemis_consumer_count", queue="idle")
    for client in clients:
        client.close()
