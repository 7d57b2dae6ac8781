"""Scenario 9: the cost of an idle connection."""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack
from typing import Final

from artemis_py.errors import PerfError, StompError
from artemis_py.perf.link import Link
from artemis_py.perf.scenario import Run, Scenario

WARM_CONNECTIONS: Final = 10
SPARE_FILES: Final = 64


class Idle(Scenario):
    """Connects one after the other, each waiting for CONNECTED, and holds all of them."""

    id = "9"
    title = "idle connections"
    headline = "kb_per_connection"
    fresh = True

    def run(self, run: Run) -> dict[str, float]:
        """Connections per second, resident kB (1,000 bytes) per connection (with a known process)."""
        count = run.options.connections
        _allow_files(count + WARM_CONNECTIONS + SPARE_FILES)
        with ExitStack() as stack:
            for _ in range(WARM_CONNECTIONS):
                stack.enter_context(Link(run.target))
            before = None if run.process is None else run.process.usage().resident_bytes
            started = time.perf_counter()
            for number in range(count):
                stack.enter_context(_connect(run, number))
            metrics = {"connects_per_second": count / (time.perf_counter() - started)}
            if run.process is not None and before is not None:
                grown = run.process.usage().resident_bytes - before
                metrics["kb_per_connection"] = grown / count / 1000
                metrics |= run.resident_mb()
        return metrics


def _connect(run: Run, number: int) -> Link:
    run.progress.show(lambda: f"{number:,} of {run.options.connections:,} connected")
    try:
        return Link(run.target)
    except (PerfError, StompError) as error:
        raise PerfError(f"connection {number + 1} of {run.options.connections}: {error}") from error


def _allow_files(needed: int) -> None:
    """Raises the limit of open files as far as this process may. Raises PerfError if that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise PerfError(
            f"{needed} open files are needed, {hard} are allowed; raise `ulimit -n` or use fewer connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
