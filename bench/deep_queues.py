"""Scenario ``depth``: what a message costs on a queue that holds a thousand, a hundred thousand and a million."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.registry import SCENARIOS, choose
from artemis_py.perf.result import METRICS
from bench.part import VERDICTS, Extent, Part, Say, Table

DEPTHS: Final = (1_000, 100_000, 1_000_000)
_WITHIN_LOGARITHM: Final = frozenset({"depth-priority", "depth-sorted", "depth-last-value"})
_LIMIT_S: Final = 600.0
_FLAT: Final = 1.5
"""How much dearer a message may be at the greatest depth where the depth should not matter: a thousand messages are in
the processor's caches, a million are not.
"""


@dataclass
class Growth:
    """What each operation costs in µs on one type of queue, by depth."""

    scenario: str
    title: str
    costs_us: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """What all operations together cost at the greatest depth, in units of that at the smallest."""
        least, most = (sum(self.costs_us[depth].values()) for depth in (min(self.costs_us), max(self.costs_us)))
        return most / least

    @property
    def ratio_max(self) -> float:
        """What is promised: the same at every depth, or, where a place is searched for, within the logarithm."""
        if self.scenario not in _WITHIN_LOGARITHM:
            return _FLAT
        return max(_FLAT, math.log(max(self.costs_us)) / math.log(min(self.costs_us)))

    @property
    def met(self) -> bool:
        """Is it kept?"""
        return self.ratio <= self.ratio_max


@dataclass
class DeepQueues(Part):
    """All types of queues."""

    found: list[Growth]

    @property
    def missed(self) -> list[str]:
        """The promises that were not kept."""
        return [one.scenario for one in self.found if not one.met]

    def tables(self) -> list[Table]:
        """One for all that have the same operations, nearly."""
        groups = [one for one in self.found if "group" in one.scenario]
        types = [one for one in self.found if one not in groups]
        return [Table(_rows(some)) for some in (types, groups) if some]

    def as_json(self) -> list[dict[str, Any]]:
        """Every figure."""
        return [
            {"scenario": one.scenario, "costs_us": one.costs_us, "ratio": one.ratio, "met": one.met}
            for one in self.found
        ]


def measure_depths(extent: Extent, say: Say) -> DeepQueues:
    """Each type at each depth, so many rounds, each time in a new process. Raises PerfError when one fails."""
    depths, rounds = DEPTHS[:2] if extent.quick else DEPTHS, extent.rounds
    found = [Growth(one.id, one.title) for one in choose([name for name in SCENARIOS if name.startswith("depth-")])]
    for one in found:
        for depth in depths:
            say(f"depth: {one.title}, {depth:,} entries")
            told = [_costs_us(one.scenario, depth) for _ in range(rounds)]
            one.costs_us[depth] = {name: statistics.median(costs[name] for costs in told) for name in told[0]}
    return DeepQueues(found)


def _costs_us(scenario: str, depth: int) -> Mapping[str, float]:
    command = [sys.executable, "-m", "artemis_py", "perf", "--scenario", scenario, "--messages", str(depth), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if not done.stdout:
        raise PerfError(f"{scenario} at {depth:,}: {done.stderr.strip()}")
    told = json.loads(done.stdout)["results"][0]
    if told["failures"]:
        raise PerfError(f"{scenario} at {depth:,}: {told['failures'][0]}")
    return {name: value for name, value in told["median"].items() if name.endswith("_us")}


def _rows(found: Sequence[Growth]) -> list[list[str]]:
    depths = list(found[0].costs_us)
    names = [name for name in METRICS if any(name in one.costs_us[depths[0]] for one in found)]
    growth = f"together, {depths[-1]:,} : {depths[0]:,}"
    rows = [["µs per message", "entries", *(METRICS[name].label for name in names), growth, "target", ""]]
    for one in found:
        for depth in depths:
            last = depth == depths[-1]
            verdict = [f"{one.ratio:.2f}", f"≤ {one.ratio_max:.1f}", VERDICTS[one.met]]
            costs = one.costs_us[depth]
            cells = [f"{costs[name]:.2f}" if name in costs else "" for name in names]
            rows.append([one.title, f"{depth:,}", *cells, *(verdict if last else ["", "", ""])])
    return rows
