"""The model beside a broker of which every turn may do next to nothing: it holds, delivers and counts the same."""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.kit.tiny_turns import TinySteps
from tests.model.side_by_side import SideBySide
from tests.model.soak import report, run_world, worlds

pytestmark = [pytest.mark.model, pytest.mark.interpreted]

STEPS: Final = 20_000


def test_tiny_turns_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (plan, taken) in enumerate(worlds(seed, STEPS)):
        monkeypatch.setattr(SideBySide, "steps", TinySteps(random.Random(number)))
        try:
            run_world(plan, taken)
        except Exception:
            pytest.fail(report(plan, taken))
