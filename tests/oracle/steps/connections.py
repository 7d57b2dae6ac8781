"""Steps that open, break and close connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.oracle.scenario_run import ScenarioRun, is_closed
from tests.oracle.steps.base import Step
from tests.oracle.values import Expected, Value, check_headers, given


@dataclass(frozen=True)
class Connect(Step):
    """Connects and demands CONNECTED with these headers. A version of None leaves ``accept-version`` out."""

    who: str = "c"
    version: str | None = "1.2"
    headers: Mapping[str, Value] = field(default_factory=dict)
    answer: Mapping[str, Expected] = field(default_factory=dict)
    acceptor: str = "stomp"
    command: str = "CONNECT"

    def play(self, stage: ScenarioRun) -> None:
        client = stage.open(self.who, self.acceptor)
        offered = {} if self.version is None else {"accept-version": self.version}
        client.send(self.command, {**offered, "host": "oracle", **given(self.headers, stage)})
        answer = client.answer()
        assert answer.command == "CONNECTED", f"not connected: {answer.text}"
        check_headers(answer, self.answer, stage)


@dataclass(frozen=True)
class Open(Step):
    """Opens a socket and says nothing."""

    who: str = "c"
    acceptor: str = "stomp"

    def play(self, stage: ScenarioRun) -> None:
        stage.open(self.who, self.acceptor)


@dataclass(frozen=True)
class Disconnect(Step):
    """DISCONNECT, its receipt, and the end."""

    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        client.ask("DISCONNECT")
        client.wait_for_end()
        client.close()


@dataclass(frozen=True)
class On(Step):
    """What a client does with its connection, or waits for there."""

    act: str
    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        getattr(stage.client(self.who), self.act)()


Drop = partial(On, "reset")
"""The connection breaks, as when a client crashes."""
HalfClose = partial(On, "finish")
"""The client says that it sends nothing more, and goes on reading."""
Closed = partial(On, "wait_for_end")
"""The broker closes the connection."""
Beat = partial(On, "await_beat")
"""The broker sends a heart-beat."""


@dataclass(frozen=True)
class StaysOpen(Step):
    """The connection is still of use."""

    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        assert not is_closed(stage.client(self.who)), "the broker closed the connection"
