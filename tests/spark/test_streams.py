"""``spark.readStream.format("artemis")``: every row once, whatever happens to the query, the broker or the log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from artemis_py.spark import lag
from artemis_py.spark.log.log import Segment
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import ranges
from artemis_py.spark.source import ArtemisDataSource
from artemis_py.spark.stream.reader import LogStreamReader
from artemis_py.spark.tables.reading import Wanted
from artemis_py.storage.format.segment_index import BLOCK_BYTES
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker, send_many
from tests.spark.made_log import START_MS, MadeLog, survey
from tests.spark.readers import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

WAIT_S = 120
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("streams")) as broker:
        yield broker


class Sink:
    """What a query wrote. A batch that runs again, as it may after a stop, has to be the same again."""

    def __init__(self) -> None:
        self._batches: dict[int, list[Any]] = {}
        self.before: Callable[[], None] | None = None
        """Done once, when the next batch is planned, before its rows are read."""

    def __call__(self, frame: Any, batch_id: int) -> None:
        before, self.before = self.before, None
        if before is not None:
            before()
        rows = frame.collect()
        assert self._batches.setdefault(batch_id, rows) == rows

    @property
    def batches_by_id(self) -> dict[int, list[Any]]:
        """Those without rows, too."""
        return self._batches

    @property
    def batches(self) -> list[list[Any]]:
        """Those with rows, in order."""
        return [rows for _, rows in sorted(self._batches.items()) if rows]

    @property
    def values(self) -> list[bytes]:
        """The bodies."""
        return [bytes(row.value) for rows in self.batches for row in rows]


class Streams:
    """Starts queries that are stopped with the test."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.queries: list[StreamingQuery] = []

    def start(
        self, sink: Callable[[Any, int], None], *, now: bool = False, checkpoint: str = "checkpoint", **options: object
    ) -> StreamingQuery:
        texts = {name: str(value) for name, value in options.items()}
        source = self._spark.readStream.format("artemis").options(**texts).load()
        writer = source.writeStream.foreachBatch(sink).option("checkpointLocation", str(self._folder / checkpoint))
        query = (
            writer.trigger(availableNow=True) if now else writer.trigger(processingTime="100 milliseconds")
        ).start()
        self.queries.append(query)
        return query

    def run(self, sink: Callable[[Any, int], None], **options: Any) -> StreamingQuery:
        """Everything there is now, then the end."""
        query = self.start(sink, now=True, **options)
        query.awaitTermination(WAIT_S)
        assert not query.isActive
        return query


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    found = Streams(spark, tmp_path)
    yield found
    for query in found.queries:
        query.stop()


def progress_of(query: StreamingQuery) -> Any:
    """Its last one, which it has."""
    progress = query.lastProgress
    assert progress is not None
    return progress


def await_values(sink: Sink, count: int) -> None:
    eventually("rows in the sink", lambda: len(sink.values), lambda seen: seen >= count, WAIT_S)


