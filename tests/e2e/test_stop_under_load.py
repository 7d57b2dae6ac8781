"""SIGTERM and SIGINT while clients do all they can: exit code 0, no warning, and no promise is broken."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.kill_rounds import KillRun
from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import connected
from tests.kit.process import BOTH, LONG, SWEPT, retained, started

pytestmark = pytest.mark.e2e

STOPS = 10
STOPS_SOAK = 200


@pytest.mark.parametrize(
    "stops", [pytest.param(STOPS, marks=pytest.mark.timeout(180)), pytest.param(STOPS_SOAK, marks=LONG)]
)
def test_many_stops_under_load(tmp_path: Path, seed: int, stops: int) -> None:
    """Once a turn ran after the store was closed, in six of twenty stops."""
    run = KillRun(tmp_path, seed, retention=True, stops=True)
    run.run(stops)
    assert run.ledger.problems == [], run.summary()
    assert run.ledger.delivered_count > 100 * stops, run.summary()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    """As soon as it holds its locks: the end is in good order; the next start finds everything as it was."""
    file = configured(tmp_path, core=retained(tmp_path) + SWEPT, acceptors=BOTH)
    with started(file) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"kept")
        assert broker.stop() == 0
    lock = tmp_path / "journal" / "server.lock"
    for _ in range(3):
        with started(file, ready=False) as broker:
            process = f"artemis_py process={broker.process.pid} "
            broker.eventually("the lock", lambda: lock.read_text("ascii").startswith(process), bool)  # noqa: B023
            assert broker.stop(number) == 0, broker.said
    with started(file) as broker:
        broker.await_count("q", 1)
