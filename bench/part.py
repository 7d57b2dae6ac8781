"""A part of the page: what was measured for one of its sections, for a terminal, for the document and for programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.scenario import Options
from artemis_py.table import Column, text_of

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
        return "\n\n".join([*(table.markdown() for table in self.tables()), *self.notes()])


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
