"""The scenarios about fairness models."""

from __future__ import annotations

import pytest

from artemis_py.perf import fairness
from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.target import Target


@pytest.mark.parametrize("model", ["fast", "round-robin", "proportional"])
def test_each_part_is_measured(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker; every backlog is full at the end, or the scenario would say so."""
    monkeypatch.setattr(fairness, "_ROUNDS", 1)
    monkeypatch.setattr(fairness, "_MOVED", 100)
    monkeypatch.setattr(fairness, "_SINGLE", 20)
    (scenario,) = choose([f"fairness-{model}"])
    assert not scenario.needs_broker
    metrics = scenario.run(Run(Target("127.0.0.1", 1), Options(messages=200, consumers=4)))
    assert (metrics.pop("messages"), metrics.pop("consumers")) == (200, 4)
    together = metrics.pop("together_us")
    parts = ("acknowledge_us", "arrive_us", "dispatch_us", "lease_us")
    assert metrics.keys() == {*parts, "single_us", "lapse_us", "again_us"}
    assert together == pytest.approx(sum(metrics[name] for name in parts))
    assert all(microseconds >= 0 for microseconds in metrics.values())
