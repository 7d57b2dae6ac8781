"""Part ``fairness``: what a leased message costs by fairness model and number of subscriptions.

All queues of a model are measured in turns in one process, in CPU time, so that a busy machine disturbs all alike. The
table has medians; each ratio is the median of the ratios of the turns.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from artemis_py.perf.fairness import LeasedQueue
from bench.part import Extent, Part, Say, Table

DEPTH: Final = 100_000
SUBSCRIPTIONS: Final = (1, 100, 1_000)
MODELS: Final = ("fast", "round-robin", "proportional")
_STEPS: Final = {
    "arrive_us": "arrive", "dispatch_us": "dispatch", "lease_us": "lease", "acknowledge_us": "acknowledge",
}  # fmt: skip
_LAPSE: Final = {"lapse_us": "expire", "again_us": "again"}
_APART: Final = {"single_us": "alone"}
Costs = dict[int, dict[str, list[float]]]
"""Seconds of each step for each message, of each round, by the number of subscriptions."""


def measure(model: str, depth: int, rounds: int) -> Costs:
    """A queue for each number of subscriptions, by turns."""
    queues = {subscriptions: LeasedQueue(depth, subscriptions, model) for subscriptions in SUBSCRIPTIONS}
    found: Costs = {subscriptions: {} for subscriptions in SUBSCRIPTIONS}
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for _ in range(rounds):
            for subscriptions, queue in queues.items():
                queue.measure(found[subscriptions])
    finally:
        gc.enable()
        gc.unfreeze()
    for spent in found.values():
        spent["together"] = _sums(spent, _STEPS)
        spent["with an expiry"] = _sums(spent, (*_STEPS, *_LAPSE))
    return found


def _sums(spent: dict[str, list[float]], names: Iterable[str]) -> list[float]:
    return [sum(some) for some in zip(*[spent[name] for name in names], strict=True)]


def rows_of(model: str, found: Costs) -> list[list[str]]:
    """The rows of a model; the others are compared with the first."""
    first = next(iter(found.values()))
    rows = []
    for subscriptions, spent in found.items():
        row = [model, f"{subscriptions:,}"]
        for names in ((*_APART, *_STEPS, "together"), (*_LAPSE, "with an expiry")):
            pairs = zip(spent[names[-1]], first[names[-1]], strict=True)
            row += [f"{statistics.median(spent[name]) * 1e6:.2f}" for name in names]
            row.append(f"{statistics.median(one / other for one, other in pairs):.2f}")
        rows.append(row)
    return rows


@dataclass
class Fairness(Part):
    """All models."""

    rows: list[list[str]]

    def tables(self) -> list[Table]:
        """One row for each model and number of subscriptions."""
        head = [
            "µs per message",
            "subscriptions",
            *_APART.values(),
            *_STEPS.values(),
            "together",
            "to one subscription",
        ]
        head += [*_LAPSE.values(), "with an expiry", "to one subscription"]
        return [Table([head, *self.rows])]

    def as_json(self) -> object:
        """The same cells."""
        return self.rows


def measure_fairness(extent: Extent, say: Say) -> Fairness:
    """Every model with every number of subscriptions, on a queue of one depth."""
    depth = extent.messages or (DEPTH // 10 if extent.quick else DEPTH)
    rows: list[list[str]] = []
    for model in MODELS:
        say(f"fairness: {model}")
        rows += rows_of(model, measure(model, depth, 2 * extent.rounds + 1))
    return Fairness(rows)
