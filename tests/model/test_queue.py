"""Broker and model side by side: every combination of kind, distribution, acquisition, overflow and gate."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import machine_for
from tests.model.plans import QueuePlan, plan_id, queue_plans
from tests.model.soak import report, run_world, worlds

pytestmark = pytest.mark.model

SHARE: Final = 24
"""One machine of the many takes this part of the profile's examples."""
EXAMPLES_MAX: Final = 400
SOAK_STEPS: Final = 194_400


@pytest.mark.parametrize("queue", queue_plans(), ids=plan_id)
def test_queue_agrees_with_model(queue: QueuePlan) -> None:
    """Whatever clients do, the queue holds, delivers, counts and forgets what the model says."""
    profile = settings()
    steps = min(profile.stateful_step_count, 200)
    run_state_machine_as_test(
        machine_for(queue),
        settings=settings(
            max_examples=min(max(profile.max_examples // SHARE, 4), EXAMPLES_MAX),
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_every_combination_agrees_with_model(seed: int) -> None:
    """A short soak: every combination of axes and failures, a world each, by the seed of the run."""
    for plan, taken in worlds(seed, SOAK_STEPS):
        try:
            run_world(plan, taken)
        except Exception:
            pytest.fail(report(plan, taken))
