"""Every scenario of the table on a real Artemis, when one is present: where we agree, and that departures are real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.oracle.artemis_broker import artemis_broker
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.scenario import Scenario
from tests.oracle.steps import perform
from tests.oracle.table import PLAYED, PROFILES

WAIT_S = 5.0

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize(("artemis", "scenario"), PLAYED, indirect=["artemis"], scope="session")
def test_scenario(artemis: BrokerUnderTest, scenario: Scenario, home: Path, tmp_path: Path) -> None:
    try:
        perform(scenario.steps, artemis, WAIT_S)
    except AssertionError:
        # Artemis' threads race, most of all when a connection breaks: only what fails twice is another behaviour.
        profile = next(profile for profile in PROFILES if scenario in profile.scenarios)
        with artemis_broker(replace(profile, scenarios=(scenario,)), tmp_path, home) as alone:
            perform(scenario.steps, alone, WAIT_S)
