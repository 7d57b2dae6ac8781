"""A part of the page: what was measured for one of its sections, for a terminal, for the document and for programs."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from artemis_py.perf.scenario import Options
from artemis_py.text_table import Column, text_of

Say = Callable[[str], None]
VERDICTS: Final[Mapping[bool | None, str]] = {None: "", True: "met", False: "NOT MET"}
"""How a table says whether a target is met; None where nothing is promised, or nothing was measured."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured. ``options`` is the load of a scenario; ``messages`` and ``segments`` are None unless the
    command line fixes them; ``quick`` is a look, which makes everything smaller.
    """

    options: Options
    rounds: int
    brokers: Sequence[str]
    quick: bool = False
    messages: int | None = None
    segments: int | None = None

    @property
    def seconds(self) -> float:
        """About how long a scenario is measured."""
        return self.options.seconds


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the head first; the first ``left`` columns stand to the left."""

    rows: Sequence[Sequence[str]]
    left: int = 1

    def text(self) -> str:
        """For a terminal."""
        head, *body = self.rows
        return text_of([Column(text, is_number=place >= self.left) for place, text in enumerate(head)], body)

    def markdown(self) -> str:
        """For the document."""
        head, *body = self.rows
        rule = [":--" if place < self.left else "--:" for place in range(len(head))]
        return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *body))


class Part(ABC):
    """Tables, and sentences that belong to them."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """What was measured."""

    def page_tables(self) -> list[Table]:
        """What the document has of them: all, unless a part leaves something to ``text`` and ``as_json``."""
        return self.tables()

    def notes(self) -> list[str]:
        """What to know of it: what is absent, what has failed."""
        return []

    @property
    def missed(self) -> list[str]:
        """The names of the targets that are not met."""
        return []

    @abstractmethod
    def as_json(self) -> object:
        """Every figure."""

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([table.text() for table in self.tables()] + ["\n".join(self.notes())]).rstrip()

    def section(self) -> str:
        """For the document."""
        return "\n\n".join([*(table.markdown() for table in self.page_tables()), *self.notes()])


@dataclass(slots=True)
class Finding:
    """One quantity over the rounds. ``at_least`` and ``below`` are what this project promises, if it does."""

    name: str
    unit: str
    digits: int = 0
    at_least: float | None = None
    below: float | None = None
    values: list[float] = field(default_factory=list)
    in_page: bool = True
    """Has the document a row of it?"""

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
        return self._table(self.found)

    def page_tables(self) -> list[Table]:
        """One row for each that the document has."""
        return self._table([one for one in self.found if one.in_page])

    def _table(self, found: Sequence[Finding]) -> list[Table]:
        head = [self.what, "", "target", ""]
        rows = [[one.name, one.shown(one.median), one.target(), VERDICTS[one.met]] for one in found]
        return [Table([head, *rows])] if rows else []

    def notes(self) -> list[str]:
        """The problems."""
        return [f"{problem[:1].upper()}{problem[1:]}." for problem in self.problems]

    def as_json(self) -> object:
        """Every round."""
        told = [{"name": one.name, "unit": one.unit, "values": one.values, "met": one.met} for one in self.found]
        return {"findings": told, "problems": self.problems}


class NotMeasured(Part):
    """A part that has failed as a whole."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def tables(self) -> list[Table]:
        """None."""
        return []

    def notes(self) -> list[str]:
        """Why."""
        return [f"Not measured: {self.reason}."]

    @property
    def missed(self) -> list[str]:
        """What is not measured is not met."""
        return [self.reason]

    def as_json(self) -> object:
        """The same."""
        return {"not measured": self.reason}
