"""Scenario ``pipeline``: Spark on two cores reads, follows and feeds a broker."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.errors import ArtemisError, PipelineError
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.result import MILLION
from artemis_py.spark.runtime.java import INSTALL, ensure_java
from bench.own import ROOT
from bench.part import Extent, Finding, Findings, Say

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES: Final = 1_000_000
_HOUR: Final = 10
_ROWS_PER_SECOND_MIN: Final = 800_000
_WARM_HOURS: Final = 5
_WARM_UPS: Final = 3


def absent() -> str | None:
    """What this machine lacks to run Spark, None when it can."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed: {INSTALL}"
    try:
        ensure_java(dict(os.environ))
    except PipelineError as lacking:
        return str(lacking)
    return None


def measure_pipeline(extent: Extent, say: Say) -> Findings:
    """All of it, so many rounds. What fails is kept as a problem, and the rest goes on."""
    pipeline = Findings("pipeline")
    rounds, seconds = extent.rounds, extent.seconds
    messages = extent.messages or (MESSAGES // 10 if extent.quick else MESSAGES)
    lacking = absent()
    if lacking is not None:
        pipeline.problems.append(f"not measured: {lacking}")
        return pipeline
    from pyspark.errors import PySparkException

    from bench.pipeline_live import Live

    with tempfile.TemporaryDirectory(prefix="bench-pipeline-", ignore_cleanup_errors=True) as folder:
        home, found = Path(folder), pipeline.found
        parts: tuple[Callable[[Live], None], ...] = (
            lambda live: measure_reads(live.spark, home, messages, rounds, say, found),
            lambda live: live.lag(rounds),
            lambda live: live.sink(rounds),
            lambda live: live.queue(rounds),
            lambda live: live.cost(rounds),
        )
        for number, measure in enumerate(parts):
            try:
                with spark_session() as spark:
                    measure(Live(spark, home / f"part{number}", seconds, say, found))
            except (ArtemisError, PySparkException) as error:
                pipeline.problems.append(f"failed: {str(error).splitlines()[0]}")
    return pipeline


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Local Spark as users get it; workers find the yardstick, too."""
    from artemis_py.spark import session

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    spark = session("artemis_py bench")
    spark.sparkContext.setLogLevel("FATAL")  # a stopped query tells of the batch it was in
    try:
        yield spark
    finally:
        spark.stop()


def measure_reads(spark: SparkSession, home: Path, messages: int, rounds: int, say: Say, found: list[Finding]) -> None:
    """How fast a log of a day is read, all of it and one hour. Raises PipelineError when rows are missing."""
    from bench.pipeline_log import write_day
    from bench.struct_walk import StructWalk

    say(f"pipeline: writes a day of log, {messages:,} messages")
    log = home / "day"
    write_day(log, messages)
    spark.dataSource.register(StructWalk)
    reads: dict[str, Callable[[], DataFrame]] = {
        "all columns": lambda: _log(spark, log),
        "four columns": lambda: _log(spark, log, columns="offset,timestamp,address,value"),
        "all columns, without bodies": lambda: _log(spark, log, includeBody="false"),
        "yardstick: bodies cut by struct": lambda: spark.read.format("struct_walk").load(str(log)),
    }
    rates = {
        name: Finding(f"read, {name}", "/s", at_least=None if "yardstick" in name else _ROWS_PER_SECOND_MIN)
        for name in reads
    }
    costs = {name: Finding(f"CPU per row, {name}", "µs", 2, in_page=False) for name in reads}
    hour = Finding("read one hour of 24", "s", 2, below=1.0)
    found += [*rates.values(), *costs.values(), hour]
    all_processes = ProcessTree(os.getpid())
    for name, frame in reads.items():
        say(f"pipeline: warms up, {name}")
        _check(name, frame().count(), messages)
        for _ in range(_WARM_UPS):  # the virtual machine compiles what is hot
            _consume(frame())
    for number in range(1, rounds + 1):
        for name, frame in reads.items():
            say(f"pipeline: round {number} of {rounds}, {name}")
            before_s = all_processes.usage().cpu_s
            rates[name].values.append(messages / _seconds(partial(_consume, frame())))
            costs[name].values.append((all_processes.usage().cpu_s - before_s) / messages * MILLION)
        for _ in range(_WARM_HOURS):
            hour.values.append(_seconds(lambda: _check_hour(_hour(spark, log), messages)))


def _log(spark: SparkSession, log: Path, **options: str) -> DataFrame:
    return spark.read.format("artemis").options(**options).load(str(log))


def _hour(spark: SparkSession, log: Path) -> DataFrame:
    from pyspark.sql import functions

    from bench.pipeline_log import BEGIN_MS, HOUR_MS

    begin_s, end_s = ((BEGIN_MS + hour * HOUR_MS) / 1000 for hour in (_HOUR, _HOUR + 1))
    when = functions.col("publishedAt")
    low, high = functions.timestamp_seconds(functions.lit(begin_s)), functions.timestamp_seconds(functions.lit(end_s))
    return _log(spark, log).where((when >= low) & (when < high))


def _check_hour(hour: DataFrame, messages: int) -> None:
    count = hour.count()
    if not 0 <= abs(count - messages / 24) <= max(2, messages / 24 / 100):
        raise PipelineError(f"one hour of {messages:,} messages in a day had {count:,} rows")


def _check(name: str, rows: int, messages: int) -> None:
    if rows != messages:
        raise PipelineError(f"{name}: {rows:,} rows of {messages:,} messages")


def _consume(frame: DataFrame) -> None:
    """Every row with every column reaches Spark, and nothing is done with it."""
    frame.write.format("noop").mode("overwrite").save()


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
