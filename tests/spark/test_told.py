"""What a query says that would read nothing, or that shares its cursor with another one; no JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark.jobs.source import LogTables
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import LogStreamReader
from tests.spark.live import LiveBroker, live_broker
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.readers import Query, rows_read


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("told")) as broker:
        broker.send(0, 5)
        yield broker


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "ordres"}, ["no log has the address 'ordres': did you mean 'orders'?"]),
        ({"subscribe": "orders,1"}, ["no log has the address '1'"]),
        ({"subscribePattern": "bills.#"}, ["no log has an address that matches the pattern 'bills.#'"]),
        ({"subscribe": "orders", "subscribePattern": "idle.*"}, []),
        ({}, []),
    ],
)
def test_an_address_that_no_log_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str], said: list[str]
) -> None:
    log = MadeLog(tmp_path / "log")
    log.segment(START_MS)
    log.publish(START_MS + 1, 3)
    log.publish(START_MS + 2, 1, address="idle.one")
    given = {"journal": str(tmp_path / "log"), **options}
    with caplog.at_level(logging.WARNING):
        RowReader(read_options(given)).partitions()
        assert caplog.messages == said
        caplog.clear()
        LogStreamReader(read_options(given, streaming=True)).initialOffset()
        assert caplog.messages == said
    assert [one for one in LogTables(given).caveats() if "no log has" in one] == said


def test_an_address_that_no_broker_knows(broker: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    for streaming in (False, True):
        with caplog.at_level(logging.WARNING):
            assert rows_read({"url": broker.url, "subscribe": "ordres"}, streaming=streaming) == []
        assert "no log has the address 'ordres': did you mean 'orders'?" in caplog.messages
        caplog.clear()


def test_two_queries_with_one_cursor(broker: LiveBroker) -> None:
    first, second = Query(url=broker.url, cursor="shared"), Query(url=broker.url, cursor="shared")
    begin = first.at
    assert (first.trigger(), second.trigger()) == ([*range(5)],) * 2
    broker.send(5, 5)
    first.at = begin
    with pytest.raises(PipelineError, match=r"cursor shared of .* is moved by two queries"):
        first.trigger()
    assert second.trigger() == [*range(5, 10)]


def test_a_directory_keeps_no_cursor(broker: LiveBroker) -> None:
    with pytest.raises(PipelineError, match="only a running broker keeps cursors"):
        Query(journal=str(broker.folder), broker="e2e", cursor="c").trigger(ReadAllAvailable())


def test_a_query_that_starts_again_keeps_its_cursor(broker: LiveBroker) -> None:
    before = Query(url=broker.url, cursor="mine")
    before.trigger()
    again = Query(before.at, url=broker.url, cursor="mine")
    for number in range(10, 13):
        broker.send(number, 1)
        assert again.trigger() == [number]
