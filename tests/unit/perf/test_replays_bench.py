"""The benchmark of replays: those that prove nothing are an error."""

from __future__ import annotations

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.link import Target
from artemis_py.perf.scenario import Options, Run
from bench.replays import measure_round, replaying
from tests.kit.fake_broker import FakeBroker, Faults


def test_replays_that_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replays.SETTLE_S", 0.0)
    with FakeBroker() as broker, pytest.raises(PerfError, match="a replay got no more than 0 bytes of the log"):
        measure_round(Run(Target("127.0.0.1", broker.port, stall_s=2.0), Options(messages=400, seconds=0.01)))


def test_replays_that_are_refused() -> None:
    with (
        FakeBroker(Faults(refuse_replays=True)) as broker,
        pytest.raises(PerfError, match=r"a replay was disconnected|a replay got no more than 0 bytes"),
        replaying(Target("127.0.0.1", broker.port), "/queue/q") as replayed,
    ):
        replayed()
