"""Bridges to a real Artemis and a real RabbitMQ: what arrives there, also when they are killed in the middle."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.bridged_pair import PERSISTENT, Place, bridge_xml
from tests.kit.client import connected
from tests.kit.process import anycast
from tests.oracle.stomp_peers import Peer, RealArtemis, RealRabbit

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

KILLS = 3
OF_THE_DELIVERY = {"ack", "content-length", "destination", "message-id", "subscription"}
DEAD = (
    '<address-setting match="#"><max-delivery-attempts>2</max-delivery-attempts>'
    "<dead-letter-address>dead</dead-letter-address></address-setting>"
)


@pytest.fixture(params=[RealArtemis, RealRabbit], ids=["artemis", "rabbitmq"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    made: Peer = request.param(tmp_path / "peer")
    with made.alive:
        made.start()
        yield made


@pytest.fixture
def near(tmp_path: Path, peer: Peer) -> Iterator[Place]:
    place = Place(tmp_path, "near", anycast("orders") + anycast("dead"), bridge_xml(peer.settings, peer.uri), DEAD)
    place.start()
    try:
        yield place
    finally:
        place.close()


def test_messages_arrive_as_they_were_sent(near: Place, peer: Peer) -> None:
    large = random.Random(1).randbytes(2_000_000)
    with connected(near.port) as client:
        headers = {"destination": "orders", **PERSISTENT}
        client.ask("SEND", {**headers, "priority": "7", "correlation-id": "c", "colour": "red", "type": "t"}, b"first")
        client.ask("SEND", headers, b"by\0tes")
        client.ask("SEND", headers, large)
        client.raw(b"SEND\ndestination:orders\npersistent:true\nreceipt:r\n\ntext\0")
        client.await_receipt("r")
    near.await_bridge(state="connected", messagesAcknowledged=4, messagesPendingAcknowledgement=0)
    with peer.client() as client:
        client.subscribe(peer.destination, subscription_type="ANYCAST")
        got = [client.message() for _ in range(4)]
    by_body = {each.body: each for each in got}
    assert set(by_body) == {b"first", b"by\0tes", large, b"text"}
    first = by_body[b"first"]
    wanted = {"priority": "7", "correlation-id": "c", "colour": "red", "type": "t", "persistent": "true"}
    assert {name: first.header(name) for name in wanted} == wanted


def test_messages_keep_their_order(near: Place, peer: Peer) -> None:
    near.send(*[b"%d" % number for number in range(200)])
    with peer.client() as client:
        client.subscribe(peer.destination, subscription_type="ANYCAST")
        for number in range(200):
            message = client.message()
            client.acknowledge(message)
            assert message.body == b"%d" % number


def test_a_kill_there_loses_nothing(near: Place, peer: Peer) -> None:
    """With duplicate detection each is there once."""
    sent = 0
    for _ in range(KILLS):
        bodies = [b"%d" % number for number in range(sent, sent + 300)]
        sent += 300
        near.send(*bodies[:150])
        peer.alive.close()
        near.send(*bodies[150:])
        peer.start()
        near.await_bridge(state="connected")
    near.running.await_count("orders", 0)
    near.await_bridge(messagesPendingAcknowledgement=0)
    with peer.client() as client:  # a message behind all others
        client.ask("SEND", {"destination": peer.destination, **PERSISTENT, "destination-type": "ANYCAST"}, b"end")
        client.subscribe(peer.destination, subscription_type="ANYCAST")
        got: Counter[bytes] = Counter()
        while (message := client.message()).body != b"end":
            got[message.body] += 1
    assert set(got) == {b"%d" % number for number in range(sent)}
    if isinstance(peer, RealArtemis):
        assert max(got.values()) == 1


def test_a_loop_through_it_ends(near: Place, peer: Peer) -> None:
    """A program brings back what it got, with its headers: the way of other brokers into one of these."""
    near.send(b"1", colour="red")
    with peer.client() as client:
        client.subscribe(peer.destination, subscription_type="ANYCAST")
        message = client.message()
        client.acknowledge(message)
    assert str(message.header("_ART_BRIDGES")).partition("@")[0] == "b"
    brought = dict(line.split(":", 1) for line in message.lines)
    near.send(message.body, **{name: value for name, value in brought.items() if name not in OF_THE_DELIVERY})
    near.running.await_count("dead", 1)
    near.await_bridge(messagesAcknowledged=1, messagesLooped=1, messagesRefused=0, state="connected")
    with connected(near.port) as client:
        client.subscribe("/queue/dead")
        dead = client.message()
    assert (dead.body, dead.header("colour"), dead.header("reason")) == (b"1", "red", "bridge_loop")


def test_what_is_refused_gets_to_the_dead_letters(near: Place, peer: Peer) -> None:
    """Artemis names the message in its ERROR, and RabbitMQ does not."""
    target = "full" if isinstance(peer, RealArtemis) else "/exchange/of-nobody/key"
    near.write(bridge_xml({**peer.settings, "forwarding-address": target}, peer.uri))
    near.running.process.send_signal(signal.SIGHUP)
    near.running.eventually("another target", lambda: near.bridge()["forwardingAddress"], lambda it: it == target)
    near.await_bridge(state="connected")
    near.send(b"1", b"2")
    near.running.await_count("orders", 0)
    row = near.bridge()
    dead = near.running.count("dead")
    assert dead + row["messagesAcknowledged"] == 2
    assert row["messagesRefused"] == 2 * dead > 0
    print([line for line in near.running.said.splitlines() if "ART-2012" in line])
