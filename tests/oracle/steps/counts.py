"""Steps that expect numbers, queues and addresses."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tests.kit.process import eventually
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps.base import Step


@dataclass(frozen=True)
class Counts(Step):
    """The numbers of a queue become these; None is not looked at."""

    queue: str
    messages: int | None = None
    delivering: int | None = None
    scheduled: int | None = None
    replaced: int | None = None
    added: int | None = None
    acknowledged: int | None = None
    killed: int | None = None
    expired: int | None = None
    consumers: int | None = None

    def play(self, stage: ScenarioRun) -> None:
        wanted = {name: value for name, value in asdict(self).items() if value is not None and name != "queue"}
        seen: dict[str, int] = {}
        times = 0

        def reached() -> bool:
            nonlocal seen, times
            counts = stage.broker.queue(self.queue)
            assert counts is not None, f"there is no queue {self.queue}"
            seen = {name: value for name, value in asdict(counts).items() if name in wanted}
            times = times + 1 if seen == wanted else 0
            return times > int(stage.broker.counts_twice)

        try:
            eventually("counts", reached, bool, stage.wait_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.queue} has {seen}, expected {wanted}") from None


@dataclass(frozen=True)
class Routed(Step):
    """The numbers of an address become these."""

    address: str
    routed: int
    unrouted: int = 0

    def play(self, stage: ScenarioRun) -> None:
        seen: object = None

        def reached() -> bool:
            nonlocal seen
            seen = stage.broker.address(self.address)
            return seen is not None and asdict(seen) == {"routed": self.routed, "unrouted": self.unrouted}

        try:
            eventually("counts", reached, bool, stage.wait_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}, expected {self}") from None


@dataclass(frozen=True)
class Exists(Step):
    """There comes to be such a queue, or no longer."""

    queue: str
    yes: bool = True

    def play(self, stage: ScenarioRun) -> None:
        eventually(f"{self}", lambda: (stage.broker.queue(self.queue) is not None) == self.yes, bool, stage.wait_s)


@dataclass(frozen=True)
class AddressExists(Step):
    """There comes to be such an address, or no longer."""

    address: str
    yes: bool = True

    def play(self, stage: ScenarioRun) -> None:
        eventually(f"{self}", lambda: (stage.broker.address(self.address) is not None) == self.yes, bool, stage.wait_s)
