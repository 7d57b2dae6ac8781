"""The metrics of scenarios: names, units, and which direction is better."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

MEGABYTE: Final = 1_000_000
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity. ``digits`` after the point in tables; ``more_is_better`` decides how two brokers compare."""

    name: str
    label: str
    unit: str
    digits: int
    more_is_better: bool


METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric("messages_per_second", "messages/s", "/s", 0, True),
        Metric("cpu_s_per_million", "CPU s/M", "s", 2, False),
        Metric("generator_cpu_s_per_million", "generator CPU s/M", "s", 2, False),
        Metric("resident_mb", "RSS MB", "MB", 1, False),
        Metric("p50_us", "p50 µs", "µs", 0, False),
        Metric("p99_us", "p99 µs", "µs", 0, False),
        Metric("p999_us", "p99.9 µs", "µs", 0, False),
        Metric("max_us", "max", "µs", 0, False),
        Metric("fill_per_second", "fill", "/s", 0, True),
        Metric("drain_per_second", "drain", "/s", 0, True),
        Metric("bytes_per_message", "resident per queued message", "B", 0, False),
        Metric("kb_per_connection", "per connection", "kB", 2, False),
        Metric("connects_per_second", "connects", "/s", 0, True),
        Metric("sync_ratio", "p50 / fdatasync", "×", 2, False),
        Metric("fdatasync_us", "fdatasync p50 µs", "µs", 0, False),
        Metric("messages_per_sync", "messages per sync", "", 1, True),
        Metric("records_per_second", "records", "/s", 0, True),
        Metric("start_ms", "start to CONNECTED", "ms", 0, False),
        Metric("turn_max_ms", "longest turn", "ms", 1, False),
        Metric("other_load_percent", "other load", "%", 0, False),
        Metric("messages", "messages", "", 0, True),
    )
}


@dataclass(slots=True)
class Outcome:
    """All rounds of one scenario: the values of each round by metric name, and the reasons of failed rounds."""

    scenario: str
    title: str
    headline: str
    rounds: list[dict[str, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def median(self, metric: str) -> float | None:
        """The median over the rounds that measured ``metric``, None if none did."""
        values = [values[metric] for values in self.rounds if metric in values]
        return statistics.median(values) if values else None

    def medians(self) -> dict[str, float]:
        """The median of every metric measured, in the order of ``METRICS``."""
        found = ((name, self.median(name)) for name in METRICS)
        return {name: value for name, value in found if value is not None}

    def as_json(self) -> dict[str, object]:
        """For ``--json``: medians, each round, failures."""
        return {
            "scenario": self.scenario,
            "title": self.title,
            "headline": self.headline,
            "median": self.medians(),
            "rounds": self.rounds,
            "failures": self.failures,
        }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that at least ``percent`` % of ``ordered`` (sorted, not empty) do not exceed: nearest rank."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def latency_metrics(latencies_ns: list[int]) -> dict[str, float]:
    """Percentiles in µs of latencies in ns; none without samples."""
    if not latencies_ns:
        return {}
    ordered = sorted(latencies_ns)
    return {
        "p50_us": percentile(ordered, 50) / 1000,
        "p99_us": percentile(ordered, 99) / 1000,
        "p999_us": percentile(ordered, 99.9) / 1000,
        "max_us": ordered[-1] / 1000,
    }
