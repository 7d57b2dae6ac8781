"""Parts of jobs that need no Spark: shapes of bodies, times, results, errors, progress."""

from __future__ import annotations

import argparse
import io
import json
import logging
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest
from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger

from artemis_py.cli.pipeline import JOBS, _result, add_arguments
from artemis_py.cli.pipeline import _print as print_result
from artemis_py.errors import PipelineError
from artemis_py.spark.jobs import replay
from artemis_py.spark.jobs.archived import ArchiveTables
from artemis_py.spark.jobs.body_shapes import body_shape, preview
from artemis_py.spark.jobs.result import BYTES, COUNT, MS, TEXT, TIME, Column, Result, Table, shown
from artemis_py.spark.jobs.source import Call, JobError, moment_ms
from artemis_py.spark.runtime import command
from artemis_py.spark.runtime.command import Progress, complaint_of, line_of, sentence_of, told_errors
from artemis_py.spark.runtime.sessions import _interrupts_noted, await_end

NOW_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (None, "not stored"), (b"", "empty"), (b'{"b": 1, "a": 2}', "JSON object: a, b"),
        (b" {} ", "JSON object without members"),
        (b"[]", "JSON array without elements"), (b"[1, 2]", "JSON array of int"),
        (b'[{"a": 1}, {"a": 2}, "x"]', "JSON array of JSON object: a, str"),
        (b"{oops", "text that begins with { and is not JSON"),
        (b"<?xml version='1.0'?>\n<!-- c --><ns:order>", "XML ns:order"), (b"< 3", "text"), (b"12.5", "number"),
        (b"hello", "text"), (b"\x1f\x8b..", "gzip"), (b"\xff\xfe\x00", "binary"), (b"a\x00b", "binary"),
        (b"[" * 100_000, "text that begins with [ and is not JSON"),
    ],
)  # fmt: skip
def test_shapes(body: bytes | None, shape: str) -> None:
    assert body_shape(body) == shape


def test_a_shape_names_twelve_members() -> None:
    body = b"{" + b",".join(b'"m%02d":1' % number for number in range(20)) + b"}"
    assert body_shape(body).endswith("m11 and 8 more")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"one\ttwo\n", "one\\ttwo\\n"), (b"\xff\x00", "ff 00"), (None, ""), (b"x" * 500, "x" * 120 + "…"),
        ("€".encode() * 400, "€" * 120 + "…"), (b"a" * 479 + "€".encode(), "a" * 120 + "…"),
    ],
)  # fmt: skip
def test_previews(body: bytes | None, text: str) -> None:
    assert preview(body) == text


@pytest.mark.parametrize(
    ("text", "offset_ms"),
    [
        ("now", 0), ("2h", -7_200_000), ("90s", -90_000), ("1.5d", -129_600_000), ("250ms", -250),
        ("2026-01-31T12:00", 0),
        ("2026-01-31T13:00+01:00", 0), ("2026-01-31", -43_200_000), ("10:00", -7_200_000), ("12:00:00.250", 250),
        (str(NOW_MS), 0),
    ],
)  # fmt: skip
def test_moments(text: str, offset_ms: int) -> None:
    assert moment_ms(text, NOW_MS) == NOW_MS + offset_ms


