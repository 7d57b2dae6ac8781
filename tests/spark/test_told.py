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
from tests.spark.live import LiveBroker, live_broker, send_many
from tests.spark.made_log import START_MS, MadeLog


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("told")) as broker, broker.client() as client:
        send_many(client, "orders", 0, 5)
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


def reader(broker: LiveBroker, cursor: str) -> LogStreamReader:
    given = {"url": broker.url, "cursor": cursor, "startingOffsets": "earliest"}
    return LogStreamReader(read_options(given, streaming=True))


def step(query: LogStreamReader, start: dict[str, object]) -> dict[str, object]:
    """One batch, to its end."""
    end = query.latestOffset(start, ReadAllAvailable())
    query.partitions(start, end)
    query.commit(end)
    return end


def test_two_queries_with_one_cursor(broker: LiveBroker) -> None:
    first, second = reader(broker, "shared"), reader(broker, "shared")
    begin = first.initialOffset()
    step(first, begin)
    second_at = step(second, second.initialOffset())
    with broker.client() as client:
        send_many(client, "orders", 5, 5)
    with pytest.raises(PipelineError, match=r"cursor shared of .* is moved by two queries"):
        step(first, begin)
    step(second, second_at)


def test_a_query_that_starts_again_keeps_its_cursor(broker: LiveBroker) -> None:
    at = step(reader(broker, "mine"), reader(broker, "mine").initialOffset())
    again = reader(broker, "mine")
    for number in range(3):
        with broker.client() as client:
            send_many(client, "orders", 10 + number, 1)
        at = step(again, at)