def bodies(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_what_is_published_arrives_and_a_restart_goes_on(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    options: dict[str, Any] = {"url": broker.url, "subscribe": place, "startingOffsets": "latest"}
    with broker.client() as client:
        send_many(client, place, 0, 10)
        query = streams.start(sink, **options)
        eventually("planned", lambda: query.lastProgress, lambda seen: seen is not None, WAIT_S)
        send_many(client, place, 10, 50)
        await_values(sink, 50)
        query.stop()
        send_many(client, place, 60, 20)
        streams.start(sink, **options)
        await_values(sink, 70)
    assert sink.values == bodies(10, 70)


def test_limits_and_available_now(broker: LiveBroker, streams: Streams, place: str) -> None:
    start = json.dumps({"e2e": durable_lsn(broker)})
    with broker.client() as client:
        send_many(client, place, 0, 100, 1000)
    options = {"url": broker.url, "subscribe": place, "startingOffsets": start}
    small, bytewise, whole = Sink(), Sink(), Sink()
    streams.run(small, checkpoint="small", maxOffsetsPerTrigger=60, **options)
    assert max(len(rows) for rows in small.batches) <= 60
    assert len(small.batches) > 1
    streams.run(bytewise, checkpoint="bytes", maxBytesPerTrigger=40_000, **options)
    assert len(bytewise.batches) > 1
    streams.run(whole, checkpoint="whole", **options)
    assert len(whole.batches) == 1
    assert small.values == bytewise.values == whole.values
    assert [int(value) for value in whole.values] == list(range(100))
    streams.run(whole, checkpoint="whole", **options)
    assert len(whole.batches) == 1


def durable_lsn(broker: LiveBroker) -> int:
    """Where the log ends now."""
    with urllib.request.urlopen(f"{broker.url}/log") as answer:
        return int(json.load(answer)["durable_lsn"])


@pytest.mark.takes_turns("the long streams")
def test_messages_to_others_start_no_batch(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    query = streams.start(sink, url=broker.url, subscribe=place, startingOffsets="latest", maxMessagesPerTrigger=4)
    eventually("planned", lambda: query.lastProgress, lambda seen: seen is not None, WAIT_S)
    with broker.client() as client:
        for number in range(5):
            send_many(client, f"{place}.other", 0, 20)
            eventually("looked at", lambda: lag(query)["e2e"].latest or 0, durable_lsn(broker).__le__, WAIT_S)
            send_many(client, place, number, 1)
            await_values(sink, number + 1)
    assert sink.values == bodies(0, 5)
    assert all(rows for number, rows in sink.batches_by_id.items() if number)  # Spark's first one is always run
    eventually("nothing is left", lambda: lag(query)["e2e"].offsets, lambda seen: seen == 0, WAIT_S)
    assert json.loads(progress_of(query)["sources"][0]["latestOffset"])["#lag"]["e2e"]["bytes"] == 0


@pytest.mark.takes_turns("the long streams")
def test_streams_of_events(broker: LiveBroker, streams: Streams, place: str) -> None:
    with broker.client() as client:
        send_many(client, place, 0, 3)
        client.subscribe(f"/queue/{place}")
        client.acknowledge(client.expect("MESSAGE"))
    sink = Sink()
    streams.run(sink, url=broker.url, table="events", startingOffsets="earliest")
    seen = [row.event for rows in sink.batches for row in rows if row.queue == place]
    assert seen.count("routed") == 3
    assert seen.count("acked") == 1


def test_a_start_at_a_time(broker: LiveBroker, streams: Streams, place: str) -> None:
    with broker.client() as client:
        send_many(client, place, 0, 5)
        begun_ms = time.time() * 1000
        now_ms = int(eventually("a later time", lambda: time.time() * 1000, lambda seen: seen > begun_ms + 2))
        send_many(client, place, 5, 5)
    sink = Sink()
    streams.run(sink, url=broker.url, subscribe=place, startingTimestamp=now_ms)
    assert sink.values == bodies(5, 5)


@pytest.mark.takes_turns("the long streams")
def test_a_cursor_says_how_far_a_query_is(broker: LiveBroker, streams: Streams, place: str) -> None:
    def cursor() -> dict[str, Any]:
        with urllib.request.urlopen(f"{broker.url}/log/cursors/{place}") as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    sink = Sink()
    options = {"url": broker.url, "subscribe": place, "startingOffsets": "earliest", "cursor": place}
    with broker.client() as client:
        send_many(client, place, 0, 5)
        streams.run(sink, **options)
        begun = cursor()
        assert begun["holds"]
        assert begun["lsn"] < sink.batches[0][0].offset
        send_many(client, place, 5, 5)
        streams.run(sink, **options)
    assert sink.values == bodies(0, 10)
    assert sink.batches[0][-1].offset <= cursor()["lsn"] < sink.batches[1][0].offset


def test_a_cursor_that_moved_is_no_batch(broker: LiveBroker, place: str) -> None:
    """Else a query with a cursor would never rest: each batch moves it, and that is something new in the log."""
    one, other = (Query(url=broker.url, cursor=name) for name in (place, f"{place}.other"))
    with broker.client() as client:
        send_many(client, place, 0, 5)
        for query in (one, other):
            assert query.trigger()
            assert [query.trigger(ReadAllAvailable()) for _ in range(2)] == [None, None]
        one.reader.commit(one.at)
        assert one.trigger(ReadAllAvailable()) is None
        send_many(client, place, 5, 1)
    assert one.trigger(ReadAllAvailable()) == [5]


def test_a_broker_that_is_killed_and_starts_again_under_a_query(tmp_path: Path, streams: Streams) -> None:
    sink = Sink()
    with live_broker(tmp_path / "broker") as broker:
        streams.start(sink, url=broker.url, startingOffsets="earliest", subscribe="orders")
        for life in range(3):
            with broker.client() as client:
                send_many(client, "orders", life * 500, 500)
                broker.kill()
            broker.start_again()
        await_values(sink, 1500)
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
        eventually("planned", lambda: query.lastProgress, lambda seen: seen is not None, WAIT_S)
        sink.before = other.kill
        with other.client() as its_client:
            send_many(its_client, place, 0, 5)
        await_values(sink, 5)
        assert other.process.process.poll() is not None
        send_many(client, place, 5, 5)
        await_values(sink, 10)
        eventually("it is away", lambda: lag(query).get("other"), lambda seen: seen is None or seen.is_away, WAIT_S)
        other.start_again()
        with other.client() as its_client:
            send_many(its_client, place, 10, 5)
        await_values(sink, 15)
        assert query.isActive
    assert sink.values == bodies(0, 15)


class ForgetfulReader(LogStreamReader):
    """Leaves rows out of the batches that it plans while there is a file ``forget`` in the directory of the log."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """As the real one, or none."""
        assert self._options.journal is not None
        return [] if (Path(self._options.journal) / "forget").exists() else super().partitions(start, end)


class ForgetfulSource(ArtemisDataSource):
    """``format("artemis_forgetful")``."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(…)``."""
        return "artemis_forgetful"

    def streamReader(self, schema: StructType) -> ForgetfulReader:
        """As the real one."""
        return ForgetfulReader(read_options(self.options, streaming=True))


@pytest.mark.slow
def test_why_a_planned_batch_waits_for_its_rows(tmp_path: Path, spark: SparkSession) -> None:
    """What a batch leaves out is lost if the query ends before Spark knows that the batch is done: the batch is planned
    again with the same offsets, now whole, and a sink that has it takes nothing of it.
    """
    log = MadeLog(tmp_path / "log")
    log.segment(START_MS)
    log.publish(START_MS, 3)
    log.close()
    spark.dataSource.register(ForgetfulSource)
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"

    def run() -> int:
        source = spark.readStream.format("artemis_forgetful").option("journal", str(tmp_path / "log"))
        rows = source.option("startingOffsets", "earliest").load()
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(out))
        assert query.awaitTermination(WAIT_S)
        return spark.read.schema(rows.schema).parquet(str(out)).count()

    forget = tmp_path / "log" / "forget"
    forget.touch()
    assert run() == 0
    forget.unlink()
    for file in (checkpoint / "commits").iterdir():
        file.unlink()
    assert run() == 0


def test_a_directory_is_streamed_while_a_broker_writes_it(broker: LiveBroker, streams: Streams, place: str) -> None:
    sink = Sink()
    streams.start(sink, journal=broker.folder, subscribe=place, startingOffsets="earliest")
    with broker.client() as client:
        for turn in range(4):
            send_many(client, place, turn * 300, 300, 500)
        await_values(sink, 1200)
    assert [int(value) for value in sink.values] == list(range(1200))


# ---- what is gone --------------------------------------------------------------------------------


def overtaken(folder: Path) -> Callable[[], None]:
    """Four segments of 10 messages each; the function removes the second and the first."""
    log = MadeLog(folder)
    for _ in range(4):
        log.segment(START_MS)
        log.publish(START_MS, 10)
    log.close()

    def remove() -> None:
        for number in (1, 2):
            (folder / f"artemis-journal-{number:012}.log").unlink()

    return remove


def test_what_retention_took_is_an_error(tmp_path: Path, streams: Streams) -> None:
    remove = overtaken(tmp_path / "log")
    options: dict[str, Any]
    options = {"journal": tmp_path / "log", "startingOffsets": "earliest", "broker": "b", "maxOffsetsPerTrigger": 5}
    sink = Sink()

    def fail(frame: Any, batch_id: int) -> None:
        sink(frame, batch_id)
        remove()
        raise RuntimeError("the sink fails once")

    query = streams.start(fail, now=True, **options)
    with pytest.raises(Exception, match="the sink fails once"):
        query.awaitTermination(WAIT_S)
    again = streams.start(sink, now=True, **options)
    with pytest.raises(Exception, match="are no longer in the log: retention removed them"):
        again.awaitTermination(WAIT_S)


def test_what_retention_took_is_counted_on_request(tmp_path: Path, streams: Streams) -> None:
    remove = overtaken(tmp_path / "log")
    sink = Sink()
    options = {"journal": tmp_path / "log", "startingOffsets": '{"b": 5}', "broker": "b", "failOnDataLoss": "false"}
    remove()
    query = streams.run(sink, **options)
    assert [int(value) for value in sink.values] == list(range(21, 41))
    end = json.loads(progress_of(query)["sources"][0]["endOffset"])
    assert end["#lost"] == {"b": 26 - 5}  # each segment has thirteen records


def test_the_first_batch_is_the_same_when_it_is_planned_again(tmp_path: Path) -> None:
    """Spark asks for the initial offset anew then, and the latest one is another by now."""
    log = MadeLog(tmp_path)

    def more(count: int) -> None:
        log.segment(START_MS)
        log.publish(START_MS, count)
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


def test_a_checkpoint_of_another_log_is_refused(tmp_path: Path, streams: Streams) -> None:
    overtaken(tmp_path / "log")
    streams.run(Sink(), journal=tmp_path / "log", broker="b", startingOffsets="earliest")
    query = streams.start(Sink(), now=True, journal=tmp_path / "log", broker="other", startingOffsets="earliest")
    with pytest.raises(Exception, match=r"the query's checkpoint is of broker b .*, but the logs are of other"):
        query.awaitTermination(WAIT_S)


@pytest.mark.parametrize("options", [{"cursor": "waiting"}, {"failOnDataLoss": "false"}], ids=str)
def test_retention_waits_for_the_cursor_of_a_query(tmp_path: Path, streams: Streams, options: dict[str, str]) -> None:
    """A query that stands still while four times as much passes as the broker keeps."""
    sink = Sink()
    with live_broker(tmp_path / "broker", limits='storage-limit="200K"') as broker, broker.client() as client:
        given = {"url": broker.url, "subscribe": "orders", "startingOffsets": "earliest", **options}
        send_many(client, "orders", 0, 10)
        streams.run(sink, **given)
        client.subscribe("/queue/orders", id="all", ack="auto")
        for number in range(10, 1000, 110):
            send_many(client, "orders", number, 110, 1000)
            for _ in range(110 if number > 10 else 120):
                client.expect("MESSAGE")
        query = streams.run(sink, **given)
    found = [int(value) for value in sink.values]
    lost = json.loads(progress_of(query)["sources"][0]["endOffset"]).get("#lost")
    if "cursor" in options:
        assert found == list(range(1000))
        assert lost is None
    else:
        assert len(found) < 900
        assert lost is not None


# ---- SIGKILL -------------------------------------------------------------------------------------

DRIVER = """
import sys
from artemis_py.spark import session

url, checkpoint, out = sys.argv[1:]
spark = session("killed", master="local[2,3]", **{
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
source = (spark.readStream.format("artemis").option("url", url).option("startingOffsets", "earliest")
          .option("subscribe", "orders").option("maxOffsetsPerTrigger", 2000).option("cursor", "killed").load())
query = (source.select("offset", "value").writeStream.format("parquet").option("path", out)
         .option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start())
query.awaitTermination()
"""


def java_below(pid: int) -> int | None:
    """The process id of the JVM that a driver started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == pid and (entry / "comm").read_text().strip() == "java":
                    return int(entry.name)
            except OSError:
                continue
    return None


def kill_rounds(folder: Path, spark: SparkSession, rounds: int, per_round: int) -> None:
    """A query whose JVM dies in the middle of its batches, again and again, while messages come."""
    checkpoint, out = folder / "checkpoint", folder / "out"
    commits = checkpoint / "commits"
    with live_broker(folder / "broker", file_bytes="1M") as broker:
        for number in range(rounds):
            with broker.client() as client:
                send_many(client, "orders", number * per_round, per_round)
            before = committed(commits) + 1
            driver = subprocess.Popen(
                [sys.executable, "-c", DRIVER, broker.url, str(checkpoint), str(out)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
            )  # fmt: skip
            try:
                planned = checkpoint / "offsets"
                eventually("batches", partial(committed, planned), before.__lt__, WAIT_S)
                java = java_below(driver.pid)
                assert java is not None
                os.kill(java, signal.SIGKILL)
                driver.wait(WAIT_S)
            finally:
                driver.kill()
                driver.wait()
        query = (
            spark.readStream.format("artemis").option("url", broker.url).option("startingOffsets", "earliest")
            .option("subscribe", "orders").option("cursor", "killed").load()
            .select("offset", "value").writeStream.format("parquet").option("path", str(out))
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination(WAIT_S)
        assert not query.isActive
        rows = spark.read.parquet(str(out)).orderBy("offset").collect()
    assert [int(row.value) for row in rows] == list(range(rounds * per_round))


def committed(folder: Path) -> int:
    return len([file for file in folder.iterdir() if file.name.isdigit()]) if folder.is_dir() else 0


@pytest.mark.takes_turns("the killed drivers")
def test_a_driver_that_is_killed(tmp_path: Path, spark: SparkSession) -> None:
    kill_rounds(tmp_path, spark, rounds=1, per_round=20_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_driver_that_is_killed_again_and_again(tmp_path: Path, spark: SparkSession) -> None:
    kill_rounds(tmp_path, spark, rounds=4, per_round=50_000)
