"""The benchmark of deep queues: what it asks of the load generator, and what it makes of the answers."""

from __future__ import annotations

import json

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.scenario import Options
from bench import deep_queues
from bench.__main__ import main
from bench.deep_queues import DeepQueues, Growth, measure_depths
from bench.part import Extent


def growth(scenario: str, *totals_us: float) -> Growth:
    costs = {
        1000 ** (place + 1): {"arrive_us": total / 2, "evict_us": total / 2} for place, total in enumerate(totals_us)
    }
    return Growth(scenario, scenario, costs)


@pytest.mark.parametrize(
    ("scenario", "deep_us", "met"),
    [
        ("depth-plain", 1.4, True),
        ("depth-plain", 1.6, False),
        ("depth-groups", 1.6, False),
        ("depth-sorted", 1.9, True),
        ("depth-sorted", 2.1, False),
    ],
)
def test_what_is_searched_for_may_cost_the_logarithm(scenario: str, deep_us: float, met: bool) -> None:
    assert growth(scenario, 1.0, deep_us).met is met
    assert DeepQueues([growth(scenario, 1.0, deep_us)]).missed == ([] if met else [scenario])


def test_the_table_judges_where_the_queue_is_deepest() -> None:
    rows = DeepQueues([growth("depth-sorted", 2.0, 3.0)]).text().splitlines()
    assert rows[0].split("  ")[0] == "µs per message"
    assert [row.split() for row in rows[1:]] == [
        ["depth-sorted", "1,000", "1.00", "1.00"],
        ["depth-sorted", "1,000,000", "1.50", "1.50", "1.50", "≤", "2.0", "met"],
    ]


def test_every_type_is_measured_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deep_queues, "SCENARIOS", ["depth-last-value", "depth-groups", "1"])
    monkeypatch.setattr(deep_queues, "DEPTHS", (200, 400))
    assert main(["--scenario", "depth", "--rounds", "1", "--json"]) == 0
    told = {one["scenario"]: one["costs_us"] for one in json.loads(capsys.readouterr().out)["depth"]}
    assert set(told) == {"depth-last-value", "depth-groups"}
    assert all(cost > 0 for costs in told.values() for one in costs.values() for cost in one.values())
    assert {"arrive_us", "dispatch_us", "release_us", "acknowledge_us", "pass_us"} == set(told["depth-groups"]["400"])
    assert {"expire_us", "evict_us", "replace_us"} < set(told["depth-last-value"]["200"])


def test_a_measurement_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_queues, "SCENARIOS", ["depth-groups"])
    monkeypatch.setattr(deep_queues, "DEPTHS", (2,))
    with pytest.raises(PerfError, match="depth-groups at 2: groups need more messages"):
        measure_depths(Extent(Options(), 1, []), lambda line: None)
