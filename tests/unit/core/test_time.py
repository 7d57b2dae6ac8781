"""When a failed delivery is tried again, and when a gate opens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.redelivery import Redelivery

# ---- redelivery ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts_max", "attempts", "exhausted"),
    [(3, 2, False), (3, 3, True), (3, 4, True), (1, 1, True), (0, 99, False), (-1, 99, False)],
)
def test_attempts(attempts_max: int, attempts: int, exhausted: bool) -> None:
    """The Nth failure of a limit N is the last; 0 and below is no limit."""
    assert Redelivery(attempts_max=attempts_max).is_exhausted(attempts) is exhausted


def test_delay_multiplies_up_to_the_cap() -> None:
    """Row 2.17.14 (tests/queues/rows.py): 1 s, 2 s, 3 s, 3 s."""
    redelivery = Redelivery(delay_ms=1000, multiplier=2.0, delay_ms_max=3000)
    assert [redelivery.delay_after(attempt, 7) for attempt in (1, 2, 3, 4)] == [1000, 2000, 3000, 3000]


def test_no_delay() -> None:
    """Without redelivery-delay there is none, whatever the multiplier."""
    assert Redelivery(delay_ms=0, multiplier=5.0, delay_ms_max=100).delay_after(3, 1) == 0


def test_no_cap() -> None:
    """A maximum of 0 or below caps nothing."""
    assert Redelivery(delay_ms=10, multiplier=10.0, delay_ms_max=0).delay_after(4, 1) == 10_000


def test_multiplier_of_very_many_attempts() -> None:
    """With attempts without limit the power grows beyond what a float holds; the cap holds all the same."""
    redelivery = Redelivery(delay_ms=1, multiplier=2.0, delay_ms_max=10, attempts_max=-1)
    assert redelivery.delay_after(5000, 1) == 10
    assert Redelivery(delay_ms=1, multiplier=2.0, delay_ms_max=0, attempts_max=-1).delay_after(5000, 1) > 0


@given(st.integers(1, 10**12), st.integers(1, 5))
def test_collision_avoidance_stays_in_its_share(message_id: int, attempts: int) -> None:
    """At most the given share is added or taken away, and the same message gets the same delay again."""
    redelivery = Redelivery(delay_ms=1000, collision_factor=0.15, delay_ms_max=100_000)
    delay = redelivery.delay_after(attempts, message_id)
    assert 850 <= delay <= 1150
    assert delay == redelivery.delay_after(attempts, message_id)


def test_collision_avoidance_spreads() -> None:
    """Neighbouring messages get different delays, over most of the range."""
    redelivery = Redelivery(delay_ms=1000, collision_factor=0.5, delay_ms_max=100_000)
    delays = [redelivery.delay_after(1, message_id) for message_id in range(1, 200)]
    assert min(delays) < 600
    assert max(delays) > 1400
    assert len(set(delays)) > 150


def test_collision_avoidance_keeps_the_cap() -> None:
    """The cap is applied last."""
    redelivery = Redelivery(delay_ms=1000, collision_factor=1.0, delay_ms_max=1000)
    assert max(redelivery.delay_after(1, message_id) for message_id in range(100)) == 1000


# ---- gates ---------------------------------------------------------------------------------------


def test_gate_without_conditions_is_open() -> None:
    """Nothing to wait for."""
    assert Gate().is_open


def test_gate_opens_after_the_delay() -> None:
    """Counted from the first consumer; later ones do not put it off."""
    gate = Gate(consumers_min=3, delay_ms=2000)
    gate.consumer_joined(1, 1000)
    gate.consumer_joined(2, 2500)
    assert gate.opens_at_ms == 3000
    assert not gate.tick(2999)
    assert gate.tick(3000)
    assert gate.is_open
    assert not gate.tick(3001)


def test_gate_forgets_the_delay_with_the_last_consumer() -> None:
    """The timer starts again with the next first consumer."""
    gate = Gate(consumers_min=2, delay_ms=100)
    gate.consumer_joined(1, 1000)
    gate.consumer_left(0)
    assert not gate.tick(1100)
    gate.consumer_joined(1, 5000)
    assert not gate.tick(5099)
    assert gate.tick(5100)


@pytest.mark.parametrize(("delay_ms", "opens_at_ms"), [(500, 1500), (3000, 4000), (-1, 0)])
def test_another_delay_counts_from_the_first_consumer_too(delay_ms: int, opens_at_ms: int) -> None:
    gate = Gate(consumers_min=2, delay_ms=2000)
    gate.consumer_joined(1, 1000)
    gate.set_delay(delay_ms)
    assert gate.opens_at_ms == opens_at_ms
    assert gate.tick(4000) == (delay_ms >= 0)


def test_delay_alone_has_no_effect() -> None:
    """Without consumers-before-dispatch there is nothing to wait for."""
    gate = Gate(consumers_min=0, delay_ms=1000)
    gate.consumer_joined(1, 0)
    assert gate.is_open
    gate.consumer_left(0)
    assert gate.is_open
