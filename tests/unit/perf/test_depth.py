from __future__ import annotations

import pytest

from artemis_py.perf import depth
from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.target import Target

PARTS = ["arrive_us", "dispatch_us", "evict_us", "expire_us", "release_us"]


@pytest.mark.parametrize("name", ["plain", "standard", "priority", "sorted", "last-value"])
def test_each_part_is_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker; the queue is as deep at the end as at the beginning, or the scenario would say so."""
    monkeypatch.setattr(depth, "SAMPLE", 100)
    monkeypatch.setattr(depth, "_MOVED_MIN", 300)
    (scenario,) = choose([f"depth-{name}"])
    assert not scenario.needs_broker
    metrics = scenario.run(Run(Target("127.0.0.1", 1), Options(messages=700)))
    assert metrics.pop("messages") == 700
    assert sorted(metrics) == sorted([*PARTS, *(["replace_us"] if name == "last-value" else [])])
    assert all(microseconds > 0 for microseconds in metrics.values())
