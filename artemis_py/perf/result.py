"""The metrics of scenarios (names, units, which direction is better), results, and how people and programs get them."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO

from artemis_py.terminal_output import escaped
from artemis_py.text_table import Column, text_of

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


# ---- report ----------------------------------------------------------------------------------------------------------
#
# The results as a table for people and as JSON for programs.


COLUMNS: Final = (
    "messages_per_second",
    "cpu_s_per_million",
    "generator_cpu_s_per_million",
    "resident_mb",
    "p50_us",
    "p99_us",
    "p999_us",
)
HIDDEN: Final = frozenset({"messages", "max_us", "other_load_percent"})
RED: Final = "\x1b[31m"
PLAIN: Final = "\x1b[0m"


def number(metric: str, value: float) -> str:
    """A value with the digits of its metric and commas between thousands."""
    return f"{value:,.{METRICS[metric].digits}f}"


def with_unit(metric: str, value: float) -> str:
    """A value with its unit, as in ``1,234 B`` or ``5,678/s``."""
    unit = METRICS[metric].unit
    gap = "" if unit.startswith("/") or not unit else " "
    return f"{number(metric, value)}{gap}{unit}"


def table(outcomes: Sequence[Outcome], colour: bool) -> str:
    """One line per scenario with medians over its rounds, without empty columns. Failures follow."""
    used = [name for name in COLUMNS if any(name in outcome.medians() for outcome in outcomes)]
    extras = [_extras(outcome) for outcome in outcomes]
    columns = [Column(), Column("scenario"), *(Column(METRICS[name].label, is_number=True) for name in used), Column()]
    rows: list[list[str]] = []
    for outcome, extra in zip(outcomes, extras, strict=True):
        medians = outcome.medians()
        cells = [number(name, medians[name]) if name in medians else "-" for name in used]
        rows.append([outcome.scenario, outcome.title, *cells, extra])
    lines = [text_of(columns, rows, has_colours=colour)]
    for outcome in outcomes:
        for failure in outcome.failures:
            text = f"scenario {outcome.scenario} failed: {escaped(failure)}"
            lines.append(f"{RED}{text}{PLAIN}" if colour else text)
    return "\n".join(lines)


def _extras(outcome: Outcome) -> str:
    shown = {name: value for name, value in outcome.medians().items() if name not in COLUMNS and name not in HIDDEN}
    return ", ".join(f"{METRICS[name].label} {with_unit(name, value)}" for name, value in shown.items())


def as_json(url: str, rounds: int, outcomes: Sequence[Outcome]) -> str:
    """Everything measured, one object."""
    return json.dumps({"url": url, "rounds": rounds, "results": [outcome.as_json() for outcome in outcomes]}, indent=2)


# ---- progress --------------------------------------------------------------------------------------------------------
#
# A line while a measurement runs; none if standard error is no terminal.


INTERVAL_S: Final = 0.2


class Progress:
    """Rewrites one line on ``stream``, at most five times a second."""

    __slots__ = ("_enabled", "_next", "_stream", "label")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._enabled = self._stream.isatty()
        self._next = 0.0
        self.label = ""

    def show(self, text: Callable[[], str]) -> None:
        """Shows what ``text`` returns after the label; does not call it while the last line is fresh."""
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL_S
        self._stream.write(f"\r\x1b[K{self.label}: {text()}"[:160])
        self._stream.flush()

    def clear(self) -> None:
        """Removes the line, so that the table begins on a clean one."""
        if self._enabled:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
