"""What a step is; steps for one broker or the other; playing them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tests.oracle.brokers import OURS, BrokerUnderTest
from tests.oracle.client import WAIT_S
from tests.oracle.scenario_run import ScenarioRun


class Step(ABC):
    """One line of a scenario."""

    @abstractmethod
    def play(self, stage: ScenarioRun) -> None:
        """Does it. Raises AssertionError when the broker does not do its part."""


@dataclass(frozen=True)
class Either(Step):
    """Steps for our broker, and others for Artemis, which departs on purpose."""

    ours: tuple[Step, ...]
    artemis: tuple[Step, ...]

    def play(self, stage: ScenarioRun) -> None:
        play(self.ours if stage.broker.kind == OURS else self.artemis, stage)


def perform(steps: tuple[Step, ...], broker: BrokerUnderTest, wait_s: float = WAIT_S, *, waits: bool = True) -> None:
    """Plays steps on a broker; nobody is connected afterwards."""
    stage = ScenarioRun(broker, wait_s, waits)
    try:
        play(steps, stage)
    finally:
        for client in stage.clients.values():
            client.close()


def play(steps: tuple[Step, ...], stage: ScenarioRun) -> None:
    """Plays steps in order; a failure says which step it was."""
    for number, step in enumerate(steps, 1):
        try:
            step.play(stage)
        except (AssertionError, OSError) as error:
            raise AssertionError(f"step {number}, {step}: {error}") from error
