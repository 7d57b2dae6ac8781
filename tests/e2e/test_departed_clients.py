"""Clients of HTTP that leave while their answer is awaited: their work ends, and their places are free at once."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from functools import partial
from typing import Final

import pytest

from tests.kit.certificates import Authority
from tests.kit.process import (
    HTTP,
    LOOPBACK,
    STOMP,
    WAIT_S,
    BrokerProcess,
    anycast,
    configuration,
    for_the_module,
    running,
)
from tests.kit.tls import shake, trusting, uri

pytestmark = pytest.mark.e2e
PLACES: Final = 100
"""How many requests an acceptor answers at a time."""
WAITS: Final = b"POST /api/messages/idle/take?timeout=50 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: to close is to reset."""


AUTHORITY: Final = Authority()
OWN: Final = AUTHORITY.issue("localhost")
ACCEPTORS: Final = {"stomp": STOMP, "http": HTTP, "https": uri("HTTP", keyStorePath="key.pem")}
TEXT: Final = configuration(ACCEPTORS, addresses=anycast("idle"))


broker = for_the_module(partial(running, TEXT, beside={"key.pem": OWN.key_pem() + OWN.chain_pem()}))


def come(broker: BrokerProcess, acceptor: str) -> socket.socket:
    if acceptor == "https":
        return shake(broker.ports[acceptor], trusting(AUTHORITY))
    return socket.create_connection((LOOPBACK, broker.ports[acceptor]), WAIT_S)


def status(broker: BrokerProcess, acceptor: str = "http") -> int:
    """What a client gets that asks for something that is not always answered."""
    with come(broker, acceptor) as client:
        client.sendall(b"GET /api/queues/idle HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return int(client.recv(12)[9:])


def filled(broker: BrokerProcess, acceptor: str, data: bytes) -> list[socket.socket]:
    """All places are in use. Some of the clients may have been refused, or taken for idle ones."""
    clients: list[socket.socket] = []
    while broker.metric("artemis_consumer_count", queue="idle") < PLACES:
        assert len(clients) < 3 * PLACES
        clients.append(come(broker, acceptor))
        clients[-1].sendall(data)
    return clients


@pytest.mark.parametrize("leave", ["reset", "closed"])
@pytest.mark.parametrize("more", [b"", WAITS * 20], ids=["one request", "pipelined"])
@pytest.mark.parametrize("acceptor", ["http", "https"])
def test_clients_that_leave_while_they_wait_for_a_message(
    broker: BrokerProcess, acceptor: str, more: bytes, leave: str
) -> None:
    clients = filled(broker, acceptor, WAITS + more)
    assert status(broker, acceptor) == 503, "all places are in use"
    for client in clients:
        if leave == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
    broker.eventually("a place is free", lambda: status(broker, acceptor), lambda seen: seen == 200)
    broker.await_metric(0, "artemis_consumer_count", queue="idle")


def test_one_that_only_sends_no_more_still_gets_an_answer_that_comes_soon(broker: BrokerProcess) -> None:
    for path in ("/api/queues/idle", "/api/queues", "/metrics"):
        with come(broker, "http") as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 200"), answer


def test_one_that_only_sends_no_more_gives_its_place_to_others(broker: BrokerProcess) -> None:
    clients = filled(broker, "http", WAITS)
    for client in clients:
        with suppress(OSError):  # of one that was refused
            client.shutdown(socket.SHUT_WR)
    broker.eventually("a place is free", lambda: status(broker), lambda seen: seen == 200)
    broker.await_metric(0, "artemis_consumer_count", queue="idle")
    for client in clients:
        client.close()
