"""The model beside a broker of which every turn may do next to nothing: it holds, delivers and counts the same."""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.kit.tiny_turns import Orders, TinySteps
from tests.model.plans import Plan
from tests.model.side_by_side import SideBySide
from tests.model.soak import fails, report, worlds
from tests.model.steps import Taken

pytestmark = [pytest.mark.model, pytest.mark.interpreted]

STEPS: Final = 20_000
TRIES_MAX: Final = 1000


def test_tiny_turns_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of two things may come first, one of the orders explains a world."""

    def begin(plan: Plan, orders: Orders) -> None:
        monkeypatch.setattr(SideBySide, "steps", TinySteps(random.Random(repr(plan))))
        monkeypatch.setattr(SideBySide, "orders", orders)

    def fails_in_each_order(plan: Plan, taken: list[Taken]) -> bool:
        orders: Orders | None = Orders()
        for _ in range(TRIES_MAX):
            if orders is None:
                break
            begin(plan, orders)
            if not fails(plan, taken):
                return False
            orders = orders.turn_last()
        begin(plan, Orders())
        return True

    for plan, taken in worlds(seed, STEPS):
        if fails_in_each_order(plan, taken):
            pytest.fail(report(plan, taken, fails_in_each_order))
