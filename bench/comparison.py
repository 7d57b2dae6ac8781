"""The table: artemis_py beside its peers, with ratios and what was promised."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.result import METRICS, Outcome, number, with_unit
from bench.brokers import present
from bench.driver import Measured, measure
from bench.part import VERDICTS, Extent, Part, Say, Table
from bench.targets import DURABLE_PEERS, TARGETS, TRANSIENT_PEERS, peers_of

OWN = "artemis_py"
DETAILS = (
    "cpu_s_per_million",
    "resident_mb",
    "p50_us",
    "p99_us",
    "p999_us",
    "messages_per_sync",
    "fdatasync_us",
    "start_ms",
    "fill_per_second",
    "drain_per_second",
    "connects_per_second",
)

IN_PAGE: Final[Mapping[str, frozenset[str]]] = {
    "cpu_s_per_million": frozenset({"1", "1t", "2", "3", "8", "11"}),
    "resident_mb": frozenset({"1", "3"}),
    "p50_us": frozenset({"4", "8", "11"}),
    "p99_us": frozenset({"4", "11"}),
    "messages_per_sync": frozenset({"3", "11"}),
    "fdatasync_us": frozenset({"4"}),
    "start_ms": frozenset({"recovery"}),
}
"""The details that the document has, and of which scenarios: one for each kind of load. The terminal has all."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A scenario's ratio to the better peer (above 1: artemis_py is better), and whether its target is met."""

    scenario: str
    ratio: float | None
    met: bool | None


def verdict(found: Sequence[Measured], scenario: str) -> Verdict:
    """Compares the headline of one scenario."""
    own = next((one.headline(scenario) for one in found if one.broker.name == OWN), None)
    names = peers_of(scenario)
    peers = [value for one in found if one.broker.name in names and (value := one.headline(scenario)) is not None]
    ratio = None
    if own is not None and peers:
        metric = METRICS[_outcome(found, scenario).headline]
        ratio = own / max(peers) if metric.more_is_better else min(peers) / own if own > 0 else None
    target = TARGETS.get(scenario)
    met = None if target is None or own is None else target.met(own, ratio)
    return Verdict(scenario, ratio, met)


def headline_rows(found: Sequence[Measured]) -> list[list[str]]:
    """The main table: one scenario per row, one broker per column, then ratio, target and verdict."""
    rows = [["", "scenario", "measured", *(one.broker.title for one in found), "ratio", "target", ""]]
    for scenario in found[0].outcomes:
        outcome = _outcome(found, scenario)
        cells = [_cell(outcome.headline, one.headline(scenario)) for one in found]
        judged = verdict(found, scenario)
        target = TARGETS.get(scenario)
        rows.append(
            [
                scenario,
                outcome.title,
                METRICS[outcome.headline].label,
                *cells,
                "" if judged.ratio is None else f"{judged.ratio:.1f} ×",
                "" if target is None else target.text(outcome.headline),
                VERDICTS[judged.met],
            ]
        )
    return rows


def detail_rows(found: Sequence[Measured], chosen: Mapping[str, frozenset[str]] | None = None) -> list[list[str]]:
    """The other metrics of each scenario, one row per metric: all, or those ``chosen`` with their scenarios."""
    rows = [["", "measured", *(one.broker.title for one in found)]]
    for scenario, outcome in found[0].outcomes.items():
        for name in DETAILS:
            values = [one.outcomes[scenario].median(name) for one in found]
            is_shown = chosen is None or scenario in chosen.get(name, ())
            if is_shown and name != outcome.headline and any(value is not None for value in values):
                label = (
                    f"{METRICS[name].label}, {METRICS[name].unit}" if name.endswith("second") else METRICS[name].label
                )
                rows.append([scenario, label, *(_cell(name, value, bare=True) for value in values)])
    return rows


def failures(found: Sequence[Measured]) -> list[str]:
    """One line for each failure."""
    return [
        f"{one.broker.title}, scenario {outcome.scenario}: {failure}"
        for one in found
        for outcome in one.outcomes.values()
        for failure in outcome.failures
    ]


def other_load(found: Sequence[Measured]) -> str | None:
    """How busy other programs kept the machine meanwhile, None when nothing tells."""
    loads = [
        values["other_load_percent"]
        for one in found
        for outcome in one.outcomes.values()
        for values in outcome.rounds
        if "other_load_percent" in values
    ]
    if not loads:
        return None
    return (
        f"Other programs used {statistics.median(loads):.0f} % of the machine's CPU time in the median measurement, "
        f"{max(loads):.0f} % in the worst"
    )


