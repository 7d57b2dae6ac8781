"""Queues with pages, beside their model: reads and writes of pages come when a step says so."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import settings

from tests.model.axes import PAGED
from tests.model.soak import STEPS_PER_WORLD, report, run_world, worlds

pytestmark = [pytest.mark.model, pytest.mark.interpreted, pytest.mark.usefixtures("small_steps")]


def test_pages_against_the_model(seed: int) -> None:
    """Whatever clients and disk do, nothing is lost, doubled or held back, and every count is right. On any two axes of
    a queue that pages, or flows to disk, every two choices have a world, or ``check`` refuses them.
    """
    count = max(settings().max_examples // 100, 1) * len(PAGED.bases)
    if PAGED.apart(islice(PAGED.drawn(random.Random(seed)), count)):  # for most seeds so many are enough
        count *= 2
        assert not PAGED.apart(islice(PAGED.drawn(random.Random(seed)), count))
    for plan, taken in worlds(seed, count * STEPS_PER_WORLD[PAGED], space=PAGED):
        try:
            run_world(plan, taken)
        except Exception:
            pytest.fail(report(plan, taken))
