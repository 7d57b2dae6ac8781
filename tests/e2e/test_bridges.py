"""Bridges between real brokers: what arrives, however the brokers and the link end."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.e2e.bridged_pair import PERSISTENT, Place, bridge_xml
from tests.e2e.management.beans import BASE
from tests.e2e.management.told import Told
from tests.e2e.pair import Pair
from tests.kit.certificates import Authority
from tests.kit.client import connected
from tests.kit.forks import run_text
from tests.kit.http import ask
from tests.kit.meanwhile import meanwhile
from tests.kit.ports import free_port
from tests.kit.process import LONG, BrokerProcess, anycast, for_each_test
from tests.kit.secured import USERS, secured_broker
from tests.kit.tls import uri

pytestmark = pytest.mark.e2e

INCOMING = {"forwarding-address": "incoming"}
ROUNDS = 12
SOAK_ROUNDS = 150


class Both(NamedTuple):
    """The one with the bridge, and the other."""

    near: Place
    far: Place


@contextmanager
def both_in(
    folder: Path, settings: str = "", queues: str = anycast("orders") + anycast("dead"), acceptor: str = ""
) -> Iterator[Both]:
    """They are not running yet, and in the end not any more. ``acceptor``: parameters of the other one's."""
    with (
        Place(folder, "far", anycast("incoming"), acceptor=acceptor) as far,
        Place(folder, "near", queues, bridge_xml(INCOMING, far.uri), settings) as near,
    ):
        yield Both(near, far)


both = for_each_test(both_in)


def test_messages_arrive_as_they_were_sent(both: Both) -> None:
    both.far.start()
    both.near.start()
    large = random.Random(1).randbytes(3_000_000)
    with connected(both.near.port) as client:
        headers = {"destination": "orders", **PERSISTENT}
        client.ask("SEND", {**headers, "priority": "7", "correlation-id": "c", "colour": "red", "type": "t"}, b"first")
        client.ask("SEND", headers, b"by\0tes")
        client.ask("SEND", headers, large)
        client.ask("SEND", {**headers, "expires": "4102444800000", "JMSXGroupID": "g"}, b"last")
    both.far.running.await_count("incoming", 4)
    both.near.running.await_count("orders", 0)
    with connected(both.far.port) as client:
        client.subscribe("/queue/incoming")
        got = [client.message() for _ in range(4)]
    assert [len(each.body) for each in got] == [5, 6, len(large), 4]
    assert hashlib.sha256(got[2].body).digest() == hashlib.sha256(large).digest()
    first = {name: got[0].header(name) for name in ("priority", "correlation-id", "colour", "type", "persistent")}
    assert first == {"priority": "7", "correlation-id": "c", "colour": "red", "type": "t", "persistent": "true"}
    assert got[1].body == b"by\0tes"
    assert (got[3].header("expires"), got[3].header("JMSXGroupID")) == ("4102444800000", "g")
    row = both.near.bridge()
    assert (row["state"], row["messagesAcknowledged"], row["messagesPendingAcknowledgement"]) == ("connected", 4, 0)
    assert both.near.running.metrics("artemis_bridge_messages_acknowledged_total", bridge="b") == [4]
    assert both.near.running.metrics("artemis_bridge_connections", bridge="b") == [1]


def test_the_bean_of_a_bridge(both: Both) -> None:
    both.far.start()
    both.near.start()
    both.near.send(b"1")
    both.near.await_bridge(messagesAcknowledged=1)
    name = 'org.apache.activemq.artemis:broker="near",component=bridges,name="b"'
    answer = Told(both.near.running).asked("POST", BASE, {"type": "read", "mbean": name})
    wanted = {
        "Name": "b", "QueueName": "orders", "ForwardingAddress": "incoming", "Started": True, "Connected": True,
        "MessagesAcknowledged": 1, "MessagesPendingAcknowledgement": 0, "StaticConnectors": ["c0"],
        "Metrics": {"messagesPendingAcknowledgement": 0, "messagesAcknowledged": 1}, "UseDuplicateDetection": True,
        "RetryInterval": 20, "MaxRetryInterval": 200, "ReconnectAttempts": -1, "FilterString": None,
    }  # fmt: skip
    assert {key: answer["value"][key] for key in wanted} == wanted
    found = Told(both.near.running).asked("POST", BASE, {"type": "search", "mbean": "*:component=bridges,*"})
    assert found["value"] == [name]


