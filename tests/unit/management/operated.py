"""Operations on a broker without sockets, carried out inside its turns."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from artemis_py.core.broker import Broker
from artemis_py.core.tasks import WAIT
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Steps
from artemis_py.management.operation import arguments_of
from artemis_py.management.table import OPERATIONS
from artemis_py.server.management import ConnectedClient, connected
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from tests.kit.bench import Bench
from tests.kit.managed import managed_by

BY_ID = {operation.id: operation for operation in OPERATIONS}


class World(Protocol):
    """A broker that tests run, with its turns."""

    broker: Broker
    turns: Turns
    stats: ServerStats

    def settle(self) -> None:
        """Run turns until the broker rests."""


class Operated:
    """Carries out one operation at a time, as the broker's own ``Calls`` does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._work: Steps | None = None
        self._result: Any = None
        self._failure: Exception | None = None
        self.is_due = True
        self.steps = 0
        """How many steps the last operation took."""
        turns, stats = world.turns, world.stats
        self.managed = managed_by(
            world.broker,
            lambda: turns.isolation.turn_ms,
            clients=lambda: connected(stats.connections, turns),
            client=self._client,
            client_count=lambda: len(stats.connections),
            uptime_ms=lambda: 90_061_000,
        )
        turns.calls = self  # type: ignore[assignment]

    def _client(self, number: int) -> ConnectedClient | None:
        found = [one for one in self._world.stats.connections if one.session.state.origin == number]
        return ConnectedClient(found[0], self._world.turns) if found else None

    def __len__(self) -> int:
        return self._work is not None

    @property
    def have_ready(self) -> bool:
        """Is there a work that can go on?"""
        return self._work is not None

    def do(self, id: str, **arguments: object) -> Any:
        """What an operation answers: a row, or the rows of a list. Hyphens are underscores here. Raises BrokerError."""
        sent = {name.replace("_", "-"): [value] for name, value in arguments.items()}
        operation = BY_ID[id]
        return self.carry_out(operation.begin(self.managed, arguments_of(operation, sent)))

    def carry_out(self, work: Generator[Any, None, Any]) -> Any:
        """What a work answers: a row, or the rows of a list. Raises BrokerError."""
        self._work = work
        self._failure, self.steps = None, 0
        self._world.turns.schedule()
        self._world.settle()
        if self._failure is not None:
            raise self._failure
        assert self._work is None, "it does not end"
        if isinstance(self._result, Selection):
            return [row for rows in self._result.rows() for row in rows]
        return self._result

    def run(self, _steady_ms: int) -> None:
        """The share of a turn."""
        work = self._work
        try:
            while work is not None:
                self.steps += 1
                if next(work) is WAIT:
                    break
        except StopIteration as ended:
            self._result, self._work = ended.value, None
        except Exception as error:
            self._failure, self._work = error, None


def operated_bench(attributes: str = "", **named: Any) -> tuple[Bench, Operated]:
    """A broker with clients, and its operations."""
    one = Bench(attributes, **named)
    return one, Operated(one.world)
