"""Tables added up in spans: the same rows as if one task read the whole log, wherever the spans meet."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import artemis_py.spark
from artemis_py.spark.read import aggregated_tables
from artemis_py.spark.read.aggregated_tables import AggregateReader, rows_of_broker
from artemis_py.spark.read.options import read_options
from tests.kit.client import StompSocket
from tests.kit.journal_story import START_MS
from tests.spark.live import SETTINGS, live_broker
from tests.spark.made_log import survey
from tests.spark.readers import Row, rows_in, rows_of, rows_read
from tests.spark.test_queue_contents import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_spans(folder: Path, table: str, span_bytes: int, **options: str) -> tuple[list[Row], int]:
    """The rows as Spark puts them together, and of how many spans; they come in any order."""
    given = {"journal": str(folder), "broker": "b", "partitionBytes": str(span_bytes), **options}
    reader = AggregateReader(read_options({**given, "table": f"{table.removesuffix('s')}-spans"}))
    spans = [batch for share in reader.partitions() for batch in reader.read(share)]
    if not spans:  # Spark calls nobody for no rows
        return [], 0
    mixed = pa.Table.from_batches(spans)
    mixed = mixed.take(pa.array(random.Random(1).sample(range(len(mixed)), len(mixed)), pa.int64()))
    return rows_of_broker({**given, "table": table}, mixed).to_pylist(), len(mixed)


@pytest.mark.parametrize("stays", [False, True])
def test_a_log_of_every_kind_of_traffic(tmp_path: Path, rng: random.Random, *, stays: bool) -> None:
    """Consumers that come and go, deliveries that fail, scheduled messages, copies that compaction made; at any time,
    surveyed or not, in spans of any size down to a few records. Of options each run draws a size.
    """
    made(tmp_path, rng, stays=stays)
    asked: list[dict[str, str]] = [{}, {"subscribe": "elsewhere"}]
    asked += [{"asOf": str(START_MS + 1000 * rng.randrange(300))} for _ in range(4)]
    asked.append({"asOf": str(START_MS - 1)})  # before the first record: a reader without tasks
    for is_surveyed in (False, True):
        for options in asked:
            wanted = rows_in(tmp_path, "queues", **options)
            for span_bytes in (1, 5000, 40_000, 1 << 30) if not options else [rng.choice((1, 5000, 40_000))]:
                found, count = in_spans(tmp_path, "queues", span_bytes, **options)
                assert found == wanted, (options, span_bytes, is_surveyed)
                assert count > 20 or span_bytes > 1 or options
        survey(tmp_path)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log with a ring, pages that are read and purged, deleted queues, schedules and restarts."""
    folder = tmp_path_factory.mktemp("lived")
    with live_broker(folder, file_bytes="32K") as broker:
        for life in range(3):
            with broker.client() as client:
                for queue, count, size_bytes in (("orders", 60, 300), ("ring", 20, 200), ("paged", 90, 600)):
                    broker.send(life * 100, count, queue, size_bytes)
                later = {"destination": "/queue/orders", "persistent": "true", "AMQ_SCHEDULED_DELAY": "3600000"}
                client.ask("SEND", later, b"later")
                for queue, count in (("orders", 25), ("paged", 70)):
                    client.subscribe(f"/queue/{queue}", id=queue, consumer_window_size="0")
                    for _ in range(count + life):
                        client.acknowledge(client.message())
                    client.ask("NACK", {"id": client.message().header("ack")})
                    client.message()
                    client.ask("UNSUBSCRIBE", {"id": queue})
                client.subscribe("/queue/orders", id="3", ack="client")
                client.message()
            with StompSocket(broker.process.port) as client:
                client.connect(client_id="c")
                client.subscribe("/topic/paged", id="4", durable_subscription_name=f"for{life}")
                for number in range(60):
                    client.ask("SEND", {"destination": "/topic/paged", "persistent": "true"}, b"%d" % number * 300)
                if life != 1:
                    client.ask("UNSUBSCRIBE", {"id": "4", "durable-subscription-name": f"for{life}"})
            broker.start_again()
    return folder