def test_a_large_text_without_a_length(both: Both) -> None:
    both.far.start()
    both.near.start()
    text = b"text " * 100_000
    with connected(both.near.port) as client:
        client.raw(b"SEND\ndestination:orders\npersistent:true\nreceipt:r\n\n%b\0" % text)
        client.await_receipt("r")
    assert both.far.take(1, "incoming") == [text]


def test_a_broker_that_is_not_there_is_waited_for(both: Both) -> None:
    both.near.start()
    both.near.send(b"1", b"2")
    row = both.near.await_bridge(state="waiting")
    assert row["reason"] == f"127.0.0.1:{both.far.port}: nothing listens there"
    assert row["peer"] == ""
    assert row["connectionCount"] == 0
    assert both.near.running.metrics("artemis_bridge_connections", bridge="b") == [0]
    both.far.start()
    assert both.far.take(2, "incoming") == [b"1", b"2"]
    assert both.near.await_bridge(state="connected")["reason"] == ""
    both.far.running.kill()
    both.near.await_bridge(connectionCount=0)
    both.near.send(b"3")
    both.far.start()
    assert both.far.take(1, "incoming") == [b"3"]
    said = both.near.running.said
    assert "ART-2012 bridge=b bridge b is connected to " in said
    assert "ART-2012 bridge=b bridge b has lost its connection, and connects again: " in said


def test_it_gives_up_where_the_file_says_so_and_starts_again(both: Both) -> None:
    both.near.write(bridge_xml({**INCOMING, "initial-connect-attempts": 2}, both.far.uri))
    both.near.start()
    row = both.near.await_bridge(state="stopped")
    assert row["reason"].startswith("gave up after 2 attempts: ")
    both.far.start()
    both.near.send(b"1")
    url = both.near.running.url
    done = run_text(["bridge", "start", "b", "--url", url])
    assert (done.returncode, done.stderr) == (0, "")
    assert both.far.take(1, "incoming") == [b"1"]
    assert run_text(["bridge", "stop", "b", "--url", url]).returncode == 0
    both.near.send(b"2")
    assert both.near.bridge()["state"] == "stopped"
    both.near.running.await_count("orders", 1)
    shown = run_text(["bridge", "ls", "--url", url]).stdout
    assert "stopped" in shown
    assert "orders" in shown


def test_the_second_connector_is_used_while_the_first_is_down(both: Both) -> None:
    both.near.write(bridge_xml(INCOMING, f"tcp://127.0.0.1:{free_port()}", both.far.uri))
    both.far.start()
    both.near.start()
    both.near.send(b"1")
    assert both.far.take(1, "incoming") == [b"1"]
    assert both.near.bridge()["peer"] == f"127.0.0.1:{both.far.port}"


def test_a_filter_and_several_connections(both: Both) -> None:
    both.near.write(bridge_xml({**INCOMING, "filter": "colour = 'red'", "concurrency": 3}, both.far.uri))
    both.far.start()
    both.near.start()
    both.near.await_bridge(connectionCount=3)
    both.near.send(*[b"r%d" % number for number in range(30)], colour="red")
    both.near.send(b"b", colour="blue")
    both.near.running.await_count("orders", 1)
    http = both.near.running.ports["http"]
    consumers = ask(http, "GET", "/api/consumers").json["data"]
    assert [row["clientID"] for row in consumers] == ["bridge b"] * 3
    refused = ask(http, "DELETE", f"/api/consumers/{consumers[0]['id']}")
    assert (refused.status, "artemis-py bridge stop b ends it" in refused.error) == (409, True)
    assert sorted(both.far.take(30, "incoming")) == sorted(b"r%d" % number for number in range(30))


