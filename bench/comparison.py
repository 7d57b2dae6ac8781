"""The table: artemis_py beside its peers, with ratios and what was promised."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from artemis_py.perf.report import align, number, with_unit
from artemis_py.perf.result import METRICS, Outcome
from bench.driver import Measured
from bench.targets import TARGETS, peers_of

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
                {None: "", True: "met", False: "NOT MET"}[judged.met],
            ]
        )
    return rows


def detail_rows(found: Sequence[Measured]) -> list[list[str]]:
    """The other metrics of each scenario, one row per metric."""
    rows = [["", "measured", *(one.broker.title for one in found)]]
    for scenario, outcome in found[0].outcomes.items():
        for name in DETAILS:
            values = [one.outcomes[scenario].median(name) for one in found]
            if name != outcome.headline and any(value is not None for value in values):
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


def text(found: Sequence[Measured]) -> str:
    """For a terminal."""
    left = frozenset({0, 1, 2})
    parts = [align(headline_rows(found), left), [""], align(detail_rows(found), frozenset({0, 1}))]
    if load := other_load(found):
        parts.append(["", f"{load}."])
    if problems := failures(found):
        parts += [["", "Failures:"], problems]
    return "\n".join(line for part in parts for line in part)


def markdown(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """A Markdown table whose first ``left`` columns stand to the left."""
    head, *body = rows
    rule = [":--" if place < left else "--:" for place in range(len(head))]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *body)]


def _cell(metric: str, value: float | None, bare: bool = False) -> str:
    if value is None:
        return "-"
    return number(metric, value) if bare else with_unit(metric, value)


def _outcome(found: Sequence[Measured], scenario: str) -> Outcome:
    return found[0].outcomes[scenario]
