"""The same code on a cluster: a standalone master and two workers as processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.broker_process import BrokerProcess
from tests.spark.brokers import bodies, drained, url_of
from tests.spark.cluster import standalone_cluster
from tests.spark.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master with two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def test_every_worker_publishes(cluster: str, sink_broker: BrokerProcess, place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster_driver", cluster, url_of(sink_broker), place],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "executors 2" in done.stdout
    messages = bodies(drained(sink_broker, place, 20_000))
    assert sorted(messages, key=int) == [str(number) for number in range(20_000)]
