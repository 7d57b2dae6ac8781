"""The same code on a cluster: a standalone master and two workers as processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster import standalone_cluster
from tests.spark.cluster_driver import ROWS
from tests.spark.conftest import ROOT
from tests.spark.live import live_broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master with two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def test_rows_go_to_the_broker_and_come_back_from_its_log(cluster: str, tmp_path: Path) -> None:
    """Each worker publishes, and reads the log over HTTP, as it would on another machine."""
    with live_broker(tmp_path) as broker:
        ports = broker.process.ports
        urls = [f"tcp://127.0.0.1:{ports['stomp']}", f"http://127.0.0.1:{ports['http']}"]
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.cluster_driver", cluster, *urls, "cluster.rows"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        assert said["executors"] == "2"
        assert said["settings"] == "200 True", "what is for two cores of one machine is not for a cluster"
        assert said["read"] == f"{ROWS} {ROWS} {ROWS * (ROWS - 1) // 2} True"
        broker.process.await_count("cluster.rows", ROWS)
