"""Turns that may do next to nothing: what takes one turn in earnest takes many here, and comes to the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.budget import TURN_UNITS
from artemis_py.server import turns

UNITS_MAX = 50
TURNS_MAX = 100_000


def make_turns_tiny(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let every turn of every server have from 1 to ``UNITS_MAX`` units, unless a test has given it others."""
    rng = random.Random(f"tiny turns {seed}")
    whole = turns.Turns.run

    def run(self: turns.Turns) -> None:
        if self.units != TURN_UNITS:
            whole(self)
            return
        self.units = rng.randint(1, UNITS_MAX)
        whole(self)
        self.units = TURN_UNITS

    monkeypatch.setattr(turns.Turns, "run", run)


@dataclass
class TinySteps:
    """A broker that a test drives without a server: each step has a tiny budget, and what it leaves over is done in
    further ones.
    """

    rng: random.Random

    def refill(self, broker: Broker) -> None:
        """A step begins."""
        broker.budget.refill(self.rng.randint(1, UNITS_MAX))

    def tick(self, broker: Broker, now_ms: int) -> None:
        """Do what is due."""
        for _ in range(TURNS_MAX):
            self.refill(broker)
            broker.tick(now_ms)
            due_ms = broker.next_due_ms()
            if not broker.agenda and (due_ms is None or due_ms > now_ms):
                return
        raise AssertionError("what is due does not come to an end")

    def finish(self, broker: Broker, now_ms: int) -> None:
        """Carry out what was decided, a little in each step."""
        for _ in range(TURNS_MAX):
            self.refill(broker)
            if not broker.agenda:
                return
            broker.agenda.run(broker.budget, now_ms)
        raise AssertionError("what was decided does not come to an end")

    def dispatch(self, broker: Broker, now_ms: int) -> None:
        """Offer what is ready until nobody wants more."""
        for _ in range(TURNS_MAX):
            self.refill(broker)
            broker.dispatch(now_ms)
            self.finish(broker, now_ms)
            if not broker.agenda and not broker.host.ready:
                return
        raise AssertionError("dispatch does not come to an end")


@dataclass
class Orders:
    """In which of two orders things were done where either may be so: a test tries one after the other, until one
    explains what it sees.
    """

    chosen: list[bool] = field(default_factory=list)
    """Was it as usual, the first time, the second, ...? Later on it is."""
    asked: int = 0

    def is_as_usual(self) -> bool:
        """Is the next one as usual?"""
        if self.asked == len(self.chosen):
            self.chosen.append(True)
        self.asked += 1
        return self.chosen[self.asked - 1]

    def turn_last(self) -> Orders | None:
        """The orders to try when these explain nothing; None when all were tried."""
        chosen = self.chosen[: self.asked]
        while chosen and not chosen[-1]:
            chosen.pop()
        return Orders([*chosen[:-1], False]) if chosen else None
