"""The names, labels and values of the metrics, and what a scrape costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from artemis_py.core.queue.messages import Counters
from artemis_py.metrics import MetricsExporter
from artemis_py.metrics.catalogue import ADDRESS_GAUGES, ALIAS_GAUGES, LOOK_GAUGES, QUEUE_GAUGES
from artemis_py.metrics.exposition import SAMPLES_PER_CHUNK, render_gauges
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats
from artemis_py.version import VERSION
from tests.kit.core import NOW_MS, broker_of, consumer_on, lines_run, queue_config, send, with_queue
from tests.kit.metrics import exporter_of

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"

# The names that Artemis' own plug-in gives, with the labels it gives them.
BROKER_NAMES = {
    "artemis_connection_count",
    "artemis_total_connection_count",
    "artemis_session_count",
    "artemis_total_session_count",
    "artemis_address_memory_usage",
    "artemis_address_memory_usage_percentage",
    "artemis_disk_store_usage",
    "artemis_replica_sync",
    "artemis_active",
}
RESULT_NAMES = {"artemis_authentication_count", "artemis_authorization_count"}
ADDRESS_NAMES = {
    "artemis_routed_message_count",
    "artemis_unrouted_message_count",
    "artemis_address_size",
    "artemis_number_of_pages",
    "artemis_limit_percent",
}
QUEUE_NAMES = {
    "artemis_message_count",
    "artemis_durable_message_count",
    "artemis_persistent_size",
    "artemis_durable_persistent_size",
    "artemis_delivering_message_count",
    "artemis_delivering_durable_message_count",
    "artemis_delivering_persistent_size",
    "artemis_delivering_durable_persistent_size",
    "artemis_scheduled_message_count",
    "artemis_scheduled_durable_message_count",
    "artemis_scheduled_persistent_size",
    "artemis_scheduled_durable_persistent_size",
    "artemis_messages_acknowledged",
    "artemis_messages_added",
    "artemis_messages_killed",
    "artemis_messages_expired",
    "artemis_consumer_count",
}


ALIAS_NAMES = {gauge.name for gauge in ALIAS_GAUGES} | {"artemis_total_pending_message_count"}


def scrape_text(exporter: MetricsExporter, accept: str = "") -> str:
    return b"".join(exporter.scrape(accept)[1]).decode()


def scrape(exporter: MetricsExporter) -> dict[str, Metric]:
    return {family.name: family for family in parse_text(scrape_text(exporter))}


def values(exporter: MetricsExporter, name: str) -> dict[tuple[str, ...], float]:
    """Label values, sorted by label name and without the broker's, → value."""
    family = next(
        family for family in parse_text(scrape_text(exporter)) if any(sample.name == name for sample in family.samples)
    )
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "broker"): sample.value
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (BROKER_NAMES, {"broker"}),
        (RESULT_NAMES, {"broker", "result"}),
        (ADDRESS_NAMES, {"address", "broker"}),
        (QUEUE_NAMES, {"address", "broker", "queue"}),
    ],
)
def test_every_artemis_name_is_a_gauge_with_artemis_labels(names: set[str], labels: set[str]) -> None:
    broker = broker_of(queue_config("orders.eu", "orders"))
    families = scrape(exporter_of(broker))
    for name in names:
        family = families[name]
        assert family.type == "gauge"
        assert family.documentation
        assert family.samples
        assert all(sample.name == name and set(sample.labels) == labels for sample in family.samples)


