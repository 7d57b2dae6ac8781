"""Steps that expect messages, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.oracle.scenario_run import ScenarioRun, prove_alive
from tests.oracle.steps.base import Step
from tests.oracle.values import Expected, check_headers


@dataclass(frozen=True)
class Messages(Step):
    """The next messages of a connection are these, in this order, each with these headers."""

    bodies: tuple[str | bytes, ...]
    who: str = "c"
    headers: Mapping[str, Expected] = field(default_factory=dict)

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        for body in self.bodies:
            frame = client.message(stage.wait_s)
            assert frame is not None, f"{body!r} does not come"
            seen = frame.body if isinstance(body, bytes) else frame.text
            assert seen == body, f"{body[:80]!r} should come next, not {seen[:80]!r}: {dict(frame.headers)}"
            check_headers(frame, self.headers, stage)
            client.delivered[frame.text] = frame


def messages(*bodies: str | bytes, who: str = "c", headers: Mapping[str, Expected] | None = None) -> Messages:
    """``Messages`` that read well in a table."""
    return Messages(bodies, who, headers or {})


@dataclass(frozen=True)
class AnyOrder(Step):
    """The next messages of a connection are these, in any order."""

    bodies: tuple[str, ...]
    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        seen: list[str] = []
        for _ in self.bodies:
            frame = client.message(stage.wait_s)
            assert frame is not None, f"only {seen} come"
            client.delivered[frame.text] = frame
            seen.append(frame.text)
        assert sorted(seen) == sorted(self.bodies), f"others come: {seen}"


@dataclass(frozen=True)
class Nothing(Step):
    """No message comes."""

    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        client, quiet_s = stage.client(self.who), stage.broker.kind.quiet_s
        if not quiet_s:
            prove_alive(client)
        frame = client.message(quiet_s)
        assert frame is None, f"nothing should come: {frame}"
