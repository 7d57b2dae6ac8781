"""The pipeline's benchmark measures what it says: it runs, small, and finds every row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.errors import PipelineError
from bench.part import Finding
from bench.pipeline import measure_reads
from bench.pipeline_live import Live
from bench.scaling import Scaled, Scaling, measure_brokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_reads(spark: SparkSession, tmp_path: Path) -> None:
    found: list[Finding] = []
    measure_reads(spark, tmp_path, 2400, 1, lambda _: None, found)
    assert [(one.name, len(one.values)) for one in found] == [
        ("read, all columns", 1),
        ("read, four columns", 1),
        ("read, all columns, without bodies", 1),
        ("read, yardstick: bodies cut by struct", 1),
        ("CPU per row, all columns", 1),
        ("CPU per row, four columns", 1),
        ("CPU per row, all columns, without bodies", 1),
        ("CPU per row, yardstick: bodies cut by struct", 1),
        ("read one hour of 24", 5),
    ]


def test_rows_that_are_missing_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_nothing(folder: Path, messages: int) -> None:
        folder.mkdir()
        (folder / "artemis-journal-000000000001.log").write_bytes(bytes(1000))

    monkeypatch.setattr("bench.pipeline_log.write_day", write_nothing)
    with pytest.raises(PipelineError, match="all columns: 0 rows of 100 messages"):
        measure_reads(spark, tmp_path, 100, 1, lambda _: None, [])


@pytest.mark.slow
def test_several_brokers(spark: SparkSession) -> None:
    found = Scaled(2)
    measure_brokers(spark, found, 2000)
    assert (len(found.taken), list(found.tasks.values())) == (1, [2, 2, 4])
    assert Scaling([found]).tables()[0].rows[1][0] == "2"


@pytest.mark.slow
def test_consuming_a_queue(spark: SparkSession, tmp_path: Path) -> None:
    found: list[Finding] = []
    Live(spark, tmp_path, 0.2, lambda _: None, found).queue(1, jobs=100)
    assert [(one.name, len(one.values)) for one in found] == [
        ("stream, log of a queue", 1),
        ("stream, queue consumed", 1),
    ]


@pytest.mark.slow
def test_beside_a_broker(spark: SparkSession, tmp_path: Path) -> None:
    found: list[Finding] = []
    live = Live(spark, tmp_path, 0.2, lambda _: None, found)
    live.lag(1)
    live.sink(1)
    live.cost(1)
    assert {one.name for one in found if not one.values} == set()
    assert all(value > 0 for one in found if one.unit != "%" for value in one.values)