def test_our_additions_have_their_own_names_and_types() -> None:
    broker = broker_of(queue_config("orders.eu", "orders"))
    families = scrape(exporter_of(broker))
    artemis = BROKER_NAMES | RESULT_NAMES | ADDRESS_NAMES | QUEUE_NAMES
    ours = {name: family.type for name, family in families.items() if name not in artemis and "process_" not in name}
    assert ours == {
        "artemis_login_refusals": "counter",
        "artemis_logins_verified": "counter",
        "artemis_logins_waiting": "gauge",
        "artemis_login_files_stale": "gauge",
        "artemis_messages_replaced": "gauge",
        "artemis_messages_dropped": "gauge",
        "artemis_paged_messages": "gauge",
        "artemis_queue_alerts": "gauge",
        "artemis_queue_flow_stopped": "gauge",
        "artemis_queue_keeps_messages": "gauge",
        "artemis_queue_events": "counter",
        "artemis_messages_looped": "gauge",
        "artemis_addresses": "gauge",
        "artemis_queues": "gauge",
        "artemis_large_messages": "gauge",
        "artemis_large_message_bytes": "gauge",
        "artemis_large_message_unwritten_bytes": "gauge",
        "artemis_large_messages_without_room": "gauge",
        "artemis_disk_full": "gauge",
        "artemis_disk_reserve_bytes": "gauge",
        "artemis_disk_reserve_taken_bytes": "gauge",
        "artemis_disk_without_room": "gauge",
        "artemis_descriptors_max": "gauge",
        "artemis_descriptors_stomp_max": "gauge",
        "artemis_acceptors_paused": "gauge",
        "artemis_acceptor_pauses": "gauge",
        "artemis_log_retained_files": "gauge",
        "artemis_log_retained_bytes": "gauge",
        "artemis_log_overrun_files": "gauge",
        "artemis_log_overrun_bytes": "gauge",
        "artemis_log_cursor_lsn": "gauge",
        "artemis_log_cursor_lag_bytes": "gauge",
        "artemis_log_cursor_holds": "gauge",
        "artemis_log_cursor_idle_seconds": "gauge",
        "artemis_connections": "gauge",
        "artemis_connections_opened": "counter",
        "artemis_connections_closed": "counter",
        "artemis_blocked_seconds": "counter",
        "artemis_blocked_senders": "gauge",
        "artemis_delivery_delay_seconds": "histogram",
        "artemis_oldest_message_age_seconds": "gauge",
        "artemis_oldest_delivering_message_age_seconds": "gauge",
        "artemis_slow_consumers": "gauge",
        "artemis_leased_messages": "gauge",
        "artemis_leases_ended": "gauge",
        "artemis_consumers_at_backlog": "gauge",
        "artemis_total_pending_message_count": "gauge",
        "artemis_total_produced_message_count": "counter",
        "artemis_total_consumed_message_count": "counter",
        "broker_queue_message_count": "gauge",
        "broker_queue_consumer_count": "gauge",
        "broker_queue_delivering_count": "gauge",
        "broker_queue_persistent_size": "gauge",
        "artemis_connection_faults": "counter",
        "artemis_held_bytes": "gauge",
        "artemis_held_bytes_max": "gauge",
        "artemis_held_refusals": "counter",
        "artemis_held_cut_offs": "counter",
        "artemis_frames": "counter",
        "artemis_bytes": "counter",
        "artemis_clock_steps": "counter",
        "artemis_clock_shift_seconds": "gauge",
        "artemis_turn_duration_seconds": "histogram",
        "artemis_turn_duration_seconds_max": "gauge",
        "artemis_build_info": "gauge",
        "artemis_scrape_duration_seconds": "gauge",
    }


@pytest.mark.interpreted
def test_each_gauge_shows_its_own_number() -> None:
    queue: Any
    broker, queue = with_queue()
    for _ in range(13):
        consumer_on(broker, queue)
    address, counters = queue.address, queue.contents.counters
    address.routed_message_count, address.unrouted_message_count, address.account.size_bytes = 1, 2, 3
    address.stream, address.bytes_max = SimpleNamespace(pages=range(4)), 60
    for number, counter in enumerate(Counters.__slots__, 21):
        setattr(counters, counter, number)
    queue.contents.scheduled, queue.contents.order.count = dict.fromkeys(range(14)), 1000
    shown = scrape(exporter_of(broker))
    assert {
        name: shown[name].samples[0].value for name in ADDRESS_NAMES | QUEUE_NAMES | {"artemis_messages_replaced"}
    } == {
        "artemis_routed_message_count": 1,
        "artemis_unrouted_message_count": 2,
        "artemis_address_size": 3,
        "artemis_number_of_pages": 4,
        "artemis_limit_percent": 5,
        "artemis_message_count": 1000 + counters.held_count + 14,
        "artemis_durable_message_count": counters.durable_count,
        "artemis_persistent_size": counters.size_bytes,
        "artemis_durable_persistent_size": counters.durable_size_bytes,
        "artemis_delivering_message_count": counters.held_count + counters.read_count,
        "artemis_delivering_durable_message_count": counters.held_durable_count,
        "artemis_delivering_persistent_size": counters.held_size_bytes,
        "artemis_delivering_durable_persistent_size": counters.held_durable_size_bytes,
        "artemis_scheduled_message_count": 14,
        "artemis_scheduled_durable_message_count": counters.scheduled_durable_count,
        "artemis_scheduled_persistent_size": counters.scheduled_size_bytes,
        "artemis_scheduled_durable_persistent_size": counters.scheduled_durable_size_bytes,
        "artemis_messages_added": counters.added,
        "artemis_messages_acknowledged": counters.acknowledged,
        "artemis_messages_killed": counters.killed,
        "artemis_messages_expired": counters.expired,
        "artemis_messages_replaced": counters.replaced,
        "artemis_consumer_count": 13,
    }


