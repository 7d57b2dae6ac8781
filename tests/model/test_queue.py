"""Broker and model side by side: queues of all types, full in every way, with everything else drawn."""

from __future__ import annotations

import random
from itertools import islice
from typing import Final

import pytest
from hypothesis import settings

from artemis_py.version import IS_COMPILED
from tests.model.axes import IN_MEMORY
from tests.model.soak import STEPS_PER_WORLD, report, run_world, worlds

pytestmark = pytest.mark.model

ROUND: Final = 500
"""So many examples of the profile are another round of all worlds."""
PATIENCE: Final = 5
"""Some things happen in a few worlds of a thousand: so many times as many worlds must be enough to see all."""
EVERYTHING: Final = {
    "barrier", "barrier came back", "barrier to several", "became active", "cancelled too often", "COMMIT had to wait",
    "COMMIT refused", "consumer refused", "dead", "delayed", "delayed in a group", "delivered too often", "expired",
    "expired by a consumer", "expired to the dead-letter address", "expired while held back", "fast",
    "first of a group", "group closed", "held back", "kept out of several queues", "late", "lease over",
    "lone end of a group", "outdated value", "paused to rebalance", "proportional", "rebalanced", "refused",
    "replaced in place", "restarted", "ring", "sender had to wait", "senders go on", "senders wait", "sifted",
    "sifted what others hold", "value replaced",
}  # fmt: skip
"""What the model can see happen."""


def test_every_combination_agrees_with_model(seed: int) -> None:
    """A short soak, by the seed of the run. Every combination on the chief axes has a world, every two choices on any
    two axes meet in one, or ``check`` refuses them; and everything that a queue can do was seen. Compiled modules have
    the same logic: what compiling breaks shows in a quarter of the worlds.
    """
    happened: set[str] = set()
    in_a_round = len(IN_MEMORY.bases)
    count = max(settings().max_examples // ROUND, 1) * in_a_round
    enough = count // 4 if IS_COMPILED else count
    for number, (plan, taken) in enumerate(worlds(seed, PATIENCE * count * STEPS_PER_WORLD[IN_MEMORY])):
        if number >= enough and happened == EVERYTHING:
            break
        try:
            happened |= run_world(plan, taken)
        except Exception:
            pytest.fail(report(plan, taken))
    chosen = list(islice(IN_MEMORY.drawn(random.Random(seed)), in_a_round))
    assert not IN_MEMORY.apart(chosen)
    of_base = [{axis: one[axis] for axis in IN_MEMORY.base} for one in chosen]
    assert all(base in of_base for base in IN_MEMORY.bases)
    assert happened == EVERYTHING
