"""Time passes when a test says so, and what falls due meanwhile happens in its order."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from artemis_py.server.operational_log import LOGGER_NAME
from artemis_py.testing import ArtemisBroker
from tests.kit.client import Closed, StompSocket, connected, frame

REDELIVERY = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled>
  <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
  <address-settings><address-setting match="#">
    <redelivery-delay>7200000</redelivery-delay><max-delivery-attempts>2</max-delivery-attempts>
    <dead-letter-address>DLQ</dead-letter-address>
    <default-address-routing-type>ANYCAST</default-address-routing-type>
    <default-queue-routing-type>ANYCAST</default-queue-routing-type>
    <auto-delete-queues-delay>3600000</auto-delete-queues-delay>
  </address-setting></address-settings></core></configuration>"""


def test_a_redelivery_delay_of_hours() -> None:
    with ArtemisBroker(REDELIVERY, queues=["DLQ", "orders"]) as broker, StompSocket(broker.port) as client:
        broker.send("orders", "x")
        client.connect(heart_beat="1000,1000")
        client.subscribe("orders")
        for _ in range(2):
            message = client.expect("MESSAGE")
            client.ask("NACK", {"id": message.header("ack")})
            broker.clock.advance(hours=1, minutes=59)
            assert broker.queue("orders").state.ready == 0
            broker.clock.advance(minutes=1)
        assert [message.text for message in broker.queue("DLQ").messages] == ["x"]
        client.ask("SEND", {"destination": "orders"})  # it was not taken for silent


def test_a_silent_client_loses_its_connection(broker: ArtemisBroker, client: StompSocket) -> None:
    with connected(broker.port, heart_beat="5000,0") as beating:
        broker.clock.advance(minutes=1, silent=True)
        assert (beating.expect("ERROR").header("message") or "").startswith("Nothing received for")
        with pytest.raises(Closed):
            beating.expect("MESSAGE")
        client.ask("SEND", {"destination": "orders"})  # it promised no heart-beats


def test_what_is_due_earlier_happens_earlier(broker: ArtemisBroker, client: StompSocket) -> None:
    """In one leap the second message would be over before it was due."""
    over_ms = int(time.time() * 1000) + 90 * 60_000
    broker.send("orders", "third", AMQ_SCHEDULED_DELAY=100 * 60_000)
    broker.send("orders", "second", AMQ_SCHEDULED_DELAY=60 * 60_000, expires=over_ms)
    broker.send("orders", "first", AMQ_SCHEDULED_DELAY=1)
    client.subscribe("orders", ack="auto")
    broker.clock.advance(hours=2)
    assert [client.expect("MESSAGE").body for _ in range(3)] == [b"first", b"second", b"third"]


def test_more_than_a_turn_can_do_is_done_when_time_has_passed(broker: ArtemisBroker, client: StompSocket) -> None:
    scheduled = frame("SEND", {"destination": "orders", "AMQ_SCHEDULED_DELAY": "60000"}, b"x")
    client.raw(scheduled * 20_000)
    client.ask("SEND", {"destination": "orders", "AMQ_SCHEDULED_DELAY": "60000"})
    broker.clock.advance(minutes=2)
    assert broker.queue("orders").state.ready == 20_001


def test_days_pass_at_once(broker: ArtemisBroker) -> None:
    begun_s = time.perf_counter()
    before = broker.clock.now
    broker.clock.advance(days=365)
    passed, took = broker.clock.now - before, timedelta(seconds=time.perf_counter() - begun_s + 1)
    assert timedelta(days=365) <= passed < timedelta(days=365) + took
    assert took < timedelta(days=1)
    assert abs(broker.clock.now - datetime.now(UTC) - timedelta(days=365)) < took


def test_unused_queues_go_in_their_time() -> None:
    with ArtemisBroker(REDELIVERY) as broker:
        with connected(broker.port) as client:
            client.subscribe("orders", ack="auto")
        broker.queue("orders").wait(consumers=0)
        broker.clock.advance(minutes=50)
        assert "orders" in broker.queues
        broker.clock.advance(minutes=15)
        assert "orders" not in broker.queues


def test_lines_of_the_log_that_were_held_back(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing has to happen meanwhile: otherwise whoever reads the log never hears of the last drops."""
    ring = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
      <security-enabled>false</security-enabled>
      <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
      <addresses><address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address></addresses>
    </core></configuration>"""
    caplog.set_level(logging.INFO, LOGGER_NAME)
    with ArtemisBroker(ring) as broker, StompSocket(broker.port) as client:
        client.connect()
        for _ in range(8):
            client.ask("SEND", {"destination": "ring"})
        drops = [line for line in caplog.messages if line.startswith("QUE-1005")]
        assert [line.split()[4] for line in drops] == ["count=1"]
        broker.clock.advance(seconds=9)
        assert len([line for line in caplog.messages if line.startswith("QUE-1005")]) == 1
        broker.clock.advance(seconds=2)
        drops = [line for line in caplog.messages if line.startswith("QUE-1005")]
        assert [line.split()[4] for line in drops] == ["count=1", "count=5"]
        client.ask("SEND", {"destination": "ring"})
    drops = [line for line in caplog.messages if line.startswith("QUE-1005")]
    assert [line.split()[4] for line in drops] == ["count=1", "count=5", "count=1"]


def test_parts_of_a_span_add_up_without_a_turn_between(broker: ArtemisBroker, client: StompSocket) -> None:
    """After most of a span was skipped, the rest of it passes by itself."""
    client.subscribe("orders", ack="auto")
    broker.send("orders", "x", AMQ_SCHEDULED_DELAY=60_000)
    broker.clock.advance(seconds=59.95)
    assert client.expect("MESSAGE").body == b"x"


def test_time_does_not_go_back(broker: ArtemisBroker) -> None:
    with pytest.raises(ValueError, match="time does not go back"):
        broker.clock.advance(seconds=-1)


def test_time_passes_for_a_broker_that_is_down() -> None:
    with ArtemisBroker(persistence=True) as broker:
        broker.send("orders", "x", persistent=True, expires=int(time.time() * 1000) + 3_600_000)
        broker.crash()
        broker.clock.advance(hours=2)
        broker.restart()
        broker.clock.advance(minutes=1)
        broker.queue("ExpiryQueue").wait(count=1)


def test_a_replaced_clock_of_the_test_changes_nothing(broker: ArtemisBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 0)
    assert broker.clock.now.year > 2000
    late = threading.Timer(0.02, broker.send, ("orders", "x"))
    late.start()
    broker.queue("orders").wait(count=1)
    late.join()
