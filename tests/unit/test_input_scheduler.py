"""The line of connections with input: shares by cost, and who sends little waits for nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest

from artemis_py.core.budget import Budget
from artemis_py.server.turn_client import Client as ServerClient
from artemis_py.server.turn_input import INPUT_SHARE, QUANTUM_MIN, InputScheduler

TURN = 10_000
SHARE = TURN // INPUT_SHARE


@dataclass(eq=False)
class Client(ServerClient):
    """A connection that has ``work`` units waiting, in steps of ``step`` units that cannot be divided."""

    name: str
    work: int
    step: int = 1
    done: int = 0
    in_line: bool = False
    credit: int = 0
    period: int = 0
    budget: Budget = field(default_factory=Budget)
    line: list[str] = field(default_factory=list)

    def read(self, now_ms: int, stop_at: int) -> bool:
        self.line.append(self.name)
        while self.work > 0:
            self.work -= self.step
            self.done += self.step
            self.budget.spend(self.step)
            if self.budget.left <= stop_at:
                break
        return self.work > 0


NOBODY_FAILS = Mock(side_effect=AssertionError)


@dataclass(eq=False)
class Line:
    """A scheduler, its turns, and who was served in which order."""

    scheduler: InputScheduler = field(default_factory=InputScheduler)
    budget: Budget = field(default_factory=Budget)
    served: list[str] = field(default_factory=list)

    def add(self, *clients: Client) -> None:
        for client in clients:
            client.budget, client.line = self.budget, self.served
            self.scheduler.add(client)

    def turn(self) -> int:
        """One turn; returns what it spent."""
        self.budget.refill(TURN)
        self.served.clear()
        self.scheduler.serve(self.budget, 0, NOBODY_FAILS)
        return TURN - self.budget.left


def test_a_turn_ends() -> None:
    line = Line()
    line.add(*[Client(f"{number}", 10**6) for number in range(20)])
    assert SHARE <= line.turn() <= SHARE + SHARE // 20


def test_who_comes_is_served_first_however_much_waits() -> None:
    line = Line()
    line.add(*[Client(f"{number}", 10**6) for number in range(20)])
    line.turn()
    line.add(Client("small", 3))
    line.turn()
    assert line.served[0] == "small"


def test_all_get_the_same_whatever_their_steps_cost() -> None:
    line = Line()
    clients = [Client("dear", 10**9, 700), Client("cheap", 10**9), Client("middle", 10**9, 40)]
    line.add(*clients)
    for _ in range(300):
        line.turn()
    done = [client.done for client in clients]
    assert max(done) - min(done) < 0.05 * max(done)


def test_who_spent_much_with_one_request_lets_others_go_first() -> None:
    """Also when each request comes only after the answer to the one before."""
    line = Line()
    dear = [Client(f"dear {number}", 0, 5000) for number in range(10)]
    line.add(*[Client("backlog", 10**9)])
    waits: list[int] = []
    for _ in range(200):
        for client in dear:
            if not client.in_line:
                client.work = 5000
                line.add(client)
        small = Client("small", 3)
        line.add(small)
        line.turn()
        waits.append(line.served.index("small") if "small" in line.served else 99)
    assert max(waits[20:]) == 0, "nobody knew beforehand what they cost, but now it is known"


def test_who_waits_is_served_though_others_keep_coming() -> None:
    line = Line()
    old = Client("old", 10**6)
    line.add(old)
    line.turn()
    others = [Client(f"{number}", 0) for number in range(200)]
    for _ in range(100):
        for client in others:
            if not client.in_line:
                client.work = QUANTUM_MIN
                line.add(client)
        line.turn()
    assert old.done - SHARE > 50 * SHARE / len(others)


def test_when_nobody_waits_all_is_forgiven() -> None:
    line = Line()
    dear, other = Client("dear", 10**5, 10**5), Client("other", 10**6)
    line.add(dear)
    line.turn()
    dear.work = dear.step = 1
    line.add(other, dear)
    line.turn()
    assert line.served.count("dear") == 1


def test_without_anybody_else_a_debt_costs_no_turn() -> None:
    line = Line()
    dear = Client("dear", 10**6, 10**5)
    line.add(dear)
    for _ in range(10):
        line.turn()
    assert dear.done == 10**6
    assert not line.scheduler.count


@pytest.mark.parametrize("units", [1, 5, 2**63 - 1])
def test_everything_is_done_in_the_end(units: int) -> None:
    """With next to no budget, and without a limit."""
    line = Line()
    clients = [Client(f"{number}", 50 * number) for number in range(5)]
    line.add(*clients)
    for _ in range(1000):
        line.budget.refill(units)
        line.scheduler.serve(line.budget, 0, NOBODY_FAILS)
    assert not any(client.work for client in clients)
    assert not any(client.in_line for client in clients)


def test_a_turn_ends_also_when_all_come_at_once() -> None:
    """A COMMIT of each of very many clients, where nobody waited before."""
    line = Line()
    clients = [Client(f"{number}", 2000, 2000) for number in range(500)]
    line.add(*clients)
    assert line.turn() <= SHARE + QUANTUM_MIN + 2000
    for _ in range(500):
        assert line.turn() <= SHARE + QUANTUM_MIN + 2000
    assert not any(client.work for client in clients)
