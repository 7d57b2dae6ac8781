"""Clients of HTTP that leave while their answer is awaited: their work ends, and their places are free at once."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest

from tests.kit.certificates import Authority
from tests.kit.process import HTTP, LOOPBACK, STOMP, WAIT_S, configuration, running
from tests.kit.tls import TlsBroker, shake, uri

pytestmark = pytest.mark.e2e
PLACES: Final = 100
"""How many requests an acceptor answers at a time."""
WAITS: Final = b"POST /api/messages/idle/take?timeout=50 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: to close is to reset."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    folder = tmp_path_factory.mktemp("departed")
    authority = Authority()
    key = authority.issue("localhost").pem(folder / "key.pem")
    acceptors = {"stomp": STOMP, "http": HTTP, "https": uri("HTTP", keyStorePath=key)}
    queues = '<address name="idle"><anycast><queue name="idle"/></anycast></address>'
    with running(configuration(acceptors, addresses=queues), folder) as broker:
        yield TlsBroker(broker, folder, authority)


def come(site: TlsBroker, acceptor: str) -> socket.socket:
    if acceptor == "https":
        return shake(site.broker.ports[acceptor], site.context())
    return socket.create_connection((LOOPBACK, site.broker.ports[acceptor]), WAIT_S)


def status(site: TlsBroker, acceptor: str = "http") -> int:
    """What a client gets that asks for something that is not always answered."""
    with come(site, acceptor) as client:
        client.sendall(b"GET /api/queues/idle HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return int(client.recv(12)[9:])


def filled(site: TlsBroker, acceptor: str, data: bytes) -> list[socket.socket]:
    """All places are in use. Some of the clients may have been refused, or taken for idle ones."""
    clients: list[socket.socket] = []
    while site.broker.metric("artemis_consumer_count", queue="idle") < PLACES:
        assert len(clients) < 3 * PLACES
        clients.append(come(site, acceptor))
        clients[-1].sendall(data)
    return clients


@pytest.mark.parametrize("leave", ["reset", "closed"])
@pytest.mark.parametrize("more", [b"", WAITS * 20], ids=["one request", "pipelined"])
@pytest.mark.parametrize("acceptor", ["http", "https"])
def test_clients_that_leave_while_they_wait_for_a_message(
    site: TlsBroker, acceptor: str, more: bytes, leave: str
) -> None:
    broker = site.broker
    clients = filled(site, acceptor, WAITS + more)
    assert status(site, acceptor) == 503, "all places are in use"
    for client in clients:
        if leave == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
    broker.eventually("a place is free", lambda: status(site, acceptor), lambda seen: seen == 200)
    broker.await_metric(0, "artemis_consumer_count", queue="idle")


def test_one_that_only_sends_no_more_still_gets_an_answer_that_comes_soon(site: TlsBroker) -> None:
    for path in ("/api/queues/idle", "/api/queues", "/metrics"):
        with come(site, "http") as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 200"), answer


def test_one_that_only_sends_no_more_gives_its_place_to_others(site: TlsBroker) -> None:
    clients = filled(site, "http", WAITS)
    for client in clients:
        with suppress(OSError):  # of one that was refused
            client.shutdown(socket.SHUT_WR)
    site.broker.eventually("a place is free", lambda: status(site), lambda seen: seen == 200)
    site.broker.await_metric(0, "artemis_consumer_count", queue="idle")
    for client in clients:
        client.close()
