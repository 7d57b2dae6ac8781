"""What this project promises: the figures that ``make bench`` must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.result import with_unit
from bench.broker import DURABLE


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
class AtLeastOf:
    """No less than ``limit`` in the unit of the headline, whatever peers do."""

    limit: float

    def text(self, metric: str) -> str:
        """For tables."""
        return f"≥ {with_unit(metric, self.limit)}"

    def met(self, own: float, ratio: float | None) -> bool | None:
        """Compares with the limit."""
        return own >= self.limit


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


@dataclass(frozen=True, slots=True)
class AtMost:
    """No more than ``limit`` in the unit of the headline, whatever peers do."""

    limit: float

    def text(self, metric: str) -> str:
        """For tables."""
        return f"≤ {with_unit(metric, self.limit)}"

    def met(self, own: float, ratio: float | None) -> bool | None:
        """Compares with the limit."""
        return own <= self.limit


TRANSIENT_PEERS: Final = frozenset({"activemq", "coilmq"})
DURABLE_PEERS: Final = frozenset({"rabbitmq", "artemis"})


def peers_of(scenario: str) -> frozenset[str]:
    """The names of the brokers that artemis_py is compared with: in durable scenarios those that sync."""
    return DURABLE_PEERS if scenario in DURABLE else TRANSIENT_PEERS


TARGETS: Final[Mapping[str, AtLeast | AtLeastOf | AtMost | Below]] = {
    "1": AtLeast(3),
    "1u": AtLeast(2),
    "2": AtLeast(3),
    "3": AtLeast(5),
    "3i": AtLeast(4),
    "4": AtMost(1.6),
    "5": AtLeast(5),
    "6": AtLeast(3),
    "7": Below(400),
    "8": Below(500),
    "9": Below(5),
    "10": Below(300),
    "11": AtLeast(5),
    "recovery": AtLeastOf(200_000),
}
