"""The driver of our STOMP clients, against an end of a pair of sockets, and ports where nobody is."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from artemis_py.client.endpoint import Endpoint
from artemis_py.client.retry import Pauses
from artemis_py.client.stomp_connection import LostError, RefusedError, SilentError, StompConnection
from artemis_py.security.client_login import ClientLogin

WAIT_S = 10.0
NAMED = {"url": "--stomp URL", "timeout": "--timeout", "caFile": "--ca-file", "certificateFile": "--certificate-file"}
HELLO = b"CONNECTED\nversion:1.2\nheart-beat:100,100\n\n\0"
RECEIPT = b"RECEIPT\nreceipt-id:%d\n\n\0"
REFUSAL = b"ERROR\nmessage:no\n\nit is late\0"


@pytest.fixture
def ends() -> Iterator[tuple[StompConnection, socket.socket]]:
    """A connection, and the broker's end of it."""
    own, brokers = socket.socketpair()
    connection = StompConnection(own, "tcp://b:1", WAIT_S, beats_ms=(100, 100), named=NAMED)
    with brokers:
        yield connection, brokers
    connection.close()


@pytest.mark.parametrize(
    ("url", "shown", "has_tls"),
    [
        ("stomp://h", "stomp://h:61613", False),
        ("TCP://h:1/", "tcp://h:1", False),
        ("stomps://[::1]:2", "stomps://[::1]:2", True),
        ("stomp+ssl://h:3?password=x", "stomp+ssl://h:3", True),
        ("ssl://h:4/path#x", "ssl://h:4", True),
    ],
)
def test_an_endpoint_is_shown_without_the_rest_of_its_url(url: str, shown: str, has_tls: bool) -> None:
    found = Endpoint.of(url)
    assert found is not None
    assert (str(found), found.has_tls) == (shown, has_tls)


@pytest.mark.parametrize("url", ["h:1", "http://h", "stomp://", "stomp://h:0", "stomp://h:99999", "stomp://u:p@h:1"])
def test_what_is_no_endpoint(url: str) -> None:
    assert Endpoint.of(url) is None


