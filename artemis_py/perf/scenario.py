"""The base of all scenarios, their input, and how they run in rounds."""

from __future__ import annotations

import itertools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Final

from artemis_py.errors import PerfError, StompError
from artemis_py.perf.link import Link, Target
from artemis_py.perf.process import ProcessTree, machine_cpu_s, syncs_of
from artemis_py.perf.result import MEGABYTE, MILLION, Outcome, Progress

BATCH_FIRST: Final = 1_000
BATCH_LONG_ENOUGH_S: Final = 0.3
MESSAGES_MAX: Final = 20_000_000

_names = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Options:
    """The amount of load. None leaves the choice to the scenario.

    Without ``messages`` a scenario warms the broker up for ``warmup_s`` and then sends for about ``seconds`` at the
    measured rate, so that slow and fast brokers are measured equally long.
    """

    messages: int | None = None
    size: int | None = None
    seconds: float = 3.0
    warmup_s: float = 1.0
    limit_s: float = 120.0
    rate: float = 2000.0
    connections: int = 500
    consumers: int = 10
    neighbours: int = 20
    distinct: bool = False
    start_command: str | None = None
    directory: str = "."
    metrics_url: str | None = None


@dataclass(frozen=True, slots=True)
class _Clocks:
    """CPU seconds of the broker and of the whole machine, and the time, at one moment."""

    broker_s: float
    machine_s: float
    wall_s: float

    @classmethod
    def read(cls, process: ProcessTree) -> _Clocks:
        return cls(process.usage().cpu_s, machine_cpu_s(), time.perf_counter())


@dataclass(slots=True)
class Run:
    """One run of one scenario: the broker, the load, the process to watch (None: not known), the terminal."""

    target: Target
    options: Options = field(default_factory=Options)
    process: ProcessTree | None = None
    progress: Progress = field(default_factory=Progress)

    def destination(self, prefix: str) -> str:
        """A name that no earlier run used, so that left-over messages are not counted."""
        return f"{prefix}perf.{os.getpid()}.{time.time_ns() // 1_000_000}.{next(_names)}"

    def queue(self) -> str:
        """A fresh queue."""
        return self.destination(self.target.queue_prefix)

    def topic(self) -> str:
        """A fresh topic."""
        return self.destination(self.target.topic_prefix)

    def resident_mb(self) -> dict[str, float]:
        """The broker's resident memory now, as a metric; nothing without a known process."""
        return {} if self.process is None else {"resident_mb": self.process.usage().resident_bytes / MEGABYTE}

    @contextmanager
    def cpu(self, metrics: dict[str, float]) -> Iterator[Callable[[int], None]]:
        """Measures the CPU time of the block; call what it yields with the number of messages before the block ends."""
        counts: list[int] = []
        before = None if self.process is None else _Clocks.read(self.process)
        own = time.process_time()
        yield counts.append
        own = time.process_time() - own
        if not counts or counts[0] <= 0:
            return
        metrics["generator_cpu_s_per_million"] = own * MILLION / counts[0]
        if self.process is not None and before is not None:
            after = _Clocks.read(self.process)
            spent = after.broker_s - before.broker_s
            metrics["cpu_s_per_million"] = spent * MILLION / counts[0]
            others = after.machine_s - before.machine_s - spent - own
            cores = os.cpu_count() or 1
            metrics["other_load_percent"] = max(0.0, 100 * others / (after.wall_s - before.wall_s) / cores)

    @contextmanager
    def syncs(self, metrics: dict[str, float], count: Callable[[], int]) -> Iterator[None]:
        """Counts the broker's syncs during the block, if its metrics are known, for ``count()`` messages."""
        url = self.options.metrics_url
        before = None if url is None else syncs_of(url)
        yield
        after = None if url is None else syncs_of(url)
        if before is not None and after is not None and after > before:
            metrics["messages_per_sync"] = count() / (after - before)

    def need_receipts(self, scenario: str) -> None:
        """Raises PerfError if the broker is known to send none."""
        if not self.target.receipts:
            raise PerfError(f"scenario {scenario} needs receipts and cannot run without them")


class Scenario(ABC):
    """One kind of load.

    ``headline`` is the metric by which brokers are compared; ``fresh`` asks for a newly started broker.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    headline: ClassVar[str] = "messages_per_second"
    fresh: ClassVar[bool] = False
    needs_broker: ClassVar[bool] = True
    over_tls: ClassVar[bool] = False

    @abstractmethod
    def run(self, run: Run) -> dict[str, float]:
        """Measures once and returns metrics by name (``result.METRICS``). Raises PerfError."""


def warm_up(run: Run, batch: Callable[[int], float]) -> int:
    """Runs batches of growing size and returns how many messages to measure.

    ``batch(n)`` sends n messages and returns the seconds they took.
    """
    options = run.options
    if options.messages is not None:
        if options.warmup_s > 0:
            batch(max(1, options.messages // 10))
        return options.messages
    size, spent = BATCH_FIRST, 0.0
    while True:
        took = batch(size)
        spent += took
        if took >= BATCH_LONG_ENOUGH_S and spent >= options.warmup_s:
            break
        if took < BATCH_LONG_ENOUGH_S:
            size *= 2
    return min(MESSAGES_MAX, max(BATCH_FIRST, int(size / took * options.seconds)))


# ---- rounds ----------------------------------------------------------------------------------------------------------


def check_broker(target: Target) -> None:
    """Logs in once. Raises PerfError if that fails: then no scenario would succeed."""
    Link(target).goodbye()


def new_outcome(scenario: Scenario) -> Outcome:
    """An outcome without rounds yet."""
    return Outcome(scenario.id, scenario.title, scenario.headline)


def run_once(scenario: Scenario, run: Run, outcome: Outcome) -> None:
    """One round: its metrics, or why it failed, are added to ``outcome``."""
    run.progress.label = f"{scenario.id} {scenario.title}"
    try:
        if scenario.over_tls and run.target.trust is None:
            raise PerfError(f"scenario {scenario.id} is about TLS; give a URL stomp+ssl://host:port, and --trust")
        outcome.rounds.append(scenario.run(run))
    except (PerfError, StompError) as error:
        outcome.failures.append(str(error))
    finally:
        run.progress.clear()


def run_rounds(scenarios: Sequence[Scenario], run: Run, rounds: int) -> list[Outcome]:
    """All scenarios, ``rounds`` times over. A failed scenario is not tried again; the others continue."""
    outcomes = [new_outcome(scenario) for scenario in scenarios]
    for _ in range(rounds):
        for scenario, outcome in zip(scenarios, outcomes, strict=True):
            if not outcome.failures:
                run_once(scenario, run, outcome)
    return outcomes


def any_needs_broker(scenarios: Iterable[Scenario]) -> bool:
    """Whether a broker must be running before the first scenario."""
    return any(scenario.needs_broker for scenario in scenarios)
