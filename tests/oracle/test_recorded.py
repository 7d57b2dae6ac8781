"""Every scenario of the table on what a real Artemis answered when it was recorded: without Java, in every run."""

from __future__ import annotations

import copy

import pytest

from tests.oracle.recording import StaleError, play_again, recordings
from tests.oracle.scenario import Scenario
from tests.oracle.table import SCENARIOS

TABLE_OF = "2.44.0"
"""The version that the table describes. Another one may depart from it; its recording says in which step."""
RECORDED = recordings()


def test_the_version_of_the_table_does_what_the_table_says() -> None:
    assert [name for name, record in RECORDED[TABLE_OF].items() if record["failure"]] == []


@pytest.mark.parametrize("version", RECORDED)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario(version: str, scenario: Scenario) -> None:
    record = RECORDED[version].get(scenario.name)
    assert record is not None, f"{scenario.name} is not recorded: `make oracle` does it"
    assert play_again(scenario, record) == record["failure"]


def test_nothing_is_recorded_that_is_not_in_the_table() -> None:
    names = {scenario.name for scenario in SCENARIOS}
    assert {name for records in RECORDED.values() for name in records.keys() - names} == set()


def test_another_answer_fails() -> None:
    """The recorded answers are compared, not only taken: one that is changed is found."""
    scenario = next(scenario for scenario in SCENARIOS if not scenario.departures)
    record = copy.deepcopy(RECORDED[TABLE_OF][scenario.name])
    frames = [event for events in record["connections"] for event in events if event[0] == "frame"]
    frames[-1][1] = "ERROR"
    assert play_again(scenario, record) != ""


def test_another_question_is_not_answered() -> None:
    first, other = (RECORDED[TABLE_OF][scenario.name] for scenario in SCENARIOS[:2])
    assert first != other
    with pytest.raises(StaleError, match="make oracle"):
        play_again(SCENARIOS[0], {**other, "connections": [[["open", "stomp"], ["write", "0"]]]})
