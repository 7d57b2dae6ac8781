"""Single quantities over the rounds, such as those of the pipeline, and their table."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from bench.part import VERDICTS, Part, Table


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


@dataclass
class Findings(Part):
    """What was measured, and what could not be."""

    what: str
    """The head of the table."""
    found: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        """The promises that were not kept."""
        return [one.name for one in self.found if one.met is False]

    def tables(self) -> list[Table]:
        """One row for each."""
        head = [self.what, "", "target", ""]
        rows = [[one.name, one.shown(one.median), one.target(), VERDICTS[one.met]] for one in self.found]
        return [Table([head, *rows])] if rows else []

    def notes(self) -> list[str]:
        """The problems."""
        return [f"{problem[:1].upper()}{problem[1:]}." for problem in self.problems]

    def as_json(self) -> object:
        """Every round."""
        told = [{"name": one.name, "unit": one.unit, "values": one.values, "met": one.met} for one in self.found]
        return {"findings": told, "problems": self.problems}
