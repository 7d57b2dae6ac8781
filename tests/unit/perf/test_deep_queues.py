"""The benchmark of deep queues: what it asks of the load generator, and what it makes of the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.errors import PerfError
from bench import deep_queues, document
from bench.__main__ import main
from bench.deep_queues import DeepQueues, Growth, measure_depths


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
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deep_queues, "SCENARIOS", ["depth-last-value", "depth-groups", "1"])
    monkeypatch.setattr("bench.__main__.DEPTHS", (200, 400))
    file = tmp_path / "benchmarks.md"
    file.write_text("a\n<!-- depth: begin -->\nold\n<!-- depth: end -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(document, "DOCUMENT", file)
    assert main(["--scenario", "depth", "--rounds", "1", "--json", "--write"]) == 0
    told = {one["scenario"]: one["costs_us"] for one in json.loads(capsys.readouterr().out)["depth"]}
    assert set(told) == {"depth-last-value", "depth-groups"}
    assert all(cost > 0 for costs in told.values() for one in costs.values() for cost in one.values())
    assert {"arrive_us", "dispatch_us", "release_us", "acknowledge_us", "pass_us"} == set(told["depth-groups"]["400"])
    assert {"expire_us", "evict_us", "replace_us"} < set(told["depth-last-value"]["200"])
    written = file.read_text(encoding="utf-8")
    assert "| last-value queue | 400 |" in written
    assert "| sticky groups | 200 |" in written
    assert "old" not in written


def test_a_measurement_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_queues, "SCENARIOS", ["depth-groups"])
    with pytest.raises(PerfError, match="depth-groups at 2: groups need more messages"):
        measure_depths([2], 1, str)
