"""Part ``replays``: how long a message takes beside a hundred replays of the log, and without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from artemis_py.perf.registry import choose
from artemis_py.perf.replays import HISTORY_MESSAGES
from bench.findings import Finding, Findings
from bench.own import Retaining, started
from bench.part import Extent, Say

RATIO_MAX: Final = 1.5
"""The 99th percentile beside replays may be so many times that without them, in the same run."""


def measure_replays(extent: Extent, say: Say) -> Findings:
    """So many rounds, each with a log of its own. Raises PerfError."""
    replays = Findings("beside 100 replays")
    quantities = {
        "p50_us": Finding("p50 beside them", "µs"),
        "p99_us": Finding("p99 beside them", "µs"),
        "p99_alone_us": Finding("p99 alone", "µs"),
        "p99_ratio": Finding("p99 beside them : alone, median of five turns", "×", 2, below=RATIO_MAX),
        "replayed_mb_per_second": Finding("all replays together", "MB/s"),
    }
    replays.found += quantities.values()
    [scenario] = choose(["replays"])
    for number in range(1, extent.rounds + 1):
        say(f"replays: round {number} of {extent.rounds}")
        with started(Retaining(), extent.seconds) as broker:
            options = replace(broker.run.options, messages=extent.messages or HISTORY_MESSAGES)
            found = scenario.run(replace(broker.run, options=options))
        for name, one in quantities.items():
            one.values.append(found[name])
    return replays
