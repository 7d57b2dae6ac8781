"""What a turn's own input makes due at once: the tick does it, and nobody's time is forgotten because of it."""

from __future__ import annotations

import pytest

from artemis_py.core.tasks import AnySteps, Until
from tests.kit.in_process import InProcessBroker, configuration
from tests.unit.management.operated import Operated

pytestmark = pytest.mark.wire

HOUR_MS = 3_600_000
CORE = """<address-queue-scan-period>-1</address-queue-scan-period>
  <message-expiry-scan-period>-1</message-expiry-scan-period>
  <addresses>
    <address name="q"><anycast><queue name="q"/></anycast></address>
    <address name="life"><anycast><queue name="life" max-message-ttl="3600000"/></anycast></address>
    <address name="at-once"><anycast>
      <queue name="at-once" consumers-before-dispatch="2" delay-before-dispatch="0"/>
    </anycast></address>
    <address name="gated"><anycast>
      <queue name="gated" consumers-before-dispatch="2" delay-before-dispatch="4000"/>
    </anycast></address>
  </addresses>"""

SCHEDULED = "SEND\ndestination:/queue/q\nAMQ_SCHEDULED_TIME:{}\n\nx\0"
EXPIRING = "SEND\ndestination:/queue/life\nexpires:{}\n\nx\0"
SUBSCRIBE = "SUBSCRIBE\nid:1\ndestination:/queue/{}\nack:client-individual\n\n\0"
CAUSES: dict[str, list[str | int]] = {
    "scheduled for now": [SCHEDULED.format("{now}")],
    "scheduled for a date that is past": [SCHEDULED.format("{past}")],
    "expired before it came": [EXPIRING.format("{past}")],
    "expired while it was held": [
        SUBSCRIBE.format("life"), EXPIRING.format("{soon}"), 500, "UNSUBSCRIBE\nid:1\n\n\0",
    ],
    "a gate without delay": [SUBSCRIBE.format("at-once")],
}  # fmt: skip
"""What a client says, and the milliseconds that pass in between."""
causes = pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES.keys())


def carry_out(world: InProcessBroker, cause: list[str | int]) -> None:
    """Another client brings it about."""
    client, now_ms = world.client("other").greet(), world.now_ms
    for step in cause:
        if isinstance(step, int):
            world.advance(step)
        else:
            client.send(step.format(now=now_ms, past=now_ms - 1, soon=now_ms + 300).encode())


@causes
def test_heart_beats_and_silence_keep_their_times(cause: list[str | int]) -> None:
    world = InProcessBroker(configuration(CORE))
    client = world.client("beating").greet("heart-beat:1000,1000")
    carry_out(world, cause)
    client.collect()
    before = client.stream.beats
    world.advance(1000)
    client.collect()
    assert client.stream.beats > before
    world.advance(1100)
    assert [frame.command for frame in client.collect()] == ["ERROR"]


@causes
def test_a_handshake_keeps_its_time(cause: list[str | int]) -> None:
    world = InProcessBroker(configuration(CORE, "handshakeTimeout=3000"))
    client = world.client("slow")
    carry_out(world, cause)
    world.advance(3000)
    assert client.is_closed


@causes
def test_an_operators_work_keeps_its_time(cause: list[str | int]) -> None:
    world = InProcessBroker(configuration(CORE))
    woken_ms: list[int] = []

    def work() -> AnySteps:
        yield Until(due_ms)
        woken_ms.append(world.now_ms)

    due_ms = world.now_ms + 1000
    Operated(world).calls.begin(work(), changes=True)
    world.settle()
    carry_out(world, cause)
    world.advance(2000)
    assert woken_ms == [due_ms]


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_during_a_turn_moves_no_steady_time(step_ms: int) -> None:
    """A login or an operator's work reads the clock, too, and may notice it first."""
    world = InProcessBroker(configuration(CORE))
    client = world.client("beating").greet("heart-beat:1000,1000")
    world.client("consumer").greet().send(b"SUBSCRIBE\nid:1\ndestination:/queue/gated\n\n\0")
    gate = world.queue("gated").gate

    def work() -> AnySteps:
        world.loop.ahead_ms += step_ms
        world.broker.clock.set_ahead(world.broker.clock.shift_ms + step_ms)
        yield None

    Operated(world).calls.begin(work(), changes=True)
    world.settle()
    world.advance(1900)
    assert not client.is_closed, "cut off by the step"
    assert not gate.is_open
    world.advance(200)
    assert client.collect()[-1].command == "ERROR"
    world.advance(1900)
    assert world.queue("gated").gate.is_open
