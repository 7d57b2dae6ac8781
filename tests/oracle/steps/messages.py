"""Steps that expect messages, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.oracle.scenario_run import ScenarioRun, prove_alive
from tests.oracle.steps.base import Step
from tests.oracle.values import Expected, check_headers


@dataclass(frozen=True)
class Messages(Step):
    """The next messages of a connection are these, in this order or in any, each with these headers."""

    bodies: tuple[str | bytes, ...]
    who: str = "c"
    headers: Mapping[str, Expected] = field(default_factory=dict)
    in_order: bool = True

    def play(self, stage: ScenarioRun) -> None:
        client, left = stage.client(self.who), [*self.bodies]
        while left:
            frame = client.message()
            text = frame.body.decode(errors="replace")
            seen = frame.body if isinstance(left[0], bytes) else text
            wanted = left[:1] if self.in_order else left
            assert seen in wanted, f"{wanted[0][:80]!r} should come next, not {seen[:80]!r}: {frame.headers}"
            check_headers(frame, self.headers, stage)
            stage.delivered[client, text] = frame
            left.remove(seen)


def messages(
    *bodies: str | bytes, who: str = "c", headers: Mapping[str, Expected] | None = None, in_order: bool = True
) -> Messages:
    """``Messages`` that read well in a table."""
    return Messages(bodies, who, headers or {}, in_order)


@dataclass(frozen=True)
class Nothing(Step):
    """No message comes, on a connection that is of use."""

    who: str = "c"
    answers: bool = True

    def play(self, stage: ScenarioRun) -> None:
        client, quiet_s = stage.client(self.who), stage.broker.kind.quiet_s
        if self.answers and not quiet_s:
            prove_alive(client)
        try:
            frame = client.receive(quiet_s)
        except TimeoutError:
            return
        raise AssertionError(f"nothing should come: {frame.text}")


Silent = partial(Nothing, answers=False)
"""The connection stays open, and no frame comes: the broker waits for something that never comes."""
