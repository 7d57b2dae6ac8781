"""What a scrape finds by looking at queues, the sums over all of them, senders that wait, and delays."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.histogram import Histogram
from artemis_py.metrics.queues import LOOKS_PER_STEP, QueueTotals, look_at
from artemis_py.server import blocked_senders as blocked
from artemis_py.server.blocked_senders import BlockedSenders
from artemis_py.server.stats import ServerStats
from artemis_py.storage.disk.space import DiskSpace, bytes_until_full
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, lines_run, queue_config, send, turn, with_queue
from tests.kit.metrics import exporter_of

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def found_in(broker: Broker | None = None, stats: ServerStats | None = None, **options: Any) -> dict[str, Metric]:
    """What a scrape has, by name."""
    text = b"".join(exporter_of(broker, stats, **options).scrape(OPENMETRICS)[1]).decode()
    return {family.name: family for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]


def value(families: dict[str, Metric], name: str) -> float:
    (sample,) = (one for one in families[name].samples if not one.name.endswith("_created"))
    return sample.value


# ---- looks -------------------------------------------------------------------------------------------


def test_ages_and_slow_consumers_are_found_by_a_look() -> None:
    broker, queue = with_queue()
    assert value(found_in(broker), "artemis_oldest_message_age_seconds") == 0
    consumer = consumer_on(broker, queue, window_bytes=1)
    send(broker, now_ms=NOW_MS)
    turn(broker)
    send(broker, count=2, now_ms=NOW_MS + 4_000)
    send(broker, head=head_of(priority=1), now_ms=NOW_MS + 3_000)
    turn(broker)
    found = found_in(broker, now_ms=NOW_MS + 9_999)
    assert value(found, "artemis_oldest_message_age_seconds") == 9
    assert value(found, "artemis_oldest_delivering_message_age_seconds") == 9
    assert value(found, "artemis_slow_consumers") == 1
    queue.acknowledge(consumer, consumer.let_go_all())
    found = found_in(broker, now_ms=NOW_MS + 9_999)
    assert value(found, "artemis_oldest_message_age_seconds") == 6, "the oldest of all priorities"
    assert value(found, "artemis_oldest_delivering_message_age_seconds") == 0
    assert value(found, "artemis_slow_consumers") == 0, "it has room again"


def test_leases_and_consumers_at_their_backlog() -> None:
    broker, queue = with_queue(lease_period=5000, max_per_subscription_backlog=2)
    names = ("artemis_leased_messages", "artemis_leases_ended", "artemis_consumers_at_backlog")
    for _ in range(2):
        consumer_on(broker, queue, backlog_max=2)
    shown = [found_in(broker)]
    send(broker, count=3)
    for now_ms in (NOW_MS, NOW_MS + 4999, NOW_MS + 5000):
        turn(broker, now_ms)
        shown.append(found_in(broker))
    assert [[value(found, name) for name in names] for found in shown] == [
        [0, 0, 0], [3, 0, 1], [3, 0, 1], [3, 3, 1],
    ], "and each was leased again"  # fmt: skip


def test_the_first_of_a_sorted_queue_is_not_always_its_oldest() -> None:
    broker = broker_of(queue_config(sort_key="k"))
    send(broker, head=head_of(k="z"), now_ms=NOW_MS)
    send(broker, head=head_of(k="a"), now_ms=NOW_MS + 5_000)
    assert value(found_in(broker, now_ms=NOW_MS + 8_000), "artemis_oldest_message_age_seconds") == 8


def test_a_look_changes_nothing() -> None:
    broker = broker_of(queue_config())
    send(broker, count=600)
    queue = broker.queues["q"]
    consumer = consumer_on(broker, queue, settles=True, room=1)
    turn(broker)
    for _ in range(3):
        found_in(broker)
    rest = [entry.message.id for entry in queue.contents.order]
    assert rest == sorted(rest)
    assert len(rest) == queue.message_count == 600 - 1
    assert consumer.room_bytes <= 0


def test_clocks_set_back_make_no_negative_age() -> None:
    broker = broker_of(queue_config())
    send(broker, now_ms=NOW_MS)
    assert value(found_in(broker, now_ms=NOW_MS - 5_000), "artemis_oldest_message_age_seconds") == 0


def test_no_step_of_a_look_grows_with_the_consumers() -> None:
    costs = []
    for count in (5 * LOOKS_PER_STEP, 20 * LOOKS_PER_STEP):
        broker, queue = with_queue()
        send(broker)
        queue.distribution.consumers = [Consumer(1, None, settles=False, destructive=True)] * count
        looks = look_at([queue], NOW_MS)
        seen: list[Any] = [[]]
        steps = []
        while seen[-1] is not None:
            steps.append(lines_run(lambda looks=looks, seen=seen: seen.append(next(looks, None))))  # type: ignore[misc]
        (look,) = [look for some in seen[:-1] for look in some]
        assert look.slow_count == count
        costs.append(max(steps))
    assert costs[1] <= costs[0] * 1.1, costs


# ---- sums --------------------------------------------------------------------------------------------


def test_sums_of_all_queues_only_grow() -> None:
    broker = broker_of(queue_config("q"), queue_config("other", "b"))
    send(broker, count=3)
    send(broker, "b", count=2)
    consumer_on(broker, broker.queues["other"], settles=True)
    turn(broker)
    found = found_in(broker)
    assert value(found, "artemis_total_pending_message_count") == 3
    assert value(found, "artemis_total_produced_message_count") == 5
    assert value(found, "artemis_total_consumed_message_count") == 2
    broker.registry.delete_queue(broker.queues["q"], NOW_MS)
    found = found_in(broker)
    assert value(found, "artemis_total_pending_message_count") == 0
    assert value(found, "artemis_total_produced_message_count") == 5
    assert value(found, "artemis_total_consumed_message_count") == 2


def test_a_queue_that_goes_while_it_is_counted_counts_once() -> None:
    broker = broker_of(queue_config())
    send(broker, count=3)
    census = QueueTotals(broker)
    steps = census.count()
    next(steps)
    broker.registry.delete_queue(broker.queues["q"], NOW_MS)
    list(steps)
    assert census.take().added == 3
    assert census.take().added == 3, "and counted anew, from what queues that are gone had"


def test_the_names_of_the_operator_carry_the_routing_type() -> None:
    broker = broker_of(queue_config())
    send(broker, count=2)
    family = found_in(broker)["broker_queue_message_count"]
    assert [(sample.labels["routing_type"], sample.value) for sample in family.samples] == [("multicast", 2)]


# ---- limits and waits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_usage", "min_free", "left"), [(90, -1, 300), (60, -1, 0), (100, -1, 400), (-1, -1, 400), (50, 150, 250)]
)
def test_the_room_until_senders_are_held_back(max_usage: int, min_free: int, left: int) -> None:
    assert bytes_until_full(max_usage, min_free, DiskSpace(0.6, 400, 1_000)) == left


def test_headroom_of_disk_and_memory() -> None:
    broker = broker_of()
    broker.memory.account.size_bytes = 2_500
    found = found_in(broker, global_max_size_bytes=10_000, disk_headroom=77)
    assert value(found, "artemis_disk_headroom_bytes") == 77
    assert value(found, "artemis_memory_headroom_bytes") == 7_500
    found = found_in(broker)
    assert "artemis_disk_headroom_bytes" not in found, "nothing is stored"
    assert "artemis_memory_headroom_bytes" not in found, "there is no limit"


def test_blocked_seconds_add_up_over_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]
    monkeypatch.setattr(blocked, "monotonic_ns", lambda: now_ns[0])
    senders, room = BlockedSenders(), Mock(may_go_on=False)
    one, two, new = (Mock(state="open", **{"session.is_open": is_open}) for is_open in (True, True, False))
    senders.add(one, room)
    senders.add(new, room)  # it waits for its login, not for room
    now_ns[0] = 5
    senders.add(two, room)
    now_ns[0] = 7
    assert senders.spent_ns() == 5 + 2 * 2
    senders.discard(one)
    senders.discard(new)
    now_ns[0] = 10
    senders.discard(two)
    now_ns[0] = 99
    assert senders.spent_ns() == 7 + 5
    stats = ServerStats()
    stats.blocked, stats.connections, stats.connections_total = senders, {one, two, new}, 9
    found = found_in(None, stats)
    assert value(found, "artemis_blocked_seconds") == 12e-9
    assert value(found, "artemis_connections_opened") == 9
    assert value(found, "artemis_connections_closed") == 6


# ---- delays ------------------------------------------------------------------------------------------


def test_a_histogram_counts_by_upper_bound_and_remembers_a_message() -> None:
    stats = ServerStats()
    stats.delays = delays = Histogram([1, 10], 1_000)
    delays.note_message(1, 41, NOW_MS)
    delays.note_message(10, 42, NOW_MS)
    delays.note_message(11, 43, NOW_MS)
    delays.note_message(5_000, 44, NOW_MS + 1)
    family = found_in(None, stats)["artemis_delivery_delay_seconds"]
    buckets = {one.labels["le"]: one for one in family.samples if one.name.endswith("_bucket")}
    assert {bound: one.value for bound, one in buckets.items()} == {"0.001": 1, "0.01": 2, "+Inf": 4}
    shown = {bound: one.exemplar for bound, one in buckets.items()}
    assert shown["0.01"] is not None
    assert shown["0.01"].labels == {"message_id": "42"}
    assert shown["+Inf"] is not None
    assert (shown["+Inf"].labels, shown["+Inf"].value) == ({"message_id": "44"}, 5.0), "the last one"
    assert next(one.value for one in family.samples if one.name.endswith("_sum")) == 5.022


def test_syncs_have_a_histogram_only_where_something_is_stored() -> None:
    assert "artemis_journal_sync_duration_seconds" not in found_in()
    stats, times = ServerStats(), Histogram([1_000_000], 1_000_000_000)
    times.note(2_500_000)
    stats.journal = Mock(sync_times=times, **{"counts.return_value": {}})
    family = found_in(None, stats)["artemis_journal_sync_duration_seconds"]
    assert next(one.value for one in family.samples if one.name.endswith("_sum")) == 0.0025