@pytest.mark.parametrize("text", ["", "yesterday", "25:00", "2026-02-30", "5"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write 2026-01-31T10:00"):
        moment_ms(text, NOW_MS)


@pytest.mark.parametrize("text", ["1000000d", "9" * 400 + "d", "9999-12-31T23:59-12:00", "0001-01-01T00:00+12:00"])
def test_what_no_date_can_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not in the years 1 to 9999 \(UTC\)"):
        moment_ms(text, NOW_MS)


NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)


COLUMNS = (
    Column("broker", "broker"), Column("queue", "queue"), Column("count", "messages", COUNT), Column("at", "at", TIME),
    Column("none", "none"),
)  # fmt: skip
LOST = Table(
    "lost", "What went", COLUMNS, [("b", "orders", 1234, NOON, None), ("b", "\x1b[31mred", 5, None, "")], count=12
)
RESULT = Result(
    "losses",
    "Losses",
    [(Column("size", "size", BYTES), 3 * 1024**2)],
    [LOST, Table("empty", "Empty", COLUMNS, [])],
    ["look & see"],
)
"""With one of everything."""


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """No column without values, and no broker's name where there is only one."""
    print_result(RESULT)
    title, size, _, went, heads, orders, red, more, *rest = capsys.readouterr().out.splitlines()
    assert (title, size, went) == ("Losses", "  size: 3.0 MiB", "What went")
    assert heads.split() == ["queue", "messages", "at"]
    assert orders.split() == ["orders", "1,234", "2026-01-31", "12:00:00.250"]
    assert red.split() == ["\\x1b[31mred", "5"]
    assert (more, rest) == ("and 10 more; --parquet and --json have them", ["", "Empty: nothing", "note: look & see"])


def test_json() -> None:
    value = json.loads(RESULT.as_json())
    assert value["facts"] == {"size": 3 * 1024**2}
    assert value["tables"]["lost"][0] == {
        "broker": "b", "queue": "orders", "count": 1234, "at": "2026-01-31T12:00:00.250Z", "none": None,
    }  # fmt: skip
    assert (value["missing"], value["notes"]) == ({"lost": 10}, ["look & see"])


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (COUNT, 1234567, "1,234,567"), (BYTES, 100, "100 B"), (BYTES, 1024**4 * 5, "5.0 TiB"), (MS, 950, "950 ms"),
        (MS, 61_000, "61.0 s"), (MS, 7_300_000, "2.0 h"), (TEXT, "a", "a"), (COUNT, None, ""),
        (TIME, NOON.replace(microsecond=0), "2026-01-31 12:00:00"),
    ],
)  # fmt: skip
def test_units(kind: str, value: object, text: str) -> None:
    assert shown(kind, value) == text


def test_of_a_long_trace_our_own_sentence_is_told() -> None:
    trace = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed when Python data source ran: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in read\nartemis_py.errors.PipelineError: no journal files there; name a directory\n\n'
        "\tat org.apache.spark.sql.errors.X\n"
    )
    assert sentence_of(trace) == "no journal files there; name a directory"
    assert sentence_of("\n[CANNOT] do it.\n\tat org.apache").startswith("Spark failed: [CANNOT] do it.")


_STAGE = (
    "An error occurred while calling o87.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to stage "
    "failure: Task 0 in stage 3.0 failed 3 times, most recent failure: Lost task 0.2 in stage 3.0 (TID 5) (here): "
)


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("ExecutorLostFailure (executor 1 exited)\nDriver stacktrace:\n\tat org.apache.spark.X\n",
         f"{_STAGE.partition('SparkException: ')[2]}ExecutorLostFailure (executor 1 exited)"),
        ("""org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "x.py", line 1, in write
OSError: [Errno 28] No space left on device

\tat org.apache.spark.X
Caused by: java.io.EOFException
\tat java.io.X""", "OSError: [Errno 28] No space left on device"),
        ("""org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.
\tat org.apache.spark.X
Caused by: java.io.FileNotFoundException: /data/part-1.parquet (Permission denied)
\t... 20 more""", "/data/part-1.parquet (Permission denied)"),
    ],
)  # fmt: skip
def test_of_a_long_trace_what_a_task_failed_with_is_told(trace: str, said: str) -> None:
    assert sentence_of(_STAGE + trace) == f"Spark failed: {said} (--verbose shows the output of Java)"


def test_a_lack_of_memory_names_the_setting() -> None:
    trace = f"{_STAGE}java.lang.OutOfMemoryError: Java heap space\n\tat java.util.X\n"
    assert sentence_of(trace).startswith("Spark lacked memory; give it more with --conf spark.driver.memory=4g")


@pytest.mark.parametrize("error", [Py4JError("x"), ConnectionRefusedError(111, "x"), EOFError("x")], ids=repr)
@pytest.mark.parametrize(
    ("is_stopped", "said"), [(True, r"Spark itself ended, .* spark\.driver\.memory=4g"), (False, ": x")]
)
def test_when_spark_itself_has_ended(error: Exception, is_stopped: bool, said: str) -> None:
    class Spark:
        """As much of a session as is asked."""

        sparkContext = SimpleNamespace(  # noqa: N815
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: is_stopped))
        )

    with pytest.raises(PipelineError, match=said), told_errors(Spark()):  # type: ignore[arg-type]
        raise error


@pytest.mark.parametrize("is_verbose", [False, True])
def test_spark_logs_no_error_that_the_command_tells(monkeypatch: pytest.MonkeyPatch, is_verbose: bool) -> None:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=lambda _level: None), stop=lambda: None)
    monkeypatch.setattr("artemis_py.spark.runtime.sessions.session", lambda *_, **__: spark)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with command.quiet_session("local[1]", {}, steps_back=False, is_verbose=is_verbose):
        loggers = [PySparkLogger.getLogger(f"{of}QueryContextLogger") for of in ("SQL", "DataFrame")]
        assert [one.isEnabledFor(logging.ERROR) for one in loggers] == [is_verbose] * 2


