"""How bytes come and go: in pieces of any size, in large frames, in the wrong protocol, and up to the very end."""

from __future__ import annotations

import random
import socket
import threading

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess

pytestmark = pytest.mark.e2e

LARGE_BYTES = 10_000_000


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_session_of_single_bytes(shared_broker: BrokerProcess, place: str, version: str) -> None:
    there = f"/queue/{place}"
    session = (
        b"\n"
        + frame("CONNECT", {"accept-version": version, "host": "broker"})
        + b"\n\n"
        + frame("SUBSCRIBE", {"id": "1", "destination": there, "receipt": "subscribed"})
        + frame("SEND", {"destination": there, "näme": "Ж東🎈"}, b"a\0b\n\nc\0")
        + b"\n"
        + frame("SEND", {"destination": there, "receipt": "sent"}, "body Ж東🎈".encode())
    )
    with StompSocket(shared_broker.port) as client:
        for position in range(len(session)):
            client.raw(session[position : position + 1])
        frames = [client.receive() for _ in range(5)]
        for position in range(len(farewell := frame("DISCONNECT", {"receipt": "bye"}))):
            client.raw(farewell[position : position + 1])
        frames += client.read_to_end()
    answers = [got.header("receipt-id") for got in frames if got.command == "RECEIPT"]
    assert (frames[0].command, answers) == ("CONNECTED", ["subscribed", "sent", "bye"])
    messages = [got for got in frames if got.command == "MESSAGE"]
    assert [got.body for got in messages] == [b"a\0b\n\nc\0", "body Ж東🎈".encode()]
    assert messages[0].header("näme") == "Ж東🎈"


def test_nobody_can_guess_where_answers_go(shared_broker: BrokerProcess, place: str) -> None:
    """The names of two temporary destinations share nothing but what the client chose of them."""
    with connected(shared_broker.port) as client:
        client.subscribe(f"/queue/{place}", ack="auto")
        secrets = []
        for name in ("one", "two"):
            client.send("SEND", {"destination": f"/queue/{place}", "reply-to": f"/temp-queue/{name}"})
            kind, secret, chosen = (client.message().header("reply-to") or "").split(".")
            assert (kind, chosen, len(secret)) == ("temp-queue", name, 32)
            secrets.append(int(secret, 16))
        assert (secrets[0] ^ secrets[1]).bit_count() > 16


@pytest.mark.parametrize("size_bytes", [65_535, 65_536, 65_537, 200_000])
def test_bodies_around_and_beyond_64_kib(shared_broker: BrokerProcess, place: str, size_bytes: int) -> None:
    body = random.Random(size_bytes).randbytes(size_bytes)
    with connected(shared_broker.port) as client:
        client.subscribe(f"/queue/{place}", ack="auto")
        client.raw(
            frame("SEND", {"destination": f"/queue/{place}"}, body)
            + frame("SEND", {"destination": f"/queue/{place}"}, b"next")
        )
        assert client.message().body == body
        assert client.message().body == b"next"


def test_a_body_of_ten_megabytes(shared_broker: BrokerProcess, place: str) -> None:
    body = random.Random(1).randbytes(LARGE_BYTES)
    with connected(shared_broker.port) as producer, connected(shared_broker.port) as consumer:
        producer.ask("SEND", {"destination": f"/queue/{place}"}, body)
        shared_broker.await_count(place, 1)
        consumer.subscribe(f"/queue/{place}")
        message = consumer.message()
        assert message.header("content-length") == str(LARGE_BYTES)
        assert message.body == body
        consumer.acknowledge(message)
        shared_broker.await_count(place, 0)


@pytest.mark.parametrize("commands_a_write", [1, 7, 1000])
def test_many_frames_in_one_write(shared_broker: BrokerProcess, place: str, commands_a_write: int) -> None:
    sends = [frame("SEND", {"destination": f"/queue/{place}", "n": n, "receipt": n}) for n in range(1000)]
    with connected(shared_broker.port) as client:
        for start in range(0, len(sends), commands_a_write):
            client.raw(b"".join(sends[start : start + commands_a_write]))
        assert [client.expect("RECEIPT").header("receipt-id") for _ in sends] == [str(n) for n in range(1000)]
        client.subscribe(f"/queue/{place}", ack="auto")
        assert [client.message().header("n") for _ in sends] == [str(n) for n in range(1000)]


