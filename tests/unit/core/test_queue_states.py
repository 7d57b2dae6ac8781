"""How a queue is, in words that come from its trend, and the samples that the trend is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from artemis_py.config.settings import QueueConfig
from artemis_py.core.budget import TURN_UNITS
from artemis_py.core.consumer import Consumer
from artemis_py.core.counter_history import PERIOD_MS, SAMPLED_MAX, Rounds, grown
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_states import (
    SEVERITY,
    severity_of,
    states_of,
    trend_of,
    until_empty_ms,
    until_limit_ms,
)
from artemis_py.management.why.causes import CAUSES
from tests.kit.core import NOW_MS, broker_of, consumer_on, queue_config, send, turn


class Hours:
    """A broker with a queue ``q``, and time that passes."""

    def __init__(self, queue: QueueConfig | None = None, more: Sequence[QueueConfig] = (), **core: Any) -> None:
        self.broker = broker_of(queue or queue_config(), *more, **core)
        self.now_ms = NOW_MS
        self.queue: Queue = self.broker.queues["q"]
        self.broker.sampler.begin(NOW_MS)

    def go_on(self, seconds: int, each: Callable[[], object] = int) -> None:
        """Some seconds pass, with something in each of them."""
        for _ in range(seconds):
            self.now_ms += 1000
            self.broker.begin_turn(TURN_UNITS, self.now_ms)
            each()
            turn(self.broker, self.now_ms)

    def send(self, count: int = 1, due_ms: int = 0) -> None:
        send(self.broker, count=count, now_ms=self.now_ms, due_ms=due_ms)

    def take(self, consumer: Consumer, count: int) -> None:
        """A consumer acknowledges."""
        last = list(consumer.held)[:count]
        if last:
            self.queue.acknowledge(consumer, consumer.let_go_up_to(last[-1]))
            self.queue.wake(consumer)


FULL_SOON = {"a": {"max_size_messages": 2000, "address_full_policy": "BLOCK"}}


def test_a_queue_that_falls_behind_says_so_with_its_limit_and_what_holds_its_consumer() -> None:
    """More comes than goes, the window is used up: a rate above zero is no comfort."""
    it = Hours(settings=FULL_SOON)
    consumer = consumer_on(it.broker, it.queue, window_bytes=20)
    it.go_on(30, lambda: (it.send(9), it.take(consumer, 1)))
    assert states_of(it.queue) == ["falling-behind", "will-be-full", "window"]
    assert severity_of(it.queue) == 2
    trend = trend_of(it.queue)
    assert (round(trend.added), round(trend.acknowledged), round(trend.growth)) == (9, 1, 8)
    left_s = (2000 - it.queue.message_count) / 8
    assert until_limit_ms(it.queue) == pytest.approx(1000 * left_s, rel=0.1)
    assert until_empty_ms(it.queue) == -1


def test_when_it_is_full_is_told_by_what_messages_take_in_memory() -> None:
    """Small messages take several times their encoding, and the limit of the address counts that."""
    it = Hours(settings={"a": {"max_size_bytes": 3_000_000, "address_full_policy": "BLOCK"}})
    it.go_on(40, lambda: it.send(9))
    address = it.broker.addresses["a"]
    a_second = 9 * address.account.size_bytes / it.queue.message_count
    assert a_second > 2 * 9 * it.queue.contents.counters.size_bytes / it.queue.message_count
    left_ms = 1000 * (3_000_000 - address.account.size_bytes) / a_second
    assert until_limit_ms(it.queue) == pytest.approx(left_ms, rel=0.1)


def test_a_queue_that_refuses_the_next_message_is_full() -> None:
    it = Hours(queue_config(overflow_policy="REJECT", max_depth_messages=3))
    assert states_of(it.queue) == ["idle"]
    it.send(2)
    assert states_of(it.queue) == ["no-consumer"]
    it.send()
    assert states_of(it.queue) == ["queue-depth", "no-consumer"]
    none = Hours(queue_config(overflow_policy="REJECT", max_depth_messages=0))
    assert states_of(none.queue) == ["idle"], "it is to keep nothing"


def test_a_queue_that_is_drained_says_when() -> None:
    it = Hours()
    it.send(600)
    it.go_on(11)
    consumer = consumer_on(it.broker, it.queue)
    it.go_on(30, lambda: (it.send(1), it.take(consumer, 5)))
    assert states_of(it.queue) == ["draining"]
    assert until_empty_ms(it.queue) == pytest.approx(1000 * it.queue.message_count / 4, rel=0.4)


def test_what_comes_and_goes_evenly_is_no_trend() -> None:
    it = Hours()
    consumer = consumer_on(it.broker, it.queue)
    it.go_on(15)
    it.send(50)
    it.go_on(40, lambda: (it.send(20), it.take(consumer, 20)))
    assert states_of(it.queue) == ["flows"]
    assert (until_empty_ms(it.queue), until_limit_ms(it.queue)) == (-1, -1)


def test_a_single_burst_is_no_growth() -> None:
    it = Hours()
    consumer_on(it.broker, it.queue, room=0)
    it.send()
    it.go_on(30)
    it.send(100)
    for _ in range(70):
        it.go_on(1)
        assert "growing" not in states_of(it.queue)


def test_a_slow_growth_is_seen_in_five_minutes() -> None:
    it = Hours()
    it.go_on(20, it.send)
    for _ in range(14):
        it.go_on(20)
        it.send()
    it.go_on(5)
    assert states_of(it.queue) == ["no-consumer", "growing"]


def test_a_ring_without_a_consumer_and_scheduled_messages_are_calm() -> None:
    ring = Hours(queue_config(ring_size=1000))
    ring.go_on(60, lambda: ring.send(5))
    assert (states_of(ring.queue), severity_of(ring.queue)) == (["kept"], 0)
    scheduled = Hours()
    scheduled.go_on(60, lambda: scheduled.send(5, due_ms=NOW_MS + 10**9))
    assert (states_of(scheduled.queue), severity_of(scheduled.queue)) == (["scheduled"], 0)
    scheduled.send()
    assert states_of(scheduled.queue) == ["no-consumer"], "what grows waits for its time"
    plain = Hours()
    plain.send()
    assert (states_of(plain.queue), severity_of(plain.queue)) == (["no-consumer"], 2)


def test_dead_letters_wait_for_people() -> None:
    it = Hours(settings={"#": {"dead_letter_address": "a"}})
    it.go_on(60, lambda: it.send(5))
    assert (states_of(it.queue), severity_of(it.queue)) == (["dead-letters"], 1)


def test_nothing_acknowledged_counts_only_while_something_waits() -> None:
    it = Hours()
    consumer = consumer_on(it.broker, it.queue, backlog_max=1)
    it.send(3)
    it.go_on(60)
    assert states_of(it.queue) == ["no-acknowledgements", "backlog"]
    it.take(consumer, 1)
    assert "no-acknowledgements" not in states_of(it.queue)
    it.go_on(1)
    it.take(consumer, 1)
    it.go_on(1)
    it.take(consumer, 1)
    it.go_on(90)
    it.send(2)
    it.go_on(2)
    assert states_of(it.queue) == ["waiting"], "it was empty until a moment ago"


@pytest.mark.parametrize(("limit", "word"), [({"window_bytes": 20}, "window"), ({"backlog_max": 1}, "backlog")])
def test_what_holds_the_consumers_is_said_before_it_is_bad(limit: dict[str, Any], word: str) -> None:
    """As ``why`` says it. A consumer that is only slow, or has all there is, is left alone."""
    it = Hours()
    consumer = consumer_on(it.broker, it.queue, **limit)
    it.send(30)
    it.go_on(5)
    assert states_of(it.queue) == ["waiting"], "it came a moment ago"
    it.go_on(17)
    assert (states_of(it.queue), severity_of(it.queue)) == ([word], 1)
    it.go_on(20)
    assert (states_of(it.queue), severity_of(it.queue)) == (["no-acknowledgements", word], 2)
    for _ in range(8):
        it.take(consumer, 1)
        it.go_on(19)
        assert severity_of(it.queue) == 0
    it.go_on(40, lambda: it.take(consumer, 1) if it.queue.message_count > 1 else None)
    it.go_on(90)
    assert states_of(it.queue) == ["held"]


def test_what_holds_the_consumers_of_a_queue_that_grows_is_said_once() -> None:
    it = Hours()
    consumer_on(it.broker, it.queue, backlog_max=1)
    it.go_on(60, lambda: it.send(5))
    assert states_of(it.queue) == ["no-acknowledgements", "growing", "backlog"]


def test_paused_disabled_and_held() -> None:
    it = Hours()
    it.queue.gate.paused = True
    assert states_of(it.queue) == ["paused"]
    it.queue.gate.paused = False
    it.queue.enabled = False
    assert states_of(it.queue) == ["disabled"]
    it.queue.enabled = True
    assert states_of(it.queue) == ["idle"]
    consumer_on(it.broker, it.queue)
    it.send()
    it.go_on(50)
    assert states_of(it.queue) == ["held"]


def test_every_word_has_a_severity_and_a_reason_or_none() -> None:
    assert SEVERITY.keys() - CAUSES.keys() == {"growing", "falling-behind", "draining", "flows", "waiting", "idle"}


# ---- samples -----------------------------------------------------------------------------------------


def test_an_hour_is_kept_finely_at_its_end() -> None:
    it = Hours()
    it.go_on(4000, lambda: it.send(2))
    samples = it.broker.host.rounds.by_queue[it.queue.id].samples()
    ages_s = [(it.now_ms - one.at_ms) // 1000 for one in samples]
    assert ages_s == sorted(ages_s, reverse=True)
    assert 3500 <= ages_s[0] <= 3600
    assert [before - after for before, after in pairwise(ages_s)].count(60) >= 53
    assert len([age for age in ages_s if age < 300]) == 30
    assert {round(one.depth / (one.at_ms - NOW_MS) * 1000, 1) for one in samples} == {2.0}
    assert it.broker.host.rounds.whole.samples() == samples


def test_a_queue_without_traffic_for_an_hour_gives_its_samples_up() -> None:
    it = Hours()
    it.send()
    it.go_on(20)
    history = it.broker.host.rounds.by_queue[it.queue.id]
    assert history.samples()
    it.go_on(3600)
    assert (history.samples(), it.broker.host.rounds.sampled_count) == ([], 0)
    it.go_on(20, it.send)
    assert len(history.samples()) == 2


def test_so_many_queues_have_samples_and_no_more() -> None:
    rounds = Rounds()
    for _ in range(2):
        rounds.begin(0)
        for number in range(SAMPLED_MAX + 5):
            rounds.note(number, rounds.number, 0, 1, 0)
        rounds.end()
    kept = [one for one in rounds.by_queue.values() if one.values is not None]
    assert len(kept) == rounds.sampled_count == SAMPLED_MAX
    assert sum(one.values.itemsize * len(one.values) for one in kept if one.values is not None) < 4_400_000
    rounds.begin(PERIOD_MS)
    for number in range(5, SAMPLED_MAX + 5):
        rounds.note(number, 1, 0, 1, 0)
    rounds.end()
    assert 0 not in rounds.by_queue, "it was deleted"
    assert rounds.sampled_count == SAMPLED_MAX - 5


def test_counters_may_be_larger_than_a_sample_and_may_be_reset() -> None:
    assert grown((1 << 32) - 2, (1 << 40) + 3) == 5
    assert grown(100, 0) == 0


def test_a_round_goes_on_in_later_turns() -> None:
    it = Hours(more=[queue_config(f"q{one}", "b") for one in range(200)])
    it.broker.begin_turn(100, NOW_MS + PERIOD_MS)
    turn(it.broker, NOW_MS + PERIOD_MS)
    rounds = it.broker.host.rounds
    assert 0 < len(rounds.by_queue) < 201
    it.now_ms += PERIOD_MS
    it.go_on(5)
    assert (rounds.number, len(rounds.by_queue)) == (1, 201)
