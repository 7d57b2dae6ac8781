"""What this project promises: the figures that ``make bench`` must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.report import with_unit


@dataclass(frozen=True, slots=True)
class AtLeast:
    """So many times as good as the better peer."""

    times: float

    def text(self, metric: str) -> str:
        """For tables."""
        return f"≥ {self.times:g} ×"

    def met(self, own: float, ratio: float | None) -> bool | None:
        """None when there was no peer to compare with."""
        return None if ratio is None else ratio >= self.times


@dataclass(frozen=True, slots=True)
class Below:
    """Less than ``limit`` in the unit of the headline, whatever peers do."""

    limit: float

    def text(self, metric: str) -> str:
        """For tables."""
        return f"< {with_unit(metric, self.limit)}"

    def met(self, own: float, ratio: float | None) -> bool | None:
        """Compares with the limit."""
        return own < self.limit


TARGETS: Final[Mapping[str, AtLeast | Below]] = {
    "1": AtLeast(3),
    "1u": AtLeast(2),
    "2": AtLeast(3),
    "5": AtLeast(5),
    "6": AtLeast(3),
    "7": Below(400),
    "8": Below(500),
    "9": Below(5),
    "10": Below(300),
}
