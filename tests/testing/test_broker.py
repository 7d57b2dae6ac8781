"""Start, messages, counts and end of a broker in the test's own process."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.errors import ArtemisError, ConfigError
from artemis_py.testing import ArtemisBroker, BrokerDownError, SendError, StoredMessage
from tests.kit.client import StompSocket, connected
from tests.kit.cost import yardstick_s

ROOT = Path(__file__).resolve().parents[2]


def test_clients_exchange_messages(broker: ArtemisBroker, client: StompSocket) -> None:
    broker.send("orders", "two coffees", table=7, urgent=True)
    client.subscribe("orders")
    message = client.expect("MESSAGE")
    assert (message.body, message.header("table"), message.header("urgent")) == (b"two coffees", "7", "true")
    client.ask("ACK", {"id": message.header("ack")})
    broker.queue("orders").assert_acknowledged(1)
    assert broker.queue("orders").empty
    assert broker.queue("orders").consumers == 1
    assert broker.connections == 1


def test_messages_of_a_queue_are_shown_by_state(broker: ArtemisBroker, client: StompSocket) -> None:
    orders = broker.queue("orders")
    assert orders.messages == []
    broker.send("/queue/orders", b"\0\1", {"reply-to": "a:b"}, persistent=True)
    broker.send("orders", "later", AMQ_SCHEDULED_DELAY=60_000)
    client.subscribe("orders", ack="client-individual")
    client.expect("MESSAGE")
    client.ask("SEND", {"destination": "other"})
    broker.queue("orders").wait(delivering=1, scheduled=1)
    held, later = orders.messages
    assert (held.body, held.state, held.persistent, held.headers["reply-to"]) == (b"\0\1", "in delivery", True, "a:b")
    assert (later.text, later.state, later.attempts) == ("later", "scheduled", 0)
    assert broker.queues == ["DLQ", "ExpiryQueue", "orders", "other"]


def test_a_large_body_is_shown_whole_and_leaves_no_file(broker: ArtemisBroker) -> None:
    body = os.urandom(300_000)
    broker.send("orders", body)
    [message] = broker.queue("orders").messages
    assert isinstance(message, StoredMessage)
    assert message.body == body
    broker.stop()
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"artemis-py-test-{os.getpid()}*"))


def test_a_new_broker_costs_little() -> None:
    """Ten milliseconds on a machine of 2024, which is two to three times this loop."""
    limit_s, took_s = 2.5 * yardstick_s(), [1e9]
    while min(took_s) >= limit_s and len(took_s) < 200:
        begun_s = time.process_time()
        with ArtemisBroker():
            took_s.append(time.process_time() - begun_s)
    assert min(took_s) < limit_s, took_s


def test_nothing_is_left_after_the_end() -> None:
    with ArtemisBroker(persistence=True) as broker:  # what is loaded once
        broker.send("orders", "x", persistent=True)
    gc.collect()  # what other tests left does not close meanwhile
    threads, before = threading.active_count(), os.listdir("/proc/self/fd")
    clients = []
    for persistence in (False, True):
        with ArtemisBroker(persistence=persistence) as broker:
            broker.send("orders", "x" * 200_000, persistent=True)
            client = StompSocket(broker.port)
            client.connect()
            client.subscribe("orders")
            client.expect("MESSAGE")
            clients.append(client)  # it stays connected, and never acknowledges
    for client in clients:
        client.close()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_client_that_reads_nothing_does_not_delay_the_end() -> None:
    """A broker that is a process would wait for five seconds. A busy machine may do so, but not every time."""
    took_s: list[float] = []
    while len(took_s) < 3 and (not took_s or took_s[-1] >= 4):
        with ArtemisBroker() as broker, StompSocket(broker.port, receive_buffer_bytes=4096) as client:
            client.connect()
            for _ in range(40):
                broker.send("orders", "x" * 90_000)
            client.send("SUBSCRIBE", {"destination": "orders", "id": "1", "ack": "auto"})
            broker.queue("orders").wait(lambda state: state.consumers == 1 and 0 < state.ready < 40)
            begun_s = time.perf_counter()
            broker.stop()
            took_s.append(time.perf_counter() - begun_s)
    assert took_s[-1] < 4


def test_two_brokers_live_side_by_side() -> None:
    with ArtemisBroker() as one, ArtemisBroker() as other:
        assert one.port != other.port
        one.send("orders", "for one")
        assert other.queue("orders").count == 0


@pytest.mark.asyncio
async def test_asyncio_programs_use_it_without_standing_still() -> None:
    async with ArtemisBroker() as broker:
        reader, writer = await asyncio.open_connection(broker.host, broker.port)
        writer.write(b"CONNECT\naccept-version:1.2\nhost:h\n\n\0")
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED")
        await asyncio.to_thread(broker.send, "orders", "x")
        writer.close()
        assert broker.queue("orders").count == 1


def test_the_users_own_file_runs_on_free_ports(tmp_path: Path) -> None:
    shipped = (ROOT / "broker.xml").read_text().replace("${BROKER_SECURITY:true}", "false")
    (tmp_path / "broker.xml").write_text(shipped)
    with ArtemisBroker(tmp_path / "broker.xml", queues={"extra": {"ring-size": 2}}) as broker:
        assert broker.port != 61613
        assert broker.http_url is not None
        assert urllib.request.urlopen(f"{broker.http_url}health/ready", timeout=120).status == 200
        for number in range(3):
            broker.send("extra", str(number))
        assert [message.text for message in broker.queue("extra").messages] == ["1", "2"]
        broker.send("/topic/news", "goal", section="sport")
        broker.queue("news.sport").wait(count=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker.xml"]


def test_a_queue_that_the_file_declares_is_not_declared_again(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text((ROOT / "broker.xml").read_text().replace("${BROKER_SECURITY:true}", "false"))
    with pytest.raises(ArtemisError, match=r"the queue orders on the address orders is in .*broker\.xml already"):
        ArtemisBroker(tmp_path / "broker.xml", queues=["orders"]).start()


def test_queues_have_attributes_of_broker_xml() -> None:
    queues: dict[str, dict[str, Any]] = {
        "sport": {"address": "news", "multicast": True, "filter": "section = 'sport'"},
        "all": {"address": "news", "multicast": True, "durable": False},
        "last": {"last_value_key": "symbol"},
    }
    with ArtemisBroker(queues=queues) as broker:
        broker.send("news", "goal", section="sport")
        broker.send("news", "rain", section="weather")
        assert [message.text for message in broker.queue("sport").messages] == ["goal"]
        broker.queue("all").wait(count=2)
        for price in ("1", "2"):
            broker.send("last", price, symbol="A")
        assert [message.text for message in broker.queue("last").messages] == ["2"]
    with pytest.raises(ConfigError, match="ring-sice"):
        ArtemisBroker(queues={"orders": {"ring-sice": 3}}).start()


def test_a_refused_message_is_an_error_of_the_test(broker: ArtemisBroker) -> None:
    with pytest.raises(SendError, match="priority"):
        broker.send("orders", "x", priority="high")
    broker.send("orders", "y")
    assert broker.queue("orders").count == 1


def test_a_full_address_is_named_when_the_sender_has_to_wait() -> None:
    xml = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
      <security-enabled>false</security-enabled>
      <acceptors><acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor></acceptors>
      <address-settings><address-setting match="#">
        <max-size-messages>1</max-size-messages><address-full-policy>BLOCK</address-full-policy>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
      </address-setting></address-settings></core></configuration>"""
    with ArtemisBroker(xml) as broker:
        broker.send("orders", "1")
        with pytest.raises(SendError, match="the address orders is full, and its address-full-policy is BLOCK"):
            broker.send("orders", "2", timeout=0.05)
        with connected(broker.port) as client:
            client.subscribe("orders", ack="auto")
            assert client.expect("MESSAGE").body == b"1"
        broker.send("orders", "3")
        assert [message.text for message in broker.queue("orders").messages] == ["3"]


def test_calls_on_a_broker_that_does_not_run_say_so() -> None:
    broker = ArtemisBroker()
    with pytest.raises(BrokerDownError, match="was not started"):
        broker.send("orders")
    broker.start()
    with pytest.raises(BrokerDownError, match="runs already"):
        broker.start()
    broker.stop()
    broker.stop()
    with pytest.raises(BrokerDownError, match="has been stopped"):
        _ = broker.queue("orders").count
    assert repr(broker) == "<ArtemisBroker, not running>"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        threads = threading.active_count()
        with pytest.raises(ArtemisError, match=f"127.0.0.1:{port}"):
            ArtemisBroker(port=port).start()
        assert threading.active_count() == threads


def test_a_failure_of_the_broker_is_a_failure_of_the_test() -> None:
    fail = Mock(side_effect=RuntimeError("broken on purpose"))

    def break_it() -> None:
        with ArtemisBroker() as broker, connected(broker.port) as client:
            broker._engine.look(lambda server: setattr(server.turns, "on_end", fail))
            client.raw(b"\n")
            assert client.socket.recv(1) == b""
            assert not broker.is_running

    with pytest.raises(BrokerDownError, match="broken on purpose"):
        break_it()
