"""An archive under which the log is replaced: by another one, before a run of the job or in the middle of one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark.jobs.archive import LogFeed, archive
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened
from tests.spark.live import LiveBroker, live_broker, send_many

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ReplaceableLog:
    """A log that can be replaced while it is read, in directories that no broker has, or behind a url that stays."""

    def __init__(self, folder: Path, broker: LiveBroker | None) -> None:
        self.folder = folder
        self.broker = broker
        self.name = "e2e"

    @property
    def source(self) -> dict[str, str]:
        return {"journal": str(self.folder), "broker": self.name} if self.broker is None else {"url": self.broker.url}

    def replace(self, *, first: int = 1000, count: int = 60) -> None:
        """By the log of a broker whose directories were emptied: longer, with the same offsets for other messages."""
        if self.broker is not None:
            self.broker.kill()
        shutil.rmtree(self.folder / "journal", ignore_errors=True)
        shutil.rmtree(self.folder / "kept", ignore_errors=True)
        if self.broker is not None:
            self.broker.start_again()
            _send(self.broker, first, count)
            return
        with live_broker(self.folder) as broker:
            _send(broker, first, count)

    def feed(self, step_bytes: int = 1) -> LogFeed:
        """As the job makes it, with a step for each segment, or larger ones."""
        if self.broker is None:  # the last batch of a file counts when it has rested
            for path in self.folder.glob("*/artemis-journal-*.log"):
                os.utime(path, (0, 0))
        [(_, log)] = opened(read_options(self.source)).values()
        return LogFeed(log, self.source, "archive", step_bytes=step_bytes)


def _send(broker: LiveBroker, first: int, count: int) -> None:
    with broker.client() as client:
        for begin in range(first, first + count, 10):
            send_many(client, "orders", begin, 10, 8000)


@contextmanager
def _replaceable(kind: str, folder: Path) -> Iterator[ReplaceableLog]:
    with live_broker(folder) as broker:
        _send(broker, 0, 40)
        if kind == "url":
            yield ReplaceableLog(folder, broker)
            return
    yield ReplaceableLog(folder, None)


def archived(spark: SparkSession, directory: Path) -> list[int]:
    """Which messages are in an archive."""
    files = [str(path) for path in directory.glob("messages/date=*/address=*/batch=*/*.parquet")]
    rows = spark.read.parquet(*files).select("value").collect() if files else []
    return sorted(int(bytes(row.value).split()[0]) for row in rows)


def files_of(directory: Path) -> dict[str, bytes]:
    """All that there is, but for what is at work."""
    kept = [path for path in directory.rglob("*") if path.is_file() and "staging-" not in str(path)]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept}


@pytest.mark.takes_turns("the archives replaced between runs")
@pytest.mark.parametrize("kind", ["journal", "url"])
def test_between_two_runs(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    where = tmp_path / "archive"
    with _replaceable(kind, tmp_path / "broker") as log:
        archive(spark, [log.feed(1 << 30)], where)
        assert archived(spark, where) == [*range(40)]
        before = files_of(where)
        log.replace()
        with pytest.raises(PipelineError, match=r"not the one in the archive.*into another directory"):
            archive(spark, [log.feed()], where)
        assert files_of(where) == before


@pytest.mark.parametrize("kind", ["journal", "url"])
def test_a_broker_with_another_name(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    where = tmp_path / "archive"
    with _replaceable(kind, tmp_path / "broker") as log:
        archive(spark, [log.feed(1 << 30)], where)
        if log.broker is None:
            with live_broker(log.folder, name="new") as broker:
                _send(broker, 40, 10)
        else:
            log.broker.kill()
            log.broker.start_again("new")
            _send(log.broker, 40, 10)
        log.name = "new"
        [(name, began, *_)] = archive(spark, [log.feed(1 << 30)], where).tables[0].rows
        assert archived(spark, where) == [*range(50)]
        assert (name, began > 0) == ("e2e", True)
        frame = spark.read.parquet(str(where / "messages"))
        assert [one.broker for one in frame.select("broker").distinct().collect()] == ["e2e"]


def _at_step(log: ReplaceableLog, number: int) -> Callable[[str], None]:
    def on_step(text: str) -> None:
        if f"step {number} of" in text:
            log.replace()

    return on_step


@pytest.mark.takes_turns("the archives replaced between steps")
@pytest.mark.parametrize("kind", ["journal", "url"])
@pytest.mark.parametrize("step", [1, 2])
def test_between_two_steps(spark: SparkSession, tmp_path: Path, kind: str, step: int) -> None:
    where = tmp_path / "archive"
    with (
        _replaceable(kind, tmp_path / "broker") as log,
        pytest.raises(PipelineError, match=r"another|had the log|planned"),
    ):
        archive(spark, [log.feed()], where, on_step=_at_step(log, step))
    found = archived(spark, where)
    assert found == [*range(len(found))]
    assert bool(found) is (step == 2)


@pytest.mark.takes_turns("the archives replaced in a step")
@pytest.mark.parametrize("kind", ["journal", "url"])
def test_while_a_step_is_read(spark: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the look at the log that the step begins with, and before its tasks read."""
    where = tmp_path / "archive"
    true_frame = LogFeed.frame
    with _replaceable(kind, tmp_path / "broker") as log:

        def frame(feed: LogFeed, *given: Any) -> Any:
            if given[1] == "messages" and given[2] > 0:
                log.replace()
            return true_frame(feed, *given)

        monkeypatch.setattr(LogFeed, "frame", frame)
        with pytest.raises(PipelineError, match=r"another|had the log|planned"):
            archive(spark, [log.feed()], where)
    found = archived(spark, where)
    assert 0 < len(found) < 40
    assert found == [*range(len(found))]
    assert json.loads((where / "_archive" / "state.json").read_text())["brokers"]["e2e"] > 0
