"""Spark for a command: no output of Java on the terminal, and errors in one sentence."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.errors import ArtemisError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_OWN: Final = re.compile(r"^(?:artemis_py\.[\w.]+|[\w.]*\b(?:PipelineError|JobError)): (?P<text>.+)$", re.MULTILINE)
_COMPLAINT: Final = re.compile(
    r"^(?:Error: |Exception in thread .*?: |.* ERROR \w+: |Caused by: [\w.$]+: )(.+)$", re.MULTILINE
)


@contextmanager
def quiet_session(master: str, conf: Mapping[str, str], *, is_verbose: bool) -> Iterator[SparkSession]:
    """A session that ends with the context; ``conf`` are settings of Spark. Java's output during the start is shown
    only if the start fails.

    Raises PipelineError.
    """
    from pyspark.sql import SparkSession

    from artemis_py.spark.runtime.sessions import PUSHDOWN, session

    running = SparkSession.getActiveSession()
    if running is not None:  # somebody calls the command from a program that uses Spark itself
        yield running
        return
    with _standard_error(into_file=not is_verbose) as said:
        try:
            settings: dict[str, Any] = {_SHUFFLE: _shuffle_partitions(master), PUSHDOWN: "true", **conf}
            spark = session("artemis-py pipeline", master, **settings)
        except ArtemisError:
            raise
        except Exception as problem:
            why = complaint_of(said, problem)
            raise PipelineError(f"Spark did not start with --master {master}: {why}") from problem
    spark.sparkContext.setLogLevel("WARN" if is_verbose else "OFF")
    try:
        yield spark
    finally:
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
    except (PySparkException, Py4JError) as problem:
        if spark is not None and _has_ended(spark):
            raise PipelineError(
                "Spark itself ended, most often for lack of memory; give it more with --conf spark.driver.memory=4g "
                "(on a cluster spark.executor.memory)"
            ) from problem
        raise PipelineError(sentence_of(str(problem))) from problem
    except OSError as problem:
        raise PipelineError(f"{problem.filename or 'the operating system'}: {problem.strerror or problem}") from problem


def _has_ended(spark: SparkSession) -> bool:
    """Is there nobody any more, or one who has stopped?"""
    from py4j.protocol import Py4JError

    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return True


def sentence_of(text: str) -> str:
    """The relevant part of a long text with traces of two languages: our own error if there is one, else its first
    line.
    """
    own = _OWN.findall(text)
    if own:
        return str(own[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else "no reason was given"
    return f"Spark failed: {first} (--verbose shows the output of Java)"