@pytest.mark.interpreted
def test_nothing_is_durable_on_a_queue_that_is_not() -> None:
    broker, queue = with_queue(durable=False)
    for counter in Counters.__slots__:
        setattr(queue.contents.counters, counter, 7)
    durable = {name: family for name, family in scrape(exporter_of(broker)).items() if "durable" in name}
    assert len(durable) == 6
    assert {family.samples[0].value for family in durable.values()} == {0}


def test_a_line_is_what_artemis_writes_but_for_its_trailing_comma() -> None:
    broker = broker_of(queue_config("JOBS", "JOBS"), name="amq-broker")
    send(broker, "JOBS", count=3)
    assert 'artemis_message_count{address="JOBS",broker="amq-broker",queue="JOBS"} 3.0\n' in scrape_text(
        exporter_of(broker)
    )


@pytest.mark.parametrize("accept", ["", "text/plain;version=0.0.4", OPENMETRICS])
def test_the_fast_text_says_what_the_stock_encoder_says(accept: str) -> None:
    odd = [queue_config(name, "o\nrders") for name in ("q\\1", 'q"2"')]
    many = [queue_config(f"q{number}", "big") for number in range(40)]
    broker = broker_of(*odd, *many, name='a "quoted" \\ name')
    for number, queue in enumerate(broker.queues.values()):
        queue.contents.counters.added = 10**number % (1 << 53)
    stats = ServerStats()
    stats.traffic.frames_in["SEND"], stats.bytes_out = 5, 7
    exporter = exporter_of(broker, stats)
    content_type, pieces = exporter.scrape(accept)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    varying = ("process_", "artemis_scrape_")
    fast = [family for family in parse(b"".join(pieces).decode()) if not family.name.startswith(varying)]
    stock = [
        family
        for family in parse_text(generate_latest(exporter.registry).decode())
        if not family.name.startswith(varying)
    ]
    assert [(f.name, f.type, f.documentation, f.samples) for f in fast] == [
        (f.name, f.type, f.documentation, f.samples) for f in stock
    ]


def test_the_content_type_follows_the_accept_header() -> None:
    exporter = exporter_of()
    assert exporter.scrape("")[0].startswith("text/plain; version=0.0.4")
    assert exporter.scrape(OPENMETRICS)[0].startswith("application/openmetrics-text; version=1.0.0")
    assert scrape_text(exporter, OPENMETRICS).endswith("# EOF\n")
    assert "# EOF" not in scrape_text(exporter)


def test_broker_gauges() -> None:
    broker, stats = broker_of(), ServerStats()
    broker.memory.account.size_bytes = 2_500
    stats.connections, stats.connections_total = {Mock(state="open") for _ in range(3)}, 9
    stats.traffic.sessions_open, stats.traffic.sessions_total = 4, 12
    exporter = exporter_of(broker, stats, global_max_size_bytes=10_000)
    expected = {
        "artemis_connection_count": 3,
        "artemis_total_connection_count": 9,
        "artemis_session_count": 4,
        "artemis_total_session_count": 12,
        "artemis_address_memory_usage": 2_500,
        "artemis_address_memory_usage_percentage": 25,
        "artemis_active": 1,
        "artemis_replica_sync": 0,
    }
    families = scrape(exporter)
    assert {name: families[name].samples[0].value for name in expected} == expected


