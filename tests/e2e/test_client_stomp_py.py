"""stomp.py against the real broker, in each STOMP version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.e2e.stomp_py_client import StompPy
from tests.kit.process import WAIT_S, BrokerProcess

pytestmark = pytest.mark.e2e

VERSIONS = ("1.0", "1.1", "1.2")
EVERY_BYTE = bytes(range(256)) * 3
TEXT = "Zahlen: ½ ≠ 0,5; Ж; 東京; 🎈"
AWKWARD = {"1.0": "Ж 東京 🎈 a:b", "1.1": "Ж:東京\nline two \\ back\\n", "1.2": "Ж:東京\r\nline two \\ back\\n"}

Connect = Callable[..., StompPy]


@pytest.fixture(params=VERSIONS)
def connect(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Opens connections of that version, which end with the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(closing(StompPy(shared_broker.port, request.param, **options)))


def test_connect_and_disconnect(connect: Connect) -> None:
    client = connect()
    greeting = client.listener.greetings[0].headers
    assert greeting["version"] == client.version
    assert greeting["session"]
    assert greeting["server"].startswith("artemis_py/")
    client.close()
    assert not client.connection.is_connected()


def test_messages_arrive_in_order(connect: Connect, place: str) -> None:
    consumer, producer = connect(), connect()
    consumer.ask("subscribe", f"/queue/{place}", "1")
    for number in range(50):
        producer.ask("send", f"/queue/{place}", f"message {number}", number=str(number))
    got = consumer.messages(50)
    assert [message.body for message in got] == [f"message {number}" for number in range(50)]
    assert [message.headers["number"] for message in got] == [str(number) for number in range(50)]
    assert {message.headers["destination"] for message in got} == {f"/queue/{place}"}
    assert {message.headers["redelivered"] for message in got} == {"false"}
    assert len({message.headers["message-id"] for message in got}) == 50


def test_a_topic_reaches_every_subscriber(connect: Connect, place: str) -> None:
    first, second, producer = connect(), connect(), connect()
    first.ask("subscribe", f"/topic/{place}", "1")
    second.ask("subscribe", f"/topic/{place}", "1")
    producer.ask("send", f"/topic/{place}", "news")
    assert first.bodies(1) == second.bodies(1) == ["news"]


def test_client_mode_acknowledges_everything_before(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    for letter in "abcd":
        consumer.ask("send", f"/queue/{place}", letter)
    consumer.ask("subscribe", f"/queue/{place}", "1", "client")
    messages = consumer.messages(4)
    consumer.acknowledge(messages[2])
    shared_broker.await_count(place, 1)
    consumer.ask("unsubscribe", id="1")
    consumer.ask("subscribe", f"/queue/{place}", "2")
    assert consumer.bodies(1) == ["d"]
    consumer.nothing_waits()


def test_client_individual_mode_acknowledges_one(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    for letter in "abcd":
        consumer.ask("send", f"/queue/{place}", letter)
    consumer.ask("subscribe", f"/queue/{place}", "1", "client-individual")
    messages = consumer.messages(4)
    consumer.acknowledge(messages[2])
    shared_broker.await_count(place, 3)
    consumer.close()
    heir = connect()
    heir.ask("subscribe", f"/queue/{place}", "1")
    assert heir.bodies(3) == ["a", "b", "d"]
    heir.nothing_waits()


def test_what_a_lost_connection_held_is_redelivered(connect: Connect, place: str) -> None:
    consumer, heir = connect(), connect()
    consumer.ask("send", f"/queue/{place}", "precious")
    consumer.ask("subscribe", f"/queue/{place}", "1", "client-individual")
    assert consumer.messages(1)[0].headers["redelivered"] == "false"
    consumer.connection.transport.disconnect_socket()
    heir.ask("subscribe", f"/queue/{place}", "1", "client-individual")
    (again,) = heir.messages(1)
    assert (again.body, again.headers["redelivered"]) == ("precious", "true")
    heir.acknowledge(again)


@pytest.mark.parametrize("connect", ["1.1", "1.2"], indirect=True)
def test_nack_brings_the_message_back(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    consumer.ask("send", f"/queue/{place}", "no, thanks")
    consumer.ask("subscribe", f"/queue/{place}", "1", "client-individual")
    consumer.acknowledge(consumer.messages(1)[0], "nack")
    (again,) = consumer.messages(1)
    assert (again.body, again.headers["redelivered"]) == ("no, thanks", "true")
    consumer.acknowledge(again)
    shared_broker.await_count(place, 0)


def test_a_transaction_of_sends(connect: Connect, place: str) -> None:
    consumer, producer = connect(), connect()
    consumer.ask("subscribe", f"/queue/{place}", "1")
    producer.connection.begin(transaction="undone")
    producer.ask("send", f"/queue/{place}", "never", transaction="undone")
    producer.connection.abort("undone")
    producer.connection.begin(transaction="done")
    producer.ask("send", f"/queue/{place}", "first", transaction="done")
    producer.ask("send", f"/queue/{place}", "second", transaction="done")
    consumer.nothing_waits()
    producer.ask("commit", "done")
    assert consumer.bodies(2) == ["first", "second"]
    consumer.nothing_waits()


def test_a_transaction_of_acknowledgements(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    consumer = connect()
    consumer.ask("send", f"/queue/{place}", "thing")
    consumer.ask("subscribe", f"/queue/{place}", "1", "client-individual")
    consumer.connection.begin(transaction="undone")
    consumer.acknowledge(consumer.messages(1)[0], transaction="undone")
    shared_broker.await_count(place, 1)
    consumer.connection.abort("undone")
    (again,) = consumer.messages(1)
    assert (again.body, again.headers["redelivered"]) == ("thing", "true")
    consumer.connection.begin(transaction="done")
    consumer.acknowledge(again, transaction="done")
    consumer.connection.commit("done")
    shared_broker.await_count(place, 0)


@pytest.mark.parametrize("connect", ["1.2"], indirect=True)
def test_heart_beats_keep_an_idle_connection(connect: Connect, place: str) -> None:
    client = connect(heartbeats=(2000, 2000))
    assert client.listener.greetings[0].headers["heart-beat"] == "2000,2000"
    assert all(client.listener.beats.acquire(timeout=WAIT_S) for _ in range(3))
    client.ask("subscribe", f"/queue/{place}", "1")
    client.ask("send", f"/queue/{place}", "still here")
    assert client.bodies(1) == ["still here"]
    assert not client.listener.silence.is_set()


def test_unsubscribe_ends_the_flow(connect: Connect, place: str, shared_broker: BrokerProcess) -> None:
    client = connect()
    client.ask("subscribe", f"/queue/{place}", "1")
    client.ask("send", f"/queue/{place}", "one")
    assert client.bodies(1) == ["one"]
    client.ask("unsubscribe", id="1")
    client.ask("send", f"/queue/{place}", "two")
    client.nothing_waits()
    shared_broker.await_count(place, 1)
    client.ask("subscribe", f"/queue/{place}", "1")
    assert client.bodies(1) == ["two"]


def test_a_durable_subscription_keeps_what_comes_meanwhile(connect: Connect, place: str) -> None:
    name = {"durable-subscription-name": "reader"}
    member = {"client-id": place}
    reader = connect(connect_headers=member)
    reader.ask("subscribe", f"/topic/{place}", "1", **name)
    reader.close()
    producer = connect()
    producer.ask("send", f"/topic/{place}", "while you were out")
    reader = connect(connect_headers=member)
    reader.ask("subscribe", f"/topic/{place}", "1", **name)
    assert reader.bodies(1) == ["while you were out"]
    reader.ask("unsubscribe", id="1", **name)
    producer.ask("send", f"/topic/{place}", "for nobody")
    reader.ask("subscribe", f"/topic/{place}", "1", **name)
    reader.nothing_waits()
    reader.ask("unsubscribe", id="1", **name)


def test_a_selector_lets_through_what_matches(connect: Connect, place: str) -> None:
    client = connect()
    client.ask("subscribe", f"/queue/{place}", "1", selector="convert_string_expressions:colour = 'red' AND weight > 2")
    for colour, weight in (("red", 1), ("red", 3), ("blue", 5), ("red", 10)):
        client.ask("send", f"/queue/{place}", f"{colour} {weight}", colour=colour, weight=str(weight))
    assert client.bodies(2) == ["red 3", "red 10"]
    client.nothing_waits()


def test_bodies_of_bytes(connect: Connect, place: str) -> None:
    client = connect(auto_decode=False)
    client.ask("subscribe", f"/queue/{place}", "1")
    client.ask("send", f"/queue/{place}", EVERY_BYTE)
    client.ask("send", f"/queue/{place}", b"\0")
    client.ask("send", f"/queue/{place}", TEXT.encode())
    assert client.bodies(3) == [EVERY_BYTE, b"\0", TEXT.encode()]


def test_bodies_of_text(connect: Connect, place: str) -> None:
    client = connect(auto_content_length=False)
    client.ask("subscribe", f"/queue/{place}", "1")
    client.ask("send", f"/queue/{place}", TEXT)
    client.ask("send", f"/queue/{place}", "")
    message, empty = client.messages(2)
    assert (message.body, empty.body) == (TEXT, "")
    assert ("content-length" in message.headers) == (client.version != "1.0")


def test_headers_of_any_text(connect: Connect, place: str) -> None:
    client = connect()
    client.ask("subscribe", f"/queue/{place}", "1")
    client.ask("send", f"/queue/{place}", "x", awkward=AWKWARD[client.version], empty="")
    headers = client.messages(1)[0].headers
    assert headers["awkward"] == AWKWARD[client.version]
    assert headers["empty"] == ""


def test_an_error_names_its_receipt(connect: Connect, place: str) -> None:
    client = connect()
    client.connection.send(f"/queue/{place}", "x", headers={"priority": "high", "receipt": "wrong"})
    error = client.listener.errors.get(timeout=WAIT_S)
    assert error.headers["receipt-id"] == "wrong"
    assert "priority" in error.headers["message"]
    if client.version == "1.2":
        assert client.listener.gone.wait(WAIT_S)
    else:
        client.ask("send", f"/queue/{place}", "y")