def test_a_half_closed_client_gets_all_its_answers(shared_broker: BrokerProcess, place: str) -> None:
    with connected(shared_broker.port) as client:
        sends = (frame("SEND", {"destination": f"/queue/{place}", "receipt": n}, b"x" * 500) for n in range(2000))
        client.raw(b"".join(sends))
        client.finish()
        frames = client.read_to_end()
    assert [got.header("receipt-id") for got in frames] == [str(n) for n in range(2000)]
    shared_broker.await_count(place, 2000)


def test_disconnect_is_answered_before_the_end(shared_broker: BrokerProcess) -> None:
    with connected(shared_broker.port) as client:
        client.raw(frame("DISCONNECT", {"receipt": "bye"}) + b"\n" * 100_000)
        (receipt,) = client.read_to_end()
        assert (receipt.command, receipt.header("receipt-id")) == ("RECEIPT", "bye")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_an_error_survives_what_the_client_goes_on_sending(
    shared_broker: BrokerProcess, place: str, version: str
) -> None:
    """A broker that closes while bytes come in makes TCP reset, and the reset destroys the ERROR on its way."""
    sends = frame("SEND", {"destination": f"/queue/{place}"}, b"x" * 1000) * 2000
    with connected(shared_broker.port, version) as client:
        client.raw(b"SEND\nno-destination\n\n\0" if version != "1.0" else b"SEND\ncontent-length:-1\n\n\0")
        writer = threading.Thread(target=client.raw, args=(sends,))
        writer.start()
        writer.join(WAIT_S)
        assert not writer.is_alive()
        frames = client.read_to_end()
    assert [got.command for got in frames] == ["ERROR"]
    assert frames[0].header("message")
    assert frames[0].body
    assert shared_broker.count(place) == 0


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n\0", ""),
        (b"connect\n\n\0", "capitals"),
        (b"SEND\ndestination:x\n\n\0", "CONNECT"),
        (b"CONNECT\naccept-version:7.0\n\n\0", "version"),
        (b"CONNECT\naccept-version:1.2\ncontent-length:5\n\nabcdefgh\0", ""),
        (b"AMQP\x00\x01\x00\x00\n\n\0", ""),
        (b"x" * 100_000, ""),
    ],
    ids=["tls", "small-letters", "no-connect", "version", "content-length", "amqp", "endless-line"],
)
def test_who_does_not_speak_stomp_gets_an_error_and_the_end(
    shared_broker: BrokerProcess, sent: bytes, said: str
) -> None:
    with StompSocket(shared_broker.port) as client:
        client.raw(sent)
        (error,) = client.read_to_end()
        assert error.command == "ERROR"
        assert said in (error.header("message") or "")


def test_http_on_the_stomp_port_is_told_to_upgrade(shared_broker: BrokerProcess) -> None:
    """Only WebSocket begins with HTTP there."""
    with socket.create_connection((LOOPBACK, shared_broker.port), timeout=WAIT_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")
        answer = b""
        while data := client.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 426 ")


def test_stomp_on_the_http_port_is_a_bad_request(shared_broker: BrokerProcess) -> None:
    with socket.create_connection((LOOPBACK, shared_broker.ports["http"]), timeout=WAIT_S) as client:
        client.sendall(frame("CONNECT", {"accept-version": "1.2", "host": "broker"}))
        answer = b""
        while data := client.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (frame("SEND", {"destination": "x"}, b"x" * 1001), "1000"),
        (b"SEND\ndestination:x\n\n" + b"x" * 1100, "1000"),
        (b"SEND\ndestination:x\ncontent-length:99999999999\n\n", "1000"),
        (frame("SEND", {"destination": "x", "long": "x" * 300}), "200"),
        (b"SEND\ndestination:" + b"x" * 5000, "2000"),
        (frame("SEND", {"destination": "x", **{f"h{n}": n for n in range(10)}}), "10"),
        (b"".join(frame("SUBSCRIBE", {"destination": "x", "id": n}) for n in range(3)), "2"),
    ],
    ids=["body", "endless-body", "content-length", "header-line", "endless-headers", "headers", "subscriptions"],
)
def test_limits_are_answered_by_an_error_and_the_end(shared_broker: BrokerProcess, sent: bytes, said: str) -> None:
    with connected(shared_broker.ports["small"]) as client:
        client.raw(sent)
        (error,) = client.read_to_end()
        assert error.command == "ERROR"
        assert said in (error.header("message") or "")
