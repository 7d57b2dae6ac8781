"""The scenarios about deep queues with groups."""

from __future__ import annotations

import pytest

from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.target import Target


@pytest.mark.parametrize("name", ["groups", "shared-groups"])
def test_each_part_is_measured(name: str) -> None:
    """Without a broker; the busy consumer has its one message at the end, or the scenario would say so."""
    (scenario,) = choose([f"depth-{name}"])
    assert not scenario.needs_broker
    metrics = scenario.run(Run(Target("127.0.0.1", 1), Options(messages=800)))
    assert (metrics.pop("messages"), metrics.pop("groups")) == (800, 81)
    assert sorted(metrics) == ["acknowledge_us", "arrive_us", "dispatch_us", "pass_us", "release_us"]
    assert all(microseconds > 0 for microseconds in metrics.values())