def test_permission_checks_by_result() -> None:
    stats = ServerStats()
    stats.permission_checks.success, stats.permission_checks.failure = 7, 2
    samples = scrape(exporter_of(None, stats))["artemis_authorization_count"].samples
    assert {sample.labels["result"]: sample.value for sample in samples} == {"success": 7, "failure": 2}


def test_a_stopped_broker_is_not_active() -> None:
    broker = broker_of()
    broker.finish(NOW_MS)
    assert values(exporter_of(broker), "artemis_active") == {(): 0.0}


@pytest.mark.parametrize("limit", [-1, 0])
def test_memory_without_a_limit_is_no_percentage(limit: int) -> None:
    broker = broker_of()
    broker.memory.account.size_bytes = 100
    exporter = exporter_of(broker, global_max_size_bytes=limit)
    assert values(exporter, "artemis_address_memory_usage_percentage") == {(): 0.0}


def test_the_disk_is_that_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_blocks=1_000, f_bfree=800, f_bavail=750)
    monkeypatch.setattr(os, "statvfs", {tmp_path: disk}.__getitem__)
    assert values(exporter_of(store_directory=tmp_path), "artemis_disk_store_usage") == {(): 0.25}
    assert values(exporter_of(), "artemis_disk_store_usage") == {(): 0.0}


def test_traffic_and_connections() -> None:
    stats = ServerStats()
    stats.traffic.frames_in.update(SEND=7, ACK=2)
    stats.traffic.frames_out.update(MESSAGE=6)
    stats.bytes_in, stats.bytes_out = 700, 60
    stats.connections = {Mock(state="open"), Mock(state="open"), Mock(state="new")}
    exporter = exporter_of(None, stats)
    assert values(exporter, "artemis_frames_total") == {("SEND", "in"): 7, ("ACK", "in"): 2, ("MESSAGE", "out"): 6}
    assert values(exporter, "artemis_bytes_total") == {("in",): 700, ("out",): 60}
    assert values(exporter, "artemis_connections") == {
        ("new",): 1, ("open",): 2, ("blocked",): 0, ("stalled",): 0, ("closing",): 0,
    }  # fmt: skip


def test_large_bodies() -> None:
    stats = ServerStats()
    stats.large = Mock(**{"counts.return_value": {"bodies": 2, "bytes": 300, "unwritten_bytes": 40}})
    families = scrape(exporter_of(None, stats))
    shown = {name: families[name].samples[0].value for name in families if name.startswith("artemis_large")}
    assert shown == {
        "artemis_large_messages": 2,
        "artemis_large_message_bytes": 300,
        "artemis_large_message_unwritten_bytes": 40,
        "artemis_large_messages_without_room": 0,
    }


def test_the_turn_histogram_is_cumulative_and_in_seconds() -> None:
    stats = ServerStats()
    for duration_ns in [1_000_000] * 5 + [2_000_000] * 3 + [1_489_000_000]:
        stats.turn_took(duration_ns)
    exporter = exporter_of(None, stats)
    shorter = {(str(bound),): 0 if bound < 0.001 else 5 if bound == 0.001 else 8 for bound in TURN_BUCKET_BOUNDS_S}
    assert values(exporter, "artemis_turn_duration_seconds_bucket") == {**shorter, ("+Inf",): 9}
    assert values(exporter, "artemis_turn_duration_seconds_count") == {(): 9}
    assert values(exporter, "artemis_turn_duration_seconds_sum") == {(): 1.5}
    assert values(exporter, "artemis_turn_duration_seconds_max") == {(): 1.489}


def test_build_info_and_process() -> None:
    families = scrape(exporter_of())
    (sample,) = families["artemis_build_info"].samples
    assert sample.labels["version"] == VERSION
    assert sample.value == 1
    if sys.platform == "linux":
        assert families["process_resident_memory_bytes"].samples[0].value > 0
    assert not any(name.startswith("jvm_") for name in families)