@pytest.mark.parametrize(
    ("listens", "error", "said"),
    [
        (False, LostError, r"nothing listens there \(--stomp URL says where"),
        (True, SilentError, "no CONNECTED within 0.05 s"),
    ],
)
def test_a_port_where_nobody_listens_or_answers(listens: bool, error: type[Exception], said: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if listens:
            listener.listen()
        endpoint, login = Endpoint("127.0.0.1", listener.getsockname()[1]), ClientLogin("ann", "secret")
        with pytest.raises(error, match=f"^{endpoint.host}:{endpoint.port}: {said}"):
            StompConnection.open(endpoint, login, None, connect_s=WAIT_S, timeout_s=0.05, named=NAMED)


def test_a_login(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    brokers.sendall(HELLO)
    connection.log_in("host", ClientLogin("ann", "a:b"), [("x", "y")])
    assert connection.connected.headers["version"] == "1.2"
    sent = brokers.recv(65536)
    assert sent.startswith(b"CONNECT\n")
    assert b"\nlogin:ann\npasscode:a:b\nx:y\n" in sent


def test_a_login_that_is_refused(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    brokers.sendall(REFUSAL)
    with pytest.raises(RefusedError, match=r"^tcp://b:1: no$") as refused:
        connection.log_in("host", ClientLogin("ann", "secret"))
    assert (refused.value.reason, refused.value.frame.body) == ("no", b"it is late")


def test_frames_before_a_receipt(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    brokers.sendall(b"MESSAGE\nsubscription:1\n\nx\0" + RECEIPT % 1)
    assert [one.body for one in connection.ask("SUBSCRIBE", [("id", "1")])] == [b"x"]


def test_receipts_come_as_they_come(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    names = [connection.begin("SEND", [("destination", "a")]) for _ in range(3)]
    brokers.sendall(RECEIPT % 3 + b"MESSAGE\n\n\0" + RECEIPT % 1 + RECEIPT % 1 + RECEIPT % 2)
    assert [one.headers["receipt-id"] for one in connection.receipts(names)] == ["3", "1", "2"]


def test_no_receipt(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, _ = ends
    connection.timeout_s = 0.05
    with pytest.raises(SilentError, match=r"not confirmed a SEND within 0.05 s; .* full \(--timeout waits longer\)"):
        connection.ask("SEND", [("destination", "a")])


@pytest.mark.parametrize("has_reason", [True, False])
def test_a_broker_that_leaves_while_it_is_written_to(
    ends: tuple[StompConnection, socket.socket], has_reason: bool
) -> None:
    """Its reason counts more than the failed write, and what it confirmed before can be read still."""
    connection, brokers = ends
    brokers.sendall(RECEIPT % 7 + (REFUSAL if has_reason else b""))
    brokers.close()
    with pytest.raises(RefusedError if has_reason else LostError, match=r"^tcp://b:1: "):
        connection.write(bytes(1 << 20))
    found = connection.receive(time.monotonic())
    assert found is not None
    assert found.confirms("7")


def test_neither_side_waits_for_the_other(ends: tuple[StompConnection, socket.socket]) -> None:
    """Both write more than the sockets hold, before they read."""
    connection, brokers = ends
    large = b"MESSAGE\n\n" + b"x" * (8 << 20) + b"\0"

    def serve() -> None:
        brokers.sendall(large)
        left = len(large)
        while left:
            left -= len(brokers.recv(1 << 20))
        brokers.sendall(RECEIPT % 1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    connection.write(large)
    assert [len(frame.body) for frame in (connection.receive(None), connection.receive(None)) if frame] == [8 << 20, 0]
    thread.join(WAIT_S)


def test_a_broker_that_takes_nothing(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, _ = ends
    connection.timeout_s = 0.05
    with pytest.raises(SilentError, match=r"taken nothing for 0\.05 s"):
        connection.write(bytes(8 << 20))


def test_bytes_that_are_no_stomp(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    brokers.sendall(b"HTTP/1.1 400 Bad Request\r\nno colon\r\n\r\n\0")
    with pytest.raises(LostError, match=r"^tcp://b:1: the broker sent a header line without a colon"):
        connection.receive(time.monotonic() + WAIT_S)


def test_the_end(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, brokers = ends
    brokers.close()
    with pytest.raises(LostError, match="has closed the connection"):
        connection.receive(None)


def test_nothing_comes(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, _ = ends
    assert connection.receive(time.monotonic() + 0.01) is None
    assert connection.frames() == []


def test_a_bell_ends_a_wait(ends: tuple[StompConnection, socket.socket]) -> None:
    connection, _ = ends
    bell, ear = socket.socketpair()
    with bell, ear:
        bell.send(b"!")
        assert not connection.wait(WAIT_S, bell=ear)
    assert connection.wait(WAIT_S, writes=True)


def test_heart_beats(ends: tuple[StompConnection, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    connection, brokers = ends
    connection.check_beats(0.0001 + WAIT_S)
    brokers.sendall(HELLO)
    connection.log_in("host", ClientLogin())
    assert not connection.has_to_beat
    now_s = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now_s + 0.2)
    assert connection.has_to_beat
    connection.check_beats(0.0)
    monkeypatch.setattr("time.monotonic", lambda: now_s + 0.4)
    with pytest.raises(SilentError, match=r"silent for 0\.3 s"):
        connection.check_beats(WAIT_S)


def test_pauses_grow_and_begin_anew() -> None:
    pauses = Pauses(2.0, 5.0, 1.5)
    assert [pauses.next_s() for _ in range(4)] == [2.0, 3.0, 4.5, 5.0]
    assert Pauses(9.0, 5.0).next_s() == 5.0
    pauses = Pauses(0.1, 0.5)
    assert [pauses.next_s() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    pauses.reset()
    assert pauses.next_s() == 0.1
