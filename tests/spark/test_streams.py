"""``spark.readStream.format("artemis")``: every row once, whatever happens to the query, the broker or the log."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.log.log import Segment
from artemis_py.spark.read.plan import ranges
from artemis_py.spark.stream.reader import LOST
from artemis_py.spark.tables.reading import Wanted
from artemis_py.storage.format.segment_index import BLOCK_BYTES
from tests.kit.http import ask
from tests.kit.process import eventually, for_the_module
from tests.spark.drivers import query
from tests.spark.kills import JAVA, below, driver
from tests.spark.live import LiveBroker, live_broker
from tests.spark.made_log import START_MS, MadeLog, survey
from tests.spark.readers import Query
from tests.spark.streams import WAIT_S, Sink, Streams, await_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


broker = for_the_module(live_broker)


def test_what_is_published_arrives_and_a_restart_goes_on(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    options: dict[str, Any] = {"url": broker.url, "subscribe": place, "startingOffsets": "latest"}
    broker.send(0, 10, place)
    query = streams.start(sink, **options)
    await_progress(query)
    broker.send(10, 50, place)
    sink.await_values(50)
    query.stop()
    broker.send(60, 20, place)
    streams.start(sink, **options)
    sink.await_values(70)
    assert [int(value) for value in sink.values] == [*range(10, 80)]


def test_limits_and_available_now(broker: LiveBroker, streams: Streams, place: str) -> None:
    broker.send(0, 100, place, 1000)
    sink = Sink()
    given = {"url": broker.url, "subscribe": place, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
    streams.run(sink, **given)
    assert max(len(rows) for rows in sink.batches) <= 60
    assert len(sink.batches) > 1
    assert [int(value) for value in sink.values] == list(range(100))


@pytest.mark.takes_turns("the long streams")
def test_messages_to_others_start_no_batch(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    query = streams.start(sink, url=broker.url, subscribe=place, startingOffsets="latest", maxMessagesPerTrigger=4)
    await_progress(query)
    for number in range(5):
        broker.send(0, 20, f"{place}.other")
        end_lsn: int = broker.process.api("/log")["durable_lsn"]
        eventually("looked at", lambda: lag(query)["e2e"].latest or 0, end_lsn.__le__, WAIT_S)
        broker.send(number, 1, place)
        sink.await_values(number + 1)
    assert [int(value) for value in sink.values] == [*range(5)]
    assert all(rows for number, rows in sink.by_id.items() if number)  # Spark's first one is always run
    eventually("nothing is left", lambda: lag(query)["e2e"].offsets, lambda seen: seen == 0, WAIT_S)
    assert json.loads(await_progress(query)["sources"][0]["latestOffset"])["#lag"]["e2e"]["bytes"] == 0


def test_a_cursor_says_how_far_a_query_is(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    cursor = partial(ask, broker.process.ports["http"], "GET", f"/log/cursors/{place}")
    options = {"url": broker.url, "subscribe": place, "startingOffsets": "earliest", "cursor": place}
    broker.send(0, 5, place)
    streams.run(sink, **options)
    begun = cursor().json
    assert begun["holds"]
    assert begun["lsn"] < sink.batches[0][0].offset
    broker.send(5, 5, place)
    streams.run(sink, **options)
    assert [int(value) for value in sink.values] == [*range(10)]
    assert sink.batches[0][-1].offset <= cursor().json["lsn"] < sink.batches[1][0].offset


def test_a_cursor_that_moved_is_no_batch(broker: LiveBroker, place: str) -> None:
    """Else a query with a cursor would never rest: each batch moves it, and that is something new in the log."""
    one, other = (Query(url=broker.url, cursor=name) for name in (place, f"{place}.other"))
    broker.send(0, 5, place)
    for each in (one, other):
        assert each.trigger()
        assert [each.trigger(ReadAllAvailable()) for _ in range(2)] == [None, None]
    one.reader.commit(one.at)
    assert one.trigger(ReadAllAvailable()) is None
    broker.send(5, 1, place)
    assert one.trigger(ReadAllAvailable()) == [5]


def test_a_broker_that_is_killed_and_starts_again_under_a_query(tmp_path: Path, streams: Streams) -> None:
    sink = Sink()
    with live_broker(tmp_path / "broker") as broker:
        streams.start(sink, url=broker.url, startingOffsets="earliest", subscribe="orders")
        for life in range(3):
            broker.send(life * 500, 500)
            broker.start_again()
        sink.await_values(1500)
    assert sorted(int(value) for value in sink.values) == list(range(1500))


@pytest.mark.takes_turns("a broker that dies under a stream")
def test_a_broker_that_dies_in_a_batch_stops_nobody(
    tmp_path: Path, broker: LiveBroker, streams: Streams, place: str
) -> None:
    sink = Sink()
    options: dict[str, Any]
    options = {"startingOffsets": "latest", "skipUnavailableBrokers": "true", "brokerTimeoutSeconds": "1"}
    with live_broker(tmp_path / "other", name="other") as other, broker.client() as client:
        query = streams.start(sink, url=f"{broker.url},{other.url}", subscribe=place, **options)
        await_progress(query)
        sink.before = other.process.kill
        other.send(0, 5, place)
        sink.await_values(5)
        assert other.process.process.poll() is not None
        client.publish(f"/queue/{place}", range(5, 10))
        sink.await_values(10)
        eventually("it is away", lambda: lag(query).get("other"), lambda seen: seen is None or seen.is_away, WAIT_S)
        other.start_again()
        other.send(10, 5, place)
        sink.await_values(15)
        assert query.isActive
    assert [int(value) for value in sink.values] == [*range(15)]


def test_a_directory_is_streamed_while_a_broker_writes_it(broker: LiveBroker, place: str) -> None:
    query = Query(journal=str(broker.folder), subscribe=place)
    found: list[int] = []
    for turn in range(4):
        broker.send(turn * 300, 300, place, 500)
        found += query.trigger() or []
    while len(found) < 1200:
        found += eventually("more", lambda: query.trigger() or [], bool)
    assert found == list(range(1200))


# ---- what is gone --------------------------------------------------------------------------------


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
def test_what_retention_took_is_an_error_or_counted(tmp_path: Path, fails_on_loss: str) -> None:
    """Also of a batch that is planned, and runs again when the query starts again."""
    log = MadeLog(tmp_path)
    for _ in range(4):
        log.segment(START_MS, 10)
    log.close()
    given = {"journal": str(tmp_path), "broker": "b", "startingOffsets": '{"b": 5}', "failOnDataLoss": fails_on_loss}
    end, _ = Query(**given, maxOffsetsPerTrigger="5").plan()
    again, behind = Query(**given), Query(**given)
    for segment in sorted(tmp_path.glob("*.log"))[:2]:
        segment.unlink()
    if fails_on_loss == "true":
        for broken in (lambda: again.reader.partitions(again.at, end), behind.trigger):
            with pytest.raises(PipelineError, match="are no longer in the log: retention removed them"):
                broken()
        return
    assert again.read(again.reader.partitions(again.at, end)) == []
    assert behind.trigger() == list(range(21, 41))
    assert behind.at[LOST] == {"b": 26 - 5}  # each segment has thirteen records


def test_the_first_batch_is_the_same_when_it_is_planned_again(tmp_path: Path) -> None:
    """Spark asks for the initial offset anew then, and the latest one is another by now."""
    log = MadeLog(tmp_path)

    def more(count: int) -> None:
        log.segment(START_MS, count)
        log.close()

    given = {"journal": str(tmp_path), "broker": "b", "startingOffsets": "latest"}
    more(10)
    first = Query(**given)
    more(5)
    end, shares = first.plan(ReadAllAvailable())
    more(5)
    again = Query(**given)
    assert again.at != first.at
    for planned in (shares, again.reader.partitions(again.at, end)):
        assert again.read(planned) == [11, 12, 13, 14, 15]
    again.at = end
    assert again.trigger(ReadAllAvailable()) == [16, 17, 18, 19, 20]


@pytest.mark.parametrize("option", [{"minPartitions": "5"}, {"partitionBytes": "15000"}], ids=str)
def test_each_task_of_a_batch_has_the_same_rows_when_it_is_planned_again(
    tmp_path: Path, option: dict[str, str]
) -> None:
    """Meanwhile the log went on, the last segment was closed, and all were surveyed."""
    log = MadeLog(tmp_path)
    for address in ("orders", "bills", "orders", "bills"):
        log.segment(START_MS)
        log.publish(START_MS, 40, "orders")
        log.publish(START_MS, 20, address)
    log.segment(START_MS)
    for _ in range(3):
        log.publish(START_MS, 5, "bills")
    given = {"journal": str(tmp_path), "broker": "b", "startingOffsets": "earliest", "subscribe": "orders", **option}
    first = Query(**given, columns="offset")
    end, shares = first.plan(ReadAllAvailable())
    planned = [first.read([share]) for share in shares]
    assert len(planned) == (5 if "minPartitions" in option else 2)
    assert sum(map(len, planned)) == 200
    log.publish(START_MS, 300, "orders")
    log.publish(START_MS, 5, "elsewhere")
    log.close()
    survey(tmp_path)
    later = Query(**given, columns="offset")
    again = [later.read([share]) for share in later.reader.partitions(first.at, end)]
    assert (again[: len(planned)], list(filter(None, again[len(planned) :]))) == (planned, [])


def test_a_segment_that_grows_is_divided_as_before() -> None:
    block, first = BLOCK_BYTES + 100, {"segment": 1, "first_lsn": 1, "addresses": ["a"], "messages": 1}

    def begins(blocks: int, more_bytes: int) -> list[int]:
        told = {"blocks": [(64 + number * block, 1 + number * 10, START_MS) for number in range(blocks)]}
        ends = {"last_lsn": blocks * 10, "bytes": 64 + (blocks - 1) * block + more_bytes}
        lists: dict[str, list[Any]] = {"queues": [], "sessions": [], "consumers": []}
        segment = Segment.of({**first, **told, **ends, **lists, "first_ms": START_MS, "last_ms": START_MS})
        return [one.lsns[0] for one in ranges(segment, Wanted().between(1, 31))]

    assert begins(4, 50) == begins(4, block) == begins(5, 50) == [1, 31]


@pytest.mark.parametrize("options", [{"cursor": "waiting"}, {"failOnDataLoss": "false"}], ids=str)
def test_retention_waits_for_the_cursor_of_a_query(tmp_path: Path, options: dict[str, str]) -> None:
    """A query that stands still while four times as much passes as the broker keeps."""
    with live_broker(tmp_path / "broker", limits='storage-limit="200K"') as broker, broker.client() as client:
        query = Query(url=broker.url, subscribe="orders", **options)
        client.publish("/queue/orders", range(10))
        assert query.trigger() == [*range(10)]
        client.subscribe("/queue/orders", id="all", ack="auto")
        for number in range(10, 1000, 110):
            broker.send(number, 110, size_bytes=1000)
            for _ in range(110 if number > 10 else 120):
                client.expect("MESSAGE")
        found = query.trigger()
    if "cursor" in options:
        assert found == list(range(10, 1000))
        assert LOST not in query.at
    else:
        assert len(found or []) < 890
        assert query.at[LOST]


@pytest.mark.takes_turns("the killed drivers")
def test_a_driver_that_is_killed(tmp_path: Path, spark: SparkSession) -> None:
    """Its JVM dies in the middle of its batches. ``test_a_hundred_kills_of_a_pipeline`` does so again and again."""
    with live_broker(tmp_path / "broker", file_bytes="1M") as broker:
        broker.send(0, 20_000)
        given = {"url": broker.url, "startingOffsets": "earliest", "subscribe": "orders", "cursor": "killed"}
        with driver("queue", tmp_path, {**given, "maxOffsetsPerTrigger": "2000"}) as process:
            second = tmp_path / "checkpoint" / "offsets" / "1"
            eventually("batches", second.exists, bool, WAIT_S)
            os.kill(below(process.pid, JAVA)[0], signal.SIGKILL)
            process.wait(WAIT_S)
        rest = query(spark, tmp_path, given).trigger(availableNow=True).start()
        assert rest.awaitTermination(WAIT_S)
        rows = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [int(row.value) for row in rows] == list(range(20_000))
