"""Steps that expect numbers, queues and addresses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

from tests.kit.process import eventually
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps.base import Step


@dataclass(frozen=True)
class Become(Step):
    """What its first field names gets the numbers of the others; None is not looked at."""

    def play(self, stage: ScenarioRun) -> None:
        (kind, name), *numbers = asdict(self).items()
        wanted = {key: value for key, value in numbers if value is not None}
        seen: dict[str, int] = {}
        times = 0

        def reached() -> bool:
            nonlocal seen, times
            counts = stage.broker.counts(kind, name)
            assert counts is not None or kind == "address", f"there is no queue {name}"
            seen = {key: value for key, value in (counts or {}).items() if key in wanted}
            times = times + 1 if seen == wanted else 0
            return times > int(stage.broker.kind.counts_twice and kind == "queue")

        try:
            eventually("counts", reached, bool, stage.wait_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {name} has {seen}, expected {wanted}") from None


@dataclass(frozen=True)
class Counts(Become):
    """The numbers of a queue."""

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


@dataclass(frozen=True)
class Routed(Become):
    """The numbers of an address."""

    address: str
    routed: int
    unrouted: int = 0


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
