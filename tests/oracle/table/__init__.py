"""The table: every scenario, and the processes that they share."""

from __future__ import annotations

from typing import Final

import pytest

from tests.oracle.configuration import Profile
from tests.oracle.scenario import Scenario
from tests.oracle.table import (
    additions,
    addresses,
    connecting,
    dispatch,
    frames,
    groups,
    last_values,
    lifetimes,
    paging,
    retroactive,
    ring,
    routing,
    settling,
    subscribing,
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *ring.SCENARIOS,
    *dispatch.SCENARIOS,
    *last_values.SCENARIOS,
    *groups.SCENARIOS,
    *retroactive.SCENARIOS,
    *lifetimes.SCENARIOS,
    *routing.SCENARIOS,
    *addresses.SCENARIOS,
    *paging.SCENARIOS,
    *connecting.SCENARIOS,
    *frames.SCENARIOS,
    *settling.SCENARIOS,
    *subscribing.SCENARIOS,
    *additions.SCENARIOS,
)

PROFILES: Final = (
    Profile("still", -1, tuple(scenario for scenario in SCENARIOS if not scenario.scans)),
    Profile("scanning", 100, tuple(scenario for scenario in SCENARIOS if scenario.scans)),
)

PLAYED: Final = tuple(
    pytest.param(profile, scenario, id=scenario.name) for profile in PROFILES for scenario in profile.scenarios
)
"""What tests are parametrized with: a profile for the broker, and a scenario."""
