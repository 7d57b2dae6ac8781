"""Steps that expect numbers, queues and addresses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

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
        _become(stage, "queue", self.queue, wanted)


def _become(stage: ScenarioRun, kind: str, name: str, wanted: dict[str, int]) -> None:
    seen: dict[str, int] = {}
    times = 0

    def reached() -> bool:
        nonlocal seen, times
        counts = stage.broker.counts(kind, name)
        assert counts is not None or kind == "address", f"there is no queue {name}"
        seen = {key: value for key, value in (counts or {}).items() if key in wanted}
        times = times + 1 if seen == wanted else 0
        return times > int(stage.broker.counts_twice and kind == "queue")

    try:
        eventually("counts", reached, bool, stage.wait_s)
    except AssertionError as error:
        raise AssertionError(f"{error}: {name} has {seen}, expected {wanted}") from None


@dataclass(frozen=True)
class Routed(Step):
    """The numbers of an address become these."""

    address: str
    routed: int
    unrouted: int = 0

    def play(self, stage: ScenarioRun) -> None:
        _become(stage, "address", self.address, {"routed": self.routed, "unrouted": self.unrouted})


@dataclass(frozen=True)
class Exists(Step):
    """There comes to be such a queue, or address, or no longer."""

    name: str
    yes: bool = True
    kind: str = "queue"

    def play(self, stage: ScenarioRun) -> None:
        is_so = lambda: (stage.broker.counts(self.kind, self.name) is not None) == self.yes  # noqa: E731
        eventually(f"{self}", is_so, bool, stage.wait_s)


AddressExists = partial(Exists, kind="address")
