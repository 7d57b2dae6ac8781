"""Somebody sets the wall clock: dates follow it, and how long something takes does not."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from artemis_py.record_log import MemoryLog
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire

HOUR_MS = 3_600_000
STEPS = [HOUR_MS, -HOUR_MS]
CORE = """<addresses>
    <address name="q"><anycast><queue name="q"/></anycast></address>
    <address name="gated"><anycast>
      <queue name="gated" consumers-before-dispatch="2" delay-before-dispatch="4000"/>
    </anycast></address>
    <address name="life"><anycast><queue name="life" max-message-ttl="60000"/></anycast></address>
    <address name="deep"><anycast>
      <queue name="deep" alert-threshold-depth-messages="1" alert-repeat-gap="60000"/>
    </anycast></address>
  </addresses>
  <address-settings><address-setting match="#">
    <redelivery-delay>5000</redelivery-delay><max-delivery-attempts>-1</max-delivery-attempts>
    <auto-delete-queues-delay>20000</auto-delete-queues-delay>
    <auto-delete-addresses-delay>20000</auto-delete-addresses-delay>
  </address-setting></address-settings>
  <address-queue-scan-period>1000</address-queue-scan-period>"""


@pytest.fixture
def world() -> InProcessBroker:
    """A broker whose times are a few seconds each. Somebody has set its clock before, so that the two times differ."""
    world = InProcessBroker(configuration(CORE, "handshakeTimeout=3000"))
    world.set_clock(HOUR_MS // 2)
    return world


# ---- what is no date -----------------------------------------------------------------------------


@pytest.mark.parametrize("step_ms", STEPS)
def test_heart_beats_go_on_and_silence_counts_as_before(world: InProcessBroker, step_ms: int) -> None:
    client = world.client("beating").greet("heart-beat:1000,1000")
    world.set_clock(step_ms)
    world.advance(1900)
    client.collect()
    assert client.stream.beats == 2
    assert not client.is_closed, "cut off by the step"
    world.advance(200)
    assert [frame.command for frame in client.collect()] == ["ERROR"]


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_handshake_has_its_time(world: InProcessBroker, step_ms: int) -> None:
    client = world.client("slow")
    world.set_clock(step_ms)
    world.advance(2900)
    assert not client.is_closed
    world.advance(200)
    assert client.is_closed


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_closing_connection_lingers_as_long_as_before(world: InProcessBroker, step_ms: int) -> None:
    client = world.client("leaving").greet()
    client.send(b"DISCONNECT\n\n\0")
    world.set_clock(step_ms)
    world.advance(1900)
    assert not client.transport.lost
    world.advance(200)
    assert client.transport.lost


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_delayed_message_comes_after_its_delay(world: InProcessBroker, step_ms: int) -> None:
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto")
    world.client("sender").greet().frame("SEND", "destination:/queue/q", "AMQ_SCHEDULED_DELAY:5000", body="x")
    world.set_clock(step_ms)
    world.advance(4900)
    assert len(consumer.heard()) == 0
    world.advance(200)
    assert len(consumer.heard()) == 1


@pytest.mark.parametrize("step_ms", STEPS)
def test_another_attempt_comes_after_its_delay(world: InProcessBroker, step_ms: int) -> None:
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client-individual")
    world.client("sender").greet().frame(
        "SEND", "destination:/queue/q", f"AMQ_SCHEDULED_TIME:{world.now_ms + 10}", body="x"
    )
    world.advance(20)
    (frame,) = [frame for frame in consumer.collect() if frame.command == "MESSAGE"]
    consumer.collect().clear()
    consumer.send(f"NACK\nid:{frame.header('ack')}\n\n\0".encode())
    world.set_clock(step_ms)
    world.advance(4900)
    assert len(consumer.heard()) == 0
    world.advance(200)
    assert len(consumer.heard()) == 1


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_gate_opens_after_its_delay(world: InProcessBroker, step_ms: int) -> None:
    world.client("sender").greet().frame("SEND", "destination:/queue/gated", body="x")
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/gated", "ack:auto")
    world.set_clock(step_ms)
    world.advance(3900)
    assert len(consumer.heard()) == 0
    world.advance(200)
    assert len(consumer.heard()) == 1


@pytest.mark.parametrize("step_ms", STEPS)
def test_what_nobody_uses_goes_after_its_delay(world: InProcessBroker, step_ms: int) -> None:
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/unused", "ack:auto")
    consumer.drop()
    world.set_clock(step_ms)
    world.advance(19_000)
    assert "unused" in world.broker.queues
    world.advance(4_000)
    assert "unused" not in world.broker.queues
    world.advance(25_000)
    assert "unused" not in world.broker.addresses


@pytest.mark.parametrize("step_ms", STEPS)
def test_alerts_keep_their_gap(world: InProcessBroker, step_ms: int) -> None:
    world.client("sender").greet().frame("SEND", "destination:/queue/deep", body="x")
    alerts = world.queue("deep").alerts
    assert alerts is not None
    assert alerts.alerts.raised_count == 1
    world.set_clock(step_ms)
    world.advance(59_000)
    assert alerts.alerts.raised_count == 1
    world.advance(2_000)
    assert alerts.alerts.raised_count == 2


def test_alarms_do_not_multiply(world: InProcessBroker) -> None:
    world.client("sender").greet().frame("SEND", "destination:/queue/deep", body="x")
    world.client("sender").frame("SEND", "destination:/queue/life", body="x")
    before = len(world.broker.timers.alarms.times)
    for step_ms in (-HOUR_MS, HOUR_MS) * 10:
        world.set_clock(step_ms)
    assert len(world.broker.timers.alarms.times) == before


# ---- what is one ---------------------------------------------------------------------------------


def test_a_message_for_a_date_comes_at_that_date(world: InProcessBroker) -> None:
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto")
    sender = world.client("sender").greet()
    sender.frame("SEND", "destination:/queue/q", f"AMQ_SCHEDULED_TIME:{world.now_ms + HOUR_MS + 5000}", body="x")
    world.set_clock(HOUR_MS)
    world.advance(4900)
    assert len(consumer.heard()) == 0
    world.advance(200)
    assert len(consumer.heard()) == 1
    sender.frame("SEND", "destination:/queue/q", f"AMQ_SCHEDULED_TIME:{world.now_ms + 5000}", body="x")
    world.set_clock(-HOUR_MS)
    world.advance(HOUR_MS + 4000)
    assert len(consumer.heard()) == 0
    world.advance(2000)
    assert len(consumer.heard()) == 1


def test_dates_and_delays_that_fall_due_together_come_in_order(world: InProcessBroker) -> None:
    sender = world.client("sender").greet()
    now_ms = world.now_ms
    for delay_ms in (3000, 1000):
        sender.frame("SEND", "destination:/queue/q", f"AMQ_SCHEDULED_DELAY:{delay_ms}", f"place:{delay_ms}", body="x")
        sender.frame(
            "SEND",
            "destination:/queue/q",
            f"AMQ_SCHEDULED_TIME:{now_ms + delay_ms + 500}",
            f"place:{delay_ms + 500}",
            body="x",
        )
    world.loop.now_ms += 10_000  # one turn for all of them
    world.turns.schedule()
    world.settle()
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto")
    places = [frame.header("place") for frame in consumer.collect() if frame.command == "MESSAGE"]
    assert places == ["1000", "1500", "3000", "3500"]


def test_expiry_and_timestamps_follow_the_clock(world: InProcessBroker) -> None:
    sender = world.client("sender").greet()
    sender.frame("SEND", "destination:/queue/q", f"expires:{world.now_ms + 60_000}", "first:yes", body="x")
    sender.frame("SEND", "destination:/queue/life", body="x")
    world.set_clock(HOUR_MS)
    assert world.queue("life").message_count == 0, "its time on the queue is over by the date"
    sender.frame("SEND", "destination:/queue/q", f"expires:{world.now_ms + 60_000}", body="x")
    consumer = world.client("consumer").greet()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto")
    (frame,) = [frame for frame in consumer.collect() if frame.command == "MESSAGE"]
    assert frame.header("first") is None
    assert frame.header("timestamp") == str(world.now_ms)


def test_what_is_kept_for_a_restart_is_a_date() -> None:
    class KeepingLog(MemoryLog):
        published = Mock(return_value=0)

    log = KeepingLog()
    world = InProcessBroker(configuration(CORE), log=log)
    world.set_clock(HOUR_MS)
    world.client("sender").greet().frame(
        "SEND", "destination:/queue/q", "AMQ_SCHEDULED_DELAY:5000", "persistent:true", body="x"
    )
    assert [call.args[2] for call in log.published.call_args_list] == [world.now_ms + 5000]
    assert log.now_ms == world.now_ms
