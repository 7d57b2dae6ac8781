"""Frames, and a connection to a broker that does not behave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from artemis_py_kombu.stomp_connection import Frame, LostError, Parser, RefusedError, StompConnection, encode

from artemis_py.testing import ArtemisBroker

CONNECTED = b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0"


def test_frames_come_whole_from_single_bytes() -> None:
    odd = "a:b\\c\nd\re"
    data = b"\n\r\n" + encode("MESSAGE", {odd: odd, "n": 1}, b"x\0y") + b"\n\nRECEIPT\r\nreceipt-id:1\r\n\r\n\0\n"
    parser = Parser()
    found = []
    for byte in data:
        parser.feed(bytes([byte]))
        if (frame := parser.next()) is not None:
            found.append(frame)
    assert found == [
        Frame("MESSAGE", {odd: odd, "n": "1", "content-length": "3"}, b"x\0y"),
        Frame("RECEIPT", {"receipt-id": "1"}, b""),
    ]
    parser.feed(data)
    assert [parser.next(), parser.next(), parser.next()] == [*found, None]


def test_of_repeated_headers_the_first_counts() -> None:
    parser = Parser()
    parser.feed(b"MESSAGE\na:1\na:2\n\nhi\0")
    assert parser.next() == Frame("MESSAGE", {"a": "1"}, b"hi")


def test_headers_without_end_are_no_stomp() -> None:
    parser = Parser()
    parser.feed(b"HTTP/1.1 200 OK" * 100_000)
    with pytest.raises(LostError, match="is that STOMP"):
        parser.next()


@contextmanager
def served(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A broker that does what a test says with its one connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(4096)
                behave(accepted)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)
        assert not thread.is_alive()


def test_a_refused_login_says_why() -> None:
    with (
        served(lambda to: to.sendall(b"ERROR\nmessage:who are you?\n\n\0")) as port,
        pytest.raises(RefusedError, match=r"refuses the connection: who are you\?"),
    ):
        StompConnection("127.0.0.1", port, login="somebody", passcode="wrong")


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LostError, match=rf"127\.0\.0\.1:{port}: Connection refused"):
        StompConnection("127.0.0.1", port)


def test_a_broker_that_is_silent_is_lost() -> None:
    ended = threading.Event()

    def greet(to: socket.socket) -> None:
        to.sendall(CONNECTED.replace(b"0,0", b"100,100"))
        ended.wait(10)

    with served(greet) as port:
        connection = StompConnection("127.0.0.1", port, heartbeat_s=0.1)
        assert connection.beat_s == pytest.approx(0.1)
        assert not connection.wait(0.3)
        with pytest.raises(LostError, match=r"silent for 0\.2 s"):
            connection.beat()
        assert not connection.is_open
        with pytest.raises(LostError, match="silent"):
            connection.send("SEND", {"destination": "x"})
        connection.close()
        ended.set()


def test_a_receipt_that_stays_away_ends_the_connection() -> None:
    ended = threading.Event()

    def greet(to: socket.socket) -> None:
        to.sendall(CONNECTED)
        ended.wait(10)

    with served(greet) as port:
        connection = StompConnection("127.0.0.1", port)
        with pytest.raises(LostError, match=r"not confirmed SEND within 0\.1 s.*answer_s"):
            connection.ask("SEND", {"destination": "x"}, answer_s=0.1)
        connection.close()
        ended.set()


def test_heart_beats_keep_it_open(artemis: ArtemisBroker) -> None:
    connection = StompConnection(artemis.host, artemis.port, heartbeat_s=1)
    sent_s = connection._sent_s
    connection._sent_s -= 10
    connection.beat()
    assert connection._sent_s >= sent_s
    connection.ask("SEND", {"destination": "/queue/x"})
    connection.close()
    artemis.queue("x").wait(count=1)


def test_an_error_says_what_was_refused(artemis: ArtemisBroker) -> None:
    connection = StompConnection(artemis.host, artemis.port)
    with pytest.raises(RefusedError, match="SUBSCRIBE is refused: selector:"):
        connection.ask("SUBSCRIBE", {"id": 1, "destination": "/queue/x", "selector": "this is none"})
    with pytest.raises(LostError, match="has ended the connection"):
        connection.send("SEND", {"destination": "/queue/x"})
    connection.close()
