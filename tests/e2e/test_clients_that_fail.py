"""Clients that fall silent, stop reading, vanish or die: the others never notice, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import pytest

from tests.e2e.conftest import ACCEPTORS, SETTINGS
from tests.kit.client import Closed, StompSocket, connected, frame, is_greeted
from tests.kit.process import WAIT_S, BrokerProcess, configuration, eventually
from tests.kit.sources import ROOT

pytestmark = pytest.mark.e2e

MIB = 1 << 20
BODY = b"x" * 10_000

CONSUMER = """\
import sys
from tests.kit.client import connected
client = connected(int(sys.argv[1]))
client.subscribe(sys.argv[2])
print(client.message().body.decode(), flush=True)
client.receive()
"""


def expect_redelivery(broker: BrokerProcess, destination: str, bodies: list[bytes]) -> None:
    """Another consumer gets all of these, in order, marked as redelivered."""
    with connected(broker.port) as heir:
        heir.subscribe(destination)
        got = [heir.message() for _ in bodies]
        assert [message.body for message in got] == bodies
        assert {message.header("redelivered") for message in got} == {"true"}
        for message in got:
            heir.acknowledge(message)
        heir.nothing_waits()


def test_a_killed_consumer_leaves_its_message_to_another(shared_broker: BrokerProcess, place: str) -> None:
    with connected(shared_broker.port) as producer:
        producer.ask("SEND", {"destination": f"/queue/{place}"}, b"precious")
    arguments = [str(shared_broker.port), f"/queue/{place}"]
    with subprocess.Popen([sys.executable, "-c", CONSUMER, *arguments], cwd=ROOT, stdout=subprocess.PIPE) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"precious\n"
        consumer.send_signal(signal.SIGKILL)
        consumer.wait(WAIT_S)
    expect_redelivery(shared_broker, f"/queue/{place}", [b"precious"])


MIDWAY: Mapping[str, Callable[[StompSocket, str], object]] = {
    "a header": lambda client, there: client.raw(f"SEND\ndestination:{there}\nfo".encode()),
    "a body": lambda client, there: client.raw(frame("SEND", {"destination": there}, BODY)[:5000]),
    "a transaction": lambda client, there: (
        client.ask("BEGIN", {"transaction": "t"}),
        client.ask("SEND", {"destination": there, "transaction": "t"}, b"never"),
    ),
}


@pytest.mark.parametrize("leave", [StompSocket.reset, StompSocket.close, StompSocket.finish])
@pytest.mark.parametrize("midway", MIDWAY)
def test_who_vanishes_midway_leaves_nothing_behind(
    shared_broker: BrokerProcess,
    place: str,
    midway: str,
    leave: Callable[[StompSocket], None],
) -> None:
    with connected(shared_broker.port) as client:
        client.ask("SEND", {"destination": f"/queue/{place}"}, b"held")
        client.subscribe(f"/queue/{place}")
        assert client.message().body == b"held"
        MIDWAY[midway](client, f"/queue/{place}")
        leave(client)
        expect_redelivery(shared_broker, f"/queue/{place}", [b"held"])
        shared_broker.await_count(place, 0)


def test_who_falls_silent_is_cut_off(shared_broker: BrokerProcess, place: str) -> None:
    with connected(shared_broker.port, heart_beat="500,0") as client:
        client.ask("SEND", {"destination": f"/queue/{place}"}, b"held")
        client.subscribe(f"/queue/{place}")
        assert client.message().body == b"held"
        (error,) = client.read_to_end()
        assert error.command == "ERROR"
    expect_redelivery(shared_broker, f"/queue/{place}", [b"held"])


def test_a_connection_that_says_nothing_is_closed(shared_broker: BrokerProcess) -> None:
    with StompSocket(shared_broker.ports["hurried"]) as silent:
        (error,) = silent.read_to_end()
        assert (error.command, "2000 ms" in (error.header("message") or "")) == ("ERROR", True)


def test_only_as_many_connections_as_are_allowed(shared_broker: BrokerProcess) -> None:
    port = shared_broker.ports["few"]
    with connected(port) as first, connected(port), connected(port):
        with StompSocket(port) as fourth:
            (error,) = fourth.read_to_end()
            assert (error.command, "3 connections" in (error.header("message") or "")) == ("ERROR", True)
        first.close()
        eventually("a place is free", lambda: is_greeted(port), bool)


def test_others_are_served_while_one_does_not_read(start_broker: Callable[[str], BrokerProcess]) -> None:
    """40 MB pass a subscriber that never reads; its queue is a ring of 100 messages (1 MB)."""
    broker = start_broker(configuration(ACCEPTORS, settings=SETTINGS))
    with (
        StompSocket(broker.port, receive_buffer_bytes=4096) as stalled,
        connected(broker.port) as reader,
        connected(broker.port) as producer,
    ):
        stalled.connect(client_id="stalled")
        stalled.subscribe("/topic/ring100.news", durable_subscription_name="slow")
        reader.subscribe("/topic/ring100.news", ack="auto")
        memory_before = broker.memory_bytes
        for number in range(4000):
            producer.send("SEND", {"destination": "/topic/ring100.news", "n": number}, BODY)
            if number % 50 == 0:
                producer.nothing_waits()
                while reader.message().header("n") != str(number):
                    pass
        assert broker.memory_bytes - memory_before < 16 * MIB
        in_delivery = broker.metric("artemis_delivering_message_count", queue="stalled.slow")
        assert 0 < in_delivery < 1000
        broker.await_count("stalled.slow", int(in_delivery) + 100)
        stalled.reset()
        broker.await_count("stalled.slow", 100)
    with connected(broker.port, client_id="stalled") as heir:
        heir.subscribe("/topic/ring100.news", durable_subscription_name="slow")
        assert [heir.message().header("n") for _ in range(100)] == [str(number) for number in range(3900, 4000)]


def test_what_a_stalled_client_holds_comes_back_when_it_is_cut(shared_broker: BrokerProcess, place: str) -> None:
    with StompSocket(shared_broker.port, receive_buffer_bytes=4096) as stalled:
        stalled.connect()
        stalled.subscribe(f"/queue/{place}")
        with connected(shared_broker.port) as producer:
            for number in range(1000):
                producer.send("SEND", {"destination": f"/queue/{place}", "n": number}, BODY)
            producer.nothing_waits()
        shared_broker.await_count(place, 1000)
        held = int(shared_broker.metric("artemis_delivering_message_count", queue=place))
        assert 0 < held < 1000
        stalled.reset()
    with connected(shared_broker.port) as heir:
        heir.subscribe(f"/queue/{place}")
        got = [heir.message() for _ in range(1000)]
        assert [message.header("n") for message in got] == [str(number) for number in range(1000)]
        assert got[0].header("redelivered") == "true"
        assert got[-1].header("redelivered") == "false"
        heir.ask("ACK", {"id": got[0].header("ack")})


def send_for_ever(client: StompSocket, data: bytes) -> None:
    """Sends the same again and again, until it fails or the test's patience is over."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        client.raw(data)


