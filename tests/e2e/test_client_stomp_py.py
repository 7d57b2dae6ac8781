"""stomp.py against the real broker, in each STOMP version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.stomp_py_client import StompPy
from tests.kit.process import WAIT_S, BrokerProcess, eventually

pytestmark = pytest.mark.e2e

VERSIONS = ("1.0", "1.1", "1.2")
EVERY_BYTE = bytes(range(256)) * 3
TEXT = "Zahlen: ½ ≠ 0,5; Ж; 東京; 🎈"
AWKWARD = {"1.0": "Ж 東京 🎈 a:b", "1.1": "Ж:東京\nline two \\ back\\n", "1.2": "Ж:東京\r\nline two \\ back\\n"}

Connect = Callable[..., StompPy]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each version that the library speaks."""
    text: str = request.param
    return text


@pytest.fixture
def connect(shared_broker: BrokerProcess, version: str) -> Iterator[Connect]:
    """Opens connections of that version, which end with the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(StompPy(shared_broker.port, version, **options))


def test_connect_and_disconnect(connect: Connect, version: str) -> None:
    client = connect()
    greeting = client.listener.greeting
    assert greeting["version"] == version
    assert greeting["session"]
    assert greeting["server"].startswith("artemis_py/")
    client.disconnect()
    assert not client.connection.is_connected()


def test_messages_arrive_in_order(connect: Connect, place: str) -> None:
    consumer, producer = connect(), connect()
    consumer.subscribe(f"/queue/{place}", ack="auto")
    for number in range(50):
        producer.send(f"/queue/{place}", f"message {number}", number=str(number))
    got = [consumer.next() for _ in range(50)]
    assert [message.body for message in got] == [f"message {number}" for number in range(50)]
    assert [message.headers["number"] for message in got] == [str(number) for number in range(50)]
    assert {message.headers["destination"] for message in got} == {f"/queue/{place}"}
    assert {message.headers["redelivered"] for message in got} == {"false"}
    assert len({message.headers["message-id"] for message in got}) == 50


def test_a_topic_reaches_every_subscriber(connect: Connect, place: str) -> None:
    first, second, producer = connect(), connect(), connect()
    first.subscribe(f"/topic/{place}", ack="auto")
    second.subscribe(f"/topic/{place}", ack="auto")
    producer.send(f"/topic/{place}", "news")
    assert first.bodies(1) == second.bodies(1) == ["news"]


def test_client_mode_acknowledges_everything_before(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    for letter in "abcd":
        consumer.send(f"/queue/{place}", letter)
    consumer.subscribe(f"/queue/{place}", ack="client")
    messages = [consumer.next() for _ in range(4)]
    consumer.ack(messages[2])
    shared_broker.await_count(place, 1)
    consumer.unsubscribe()
    consumer.subscribe(f"/queue/{place}", id="2", ack="auto")
    assert consumer.bodies(1) == ["d"]
    consumer.nothing_waits()


def test_client_individual_mode_acknowledges_one(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    for letter in "abcd":
        consumer.send(f"/queue/{place}", letter)
    consumer.subscribe(f"/queue/{place}")
    messages = [consumer.next() for _ in range(4)]
    consumer.ack(messages[2])
    shared_broker.await_count(place, 3)
    consumer.disconnect()
    heir = connect()
    heir.subscribe(f"/queue/{place}", ack="auto")
    assert heir.bodies(3) == ["a", "b", "d"]
    heir.nothing_waits()


def test_what_a_lost_connection_held_is_redelivered(connect: Connect, place: str) -> None:
    consumer, heir = connect(), connect()
    consumer.send(f"/queue/{place}", "precious")
    consumer.subscribe(f"/queue/{place}")
    assert consumer.next().headers["redelivered"] == "false"
    consumer.connection.transport.disconnect_socket()
    heir.subscribe(f"/queue/{place}")
    again = heir.next()
    assert (again.body, again.headers["redelivered"]) == ("precious", "true")
    heir.ack(again)


@pytest.mark.parametrize("version", ["1.1", "1.2"], indirect=True)
def test_nack_brings_the_message_back(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    consumer.send(f"/queue/{place}", "no, thanks")
    consumer.subscribe(f"/queue/{place}")
    consumer.ack(consumer.next(), refuses=True)
    again = consumer.next()
    assert (again.body, again.headers["redelivered"]) == ("no, thanks", "true")
    consumer.ack(again)
    shared_broker.await_count(place, 0)


def test_a_transaction_of_sends(connect: Connect, place: str) -> None:
    consumer, producer = connect(), connect()
    consumer.subscribe(f"/queue/{place}", ack="auto")
    producer.connection.begin(transaction="undone")
    producer.send(f"/queue/{place}", "never", transaction="undone")
    producer.connection.abort("undone")
    producer.connection.begin(transaction="done")
    producer.send(f"/queue/{place}", "first", transaction="done")
    producer.send(f"/queue/{place}", "second", transaction="done")
    consumer.nothing_waits()
    receipt = producer.new_receipt()
    producer.connection.commit("done", headers={"receipt": receipt})
    producer.await_receipt(receipt)
    assert consumer.bodies(2) == ["first", "second"]
    consumer.nothing_waits()


def test_a_transaction_of_acknowledgements(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    consumer.send(f"/queue/{place}", "thing")
    consumer.subscribe(f"/queue/{place}")
    consumer.connection.begin(transaction="undone")
    consumer.ack(consumer.next(), transaction="undone")
    shared_broker.await_count(place, 1)
    consumer.connection.abort("undone")
    again = consumer.next()
    assert (again.body, again.headers["redelivered"]) == ("thing", "true")
    consumer.connection.begin(transaction="done")
    consumer.ack(again, transaction="done")
    consumer.connection.commit("done")
    shared_broker.await_count(place, 0)


@pytest.mark.parametrize("version", ["1.2"], indirect=True)
def test_heart_beats_keep_an_idle_connection(connect: Connect, place: str) -> None:
    client = connect(heartbeats=(2000, 2000))
    assert client.listener.greeting["heart-beat"] == "2000,2000"
    eventually("three heart-beats", lambda: client.listener.beats, lambda beats: beats >= 3)
    client.subscribe(f"/queue/{place}", ack="auto")
    client.send(f"/queue/{place}", "still here")
    assert client.bodies(1) == ["still here"]
    assert client.listener.beats_missed == 0


def test_unsubscribe_ends_the_flow(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    client = connect()
    client.subscribe(f"/queue/{place}", ack="auto")
    client.send(f"/queue/{place}", "one")
    assert client.bodies(1) == ["one"]
    client.unsubscribe()
    client.send(f"/queue/{place}", "two")
    client.nothing_waits()
    shared_broker.await_count(place, 1)
    client.subscribe(f"/queue/{place}", ack="auto")
    assert client.bodies(1) == ["two"]


def test_a_durable_subscription_keeps_what_comes_meanwhile(connect: Connect, place: str) -> None:
    name = {"durable-subscription-name": "reader"}
    member = {"client-id": place}
    reader = connect(connect_headers=member)
    reader.subscribe(f"/topic/{place}", ack="auto", **name)
    reader.disconnect()
    producer = connect()
    producer.send(f"/topic/{place}", "while you were out")
    reader = connect(connect_headers=member)
    reader.subscribe(f"/topic/{place}", ack="auto", **name)
    assert reader.bodies(1) == ["while you were out"]
    reader.unsubscribe(**name)
    producer.send(f"/topic/{place}", "for nobody")
    reader.subscribe(f"/topic/{place}", ack="auto", **name)
    reader.nothing_waits()
    reader.unsubscribe(**name)


def test_a_selector_lets_through_what_matches(connect: Connect, place: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{place}", ack="auto", selector="convert_string_expressions:colour = 'red' AND weight > 2")
    for colour, weight in (("red", 1), ("red", 3), ("blue", 5), ("red", 10)):
        client.send(f"/queue/{place}", f"{colour} {weight}", colour=colour, weight=str(weight))
    assert client.bodies(2) == ["red 3", "red 10"]
    client.nothing_waits()


def test_bodies_of_bytes(connect: Connect, place: str) -> None:
    client = connect(auto_decode=False)
    client.subscribe(f"/queue/{place}", ack="auto")
    client.send(f"/queue/{place}", EVERY_BYTE)
    client.send(f"/queue/{place}", b"\0")
    client.send(f"/queue/{place}", TEXT.encode())
    assert client.bodies(3) == [EVERY_BYTE, b"\0", TEXT.encode()]


def test_bodies_of_text(connect: Connect, place: str) -> None:
    client = connect(auto_content_length=False)
    client.subscribe(f"/queue/{place}", ack="auto")
    client.send(f"/queue/{place}", TEXT)
    client.send(f"/queue/{place}", "")
    message, empty = client.next(), client.next()
    assert (message.body, empty.body) == (TEXT, "")
    assert ("content-length" in message.headers) == (client.version != "1.0")


def test_headers_of_any_text(connect: Connect, place: str, version: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{place}", ack="auto")
    client.send(f"/queue/{place}", "x", awkward=AWKWARD[version], empty="")
    headers = client.next().headers
    assert headers["awkward"] == AWKWARD[version]
    assert headers["empty"] == ""


def test_an_error_names_its_receipt(connect: Connect, place: str, version: str) -> None:
    client = connect()
    client.connection.send(f"/queue/{place}", "x", headers={"priority": "high", "receipt": "wrong"})
    error = client.listener.errors.get(timeout=WAIT_S)
    assert error.headers["receipt-id"] == "wrong"
    assert "priority" in error.headers["message"]
    if version == "1.2":
        assert client.listener.gone.wait(WAIT_S)
    else:
        client.connection.send(f"/queue/{place}", "y", headers={"receipt": "right"})
        client.await_receipt("right")
