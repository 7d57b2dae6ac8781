"""Every scenario of the table on a real Artemis, when one is present: where we agree, and that departures are real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.oracle.artemis_broker import artemis_broker, artemis_home
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.scenario import Scenario
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps import play
from tests.oracle.table import PLAYED, PROFILES

WAIT_S = 5.0

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize(("artemis", "scenario"), PLAYED, indirect=["artemis"], scope="session")
def test_scenario(artemis: BrokerUnderTest, scenario: Scenario, tmp_path: Path) -> None:
    try:
        with ScenarioRun(artemis, wait_s=WAIT_S) as stage:
            play(scenario.steps, stage)
    except AssertionError:
        # Artemis' threads race, most of all when a connection breaks: only what fails twice is another behaviour.
        _play_alone(scenario, tmp_path)


def _play_alone(scenario: Scenario, folder: Path) -> None:
    home = artemis_home()
    assert home is not None
    profile = next(profile for profile in PROFILES if scenario in profile.scenarios)
    with (
        artemis_broker(replace(profile, scenarios=(scenario,)), folder, home) as broker,
        ScenarioRun(broker, wait_s=WAIT_S) as stage,
    ):
        play(scenario.steps, stage)
