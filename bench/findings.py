"""What the pipeline's benchmark measures, and its table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from artemis_py.perf.report import align
from bench.comparison import markdown


@dataclass(slots=True)
class Finding:
    """One quantity over the rounds. ``at_least`` and ``below`` are what this project promises, if it does."""

    name: str
    unit: str
    digits: int = 0
    at_least: float | None = None
    below: float | None = None
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """None when nothing was measured."""
        return statistics.median(self.values) if self.values else None

    @property
    def best(self) -> float | None:
        """The best round, which other load disturbed least."""
        if not self.values:
            return None
        return min(self.values) if self.unit not in MORE_IS_BETTER else max(self.values)

    @property
    def met(self) -> bool | None:
        """Does the median keep what is promised? None when nothing is, or nothing was measured."""
        value = self.median
        if value is None or (self.at_least is None and self.below is None):
            return None
        return value >= self.at_least if self.at_least is not None else value < (self.below or 0)

    def target(self) -> str:
        """For the table."""
        if self.at_least is not None:
            return f"≥ {self.shown(self.at_least)}"
        return "" if self.below is None else f"< {self.shown(self.below)}"

    def shown(self, value: float | None) -> str:
        """With its unit."""
        if value is None:
            return "-"
        gap = "" if self.unit.startswith("/") else " "
        return f"{value:,.{self.digits}f}{gap}{self.unit}"


MORE_IS_BETTER = frozenset({"/s"})


def rows(findings: Sequence[Finding]) -> list[list[str]]:
    """The table."""
    verdicts = {None: "", True: "met", False: "NOT MET"}
    head = ["pipeline", "median", "best", "target", ""]
    return [head] + [
        [one.name, one.shown(one.median), one.shown(one.best), one.target(), verdicts[one.met]] for one in findings
    ]


def text(findings: Sequence[Finding], problems: Sequence[str]) -> str:
    """For a terminal."""
    return "\n".join([*align(rows(findings), frozenset({0})), *problems])


def section(findings: Sequence[Finding], problems: Sequence[str]) -> list[str]:
    """For the document."""
    return [*markdown(rows(findings), 1), *(["", *(f"- {problem}" for problem in problems)] if problems else [])]


def as_json(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Every round."""
    return [{"name": one.name, "unit": one.unit, "values": one.values, "met": one.met} for one in findings]
