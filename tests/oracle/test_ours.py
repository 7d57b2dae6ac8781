"""Every scenario of the table on our broker: a process of its own, real sockets."""

from __future__ import annotations

import pytest

from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.scenario import Scenario
from tests.oracle.steps import perform
from tests.oracle.table import PLAYED

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(("ours", "scenario"), PLAYED, indirect=["ours"], scope="session")
def test_scenario(ours: BrokerUnderTest, scenario: Scenario) -> None:
    perform(scenario.steps, ours)
