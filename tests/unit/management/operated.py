"""Operations on a broker without sockets, carried out inside its turns."""

from __future__ import annotations

from typing import Any

from artemis_py.core.tasks import AnySteps
from artemis_py.management.artemis.beans import BeanKind, Beans
from artemis_py.management.artemis.operations import Call, find_operation
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Managed, Steps
from artemis_py.management.operation import arguments_of
from artemis_py.management.table import OPERATIONS
from artemis_py.server.management import client_of, connected
from artemis_py.server.operator_requests import OperatorRequests
from tests.kit.bench import Bench
from tests.kit.in_process import SteppedBroker
from tests.kit.managed import managed_by

BY_ID = {operation.id: operation for operation in OPERATIONS}


def begun(managed: Managed, id: str, **arguments: object) -> Steps:
    """An operation. Hyphens are underscores here. Raises BrokerError."""
    sent = {name.replace("_", "-"): [value] for name, value in arguments.items()}
    return BY_ID[id].begin(managed, arguments_of(BY_ID[id], sent))


class Operated:
    """Carries out one operation at a time."""

    def __init__(self, world: SteppedBroker) -> None:
        self._world = world
        self.steps = 0
        """How many steps the last operation took."""
        turns, stats = world.turns, world.stats
        self.managed = managed_by(
            world.broker,
            lambda: turns.isolation.turn_ms,
            clients=lambda: connected(stats.connections, turns),
            client=lambda number: client_of(stats.connections, number, turns),
            client_count=lambda: len(stats.connections),
            uptime_ms=lambda: 90_061_000,
        )
        self.calls = turns.calls = OperatorRequests(
            world.loop.as_loop(), world.broker.clock, turns.schedule, lambda call: call()
        )

    def do(self, id: str, **arguments: object) -> Any:
        """What an operation answers: a row, or the rows of a list. Hyphens are underscores here. Raises BrokerError."""
        return self.carry_out(begun(self.managed, id, **arguments))

    def prepared(self, kind: BeanKind, bean_name: str, name: str, *values: Any) -> Call:
        """An operation of a bean of Artemis. Raises BrokerError."""
        bean = Beans(self.managed, self.managed.broker.config).named(kind, bean_name)
        assert bean is not None
        return find_operation(kind, name, bean_name, len(values)).prepare(self.managed, bean, values)

    def carry_out(self, work: AnySteps) -> Any:
        """What a work answers: a row, or the rows of a list. Raises BrokerError."""
        future = self.calls.begin(self._counted(work), changes=True)
        self._world.settle()
        result = future.result()
        return [row for rows in result.rows() for row in rows] if isinstance(result, Selection) else result

    def _counted(self, work: AnySteps) -> AnySteps:
        self.steps = 1
        while True:
            try:
                yield next(work)
            except StopIteration as ended:
                return ended.value
            self.steps += 1


def operated_bench(attributes: str = "", **named: Any) -> tuple[Bench, Operated]:
    """A broker with clients, and its operations."""
    one = Bench(attributes, **named)
    return one, Operated(one.world)