def test_tls_a_login_and_a_masked_password(tmp_path: Path) -> None:
    """``ENC(…)`` is eve's password, as ``artemis mask`` prints it."""
    from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import ECB
    from cryptography.hazmat.primitives.padding import PKCS7

    padder = PKCS7(64).padder()
    padded = padder.update(USERS["eve"].encode()) + padder.finalize()
    encryptor = Cipher(Blowfish(b"clusterpassword"), ECB()).encryptor()
    masked = f"ENC({int.from_bytes(encryptor.update(padded) + encryptor.finalize(), 'big', signed=True):x})"
    authority = Authority()
    own = tmp_path / "far"
    own.mkdir()
    store = authority.issue("far").pem(tmp_path / "far.pem")
    trusted = authority.pem(tmp_path / "ca.pem")
    stranger = Authority("Somebody else").pem(tmp_path / "other.pem")
    with secured_broker(own, tls=uri("STOMP", keyStorePath=store)) as far:
        login = {"forwarding-address": "jobs", "user": "eve", "password": masked}
        there = f"tcp://localhost:{far.ports['tls']}?sslEnabled=true;trustStorePath="
        bridge = bridge_xml(login, there + quote(str(stranger)))
        with Place(tmp_path, "near", anycast("orders"), bridge) as near:
            near.start()
            near.send(b"secret")
            row = near.await_bridge(state="waiting")
            assert "certificate is not accepted" in row["reason"], row
            near.write(bridge_xml({**login, "password": "wrong"}, there + quote(str(trusted))))
            assert near.running.ask("POST", "/api/broker/reload").status == 200
            near.running.eventually("a refusal", lambda: near.bridge()["reason"], lambda text: "ERROR" in text)
            near.write(bridge_xml(login, there + quote(str(trusted))))
            assert near.running.ask("POST", "/api/broker/reload").status == 200
            with connected(far.port, login="eve", passcode=USERS["eve"]) as client:
                client.subscribe("/queue/jobs")
                assert client.message().body == b"secret"
            said = near.running.said
            assert USERS["eve"] not in said
            assert masked not in said


def test_a_message_that_the_other_broker_refuses_gets_to_the_dead_letters(tmp_path: Path) -> None:
    settings = (
        '<address-setting match="#"><max-delivery-attempts>2</max-delivery-attempts>'
        "<dead-letter-address>dead</dead-letter-address></address-setting>"
    )
    with both_in(tmp_path, settings, acceptor=";maxBodyBytes=1000") as both:
        both.far.start()
        near = both.near.start()
        both.near.send(b"before", b"x" * 2_000, b"behind")
        near.await_count("dead", 1)
        assert both.far.take(2, "incoming") == [b"before", b"behind"]
        row = both.near.await_bridge(state="connected", messagesPendingAcknowledgement=0)
        assert (row["messagesAcknowledged"], row["messagesRefused"]) == (2, 2)
        assert near.metrics("artemis_bridge_messages_refused_total", bridge="b") == [2]
        assert "was refused message " in near.said


DEAD = '<address-setting match="#"><dead-letter-address>dead</dead-letter-address></address-setting>'


