"""What a message may cost: goals against an older version of this broker, against brokers, and against a relay in C.

Everything is measured in the same run, and those that are compared follow one another. A ratio is that of a round, and
the table shows the median of the rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from artemis_py.perf.report import with_unit
from artemis_py.perf.result import METRICS
from artemis_py.perf.scenario import Options
from bench.brokers import BROKERS, present
from bench.comparison import OWN, failures, markdown, other_load
from bench.driver import Measured, measure

CPU: Final = "cpu_s_per_million"
RATE: Final = "messages_per_second"
P50: Final = "p50_us"
GOAL: Final = "goals"
"""What they are called among scenarios."""
HEAD: Final = ("", "row", "measured", "compared with", "ours", "theirs", "ratio", "goal", "")
LEFT: Final = 4
"""How many columns stand to the left."""
TITLES: Final = {broker.name: broker.title for broker in BROKERS}
VERDICTS: Final[Mapping[bool | None, str]] = {None: "", True: "met", False: "NOT MET"}
_WIDE: Final = 200


@dataclass(frozen=True, slots=True)
class Goal:
    """Our value of a metric, divided by that of ``peer`` in the same scenario, or in another (``of``).

    What costs is at most ``times``, a rate at least.
    """

    scenario: str
    metric: str
    peer: str
    times: float
    of: str | None = None

    @property
    def other(self) -> str:
        """The scenario of the peer."""
        return self.of or self.scenario

    def text(self) -> str:
        """For the table."""
        return f"{'≥' if METRICS[self.metric].more_is_better else '≤'} {self.times:g} ×"

    def met(self, ratio: float) -> bool:
        """Is it good enough?"""
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


def pairs() -> dict[str, set[str]]:
    """The brokers that are measured in each scenario."""
    found: dict[str, set[str]] = {}
    for goal in GOALS:
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
class Goals:
    """What was measured for them, and which peers are not here."""

    found: Sequence[Measured]
    absent: Sequence[str]

    def judged(self) -> list[Judged]:
        """All goals, in their order; of those whose peer was not measured, what is known."""
        by_name = {one.broker.name: one for one in self.found}
        own = by_name[OWN]
        judged = []
        for goal in GOALS:
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

    def text(self) -> str:
        """For a terminal."""
        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=_WIDE)
        table = Table()
        for place, name in enumerate(HEAD):
            table.add_column(name, justify="left" if place < LEFT else "right")
        scenario = GOALS[0].scenario
        for one in self.judged():
            if one.goal.scenario != scenario:
                table.add_section()
                scenario = one.goal.scenario
            table.add_row(*one.cells(), style={None: "dim", True: None, False: "bold red"}[one.met])
        with console.capture() as captured:
            console.print(table)
        return "\n".join([captured.get().rstrip(), *self._notes()])

    def section(self) -> list[str]:
        """In Markdown, for the document."""
        rows = [list(HEAD), *(one.cells() for one in self.judged())]
        return [*markdown(rows, LEFT), *(line for note in self._notes() for line in ("", note))]

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

    def _notes(self) -> list[str]:
        load = other_load(self.found)
        return [
            ", ".join(f"{one.broker.title} {one.version}" for one in self.found) + ".",
            *([f"{load}."] if load else []),
            *(f"Not measured: {line}." for line in self.absent),
            *(f"Failure: {line}" for line in failures(self.found)),
        ]


def measure_goals(options: Options, rounds: int, say: Callable[[str], None]) -> Goals:
    """Starts each broker for each of its scenarios. Every round costs about three minutes."""
    found, absent = present(list(dict.fromkeys((OWN, *(goal.peer for goal in GOALS)))))
    for line in absent:
        say(f"not measured: {line}")
    return Goals(measure(found, list(pairs()), options, rounds, say, pairs()), absent)


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