def test_the_series_of_a_deleted_queue_disappear() -> None:
    broker = broker_of(queue_config("orders.eu", "orders"), queue_config("orders.us", "orders"))
    exporter = exporter_of(broker)
    assert values(exporter, "artemis_message_count") == {("orders", "orders.eu"): 0, ("orders", "orders.us"): 0}
    del broker.queues["orders.eu"]
    assert "orders.eu" not in scrape_text(exporter)
    assert values(exporter, "artemis_message_count") == {("orders", "orders.us"): 0}


def test_enable_metrics_false_hides_an_address_and_its_queues() -> None:
    queues = queue_config("shown.1", "shown"), queue_config("hidden.1", "hidden")
    exporter = exporter_of(broker_of(*queues, settings={"hidden": {"enable_metrics": False}}))
    assert "hidden" not in scrape_text(exporter)
    assert "hidden" not in generate_latest(exporter.registry).decode()
    assert values(exporter, "artemis_address_size") == {("shown",): 0}


def test_two_brokers_in_one_process_do_not_share_anything() -> None:
    first, second = broker_of(name="first"), broker_of(name="second")
    first.memory.account.size_bytes, second.memory.account.size_bytes = 1, 2
    texts = [scrape_text(exporter_of(broker)) for broker in (first, second)]
    assert 'artemis_address_memory_usage{broker="first"} 1.0' in texts[0]
    assert 'broker="second"' not in texts[0]
    assert 'artemis_address_memory_usage{broker="second"} 2.0' in texts[1]


def test_the_scrape_before_is_measured() -> None:
    exporter = exporter_of()
    assert values(exporter, "artemis_scrape_duration_seconds") == {(): 0.0}
    assert values(exporter, "artemis_scrape_duration_seconds")[()] > 0


def test_a_large_scrape_comes_in_pieces_between_which_the_broker_can_work() -> None:
    broker = broker_of(*(queue_config(f"q{number}", "many") for number in range(2_000)))
    pieces = list(render_gauges(broker, NOW_MS))
    lines = [piece.count("\n") for piece in pieces]
    assert max(lines) < 2 * SAMPLES_PER_CHUNK
    of_queue = len(QUEUE_GAUGES) + len(LOOK_GAUGES) + len(ALIAS_GAUGES)
    assert sum(lines) == 2_000 * of_queue + len(ADDRESS_GAUGES) + 2 * (of_queue + len(ADDRESS_GAUGES))
    assert len(pieces) > 5


def test_a_queue_deleted_between_two_pieces_does_no_harm() -> None:
    broker = broker_of(*(queue_config(f"q{number}", "many") for number in range(SAMPLES_PER_CHUNK)))
    pieces = render_gauges(broker, NOW_MS)
    text = next(pieces)
    broker.queues.clear()
    text += "".join(pieces)
    assert text.count('queue="q1"') == len(QUEUE_GAUGES) + len(LOOK_GAUGES) + len(ALIAS_GAUGES)


def test_prometheus_client_is_not_imported_before_the_first_scrape() -> None:
    program = (
        "import sys; from tests.kit.metrics import exporter_of;"
        "e = exporter_of(); before = 'prometheus_client' in sys.modules;"
        "e.prepare(); print(before, 'prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


def test_promtool_finds_only_what_artemis_names_bring_along(promtool: str) -> None:
    broker = broker_of(queue_config("orders.eu", "orders"))
    text = scrape_text(exporter_of(broker))
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if line]
    # Gauges named …_count are Artemis' own spelling, which promtool does not like.
    artemis = BROKER_NAMES | RESULT_NAMES | ADDRESS_NAMES | QUEUE_NAMES | ALIAS_NAMES
    assert "artemis_message_count" in done.stderr
    assert [line for line in complaints if line.split()[0] not in artemis] == []


def test_no_step_of_a_scrape_grows_with_the_queues() -> None:
    """A million names were written in one piece before the first line."""
    costs = []
    for count in (1_000, 4_000):
        broker = broker_of(*(queue_config(f"q{number}", "many") for number in range(count)))
        pieces = render_gauges(broker, NOW_MS)
        steps: list[int] = []
        seen: list[str | None] = [""]
        while seen[-1] is not None:
            steps.append(lines_run(lambda pieces=pieces, seen=seen: seen.append(next(pieces, None))))  # type: ignore[misc]
        costs.append(max(steps))
    assert costs[1] <= costs[0] * 1.1, costs
