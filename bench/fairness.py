"""``python -m bench.fairness``: what a leased message costs by fairness model, depth and number of subscriptions.

All queues of a model are measured in turns in one process, in CPU time, so that a busy machine disturbs all alike. The
table has medians; each ratio is the median of the ratios of the turns. Messages/s is what one processor does of all
four steps together. "With a lapse" is a message whose lease ends once before another consumer acknowledges it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from artemis_py.perf.fairness import LeasedQueue
from artemis_py.shown import say
from bench.comparison import markdown

MODELS: Final = ("fast", "round-robin", "proportional")
_STEPS: Final = {
    "arrive_us": "arrive", "dispatch_us": "dispatch", "lease_us": "lease", "acknowledge_us": "acknowledge",
}  # fmt: skip
_LAPSE: Final = {"lapse_us": "lapse", "again_us": "again"}
_APART: Final = {"single_us": "alone"}
Place = tuple[int, int]
"""Entries and subscriptions."""


def measure(model: str, places: Sequence[Place], rounds: int) -> dict[Place, dict[str, list[float]]]:
    """Seconds of each step for each message, of each round."""
    queues = {place: LeasedQueue(*place, model) for place in places}
    found: dict[Place, dict[str, list[float]]] = {place: {} for place in places}
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for _ in range(rounds):
            for place, queue in queues.items():
                queue.measure(found[place])
    finally:
        gc.enable()
        gc.unfreeze()
    for spent in found.values():
        spent["together"] = _sums(spent, _STEPS)
        spent["with a lapse"] = _sums(spent, (*_STEPS, *_LAPSE))
    return found


def _sums(spent: dict[str, list[float]], names: Iterable[str]) -> list[float]:
    return [sum(some) for some in zip(*[spent[name] for name in names], strict=True)]


def rows_of(model: str, found: dict[Place, dict[str, list[float]]]) -> list[list[str]]:
    """The rows of a model; the first place is what the others are compared with."""
    first = next(iter(found.values()))
    rows = []
    for (depth, subscriptions), spent in found.items():
        row = [model, f"{depth:,}", f"{subscriptions:,}"]
        for names in ((*_APART, *_STEPS, "together"), (*_LAPSE, "with a lapse")):
            pairs = zip(spent[names[-1]], first[names[-1]], strict=True)
            row += [f"{statistics.median(spent[name]) * 1e6:.2f}" for name in names]
            row.append(f"{statistics.median(one / other for one, other in pairs):.2f}")
        rows.append([*row, f"{1 / statistics.median(spent['together']):,.0f}"])
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--depths", default="1000,1000000", help="with commas between (default %(default)s)")
    parser.add_argument("--subscriptions", default="1,10,100,1000", help="with commas between (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", default=",".join(MODELS), help="with commas between (default %(default)s)")
    options = parser.parse_args(argv)
    depths = [int(each) for each in options.depths.split(",")]
    subscriptions = [int(each) for each in options.subscriptions.split(",")]
    head = ["fairness", "entries", "subscriptions"]
    head += [*_APART.values(), *_STEPS.values(), "together", "of the first row"]
    head += [*_LAPSE.values(), "with a lapse", "of the first row", "messages/s"]
    rows = [head]
    for model in options.models.split(","):
        rows += rows_of(model, measure(model, list(product(depths, subscriptions)), options.rounds))
    for line in markdown(rows, 1):
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
