"""One Spark for all tests of this folder, with a quick start; they are skipped where pyspark or Java is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from artemis_py.errors import PipelineError
from tests.kit.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live import LiveBroker
    from tests.spark.logs import Logs
    from tests.spark.streams import Streams
    from tests.spark.traffic import SimulatedTraffic
    from tests.spark.traffic_tables import Frames

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = Path(__file__).resolve().parent

TIMEOUT_S: Final = 600
"""For what hangs, and nothing else: a test that is broken off takes all others of the session with it, because what
the JVM answered to it is read by the next.
"""
# A JVM that starts fast and stays small: the tests' data are small. Its database writes no log here. For checkpoints
# Spark's default starts a program for each file, to ask whether it is a link.
QUICK_JVM: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.stream.error.file=/dev/null",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.noDataProgressEventInterval": "200",
}  # fmt: skip


def why_no_spark() -> str | None:
    """What this machine lacks to run Spark, or None."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed (extra spark)"
    from artemis_py.spark.runtime.java import ensure_java

    try:
        ensure_java(dict(os.environ))
    except PipelineError as lacking:
        return str(lacking)
    return None


class SkippedModule(pytest.Module):
    """A module of this folder on a machine without Spark; it is not even imported."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Nothing, with the reason."""
        pytest.skip(f"{why_no_spark()}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skips every module of this folder by name where Spark cannot run."""
    if HERE not in module_path.parents or why_no_spark() is None:
        return None
    module: pytest.Module = SkippedModule.from_parent(parent, path=module_path)
    return module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks every test of this folder; the long ones run when they are asked for."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))
            if item.get_closest_marker("slow") is not None and "slow" not in config.option.markexpr:
                item.add_marker(pytest.mark.skip(reason="the long run: make soak"))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores with three attempts for each task, the data source registered; workers see the tests, too.
    With ``--spark-cluster`` the cores are those of two workers, which are processes of their own.
    """
    from artemis_py.spark import session

    path = os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with ExitStack() as stack:
        settings: dict[str, Any] = dict(QUICK_JVM)
        if request.config.option.spark_cluster:
            from tests.spark.cluster import CLUSTER, standalone_cluster

            master = stack.enter_context(standalone_cluster(tmp_path_factory.mktemp("cluster")))
            settings |= {**CLUSTER, "spark.executorEnv.PYTHONPATH": path}
            running = session("artemis_py tests", master=master, **settings)
        else:
            running = session("artemis_py tests", steps_back=False, **settings)
        running.sparkContext.setLogLevel("ERROR")
        if sys.platform == "linux":
            running.sparkContext.pythonExec = stack.enter_context(forking_python(path))
        yield running
        running.stop()


@contextmanager
def forking_python(python_path: str) -> Iterator[str]:
    """A program that stands for ``python`` where Spark starts one (``forked_python``)."""
    with tempfile.TemporaryDirectory() as folder:
        place, program = Path(folder) / "socket", Path(folder) / "python"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {HERE}/forked_python.py {place} "$@"\n', "utf-8")
        program.chmod(0o755)
        environment = {**os.environ, "PYTHONPATH": python_path, "OPENBLAS_NUM_THREADS": "1"}  # no thread beside a fork
        with subprocess.Popen(
            [sys.executable, "-m", "tests.spark.forked_python", str(place)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as server:  # fmt: skip
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield str(program)
            server.stdin.close()


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> SimulatedTraffic:
    """One for all tests of a module, whose constant ``WORLD`` may say how long it is."""
    from tests.spark.traffic import SimulatedTraffic

    return SimulatedTraffic(**getattr(request.module, "WORLD", {}))


@pytest.fixture(scope="module")
def source(spark: SparkSession, world: SimulatedTraffic) -> Frames:
    """The tables of that world."""
    import pyarrow as pa

    from artemis_py.spark.tables.schema import TABLES, arrow_schema, spark_schema
    from tests.spark.traffic_tables import Frames

    tables = {}
    for name, rows in (("messages", world.message_rows), ("events", world.event_rows)):
        columns = list(TABLES[name])
        values = pa.Table.from_pylist(rows, arrow_schema(name, columns))
        tables[name] = spark.createDataFrame(values, spark_schema(name, columns)).cache()
    return Frames(tables)


@pytest.fixture(params=["journal", "url"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    """Brokers' logs, by directory and by url."""
    from tests.spark.logs import Logs

    return Logs(tmp_path / "brokers", request.param, body_bytes=4000)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """Conditions reach the reader, as in the jobs and where a user asks for it."""
    from artemis_py.spark.runtime.sessions import PUSHDOWN

    before = str(spark.conf.get(PUSHDOWN))
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.set(PUSHDOWN, before)


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    """Streaming queries that end with the test."""
    from tests.spark.streams import Streams

    found = Streams(spark, tmp_path)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def sink_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a journal for tests that leave nothing behind but messages on addresses of their own."""
    from tests.spark.brokers import journalled_broker

    with journalled_broker(tmp_path_factory.mktemp("sink-broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared: LiveBroker) -> LiveBroker:
    """The module's ``shared`` broker; what other tests left on its queues is gone."""
    with shared.client() as client:
        for number, queue in enumerate(("jobs", "paged")):
            client.subscribe(f"::{queue}", str(number), ack="auto")
            shared.process.await_count(queue, 0)
        for queue in ("lent", "leased", "strict", "narrow", "urgent", "reports", "mine"):
            client.ask("ACK", {"destination": f"::{queue}", "filter": "TRUE"})
            shared.process.await_count(queue, 0)
    return shared
