"""Starts one broker after the other, runs the scenarios, and takes turns, so that noise hits all alike."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.registry import choose
from artemis_py.perf.result import Outcome, Progress
from artemis_py.perf.scenario import Options, Run, Scenario, new_outcome, run_once
from artemis_py.perf.startup import running
from bench.broker import Broker
from tests.kit.ports import free_port

START_LIMIT_S: Final = 60.0
WARM_UP_S: Final = 6.0


@dataclass(slots=True)
class Measured:
    """One broker and its outcomes by scenario id."""

    broker: Broker
    version: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def headline(self, scenario: str) -> float | None:
        """The median of the scenario's headline metric, None when it was not measured."""
        outcome = self.outcomes.get(scenario)
        return None if outcome is None else outcome.median(outcome.headline)


def measure(
    brokers: Sequence[Broker],
    names: Sequence[str],
    options: Options,
    rounds: int,
    say: Callable[[str], None],
    pairs: Mapping[str, Collection[str]] | None = None,
) -> list[Measured]:
    """All scenarios with all brokers, ``rounds`` times: A, B, C, A, B, C … A failure is kept in its outcome.

    With ``pairs`` a scenario is only for the brokers named there, and each has a start of its own: those that are
    compared follow one another.
    """
    groups = group(choose(names)) if pairs is None else [[scenario] for scenario in choose(names)]
    found = [Measured(broker, broker.version()) for broker in brokers]
    for measured in found:
        for scenario in (scenario for members in groups for scenario in members):
            measured.outcomes[scenario.id] = new_outcome(scenario)
    for number in range(1, rounds + 1):
        for members in groups:
            for measured in found:
                broker = measured.broker
                if pairs is not None and broker.name not in pairs[members[0].id]:
                    continue
                if wanted := [asked for one in members if (asked := broker.scenario(one.id)) is not None]:
                    ids = " ".join(scenario.id for scenario in wanted)
                    say(f"round {number} of {rounds}: {broker.title}, scenario {ids}")
                    _measure_group(measured, wanted, options)
    return found


def group(scenarios: Sequence[Scenario]) -> list[list[Scenario]]:
    """Scenarios that may share one start of the broker; those that ask for a fresh one stand alone, and those over TLS
    share a start with a port for it.
    """
    alone = [[scenario] for scenario in scenarios if scenario.fresh or not scenario.needs_broker]
    rest = [scenario for scenario in scenarios if scenario.needs_broker and not scenario.fresh]
    plain = [scenario for scenario in rest if not scenario.over_tls]
    encrypted = [scenario for scenario in rest if scenario.over_tls]
    return alone + [members for members in (plain, encrypted) if members]


def _measure_group(measured: Measured, wanted: Sequence[Scenario], options: Options) -> None:
    broker = measured.broker
    port = free_port()
    progress = Progress()
    progress.label = broker.title
    with tempfile.TemporaryDirectory(prefix=f"bench-{broker.name}-", ignore_cleanup_errors=True) as home:
        try:
            command = broker.command(Path(home), port, tls=wanted[0].over_tls)
            run = Run(
                broker.target(port),
                replace(options, start_command=shlex.join(command), directory=home, metrics_url=broker.metrics_url()),
                None,
                progress,
            )
            if not wanted[0].needs_broker:
                run_once(wanted[0], run, measured.outcomes[wanted[0].id])
                return
            with running(command, run.target, START_LIMIT_S, progress.show, broker.link) as started:
                run.process = ProcessTree(started.pid)
                target = broker.tls if wanted[0].over_tls else run.target
                if target is None:
                    return
                run.target = target
                if broker.gets_faster and not wanted[0].fresh:
                    warm_up(run, wanted[0])
                for scenario in wanted:
                    run_once(scenario, run, measured.outcomes[scenario.id])
        except PerfError as error:
            for scenario in wanted:
                measured.outcomes[scenario.id].failures.append(str(error))
        finally:
            progress.clear()


def warm_up(run: Run, scenario: Scenario) -> None:
    """Load that is not measured, of the first scenario: a virtual machine needs some seconds to compile what is hot."""
    longer = replace(run.options, messages=None, seconds=max(WARM_UP_S, run.options.seconds))
    run_once(scenario, replace(run, options=longer), new_outcome(scenario))