def notes(found: Sequence[Measured], absent: Sequence[str]) -> list[str]:
    """What was measured, what kept the machine busy besides, what is absent, and what has failed."""
    load = other_load(found)
    return [
        ", ".join(f"{one.broker.title} {one.version}" for one in found) + ".",
        *([f"{load}."] if load else []),
        *(f"Not measured: {line}." for line in absent),
        *(f"Failure: {line}" for line in failures(found)),
    ]


@dataclass(frozen=True, slots=True)
class Comparison(Part):
    """All scenarios with all brokers, and which brokers are not here."""

    found: Sequence[Measured]
    absent: Sequence[str]

    def tables(self) -> list[Table]:
        """The headlines, and the rest."""
        return [Table(headline_rows(self.found), 3), Table(detail_rows(self.found), 2)]

    def page_tables(self) -> list[Table]:
        """The headlines, and some of the rest."""
        return [Table(headline_rows(self.found), 3), Table(detail_rows(self.found, IN_PAGE), 2)]

    def notes(self) -> list[str]:
        """Versions and failures."""
        return notes(self.found, self.absent)

    @property
    def missed(self) -> list[str]:
        """The scenarios whose target is not met."""
        return [name for name in self.found[0].outcomes if verdict(self.found, name).met is False]

    def as_json(self) -> object:
        """Every round of every broker, and the verdicts."""
        brokers = {
            one.broker.name: {"version": one.version, "results": [each.as_json() for each in one.outcomes.values()]}
            for one in self.found
        }
        verdicts = [verdict(self.found, scenario) for scenario in self.found[0].outcomes]
        judged = {one.scenario: {"ratio": one.ratio, "met": one.met} for one in verdicts}
        return {"absent": list(self.absent), "brokers": brokers, "verdicts": judged}

    def headlines(self) -> str:
        """The speed of the broker in some sentences, each beside the peers, for README.md."""
        own = next(one for one in self.found if one.broker.name == OWN)
        told = (
            (
                "from a producer to a consumer, no two headers alike",
                self._beside("1u", TRANSIENT_PEERS | DURABLE_PEERS),
            ),
            ("durable, in blocks", self._beside("3", DURABLE_PEERS)),
            ("durable, from 100 senders that wait for each RECEIPT", self._beside("11", DURABLE_PEERS)),
        )
        text = (
            "- **Fast**: messages of 100 bytes a second, in [one run on one machine](docs/benchmarks.md), and in "
            f"brackets the fastest other broker: {'; '.join(f'{what}: {rates}' for what, rates in told)}. So "
            f"measured, artemis_py {own.version} is ready in {self._beside('10')}, and a queued 100-byte message "
            f"takes {self._beside('7')} of memory."
        )
        return textwrap.fill(text, 119, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

    def _beside(self, scenario: str, peers: frozenset[str] = frozenset()) -> str:
        """Our headline, and in brackets the highest of some peers."""
        told = {one.broker: value for one in self.found if (value := one.headline(scenario)) is not None}
        metric = METRICS[_outcome(self.found, scenario).headline]

        def shown(value: float) -> str:
            return f"{number(metric.name, value)} {metric.unit}".removesuffix(" /s")

        own = next((shown(value) for broker, value in told.items() if broker.name == OWN), "?")
        others = [(value, broker.title) for broker, value in told.items() if broker.name in peers]
        return f"{own} ({max(others)[1]} {shown(max(others)[0])})" if others else own


def measure_brokers(names: Sequence[str], extent: Extent, say: Say) -> Comparison:
    """Scenarios with all brokers that are here, by turns. Raises PerfError for an unknown name."""
    brokers, absent = present(extent.brokers)
    for line in absent:
        say(f"not measured: {line}")
    return Comparison(measure(brokers, names, extent.options, extent.rounds, say), absent)


def _cell(metric: str, value: float | None, bare: bool = False) -> str:
    if value is None:
        return "-"
    return number(metric, value) if bare else with_unit(metric, value)


def _outcome(found: Sequence[Measured], scenario: str) -> Outcome:
    return found[0].outcomes[scenario]