@pytest.mark.parametrize("table", ["queues", "pages"])
@pytest.mark.parametrize("span_bytes", [1, 30_000, 1 << 30])
def test_the_log_of_a_broker(lived: Path, table: str, span_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregated_tables, "_FIRST", 1 << 30)
    wanted = rows_in(lived, table)
    monkeypatch.undo()
    assert len(wanted) > 2
    assert table == "pages" or sum(row["scheduledCount"] for row in wanted) == 3
    assert rows_in(lived, table) == wanted
    found, count = in_spans(lived, table, span_bytes)
    assert found == wanted
    assert (count > 5) is (span_bytes == 1) or span_bytes == 30_000


@pytest.mark.parametrize("interval", ["1 millisecond", "50 milliseconds", "1 second", "1 hour"])
def test_metrics_are_cut_where_intervals_meet(lived: Path, interval: str) -> None:
    wanted = rows_in(lived, "metrics", interval=interval)
    for span_bytes in (1, 60_000):
        found = rows_in(lived, "metrics", interval=interval, partitionBytes=str(span_bytes))
        key = lambda row: (row["queue"], row["bucket"])  # noqa: E731
        assert sorted(found, key=key) == sorted(wanted, key=key)


@pytest.mark.parametrize(("stays", "found"), [(False, "by chance"), (True, "by chance"), (True, "kept")])
def test_metrics_of_every_kind_of_traffic(tmp_path: Path, rng: random.Random, found: str, *, stays: bool) -> None:
    """Once with a seed by which a task began in a segment whose depths come behind the task's first events: a cut
    between what is carried into a segment and its depths.
    """
    if found == "kept":
        rng = random.Random(f"2569949877:tests/spark/test_spans.py::test_metrics_of_every_kind_of_traffic[{stays}]")
    made(tmp_path, rng, stays=stays)
    for options in ({}, {"startingTimestamp": str(START_MS + 150_000)}, {"endingTimestamp": str(START_MS + 200_000)}):
        given = {"journal": str(tmp_path), "table": "metrics", "interval": "5 seconds", **options}
        wanted = rows_read(given)
        reader = AggregateReader(read_options({**given, "partitionBytes": "5000"}))
        shares = reader.partitions()
        assert len(shares) > 3
        rows = rows_of(reader, shares)
        assert sorted(rows, key=lambda row: (row["queue"], row["bucket"])) == wanted


def test_in_spark(spark: SparkSession, lived: Path, tmp_path: Path, rng: random.Random) -> None:
    """Of two brokers, with the options of the tables."""
    made(tmp_path / "other", rng, stays=True)
    source = {"journal": f"one={lived},two={tmp_path / 'other'}", "partitionBytes": "30000"}
    for table, added_up in (("queues", artemis_py.spark.queues), ("pages", artemis_py.spark.pages)):
        wanted = spark.read.format("artemis").options(**source, table=table).load()
        found = added_up(spark, source)
        assert found.schema == wanted.schema
        assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect()))
    chosen = artemis_py.spark.queues(spark, {**source, "columns": "queue,messageCount", "subscribe": "ring"})
    assert [row.asDict() for row in chosen.collect()] == [{"queue": "ring", "messageCount": 3}]


def test_pages_whose_numbers_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue is purged with its pages; the broker starts again and gives their numbers and places to others."""
    purged = "<default-purge-on-no-consumers>true</default-purge-on-no-consumers><page-size-bytes>"
    with live_broker(tmp_path, settings=SETTINGS.replace("<page-size-bytes>", purged)) as broker:
        for count in (60, 61, 62):
            with broker.client() as client:
                client.subscribe("/queue/paged", id="1", ack="client", consumer_window_size="0")
                broker.send(0, count, "paged", 600)
                if count < 62:
                    client.ask("UNSUBSCRIBE", {"id": "1"})
                broker.process.kill()
            broker.start_again()
        broker.process.kill()
    there = [row for row in rows_in(tmp_path, "pages") if row["droppedAt"] is None]
    assert 20 < sum(row["messages"] for row in there) < 62
    monkeypatch.setattr(aggregated_tables, "_FIRST", 1 << 30)
    for found in (rows_in(tmp_path, "queues"), *(in_spans(tmp_path, "queues", size)[0] for size in (1, 1 << 30))):
        assert {row["queue"]: row["messageCount"] for row in found}["paged"] == 62
