"""The model beside a broker of which every turn may do next to nothing: it holds, delivers and counts the same."""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.kit.tiny_turns import TinySteps
from tests.model.side_by_side import SideBySide
from tests.model.soak import fails, report, worlds

pytestmark = [pytest.mark.model, pytest.mark.interpreted]

STEPS: Final = 20_000


def test_tiny_turns_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one tick, what falls due may come before what is over, or after it: one of these orders explains a world."""
    for number, (plan, taken) in enumerate(worlds(seed, STEPS)):
        for over_first in (True, False):
            monkeypatch.setattr(SideBySide, "steps", TinySteps(random.Random(number)))
            monkeypatch.setattr(SideBySide, "over_first", over_first)
            if not fails(plan, taken):
                break
        else:
            pytest.fail(report(plan, taken))
