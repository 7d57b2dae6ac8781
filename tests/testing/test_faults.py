"""Faults that a test causes: lost connections, a full disk, a crash."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from artemis_py.testing import ArtemisBroker, BrokerDownError, SendError
from tests.kit.client import Closed, StompSocket, connected

UNSYNCED = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled>
  <journal-sync-non-transactional>false</journal-sync-non-transactional>
  <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
  <addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
  </core></configuration>"""


def texts(broker: ArtemisBroker, queue: str = "orders") -> list[str]:
    return [message.text for message in broker.queue(queue).messages]


def test_a_dropped_connection_gives_back_what_it_held(broker: ArtemisBroker) -> None:
    broker.send("orders", "x")
    with StompSocket(broker.port) as first, StompSocket(broker.port) as second:
        first.connect(client_id="first")
        second.connect(client_id="second")
        first.subscribe("orders")
        first.expect("MESSAGE")
        second.subscribe("orders")
        assert broker.drop_connections(client_id="nobody") == 0
        assert broker.drop_connections(client_id="first") == 1
        assert second.expect("MESSAGE").header("redelivered") == "true"
        with pytest.raises((Closed, ConnectionResetError)):
            first.expect("MESSAGE")
        assert broker.drop_connections() == 1
        broker.queue("orders").wait(consumers=0, ready=1)
    broker.send("orders", "the test's own connection is there still")
    assert broker.connections == 0


def test_a_crash_keeps_what_was_confirmed(tmp_path: Path) -> None:
    with ArtemisBroker(persistence=tmp_path / "data") as broker:
        port = broker.port
        broker.send("orders", "durable", persistent=True)
        broker.send("orders", "not durable")
        with connected(port) as client:
            broker.crash()
            with pytest.raises((Closed, ConnectionResetError)):
                client.expect("MESSAGE")
        for call in (lambda: broker.send("orders"), lambda: broker.queue("orders").count, broker.crash):
            with pytest.raises(BrokerDownError, match=r"has crashed; call restart\(\)"):
                call()
        broker.restart()
        assert broker.port == port
        assert texts(broker) == ["durable"]
    assert (tmp_path / "data" / "journal").is_dir()


def test_a_crash_loses_what_was_not_synced() -> None:
    """The same messages outlive an orderly stop: it is the crash that loses them."""
    for crashes in (True, False):
        with ArtemisBroker(UNSYNCED, persistence=True) as broker:
            broker.send("orders", "first", persistent=True)
            broker.restart()  # the end of the journal is synced
            for number in range(20):
                broker.send("orders", str(number), persistent=True)
            if crashes:
                broker.crash()
            broker.restart()
            assert texts(broker)[0] == "first"
            assert len(texts(broker)) == (1 if crashes else 21)


def test_a_crash_does_not_lose_large_bodies_that_were_confirmed() -> None:
    with ArtemisBroker(persistence=True) as broker:
        broker.send("orders", "y" * 300_000, persistent=True)
        broker.crash()
        broker.restart()
        assert texts(broker) == ["y" * 300_000]


def test_without_persistence_a_crash_loses_everything(broker: ArtemisBroker) -> None:
    threads = threading.active_count()
    for _ in range(3):
        broker.send("orders", "x", persistent=True)
        broker.crash()
        broker.restart()
        assert broker.queue("orders").count == 0
    assert threading.active_count() == threads


def test_a_full_disk_holds_senders_back_and_lets_consumers_go_on() -> None:
    with ArtemisBroker(persistence=True) as broker:
        broker.send("orders", "1", persistent=True)
        with broker.disk_full():
            with pytest.raises(SendError, match="the disk is full, and the disk-full-policy of orders is BLOCK"):
                broker.send("orders", "2", persistent=True, timeout=0.05)
            with connected(broker.port) as client:
                client.subscribe("orders", ack="auto")
                assert client.expect("MESSAGE").body == b"1"
        broker.send("orders", "3", persistent=True)
        broker.queue("orders").wait(count=1)


def test_without_a_journal_no_disk_can_be_full(broker: ArtemisBroker) -> None:
    with pytest.raises(BrokerDownError, match="use persistence=True"), broker.disk_full():
        pass
