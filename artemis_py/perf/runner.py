"""Runs scenarios in rounds and collects their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artemis_py.errors import PerfError, StompError
from artemis_py.perf.link import Link
from artemis_py.perf.result import Outcome
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.perf.target import Target


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
