"""The table of scenarios. A new one is a class in its own module and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import Durable, DurableIndividual
from artemis_py.perf.latency import (
    Latency,
    LatencyTls,
    NeighboursCrLf,
    NeighboursHeaders,
    NeighboursSelectors,
    NeighboursTiny,
)
from artemis_py.perf.memory import Backlog, Idle
from artemis_py.perf.scenario import Scenario
from artemis_py.perf.startup import Recovery, Startup
from artemis_py.perf.streams import (
    FanOut,
    Lanes,
    LanesSingle,
    Transient,
    TransientLarge,
    TransientSingle,
    TransientTls,
    TransientUnique,
    TransientWebSocket,
)
from artemis_py.perf.sync import DurableSync, DurableSyncProducers, SyncProducer, SyncProducers

SCENARIOS: Final[dict[str, type[Scenario]]] = {
    scenario.id: scenario
    for scenario in (
        Transient,
        TransientUnique,
        TransientSingle,
        TransientLarge,
        TransientTls,
        TransientWebSocket,
        Durable,
        DurableIndividual,
        DurableSync,
        FanOut,
        Lanes,
        LanesSingle,
        Backlog,
        Latency,
        LatencyTls,
        Idle,
        Startup,
        DurableSyncProducers,
        SyncProducers,
        SyncProducer,
        Recovery,
        NeighboursTiny,
        NeighboursCrLf,
        NeighboursHeaders,
        NeighboursSelectors,
    )
}
DEFAULT: Final = ("1", "1u", "2", "5", "6", "7", "8", "9")


def choose(names: Sequence[str]) -> list[Scenario]:
    """One of each named scenario, in the order given; ``all`` is all of them. Raises PerfError for an unknown name."""
    wanted = list(SCENARIOS) if list(names) == ["all"] else names
    unknown = [name for name in wanted if name not in SCENARIOS]
    if unknown:
        raise PerfError(f"unknown scenario {', '.join(unknown)}; the scenarios are {', '.join(SCENARIOS)}, or all")
    return [SCENARIOS[name]() for name in wanted]
