"""Spark for a command: no output of Java on the terminal, errors in one sentence, and the progress of a long work."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, TextIO

from artemis_py.errors import ArtemisError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_OF_QUERIES: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They write each error in a condition to standard error, as JSON with the stack of Java."""
_OWN: Final = re.compile(r"^(?:artemis_py\.[\w.]+|[\w.]*\b(?:PipelineError|JobError)): (?P<text>.+)$", re.MULTILINE)
_COMPLAINT: Final = re.compile(
    r"^(?:Error: |Exception in thread .*?: |.* ERROR \w+: |Caused by: [\w.$]+: )(.+)$", re.MULTILINE
)
_CAUSES: Final = (
    re.compile(r"^((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE),
    re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE),
)
"""What a task failed with: the end of a trace of Python, else the last cause that Java names."""
_CALL: Final = re.compile(r"\A\s*An error occurred while calling \S+\s+: (?:[\w.$]+: )?")
"""How py4j begins what Java says."""
_MORE_MEMORY: Final = "give it more with --conf spark.driver.memory=4g (on a cluster spark.executor.memory)"


@contextmanager
def quiet_session(
    master: str, conf: Mapping[str, str], *, steps_back: bool, is_verbose: bool
) -> Iterator[SparkSession]:
    """A session that ends with the context; ``conf`` are settings of Spark. Java's output during the start is shown
    only if the start fails. One that ``steps_back`` lets all other processes go first.

    Raises PipelineError.
    """
    from py4j.protocol import Py4JError
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from artemis_py.spark.runtime.sessions import PUSHDOWN, session

    running = SparkSession.getActiveSession()
    if running is not None:  # somebody calls the command from a program that uses Spark itself
        yield running
        return
    with _standard_error(into_file=not is_verbose) as said:
        try:
            settings: dict[str, Any] = {_SHUFFLE: _shuffle_partitions(master), PUSHDOWN: "true", **conf}
            spark = session("artemis-py pipeline", master, steps_back=steps_back, **settings)
        except ArtemisError:
            raise
        except Exception as problem:
            why = complaint_of(said, problem)
            raise PipelineError(f"Spark did not start with --master {master}: {why}") from problem
    spark.sparkContext.setLogLevel("WARN" if is_verbose else "OFF")
    for name in _OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = not is_verbose
    try:
        yield spark
    finally:
        with warnings.catch_warnings(), suppress(Py4JError, OSError):  # of one that has ended: told_errors says so
            warnings.simplefilter("ignore")
            spark.stop()


def _shuffle_partitions(master: str) -> int:
    """Into how many parts aggregations are divided: one for each core here, Spark's own default on a cluster."""
    return max(2, os.cpu_count() or 2) if master.startswith("local") else 200


@contextmanager
def _standard_error(*, into_file: bool) -> Iterator[Path | None]:
    """The process' standard error, of Java, too, goes to a file meanwhile."""
    if not into_file:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stderr"
        before = os.dup(2)
        try:
            with path.open("wb") as file:
                os.dup2(file.fileno(), 2)
            yield path
        finally:
            os.dup2(before, 2)
            os.close(before)


def complaint_of(said: Path | None, problem: Exception) -> str:
    """The last error message of Java, else of Python."""
    complaints = _COMPLAINT.findall(said.read_text("utf-8", "replace")) if said is not None else []
    first = str(problem).strip().splitlines()[:1]
    return f"{(complaints or first or [type(problem).__name__])[-1]} (--verbose shows the output of Java)"


@contextmanager
def told_errors(spark: SparkSession | None = None) -> Iterator[None]:
    """Turns failures inside Spark, or of files, into a PipelineError with the relevant sentence; also the end of
    ``spark`` itself, after which every other error is only a consequence.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except ArtemisError:
        raise
    except (PySparkException, Py4JError, OSError, EOFError) as problem:
        if spark is not None and _has_ended(spark):
            raise PipelineError(f"Spark itself ended, most often for lack of memory; {_MORE_MEMORY}") from problem
        if isinstance(problem, OSError):
            where = problem.filename or "the operating system"
            raise PipelineError(f"{where}: {problem.strerror or problem}") from problem
        raise PipelineError(sentence_of(str(problem))) from problem


def _has_ended(spark: SparkSession) -> bool:
    """Is there nobody any more, or one who has stopped?"""
    from py4j.protocol import Py4JError

    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return True


def sentence_of(text: str) -> str:
    """The relevant part of a long text with traces of two languages: our own error if there is one, else what a task
    failed with, else the first line.
    """
    own = _OWN.findall(text)
    if own:
        return str(own[-1])
    if "java.lang.OutOfMemoryError" in text:
        return f"Spark lacked memory; {_MORE_MEMORY}"
    causes = next(filter(None, (one.findall(text) for one in _CAUSES)), [])
    lines = [line.strip() for line in _CALL.sub("", text).splitlines() if line.strip()]
    why = [*lines[:1], *causes][-1:] or ["no reason was given"]
    return f"Spark failed: {why[0].strip()} (--verbose shows the output of Java)"


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. The second one ends the program at once."""
    stop = threading.Event()

    def note(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---- progress --------------------------------------------------------------------------------------------------------
#
# On one line of a terminal, which is overwritten and finally removed.


_PERIOD_S: Final = 0.2
_BAR_WIDTH: Final = 24
_ASIDE: Final = ", when no other process is busy (--no-step-back)"


def own_stream(stream: TextIO) -> TextIO:
    """A second stream to the same terminal, which stays while standard error is redirected during Java's start; the
    stream itself if it is not a terminal.
    """
    return os.fdopen(os.dup(stream.fileno()), "w", encoding=stream.encoding) if stream.isatty() else stream


class Progress:
    """A line on ``stream`` while the context is open; nothing if the stream is not a terminal."""

    def __init__(self, stream: TextIO, text: str = "starting Spark") -> None:
        self._stream = stream
        self._is_on = stream.isatty()
        self._text = text
        self._aside = ""
        self._spark: SparkSession | None = None
        self._began_s = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._is_on:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        if self._is_on:
            self._thread.join()
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def watch(self, spark: SparkSession, *, steps_back: bool) -> None:
        """Shows the stages of this session from now on, and whether it waits for other processes."""
        self._spark = spark
        self._text = "working"
        self._aside = _ASIDE if steps_back else ""

    def say(self, text: str) -> None:
        """Show the current activity."""
        self._text = text

    def tell(self, text: str) -> None:
        """Print a line that stays, even if the stream is not a terminal."""
        start = "\r\x1b[K" if self._is_on else ""
        self._stream.write(f"{start}{text}\n")
        self._stream.flush()

    def _run(self) -> None:
        while not self._end.wait(_PERIOD_S):
            line = self._line()
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{line[:width]}")
            self._stream.flush()

    def _line(self) -> str:
        return line_of(self._text, time.monotonic() - self._began_s, self._tasks()) + self._aside

    def _tasks(self) -> tuple[int, int]:
        """Tasks done and in all, of the stages under way; (0, 0) when there are none."""
        if self._spark is None:
            return 0, 0
        try:
            tracker = self._spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception:  # the session ends while it is being asked; there is nothing to show then
            return 0, 0
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def line_of(text: str, elapsed_s: float, tasks: tuple[int, int]) -> str:
    """The line itself."""
    done, total = tasks
    if not total:
        return f"{text} … {elapsed_s:.0f} s"
    filled = _BAR_WIDTH * done // total
    return f"{text} [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done} of {total} tasks, {elapsed_s:.0f} s"