def test_who_does_not_read_its_answers_is_cut_off(shared_broker: BrokerProcess, place: str) -> None:
    """Receipts of 10 kB each, asked for and never read, until more than maxUnsentBytes wait."""
    memory_before = shared_broker.memory_bytes
    with StompSocket(shared_broker.ports["narrow"], receive_buffer_bytes=4096) as client:
        client.connect()
        request = frame("SEND", {"destination": f"/queue/{place}", "receipt": "r" * 10_000}) * 20
        with pytest.raises(ConnectionError):
            send_for_ever(client, request)
    assert shared_broker.memory_bytes - memory_before < 16 * MIB
    with connected(shared_broker.port) as other:
        other.nothing_waits()


def test_an_unread_error_is_found_behind_what_waited(shared_broker: BrokerProcess, place: str) -> None:
    with StompSocket(shared_broker.ports["narrow"], receive_buffer_bytes=4096) as client:
        client.connect()
        for number in range(800):
            client.send("SEND", {"destination": f"/queue/{place}", "receipt": f"{number}:".ljust(10_000, "r")})
        frames = client.read_to_end()
        assert frames[-1].command == "ERROR"
        assert "1048576 bytes" in (frames[-1].header("message") or "")
        assert {got.command for got in frames[:-1]} == {"RECEIPT"}
        with pytest.raises(Closed):
            client.receive()
