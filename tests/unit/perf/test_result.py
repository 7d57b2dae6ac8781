from __future__ import annotations

import pytest

from artemis_py.perf.result import METRICS, Outcome, latency_metrics, percentile


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (1, 1), (50, 50), (50.5, 51), (99, 99), (99.9, 100), (100, 100)]
)
def test_percentile_is_the_nearest_rank(percent: float, expected: int) -> None:
    assert percentile(list(range(1, 101)), percent) == expected


def test_percentile_of_one_value() -> None:
    assert percentile([7], 99.9) == 7


def test_latencies_are_sorted_and_turned_into_microseconds() -> None:
    latencies = [n * 1000 for n in range(1000, 0, -1)]
    assert latency_metrics(latencies) == {"p50_us": 500, "p99_us": 990, "p999_us": 999, "max_us": 1000}
    assert latency_metrics([]) == {}


def test_an_outcome_takes_medians_over_the_rounds_that_measured() -> None:
    outcome = Outcome("1", "x", "messages_per_second")
    outcome.rounds = [{"messages_per_second": 10.0}, {"messages_per_second": 30.0, "p50_us": 5.0}]
    assert outcome.medians() == {"messages_per_second": 20.0, "p50_us": 5.0}
    assert outcome.median("p99_us") is None


def test_metrics_are_keyed_by_their_names() -> None:
    assert all(name == metric.name for name, metric in METRICS.items())
