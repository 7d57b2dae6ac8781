"""``spark.readStream`` with option ``queue``, on Spark itself."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark import lag
from tests.kit.process import eventually, for_the_module
from tests.spark.live import LiveBroker
from tests.spark.queue_jobs import held, queue_broker, source, taken
from tests.spark.streams import WAIT_S, Sink, Streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


shared = for_the_module(queue_broker)


def test_rows_once_and_messages_gone_when_they_are_done(broker: LiveBroker, streams: Streams) -> None:
    seen: list[int] = []
    sent = broker.send(0, 25, "jobs")
    sink = Sink(lambda _: seen.append(broker.process.count("jobs")))
    query = streams.start(sink, **source(broker, "jobs", maxMessagesPerTrigger=10))
    eventually("rows", lambda: sink.values, sent.__eq__, WAIT_S)
    eventually("three batches", lambda: seen, lambda counts: counts == [25, 15, 5], WAIT_S)
    # The last batch is acknowledged although nothing follows it.
    eventually("nothing is left", lambda: broker.process.count("jobs"), lambda left: left == 0, WAIT_S)
    sent += broker.send(25, 3, "jobs")
    eventually("rows", lambda: sink.values, sent.__eq__, WAIT_S)
    filled = lambda: [one for one in query.recentProgress if one["numInputRows"]]  # noqa: E731
    progress = eventually("progress", filled, lambda seen: len(seen) == 4, WAIT_S)
    assert [one["numInputRows"] for one in progress] == [10, 10, 5, 3]
    found = lag(progress[-1])["e2e"]
    assert (found.messages, found.offsets, found.is_away) == (0, None, False)
    # A query that is stopped gives back what it holds, which does not count as a failure.
    streams.stop()
    eventually("it has left", lambda: broker.process.metric("artemis_consumer_count", queue="jobs"), lambda n: n == 0)


@pytest.mark.takes_turns("the streams of a queue")
def test_stopped_in_a_batch_and_started_again(broker: LiveBroker, streams: Streams) -> None:
    """The second batch goes on until the stop has begun, which waits for it."""
    sent = broker.send(0, 20, "leased")
    is_under_way, is_stopping = Event(), Event()

    def work(_: int) -> None:
        if len(sink.batches) == 2:
            is_under_way.set()
            assert is_stopping.wait(WAIT_S)

    sink = Sink(work)
    query = streams.start(sink, **source(broker, "leased", maxMessagesPerTrigger=4))
    assert is_under_way.wait(WAIT_S)
    stop = Thread(target=streams.stop)
    stop.start()
    eventually("a stop", lambda: query.isActive, lambda is_active: not is_active, WAIT_S)
    is_stopping.set()
    stop.join()
    assert len(sink.batches) == 2, "no batch follows"
    with broker.client() as client:
        others = taken(client, "leased", 3)
    streams.run(sink, **source(broker, "leased", maxMessagesPerTrigger=100))
    got = sink.values
    assert len(set(got)) == len(got)
    ours = {message.body.decode().strip() for message in others} - set(got)
    assert set(got) | ours == set(sent)
    assert broker.process.count("leased") == 0


@pytest.mark.takes_turns("the streams of a queue")
def test_available_now(broker: LiveBroker, streams: Streams) -> None:
    sent = broker.send(0, 25, "jobs")
    sink = Sink(lambda batch: broker.send(1000 + batch, 1, "jobs"))
    query = streams.run(sink, **source(broker, "jobs", maxMessagesPerTrigger=10))
    assert sink.values == sent
    ends = [json.loads(one["sources"][0]["endOffset"]) for one in query.recentProgress if one["numInputRows"]]
    assert [(end["#queue"]["name"], end["#queue"]["messages"]) for end in ends] == [("jobs", n) for n in (10, 10, 5)]
    assert (broker.process.count("jobs"), held(broker, "jobs")) == (3, 0)
    again = Sink()
    streams.run(again, **source(broker, "jobs"))
    assert again.values == ["1000", "1001", "1002"]
    assert broker.process.count("jobs") == 0


@pytest.mark.slow
def test_once(broker: LiveBroker, streams: Streams) -> None:
    """Spark tells nobody that the batch is done: the next run does."""
    sent = broker.send(0, 5, "jobs")
    sink = Sink()
    streams.start(sink, trigger={"once": True}, **source(broker, "jobs", maxMessagesPerTrigger=2)).awaitTermination()
    assert sink.values == sent
    assert broker.process.count("jobs") == 5
    streams.run(sink, **source(broker, "jobs"))
    assert sink.values == sent
    assert broker.process.count("jobs") == 0


@pytest.mark.slow
def test_at_times(broker: LiveBroker, streams: Streams) -> None:
    sent = broker.send(0, 3, "jobs")
    sink = Sink()
    streams.start(sink, trigger={"processingTime": "2 seconds"}, **source(broker, "jobs"))
    eventually("rows", lambda: sink.values, sent.__eq__, WAIT_S)
    eventually("the next trigger acknowledges", lambda: broker.process.count("jobs"), lambda left: left == 0, WAIT_S)
    eventually(
        "and holds nothing", lambda: broker.process.metric("artemis_consumer_count", queue="jobs"), lambda n: n == 0
    )
    sent += broker.send(3, 2, "jobs")
    eventually("rows", lambda: sink.values, sent.__eq__, WAIT_S)


@pytest.mark.takes_turns("the streams of a queue")
def test_two_queries_and_a_consumer_on_one_queue(broker: LiveBroker, streams: Streams) -> None:
    sent = broker.send(0, 200, "jobs")
    begun = [Event(), Event()]

    def meet(which: int) -> None:
        """Each has a batch before the other one is done with its own."""
        begun[which].set()
        assert begun[1 - which].wait(WAIT_S)

    one, two = Sink(lambda _: meet(0)), Sink(lambda _: meet(1))
    streams.start(one, checkpoint="one", **source(broker, "jobs", maxMessagesPerTrigger=20))
    streams.start(two, checkpoint="two", **source(broker, "jobs", maxMessagesPerTrigger=20))
    with broker.client() as client:
        mine = [message.body.decode().strip() for message in taken(client, "jobs", 30)]
    sent += broker.send(200, 50, "jobs")
    eventually("all", lambda: len(one.values) + len(two.values) + len(mine), lambda n: n >= 250, WAIT_S)
    got = one.values + two.values + mine
    assert sorted(got) == sorted(sent)
    eventually("nothing is left", lambda: broker.process.count("jobs"), lambda left: left == 0, WAIT_S)


@pytest.mark.slow
def test_with_another_source_in_one_query(
    broker: LiveBroker, spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    """There are batches in which only the other one has rows, also after a restart."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("file", "utf-8")
    jobs = spark.readStream.format("artemis").options(**source(broker, "jobs")).load()
    lines = spark.readStream.format("text").load(str(folder))
    both = jobs.selectExpr("offset", "value").union(lines.selectExpr("-1L AS offset", "cast(value AS binary) AS value"))
    sink = Sink()

    broker.send(0, 2, "jobs")
    streams.start(sink, frame=both)
    eventually("rows", lambda: sorted(sink.values), lambda seen: seen == ["0", "1", "file"], WAIT_S)
    (folder / "b.txt").write_text("more", "utf-8")
    eventually("rows", lambda: len(sink.values), lambda n: n == 4, WAIT_S)
    streams.stop()
    streams.start(sink, frame=both)
    (folder / "c.txt").write_text("last", "utf-8")
    eventually("rows", lambda: len(sink.values), lambda n: n == 5, WAIT_S)
    assert sorted(sink.values) == ["0", "1", "file", "last", "more"]


def test_a_table_of_the_catalog(broker: LiveBroker, spark: SparkSession, streams: Streams) -> None:
    given = ", ".join(f"{name} '{text}'" for name, text in source(broker, "jobs", columns="offset,value").items())
    spark.sql(f"CREATE TABLE queue_of_jobs USING artemis OPTIONS ({given})")
    try:
        sent = broker.send(0, 5, "jobs")
        sink = Sink()
        streams.run(sink, frame=spark.readStream.table("queue_of_jobs"))
        assert sink.values == sent
        with pytest.raises(Exception, match="option queue is for"):
            spark.table("queue_of_jobs").collect()
    finally:
        spark.sql("DROP TABLE queue_of_jobs")
