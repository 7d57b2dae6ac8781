"""``spark.readStream`` with option ``queue``, on Spark itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.spark import lag
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, send_many
from tests.spark.queue_jobs import count, empty, held, queue_broker, source, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

WAIT_S = 120.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with queue_broker(tmp_path_factory.mktemp("queue-streams")) as broker:
        yield broker


@pytest.fixture
def broker(shared: LiveBroker) -> LiveBroker:
    """The shared one, with empty queues."""
    empty(shared)
    return shared


class Sink:
    """What a query wrote, by batch. A batch that runs again has to be the same again."""

    def __init__(self, meanwhile: Callable[[int], object] = lambda _: None) -> None:
        self.rows: dict[int, list[str]] = {}
        self._meanwhile = meanwhile

    def __call__(self, frame: Any, batch_id: int) -> None:
        rows = [bytes(row.value).decode().strip() for row in sorted(frame.select("offset", "value").collect())]
        assert self.rows.setdefault(batch_id, rows) == rows
        if rows:
            self._meanwhile(batch_id)

    @property
    def values(self) -> list[str]:
        return [value for _, rows in sorted(self.rows.items()) for value in rows]


class Queries:
    """Starts queries that are stopped with the test."""

    def __init__(self, spark: SparkSession, broker: LiveBroker, folder: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._folder = folder
        self.started: list[StreamingQuery] = []

    def start(
        self, sink: Sink, queue: str, *, checkpoint: str = "checkpoint", trigger: Any = None, **options: Any
    ) -> StreamingQuery:
        frame = self._spark.readStream.format("artemis").options(**source(self._broker, queue, **options)).load()
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(self._folder / checkpoint))
        if trigger is not None:
            writer = writer.trigger(**trigger)
        query = writer.start()
        self.started.append(query)
        return query

    def stop(self) -> None:
        while self.started:
            self.started.pop().stop()


@pytest.fixture
def queries(spark: SparkSession, broker: LiveBroker, tmp_path: Path) -> Iterator[Queries]:
    found = Queries(spark, broker, tmp_path)
    yield found
    found.stop()


def send(broker: LiveBroker, queue: str, first: int, many: int) -> list[str]:
    with broker.client() as client:
        send_many(client, queue, first, many)
    return [str(number) for number in range(first, first + many)]


def until(sink: Sink, wanted: list[str]) -> None:
    eventually("rows", lambda: sink.values, lambda seen: seen == wanted, WAIT_S)


def test_rows_once_and_messages_gone_when_they_are_done(broker: LiveBroker, queries: Queries) -> None:
    seen: list[int] = []
    sent = send(broker, "jobs", 0, 25)
    sink = Sink(lambda _: seen.append(count(broker, "jobs")))
    query = queries.start(sink, "jobs", maxMessagesPerTrigger=10)
    until(sink, sent)
    eventually("three batches", lambda: seen, lambda counts: counts == [25, 15, 5], WAIT_S)
    # The last batch is acknowledged although nothing follows it.
    eventually("nothing is left", lambda: count(broker, "jobs"), lambda left: left == 0, WAIT_S)
    sent += send(broker, "jobs", 25, 3)
    until(sink, sent)
    filled = lambda: [one for one in query.recentProgress if one["numInputRows"]]  # noqa: E731
    progress = eventually("progress", filled, lambda seen: len(seen) == 4, WAIT_S)
    assert [one["numInputRows"] for one in progress] == [10, 10, 5, 3]
    found = lag(progress[-1])["e2e"]
    assert (found.messages, found.offsets, found.is_away) == (0, None, False)
    # A query that is stopped gives back what it holds, which does not count as a failure.
    queries.stop()
    eventually("it has left", lambda: broker.process.metric("artemis_consumer_count", queue="jobs"), lambda n: n == 0)


@pytest.mark.takes_turns("the streams of a queue")
def test_stopped_in_a_batch_and_started_again(broker: LiveBroker, queries: Queries) -> None:
    """The second batch goes on until the stop has begun, which waits for it."""
    sent = send(broker, "leased", 0, 20)
    is_under_way, is_stopping = Event(), Event()

    def work(_: int) -> None:
        if len(sink.rows) == 2:
            is_under_way.set()
            assert is_stopping.wait(WAIT_S)

    sink = Sink(work)
    query = queries.start(sink, "leased", maxMessagesPerTrigger=4)
    assert is_under_way.wait(WAIT_S)
    stop = Thread(target=queries.stop)
    stop.start()
    eventually("a stop", lambda: query.isActive, lambda is_active: not is_active, WAIT_S)
    is_stopping.set()
    stop.join()
    assert len(sink.rows) == 2, "no batch follows"
    with broker.client() as client:
        others = taken(client, "leased", 3)
    queries.start(sink, "leased", maxMessagesPerTrigger=100, trigger={"availableNow": True}).awaitTermination()
    got = sink.values
    assert len(set(got)) == len(got)
    ours = {message.body.decode().strip() for message in others} - set(got)
    assert set(got) | ours == set(sent)
    assert count(broker, "leased") == 0


@pytest.mark.takes_turns("the streams of a queue")
def test_available_now(broker: LiveBroker, queries: Queries) -> None:
    sent = send(broker, "jobs", 0, 25)
    sink = Sink(lambda batch: send(broker, "jobs", 1000 + batch, 1))
    query = queries.start(sink, "jobs", maxMessagesPerTrigger=10, trigger={"availableNow": True})
    query.awaitTermination()
    assert sink.values == sent
    ends = [json.loads(one["sources"][0]["endOffset"]) for one in query.recentProgress if one["numInputRows"]]
    assert [(end["#queue"]["name"], end["#queue"]["messages"]) for end in ends] == [("jobs", n) for n in (10, 10, 5)]
    assert (count(broker, "jobs"), held(broker, "jobs")) == (3, 0)
    again = Sink()
    queries.start(again, "jobs", trigger={"availableNow": True}).awaitTermination()
    assert again.values == ["1000", "1001", "1002"]
    assert count(broker, "jobs") == 0


@pytest.mark.slow
def test_once(broker: LiveBroker, queries: Queries) -> None:
    """Spark tells nobody that the batch is done: the next run does."""
    sent = send(broker, "jobs", 0, 5)
    sink = Sink()
    queries.start(sink, "jobs", maxMessagesPerTrigger=2, trigger={"once": True}).awaitTermination()
    assert sink.values == sent
    assert count(broker, "jobs") == 5
    queries.start(sink, "jobs", trigger={"availableNow": True}).awaitTermination()
    assert sink.values == sent
    assert count(broker, "jobs") == 0


@pytest.mark.slow
def test_at_times(broker: LiveBroker, queries: Queries) -> None:
    sent = send(broker, "jobs", 0, 3)
    sink = Sink()
    queries.start(sink, "jobs", trigger={"processingTime": "2 seconds"})
    until(sink, sent)
    eventually("the next trigger acknowledges", lambda: count(broker, "jobs"), lambda left: left == 0, WAIT_S)
    eventually(
        "and holds nothing", lambda: broker.process.metric("artemis_consumer_count", queue="jobs"), lambda n: n == 0
    )
    sent += send(broker, "jobs", 3, 2)
    until(sink, sent)


@pytest.mark.takes_turns("the streams of a queue")
def test_two_queries_and_a_consumer_on_one_queue(broker: LiveBroker, queries: Queries) -> None:
    sent = send(broker, "jobs", 0, 200)
    begun = [Event(), Event()]

    def meet(which: int) -> None:
        """Each has a batch before the other one is done with its own."""
        begun[which].set()
        assert begun[1 - which].wait(WAIT_S)

    one, two = Sink(lambda _: meet(0)), Sink(lambda _: meet(1))
    queries.start(one, "jobs", checkpoint="one", maxMessagesPerTrigger=20)
    queries.start(two, "jobs", checkpoint="two", maxMessagesPerTrigger=20)
    with broker.client() as client:
        mine = [message.body.decode().strip() for message in taken(client, "jobs", 30)]
    sent += send(broker, "jobs", 200, 50)
    eventually("all", lambda: len(one.values) + len(two.values) + len(mine), lambda n: n >= 250, WAIT_S)
    got = one.values + two.values + mine
    assert sorted(got) == sorted(sent)
    eventually("nothing is left", lambda: count(broker, "jobs"), lambda left: left == 0, WAIT_S)


@pytest.mark.slow
def test_with_another_source_in_one_query(
    broker: LiveBroker, spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    """There are batches in which only the other one has rows, also after a restart."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("file", "utf-8")
    jobs = spark.readStream.format("artemis").options(**source(broker, "jobs")).load()
    lines = spark.readStream.format("text").load(str(folder))
    both = jobs.selectExpr("offset", "value").union(lines.selectExpr("-1L AS offset", "cast(value AS binary) AS value"))
    sink = Sink()

    def start() -> StreamingQuery:
        writer = both.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "both"))
        query = writer.start()
        queries.started.append(query)
        return query

    send(broker, "jobs", 0, 2)
    start()
    eventually("rows", lambda: sorted(sink.values), lambda seen: seen == ["0", "1", "file"], WAIT_S)
    (folder / "b.txt").write_text("more", "utf-8")
    eventually("rows", lambda: len(sink.values), lambda n: n == 4, WAIT_S)
    queries.stop()
    start()
    (folder / "c.txt").write_text("last", "utf-8")
    eventually("rows", lambda: len(sink.values), lambda n: n == 5, WAIT_S)
    assert sorted(sink.values) == ["0", "1", "file", "last", "more"]


def test_a_table_of_the_catalog(broker: LiveBroker, spark: SparkSession, tmp_path: Path) -> None:
    given = ", ".join(f"{name} '{text}'" for name, text in source(broker, "jobs", columns="offset,value").items())
    spark.sql(f"CREATE TABLE queue_of_jobs USING artemis OPTIONS ({given})")
    try:
        sent = send(broker, "jobs", 0, 5)
        sink = Sink()
        writer = spark.readStream.table("queue_of_jobs").writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "table")).trigger(availableNow=True)
        writer.start().awaitTermination()
        assert sink.values == sent
        with pytest.raises(Exception, match="option queue is for"):
            spark.table("queue_of_jobs").collect()
    finally:
        spark.sql("DROP TABLE queue_of_jobs")
