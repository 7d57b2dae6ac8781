"""One query over two brokers that are killed, renamed and fail over, whose clocks are set and whose logs go, and it is
killed, too: in the end it has every message once. ``--chaos-minutes N`` sets how long.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from artemis_py.log_codes import CLOCK
from artemis_py.storage.format.scan import log_files
from tests.kit.process import STOMP
from tests.kit.set_clock import SettableClock
from tests.spark.kills import Application, KillRun, batches_done, killed_broker, rows_in_batches

NAMES: Final = ("one", "two")
LARGE_BYTES: Final = 30_000
OPTIONS: Final[dict[str, Any]] = {
    "is_pair": True,
    "large_bytes": LARGE_BYTES,
    "stomp": f"{STOMP};stompMinLargeMessageSize={LARGE_BYTES // 2}",
    "limits": 'unit="HOURS" period="1" storage-limit="400K"',
}
"""The limits are those of the retained log: less than it gets in a minute. What the query has not read stays all the
same.
"""
OFTEN: Final = {
    "broker": 3, "renamed": 2, "stand-by": 3, "clock": 5, "log": 4, "worker": 2, "jvm": 1, "application": 1,
}  # fmt: skip
"""What is done, and how often in a round."""


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_message_once(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes: float = request.config.option.chaos_minutes
    rounds, random = [one for one, times in OFTEN.items() for _ in range(times)], Random(seed)
    with ExitStack() as stack:
        sides = [
            stack.enter_context(killed_broker(folder, seed, clock=SettableClock(folder / "clock"), **OPTIONS))
            for folder in (tmp_path / name for name in NAMES)
        ]
        urls = ",".join(side.live.url for side in sides)
        command = ["tests.spark.pipeline_driver", str(tmp_path), urls, f"tcp://127.0.0.1:{sides[0].live.process.port}"]
        commits = partial(batches_done, tmp_path, ["url"])
        run = KillRun(sides, Application(tmp_path, [*command, "--query=url"], [], ["--to-the-end"], commits), seed)
        until = time.monotonic() + minutes * 60
        kinds = (kind for _ in iter(int, 1) for kind in random.sample(rounds, len(rounds)))
        run.run(takewhile(lambda _: time.monotonic() < until, kinds))
        run.judge("url", rows_in_batches(tmp_path / "out" / "url"))
        copies = run.judge_copies()
        dropped = [log_files([side.live.folder / one for one in ("kept", "journal")])[0].number - 1 for side in sides]
        logs = [path.read_text("utf-8") for side in sides for path in side.live.folder.glob("broker*.log")]
        clock_steps = sum(text.count(f" {CLOCK} ") for text in logs)
        summary = f"{run.summary()}, {clock_steps} steps of clocks noticed, {dropped} segments removed, {copies} copies"
        with capsys.disabled():
            print(f"\nchaos for {minutes:g} minutes: {summary}")
        assert run.problems[:20] == [], summary
        assert run.promised.total() > 20 * minutes
        assert all(dropped), "retention has to have taken what was read"
        if run.disturbed.total() >= len(rounds):
            assert run.disturbed.keys() == OFTEN.keys()
            assert clock_steps > 0
