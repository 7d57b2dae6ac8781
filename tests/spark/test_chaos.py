"""One query over two brokers that are killed, renamed and fail over, whose clocks are set and whose logs go, and it is
killed, too: in the end it has every message once. ``--chaos-minutes N`` sets how long.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.spark.chaos import DISTURBANCES, NAMES, OFTEN, ChaosRun, chaos_broker


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_message_once(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes: float = request.config.option.chaos_minutes
    with ExitStack() as stack:
        brokers = [stack.enter_context(chaos_broker(tmp_path / name, name, seed)) for name in NAMES]
        run = ChaosRun(tmp_path, brokers, seed)
        run.run(minutes)
        summary = run.summary()
        with capsys.disabled():
            print(f"\nchaos for {minutes:g} minutes: {summary}")
        assert run.problems[:20] == [], summary
        assert run.promised > 20 * minutes
        assert all(broker.dropped() > 0 for broker in brokers), "retention has to have taken what was read"
        if sum(run.disturbed.values()) >= len(OFTEN):
            assert run.disturbed.keys() == DISTURBANCES.keys()
            assert run.clock_steps > 0
