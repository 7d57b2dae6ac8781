"""The table and the document of departures belong together."""

from __future__ import annotations

import re
from collections import Counter

from tests.oracle.differences.catalogue import DEPARTURES, SECTIONS
from tests.oracle.differences.document import FILE, is_addition, render
from tests.oracle.steps import Either
from tests.oracle.table import SCENARIOS

NAME = re.compile(r'(?:name|match)="([^"]+)"')


def test_the_document_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == render()


def test_the_document_has_every_departure_of_the_table() -> None:
    text = FILE.read_text(encoding="utf-8")
    for scenario in SCENARIOS:
        for key in scenario.departures:
            departure = DEPARTURES[key]
            middle = "" if is_addition(departure) else f"{departure.artemis} | "
            assert f"| {departure.subject} ✓ | {middle}{departure.ours} |" in text


def test_every_key_names_one_departure() -> None:
    assert len(DEPARTURES) == sum(map(len, SECTIONS.values()))


def test_a_scenario_departs_where_it_names_a_departure_and_nowhere_else() -> None:
    for scenario in SCENARIOS:
        departing = [step for step in scenario.steps if isinstance(step, Either)]
        assert bool(scenario.departures) == bool(departing), scenario.name
        assert set(scenario.departures) <= DEPARTURES.keys(), scenario.name
        assert all(step.ours != step.artemis for step in departing), scenario.name


def test_a_departure_is_shown_exactly_when_it_says_so() -> None:
    named = {key for scenario in SCENARIOS for key in scenario.departures}
    assert named == {departure.key for departure in DEPARTURES.values() if departure.shown}


def test_rows_fit_into_a_table() -> None:
    for departure in DEPARTURES.values():
        texts = (departure.subject, departure.artemis, departure.ours, departure.why)
        assert not any("|" in text or "\n" in text or not text for text in texts), departure.key


def test_scenarios_have_names_of_their_own_and_share_nothing_in_the_configuration() -> None:
    assert max(Counter(scenario.name for scenario in SCENARIOS).values()) == 1
    for kind in ("addresses", "settings", "diverts"):
        names = Counter(
            name
            for scenario in SCENARIOS
            for name in {found for piece in getattr(scenario, kind) for found in NAME.findall(piece)}
        )
        assert [name for name, count in names.items() if count > 1] == []