def test_why_spark_did_not_start(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    said.write_text(
        "WARNING: Using incubator modules\n"
        "Caused by: java.net.ConnectException: finishConnect(..) failed\n\tat io.netty.X\n"
        "26/01/31 00:58:44 ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.\n"
        "26/01/31 00:58:44 WARN StandaloneSchedulerBackend: Application ID is not initialized yet.\n"
    )
    end = " (--verbose shows the output of Java)"
    assert complaint_of(said, ValueError("x\ny")) == f"All masters are unresponsive! Giving up.{end}"
    said.write_text("")
    assert complaint_of(said, ValueError("first\nsecond")) == f"first{end}"
    assert complaint_of(None, ValueError()) == f"ValueError{end}"


def test_ctrl_c_counts_when_spark_has_started() -> None:
    """Else a Java stays that nobody knows."""
    before = signal.getsignal(signal.SIGINT)
    started: list[str] = []

    with _interrupts_noted() as pressed:
        signal.raise_signal(signal.SIGINT)
        started.append("Spark")
    assert (started, pressed) == (["Spark"], [signal.SIGINT])
    assert signal.getsignal(signal.SIGINT) is before


@dataclass
class InterruptedQuery:
    """A streaming query during which Ctrl-C is pressed once."""

    calls: list[str] = field(default_factory=list)

    def awaitTermination(self, timeout_s: int) -> bool:
        assert timeout_s <= 1
        if not self.calls:
            signal.raise_signal(signal.SIGINT)
        self.calls.append("wait")
        return "stop" in self.calls

    def stop(self) -> None:
        self.calls.append("stop")


def test_ctrl_c_stops_a_query_that_is_awaited() -> None:
    before = signal.getsignal(signal.SIGINT)
    query = InterruptedQuery()
    await_end(query)  # type: ignore[arg-type]
    assert query.calls == ["wait", "stop", "wait"]
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_is_for_terminals_and_leaves_nothing() -> None:
    pipe = io.StringIO()
    with Progress(pipe) as progress:
        progress.say("x")
    assert pipe.getvalue() == ""
    terminal = Mock(wraps=io.StringIO(), **{"isatty.return_value": True})
    with Progress(terminal):
        pass
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "is_terminal", "steps_back"),
    [
        ([], True, True),
        ([], False, False),
        (["--no-step-back"], True, False),
        (["--step-back"], False, True),
        (["--step-back", "--master", "spark://host:7077"], True, False),
    ],
)
def test_a_job_steps_back_for_somebody_who_waits(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], is_terminal: bool, steps_back: bool
) -> None:
    """And says so; a job of a timer competes as any other process."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(["losses", "--archive", "/nowhere", *arguments])
    session = MagicMock()
    monkeypatch.setattr(command, "quiet_session", session)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    terminal = Mock(wraps=io.StringIO(), **{"isatty.return_value": True})
    with ExitStack() as stack, pytest.raises(JobError, match="has no table"):
        _result(args, ArchiveTables(Path("/nowhere")), stack, stack.enter_context(Progress(terminal)))
    assert session.call_args.kwargs == {"steps_back": steps_back, "is_verbose": False}
    shown = Progress(terminal)
    shown.watch(SimpleNamespace(), steps_back=steps_back)  # type: ignore[arg-type]
    assert ("--no-step-back" in shown._line()) is steps_back


def test_the_line_of_progress() -> None:
    assert line_of("working", 3.4, (0, 0)) == "working … 3 s"
    assert line_of("working", 3.6, (6, 24)) == "working [######..................] 6 of 24 tasks, 4 s"


def test_a_replay_goes_on_with_the_times_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--from 2h`` would mean later messages then: other chunks, and published once more."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = ["--url", "http://x:1", "--address", "again", "--publish", "--target", "tcp://x:2", "--from", "2h"]
    args = parser.parse_args(["replay", *given])
    told: list[str] = []
    monkeypatch.setattr(replay, "replay", lambda *_args, **_named: None)
    JOBS["replay"].call(Call(None, ArchiveTables(Path("/nowhere")), told.append, told.append), args)  # type: ignore[arg-type]
    [line] = told
    assert line.endswith(f" --from {args.from_ms} to continue")
    again = parser.parse_args(["replay", *given, *line.partition("run it again with ")[2].split()[:-2]])
    assert (again.from_ms, again.run_id) == (args.from_ms, line.split(":")[0].removeprefix("run id "))
