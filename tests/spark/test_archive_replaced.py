"""An archive under which the log is replaced: by another one, before a run of the job or in the middle of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark.jobs.archive import LogFeed, archive
from tests.spark.logs import KINDS, Logs, feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_AT_ONCE = 1 << 30
"""The bytes of a step in which a whole log fits; with less a step is a segment."""


@pytest.fixture(params=KINDS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    found = Logs(tmp_path / "brokers", request.param, body_bytes=8000)
    found.send(0, 40)
    return found


def archived(spark: SparkSession, directory: Path) -> list[int]:
    """Which messages are in an archive."""
    files = [str(path) for path in directory.glob("messages/date=*/address=*/batch=*/*.parquet")]
    rows = spark.read.parquet(*files).select("value").collect() if files else []
    return sorted(int(bytes(row.value).split()[0]) for row in rows)


def replace(log: Logs) -> None:
    """By one that is longer."""
    log.exchange()
    log.send(1000, 60)


@pytest.mark.takes_turns("the archives replaced between runs")
def test_between_two_runs(spark: SparkSession, tmp_path: Path, log: Logs) -> None:
    where = tmp_path / "archive"
    with log.source() as source:
        archive(spark, [feed(source, ALL_AT_ONCE)], where)
    assert archived(spark, where) == [*range(40)]
    kept = [path for path in where.rglob("*") if path.is_file() and "staging-" not in str(path)]
    before = {path: path.read_bytes() for path in kept}
    replace(log)
    with log.source() as source, pytest.raises(PipelineError, match=r"not the one in the archive.*another directory"):
        archive(spark, [feed(source)], where)
    assert {path: path.read_bytes() for path in kept} == before
    assert archived(spark, where) == [*range(40)]


def test_a_broker_with_another_name(spark: SparkSession, tmp_path: Path, log: Logs) -> None:
    where = tmp_path / "archive"
    with log.source() as source:
        archive(spark, [feed(source, ALL_AT_ONCE)], where)
    log.send(40, 10, name="new")
    with log.source(e2e="new") as source:
        [(name, began, *_)] = archive(spark, [feed(source, ALL_AT_ONCE)], where).tables[0].rows
    assert archived(spark, where) == [*range(50)]
    assert (name, began > 0) == ("e2e", True)
    frame = spark.read.parquet(str(where / "messages"))
    assert [one.broker for one in frame.select("broker").distinct().collect()] == ["e2e"]


@pytest.mark.takes_turns("the archives replaced between steps")
@pytest.mark.parametrize("step", [1, 2])
def test_between_two_steps(spark: SparkSession, tmp_path: Path, log: Logs, step: int) -> None:
    where = tmp_path / "archive"

    def on_step(text: str) -> None:
        if f"step {step} of" in text:
            replace(log)

    with log.source() as source, pytest.raises(PipelineError, match=r"another|had the log|planned"):
        archive(spark, [feed(source)], where, on_step=on_step)
    found = archived(spark, where)
    assert found == [*range(len(found))]
    assert bool(found) is (step == 2)


@pytest.mark.takes_turns("the archives replaced in a step")
def test_while_a_step_is_read(spark: SparkSession, tmp_path: Path, log: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the look at the log that the step begins with, and before its tasks read."""
    where = tmp_path / "archive"
    true_frame = LogFeed.frame

    def frame(feed: LogFeed, *given: Any) -> Any:
        if given[1] == "messages" and given[2] > 0:
            replace(log)
        return true_frame(feed, *given)

    monkeypatch.setattr(LogFeed, "frame", frame)
    with log.source() as source, pytest.raises(PipelineError, match=r"another|had the log|planned"):
        archive(spark, [feed(source)], where)
    found = archived(spark, where)
    assert 0 < len(found) < 40
    assert found == [*range(len(found))]
    assert json.loads((where / "_archive" / "state.json").read_text())["brokers"]["e2e"] > 0
