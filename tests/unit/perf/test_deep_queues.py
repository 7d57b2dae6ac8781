"""The benchmark of deep queues: what each operation costs, and what the section makes of it."""

from __future__ import annotations

import json

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.scenario import Options
from bench import deep_queues
from bench.__main__ import main
from bench.deep_queues import TYPES, DeepQueues, Growth, costs_us, measure_depths
from bench.part import Extent

ENTRIES = {"arrive", "dispatch", "release", "expire", "arrive and evict"}
GROUPS = {"arrive", "dispatch", "release", "acknowledge", "passed over"}


def growth(name: str, *totals_us: float) -> Growth:
    costs = {1000 ** (place + 1): {"arrive": total / 2, "dispatch": total / 2} for place, total in enumerate(totals_us)}
    return Growth(name, costs)


@pytest.mark.parametrize(
    ("name", "deep_us", "met"),
    [
        ("plain", 1.4, True),
        ("plain", 1.6, False),
        ("groups", 1.6, False),
        ("sorted", 1.9, True),
        ("sorted", 2.1, False),
    ],
)
def test_what_is_searched_for_may_cost_the_logarithm(name: str, deep_us: float, met: bool) -> None:
    assert growth(name, 1.0, deep_us).met is met
    assert DeepQueues([growth(name, 1.0, deep_us)]).missed == ([] if met else [name])


def test_the_table_judges_where_the_queue_is_deepest() -> None:
    depths = DeepQueues([growth("sorted", 2.0, 3.0)])
    rows = depths.text().splitlines()
    assert rows[0].split("  ")[0] == "µs per message"
    assert [row.split() for row in rows[1:]] == [
        ["sorted", "queue", "1,000", "1.00", "1.00"],
        ["sorted", "queue", "1,000,000", "1.50", "1.50", "1.50", "≤", "2.0", "met"],
    ]
    [in_page] = depths.page_tables()
    assert [row[:2] for row in in_page.rows[1:]] == [["sorted queue", "1,000,000"]]


@pytest.mark.parametrize("name", TYPES)
def test_each_operation_is_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is as deep at the end as at the beginning, or the measurement would fail."""
    monkeypatch.setattr(deep_queues, "SAMPLE", 100)
    monkeypatch.setattr(deep_queues, "ROUNDS", 3)
    costs = costs_us(name, 700)
    replaced = {"arrive and replace"} if name == "last-value" else set()
    assert costs.keys() == (GROUPS if "groups" in name else ENTRIES | replaced)
    assert all(cost > 0 for cost in costs.values())


def test_every_type_is_measured_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deep_queues, "TYPES", {name: TYPES[name] for name in ("last-value", "groups")})
    monkeypatch.setattr(deep_queues, "DEPTHS", (200, 400))
    assert main(["--scenario", "depth", "--rounds", "1", "--json"]) == 0
    told = {one["type"]: one["costs_us"] for one in json.loads(capsys.readouterr().out)["depth"]}
    assert set(told) == {"last-value", "groups"}
    assert all(cost > 0 for costs in told.values() for one in costs.values() for cost in one.values())
    assert set(told["groups"]["400"]) == GROUPS
    assert set(told["last-value"]["200"]) > ENTRIES


def test_a_measurement_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_queues, "TYPES", {"groups": TYPES["groups"]})
    monkeypatch.setattr(deep_queues, "DEPTHS", (2,))
    with pytest.raises(PerfError, match="groups at 2: groups need more messages"):
        measure_depths(Extent(Options(), 1, []), lambda _: None)