@pytest.mark.parametrize(("settings", "found"), [(DEAD, "dead"), ("", "orders")], ids=["dead letters", "none"])
def test_a_message_goes_around_a_circle_of_bridges_once(tmp_path: Path, settings: str, found: str) -> None:
    """Of two brokers whose bridges forward to each other."""
    with both_in(tmp_path, settings) as circle:
        circle.far.write(bridge_xml({"queue-name": "incoming", "forwarding-address": "orders"}, circle.near.uri))
        circle.far.start()
        near = circle.near.start()
        for place in (circle.near, circle.far):
            place.await_bridge(state="connected")
        circle.near.send(b"1", colour="red")
        near.await_count(found, 1)
        near.eventually("it is noticed", lambda: circle.near.bridge()["messagesLooped"], lambda n: n > 0)
        assert circle.near.bridge()["messagesAcknowledged"] == circle.far.bridge()["messagesAcknowledged"] == 1
        assert circle.far.bridge()["messagesLooped"] == 0
        if settings:
            assert circle.near.bridge()["state"] == "connected"
            assert near.metrics("artemis_bridge_messages_looped_total", bridge="b") == [1]
            near.await_count("orders", 0)
            assert "bridges form a loop, and it is a dead letter now (bridge_loop)" in near.said
        else:
            row = circle.near.await_bridge(state="waiting")
            assert "bridges form a loop: message " in row["reason"]
            assert "it stays: the queue has no dead-letter-address" in near.said
        with connected(circle.near.port) as client:
            client.subscribe(f"/queue/{found}")
            message = client.message()
            assert (message.body, message.header("colour")) == (b"1", "red")
            assert [name.partition("@")[0] for name in str(message.header("_ART_BRIDGES")).split(",")] == ["b", "b"]
            client.acknowledge(message)


def test_a_dead_letter_of_a_circle_goes_out_again_when_the_circle_is_broken(tmp_path: Path) -> None:
    with both_in(tmp_path, DEAD) as both:
        both.far.write(bridge_xml({"queue-name": "incoming", "forwarding-address": "orders"}, both.near.uri))
        both.far.start()
        both.near.start()
        both.near.send(b"1")
        both.near.running.await_count("dead", 1)
        both.far.write("")
        assert both.far.running.ask("POST", "/api/broker/reload").status == 200
        url = both.near.running.url
        assert run_text(["dead", "retry", "--url", url]).returncode == 0
        assert both.far.take(1, "incoming") == [b"1"]


def test_a_queue_that_is_not_there_yet_is_waited_for_without_a_connection(tmp_path: Path) -> None:
    with both_in(tmp_path, queues="") as both:
        far = both.far.start()
        both.near.start()
        row = both.near.await_bridge(state="waiting")
        assert row["reason"] == "queue orders does not exist; create it"
        opened = far.metric("artemis_connections_opened_total")
        both.near.send(b"1")  # which creates it
        assert both.far.take(1, "incoming") == [b"1"]
        assert far.metric("artemis_connections_opened_total") == opened + 2


def test_a_bridged_queue_is_deleted_with_its_consumers(both: Both) -> None:
    both.far.start()
    both.near.start()
    both.near.await_bridge(state="connected")
    deleted = both.near.running.ask("DELETE", "/api/queues/orders?remove-consumers=true")
    assert (deleted.status, deleted.json) == (200, {"removed": 0})
    assert both.near.await_bridge(state="waiting", reason="queue orders does not exist; create it")["started"]
    both.near.send(b"1")  # which creates it
    assert both.far.take(1, "incoming") == [b"1"]


def test_a_stand_by_forwards_when_it_has_taken_over(both: Both, tmp_path: Path) -> None:
    both.far.start()
    (tmp_path / "pair").mkdir()
    with Pair(tmp_path / "pair", bridge_xml(INCOMING, both.far.uri)) as pair:
        first = pair.start()
        backup = pair.start("backup")
        with connected(first.port) as client:
            client.ask("SEND", {"destination": "/queue/orders", **PERSISTENT}, b"1")
        assert both.far.take(1, "incoming") == [b"1"]
        assert "ART-2012" not in backup.said
        first.kill()
        backup.await_state("ready")
        with connected(backup.port) as client:
            client.ask("SEND", {"destination": "/queue/orders", **PERSISTENT}, b"2")
        assert both.far.take(1, "incoming") == [b"2"]
        assert "is connected to" in backup.said
        assert backup.stop() == 0


# ---- reload ----------------------------------------------------------------------------------------


