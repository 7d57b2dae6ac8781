"""What a message costs beside one other each: the goals, against brokers, a relay in C and an older version of this
broker; and the builds of this broker beside one another.

Everything is measured in the same run, and those that are compared follow one another. A ratio is that of a round, and
the table shows the median of the rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.result import METRICS, with_unit
from bench.brokers import BROKERS, present
from bench.comparison import OWN, failures, notes
from bench.driver import Measured, measure
from bench.own import Older
from bench.part import VERDICTS, Extent, Part, Say, Table

CPU: Final = "cpu_s_per_million"
RATE: Final = "messages_per_second"
P50: Final = "p50_us"
HEAD: Final = ("", "row", "measured", "compared with", "ours", "theirs", "ratio", "goal", "")
TITLES: Final = {broker.name: broker.title for broker in BROKERS}


@dataclass(frozen=True, slots=True)
class Goal:
    """Our value of a metric, divided by that of ``peer`` in the same scenario, or in another (``of``).

    What costs is at most ``times``, a rate at least; None is a comparison without a goal.
    """

    scenario: str
    metric: str
    peer: str
    times: float | None = None
    of: str | None = None

    @property
    def other(self) -> str:
        """The scenario of the peer."""
        return self.of or self.scenario

    def text(self) -> str:
        """For the table."""
        if self.times is None:
            return ""
        return f"{'≥' if METRICS[self.metric].more_is_better else '≤'} {self.times:g} ×"

    def met(self, ratio: float) -> bool | None:
        """Is it good enough?"""
        if self.times is None:
            return None
        return ratio >= self.times if METRICS[self.metric].more_is_better else ratio <= self.times


GOALS: Final = (
    Goal("13", CPU, "older", 0.55),
    Goal("13", CPU, "relay", 4.5),
    Goal("4", P50, "older", 0.75),
    Goal("4", P50, "redis", 1),
    Goal("11", CPU, "older", 0.55),
    Goal("11", RATE, "artemis", 2.5),
    Goal("11", RATE, "redis", 0.6),
    Goal("8", CPU, "older", 0.55),
    Goal("8", CPU, "artemis", 0.4),
    Goal("8", CPU, "relay", 4.5),
    Goal("2", CPU, "older", 0.6),
    Goal("2", RATE, "artemis", 6),
    Goal("2", RATE, "nats", 0.8),
    Goal("1", CPU, "older", 0.75),
    Goal("1", RATE, "nats", 1),
    Goal("1w", CPU, OWN, 3, of="1"),
    Goal("6", CPU, "older", 0.7),
    Goal("3", CPU, "older", 0.8),
    Goal("3", RATE, "redis", 2),
)
BUILDS: Final = tuple(
    Goal(scenario, metric, peer)
    for scenario, metric in (("1", CPU), ("8", CPU), ("13", CPU), ("4", P50), ("11", CPU))
    for peer in ("interpreted", "asyncio")
)
"""As it runs here beside the same sources interpreted, and on asyncio's own loop."""


def wanted(goals: Sequence[Goal]) -> list[Goal]:
    """Those against an older version only where ``OLD`` names one."""
    return [goal for goal in goals if goal.peer != Older.name or Older.is_named()]


def pairs(goals: Sequence[Goal]) -> dict[str, set[str]]:
    """The brokers that are measured in each scenario."""
    found: dict[str, set[str]] = {}
    for goal in goals:
        found.setdefault(goal.scenario, {OWN})
        found.setdefault(goal.other, {OWN}).add(goal.peer)
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, and what was measured for it."""

    goal: Goal
    title: str
    own: float | None
    peer: str
    theirs: float | None
    ratio: float | None
    absent: bool

    @property
    def met(self) -> bool | None:
        """None where there was nothing to compare."""
        return None if self.ratio is None else self.goal.met(self.ratio)

    def cells(self) -> list[str]:
        """A row of the table."""
        goal = self.goal
        return [
            goal.scenario,
            self.title,
            "CPU per message" if goal.metric == CPU else METRICS[goal.metric].label.removesuffix(" µs"),
            self.peer,
            _shown(goal.metric, self.own),
            "absent" if self.absent else _shown(goal.metric, self.theirs),
            "" if self.ratio is None else f"{self.ratio:.2f} ×",
            goal.text(),
            VERDICTS[self.met],
        ]

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        goal = self.goal
        return {
            "scenario": goal.scenario,
            "row": self.title,
            "metric": goal.metric,
            "ours": self.own,
            "peer": goal.peer,
            "peer_scenario": goal.other,
            "peer_value": self.theirs,
            "ratio": self.ratio,
            "goal": goal.text(),
            "met": self.met,
        }


@dataclass(frozen=True, slots=True)
class Goals(Part):
    """What was measured for them, and which peers are not here."""

    goals: Sequence[Goal]
    found: Sequence[Measured]
    absent: Sequence[str]

    def judged(self) -> list[Judged]:
        """All goals, in their order; of those whose peer was not measured, what is known."""
        by_name = {one.broker.name: one for one in self.found}
        own = by_name[OWN]
        judged = []
        for goal in self.goals:
            peer = by_name.get(goal.peer)
            ours, theirs = _values(own, goal.scenario, goal.metric), _values(peer, goal.other, goal.metric)
            name = own.outcomes[goal.other].title if peer is own else TITLES[goal.peer]
            title = own.outcomes[goal.scenario].title
            ratio = _ratio(ours, theirs)
            judged.append(Judged(goal, title, _median(ours), name, _median(theirs), ratio, absent=peer is None))
        return judged

    @property
    def missed(self) -> list[str]:
        """The scenarios of goals that were not met."""
        return [one.goal.scenario for one in self.judged() if one.met is False]

    def tables(self) -> list[Table]:
        """One row for each, without the last two columns where nothing is promised."""
        columns = len(HEAD) if any(goal.times is not None for goal in self.goals) else len(HEAD) - 2
        return [Table([row[:columns] for row in (list(HEAD), *(one.cells() for one in self.judged()))], 4)]

    def notes(self) -> list[str]:
        """Versions and failures."""
        return notes(self.found, self.absent)

    def as_json(self) -> dict[str, object]:
        """For programs, with each round behind it."""
        return {
            "rows": [one.as_json() for one in self.judged()],
            "absent": list(self.absent),
            "versions": {one.broker.name: one.version for one in self.found},
            "rounds": {
                one.broker.name: {name: outcome.rounds for name, outcome in one.outcomes.items() if outcome.rounds}
                for one in self.found
            },
            "failures": failures(self.found),
        }


def measure_goals(goals: Sequence[Goal], extent: Extent, say: Say) -> Goals:
    """Starts each broker for each of its scenarios."""
    goals = wanted(goals)
    found, absent = present(list(dict.fromkeys((OWN, *(goal.peer for goal in goals)))))
    for line in absent:
        say(f"not measured: {line}")
    scenarios = pairs(goals)
    return Goals(goals, measure(found, list(scenarios), extent.options, extent.rounds, say, scenarios), absent)


def _values(measured: Measured | None, scenario: str, metric: str) -> list[float]:
    if measured is None:
        return []
    return [values[metric] for values in measured.outcomes[scenario].rounds if values.get(metric)]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Of round by round; where one of them has failed, of the medians."""
    if not ours or not theirs:
        return None
    if len(ours) != len(theirs):
        return statistics.median(ours) / statistics.median(theirs)
    return statistics.median(own / other for own, other in zip(ours, theirs, strict=True))


def _shown(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    # A second for a million messages is a microsecond for one.
    return f"{value:,.2f} µs" if metric == CPU else with_unit(metric, value)
