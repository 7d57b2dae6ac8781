"""A standalone Spark cluster on this machine: a master and workers, each a process, from the pyspark package alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from artemis_py.spark.runtime.java import ensure_java
from tests.kit.process import eventually

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED: Final = "Successfully registered with master"
CLUSTER: Final = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.task.maxFailures": "3",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""What a session of tests on such a cluster sets: small executors, three attempts, and what a local session has."""


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers of one core each; gives the master's URL. All are gone in the end."""
    with ExitStack() as stack:
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = stack.enter_context(_process(folder / "master", _MASTER, *address))
        said = eventually("the master", lambda: _URL.search(log.read_text("utf-8", "replace")), bool, 60)
        assert said is not None
        logs = [
            stack.enter_context(
                _process(
                    folder / f"worker{number}", _WORKER, *address,
                    "--cores", "1", "--memory", "768m", "--work-dir", str(folder / f"work{number}"), said[1],
                )
            )
            for number in range(workers)
        ]  # fmt: skip
        for one in logs:
            eventually("a worker", lambda one=one: _JOINED in one.read_text("utf-8", "replace"), bool, 60)  # type: ignore[misc]
        yield said[1]


@contextmanager
def _process(name: Path, java_class: str, *arguments: str) -> Iterator[Path]:
    """Runs one of Spark's classes; gives the file that has what it says."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    ensure_java(environment)
    log = name.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), java_class, *arguments],
            env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