def test_a_reload_adds_changes_and_removes_bridges(both: Both) -> None:
    both.near.write("")
    both.far.start()
    near = both.near.start()

    def reload(core: str) -> list[str]:
        both.near.write(core)
        answer = near.ask("POST", "/api/broker/reload").json
        return [f"{each['action']} {each['setting']}" for each in answer["changes"] if each["part"] == "bridge"]

    both.near.send(b"1")
    assert reload(bridge_xml(INCOMING, both.far.uri)) == ["added "]
    assert both.far.take(1, "incoming") == [b"1"]
    assert reload(bridge_xml({**INCOMING, "forwarding-address": "elsewhere"}, both.far.uri)) == [
        "changed forwarding-address"
    ]
    both.near.send(b"2")
    assert both.far.take(1, "elsewhere") == [b"2"]
    assert reload("") == ["removed "]
    both.near.send(b"3")
    near.await_count("orders", 1)
    assert near.ask("GET", "/api/bridges").json["data"] == []
    near.eventually("no consumer", lambda: near.metric("artemis_consumer_count", queue="orders"), lambda n: n == 0)


def test_an_orderly_stop_leaves_nothing_half_done(both: Both) -> None:
    """Without duplicate detection whatever is sent twice would be there twice."""
    both.near.write(bridge_xml({**INCOMING, "use-duplicate-detection": "false"}, both.far.uri))
    both.far.start()
    sent = 0
    for _ in range(3):
        both.near.start()
        bodies = [b"%d" % number for number in range(sent, sent + 300)]
        sent += 300
        both.near.send(*bodies)
        assert both.near.running.stop() == 0
    both.near.start()
    both.far.running.await_count("incoming", sent)
    both.near.running.await_count("orders", 0)
    assert both.far.take(sent, "incoming") == [b"%d" % number for number in range(sent)]


# ---- kill -9 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rounds", [pytest.param(ROUNDS, marks=pytest.mark.timeout(300)), pytest.param(SOAK_ROUNDS, marks=LONG)]
)
def test_no_kill_loses_or_doubles_a_message(
    both: Both, seed: int, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kill the one, the other, or both of them, in the middle of forwarding."""
    chance = random.Random(seed)
    both.far.start()
    both.near.start()
    asked: list[int] = []
    promised: list[int] = []

    def publish() -> None:
        """Numbered messages, whatever becomes of the broker."""
        with suppress(OSError, AssertionError), connected(both.near.port) as client:
            for _ in range(20):
                asked.append(len(asked) + 1)
                client.ask("SEND", {"destination": "/queue/orders", **PERSISTENT}, b"%d" % asked[-1])
                promised.append(asked[-1])

    kills: Counter[str] = Counter()
    again: list[BrokerProcess] = []
    with meanwhile(publish, pause_s=0.002):
        for _ in range(rounds):
            wanted = int(both.near.bridge()["messagesAcknowledged"]) + chance.randint(1, 60)
            both.near.running.eventually(
                f"{wanted} forwarded",
                lambda: int(both.near.bridge()["messagesAcknowledged"]),
                lambda seen: seen >= wanted,  # noqa: B023
            )
            which = chance.choice(("near", "far", "both"))
            kills[which] += 1
            places = {"near": (both.near,), "far": (both.far,), "both": (both.near, both.far)}[which]
            for place in places:
                place.running.kill()
            for place in places:
                again.append(place.start())
    both.near.running.eventually("all forwarded", lambda: both.near.running.count("orders"), lambda n: n == 0)
    count = both.far.running.count("incoming")
    got = Counter(map(int, both.far.take(count, "incoming")))
    assert not set(promised) - set(got), "lost"
    assert not set(got) - set(asked), "invented"
    twice = [number for number, times in got.items() if times > 1]
    assert not twice, "more than once, although duplicates are detected"
    with capsys.disabled():
        print(f"\n{rounds} kills {dict(kills)}, {len(promised)} promised, {len(got)} arrived once")
