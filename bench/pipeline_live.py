"""Spark beside a running broker: how far behind a stream is, what its reading costs, and how fast Spark writes."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, Target
from artemis_py.perf.pump import body_of
from artemis_py.perf.registry import choose
from artemis_py.stomp.client import frame
from bench.own import QUEUE, Own, Retaining, started
from bench.part import Finding, Say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_BATCHES: Final = 40
_BATCHES_PASSED_OVER: Final = 5
_PER_SECOND: Final = 2000
_BURST: Final = 20
_BATCH_LIMIT_S: Final = 60.0
_POLL_S: Final = 0.05
_SINK_ROWS: Final = 200_000
_JOBS: Final = 100_000
_JOBS_PER_BATCH: Final = 10_000
_LOAD: Final = "3"
_TRIGGERS: Final = {"0 seconds": "batch after batch", "1 second": "a batch each second"}


class Live:
    """Lag, cost and sink, each beside a broker that keeps its log. They raise PerfError and PipelineError."""

    def __init__(self, spark: SparkSession, home: Path, seconds: float, say: Say, found: list[Finding]) -> None:
        self.spark = spark
        self._home = home
        home.mkdir(exist_ok=True)
        self._seconds = seconds
        self._say = say
        self._found = found
        self._queries = 0

    def _broker(self) -> AbstractContextManager[Own]:
        return started(Retaining(), self._seconds)

    @contextmanager
    def _following(self, broker: Own, trigger: str = "0 seconds") -> Iterator[StreamingQuery]:
        """A query that reads all that comes, and tells of each batch the times of its oldest and newest row."""
        from pyspark.sql import functions

        self._queries += 1
        stream = self.spark.readStream.format("artemis").option("url", broker.url).load()
        times_ms = functions.unix_millis("timestamp")
        oldest, newest = functions.min(times_ms).alias("oldest_ms"), functions.max(times_ms).alias("newest_ms")
        query = (
            stream.observe("seen", functions.count(functions.lit(1)).alias("rows"), oldest, newest)
            .writeStream.format("noop")
            .trigger(processingTime=trigger)
            .option("checkpointLocation", str(self._home / f"checkpoint{self._queries}"))
            .start()
        )
        try:
            yield query
        finally:
            query.stop()

    def lag(self, rounds: int) -> None:
        """Of each micro-batch, when it is done: how old is its newest row, and how old its oldest?"""
        batches = _BATCHES if rounds > 1 else _BATCHES // 4
        self._say(f"pipeline: {batches} micro-batches behind a broker with {_PER_SECOND:,} messages/s")
        with self._broker() as broker, _sending(broker.target), self._following(broker) as query:
            done = _progress(query, batches + _BATCHES_PASSED_OVER)[_BATCHES_PASSED_OVER:]
        newest, oldest = zip(*(_ages(one) for one in done), strict=True)
        self._found += [
            Finding("micro-batch behind the broker, p50", "s", 2, below=0.5, values=[statistics.median(newest)]),
            Finding("micro-batch behind the broker, max", "s", 2, below=0.5, values=[max(newest)]),
            Finding("oldest row of a micro-batch, p50", "s", 2, values=[statistics.median(oldest)]),
            Finding("oldest row of a micro-batch, max", "s", 2, values=[max(oldest)]),
        ]

    def cost(self, rounds: int) -> None:
        """Durable messages through the broker, by turns alone and while Spark reads its log. Each time with Spark is
        compared with the times alone before and after it.
        """
        alone = _Load("alone", in_page=True)
        drift = Finding("broker throughput, alone, from run to run", "%", 1)
        read = {trigger: _Load(f"beside a query with {name}") for trigger, name in _TRIGGERS.items()}
        losses = {trigger: _Loss(name) for trigger, name in _TRIGGERS.items()}
        for load in (alone, *read.values()):
            self._found += load.findings
        for loss in losses.values():
            self._found += loss.findings
        self._found.append(drift)
        scenario = choose([_LOAD])[0]
        with self._broker() as broker:
            run = broker.run

            def beside(trigger: str) -> dict[str, float]:
                with self._following(broker, trigger) as query:
                    _await_rows(query, run.target)
                    return scenario.run(run)

            self._say("pipeline: warms up, the broker with Spark reading its log")
            for trigger in read:
                beside(trigger)
            alone.add(scenario.run(run))
            for number in range(1, rounds + 1):
                self._say(f"pipeline: round {number} of {rounds}, the broker with and without Spark reading its log")
                for trigger, load in read.items():
                    load.add(beside(trigger))
                    alone.add(scenario.run(run))
                    losses[trigger].add(alone, load)
                    before, after = alone.rate.values[-2:]
                    drift.values.append(100 * abs(1 - after / before))

    def sink(self, rounds: int) -> None:
        """Rows of 100 bytes from two partitions to one address."""
        rate = Finding("write, rows of 100 bytes", "/s")
        self._found.append(rate)
        rows = self.spark.range(_SINK_ROWS, numPartitions=2).selectExpr("repeat('x', 100) AS value")
        with self._broker() as broker:
            url = f"tcp://{broker.target.host}:{broker.target.port}"
            for number in range(rounds + 1):
                self._say(f"pipeline: round {number} of {rounds}, {_SINK_ROWS:,} rows to the broker")
                began = time.perf_counter()
                sink = rows.write.format("artemis").mode("append").option("routingType", "ANYCAST")
                sink.options(url=url, address="bench.sink").save()
                if number:  # the first one warms up
                    rate.values.append(_SINK_ROWS / (time.perf_counter() - began))

    def queue(self, rounds: int, jobs: int = _JOBS) -> None:
        """Messages that wait on a queue, in batches: read in the log as rows, and consumed. Raises PerfError when rows
        are missing, or messages are left.
        """
        read, consumed = Finding("stream, log of a queue", "/s"), Finding("stream, queue consumed", "/s")
        self._found += [read, consumed]
        for number in range(rounds + 1):
            self._say(f"pipeline: round {number} of {rounds}, {jobs:,} messages of a queue")
            with self._broker() as broker, Link(broker.target) as link:
                for _ in range(jobs // _BURST):
                    link.send(_durable_frame(QUEUE) * _BURST)
                link.confirmed("SUBSCRIBE", (("id", "last"), ("destination", "/topic/bench.last")))
                stomp_url = f"tcp://{broker.target.host}:{broker.target.port}"
                rates = [
                    self._streamed(broker, jobs, subscribe=QUEUE, startingOffsets="earliest"),
                    self._streamed(broker, jobs, queue=QUEUE, stompUrl=stomp_url),
                ]
            for finding, rate in zip((read, consumed), rates, strict=True):
                finding.values += [rate] if number else []  # the first one warms up

    def _streamed(self, broker: Own, rows: int, **options: str) -> float:
        """Rows per second of a query's triggers, over all that is there."""
        self._queries += 1
        source = self.spark.readStream.format("artemis").options(url=broker.url, **options)
        writer = source.option("maxMessagesPerTrigger", _JOBS_PER_BATCH).load().writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(self._home / f"checkpoint{self._queries}"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = sum(one.numInputRows for one in query.recentProgress)
        if found != rows:
            raise PerfError(f"a stream had {found:,} rows of {rows:,} messages")
        return rows / sum(one.durationMs["triggerExecution"] for one in query.recentProgress) * 1000


class _Load:
    """What scenario 3 tells in each round."""

    def __init__(self, name: str, *, in_page: bool = False) -> None:
        self.rate = Finding(f"broker, durable messages/s, {name}", "/s", in_page=in_page)
        self.cpu_us = Finding(f"broker CPU per message, {name}", "µs", 2, in_page=in_page)
        self.findings = [self.rate, self.cpu_us]

    def add(self, metrics: dict[str, float]) -> None:
        self.rate.values.append(metrics["messages_per_second"])
        self.cpu_us.values.append(metrics["cpu_s_per_million"])


class _Loss:
    """What reading takes, in each round."""

    def __init__(self, name: str) -> None:
        self._cpu = Finding(f"broker CPU per message, more with {name}", "%", 1, below=10)
        self._rate = Finding(f"broker throughput, less with {name}", "%", 1, below=10)
        self.findings = [self._cpu, self._rate]

    def add(self, alone: _Load, read: _Load) -> None:
        """Compare the last time with Spark with the last two alone."""
        self._cpu.values.append(100 * (read.cpu_us.values[-1] / statistics.mean(alone.cpu_us.values[-2:]) - 1))
        self._rate.values.append(100 * (1 - read.rate.values[-1] / statistics.mean(alone.rate.values[-2:])))


@contextmanager
def _sending(target: Target) -> Iterator[None]:
    """A steady rate of durable messages meanwhile."""
    ended = threading.Event()
    thread = threading.Thread(target=_send_until, args=(target, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _send_until(target: Target, ended: threading.Event) -> None:
    with Link(target) as link:
        burst = _durable_frame() * _BURST
        due = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            link.send(burst)
            due += _BURST / _PER_SECOND


def _durable_frame(queue: str = "bench.live") -> bytes:
    body = body_of(100)
    headers = (("destination", f"/queue/{queue}"), ("persistent", "true"), ("content-length", str(len(body))))
    return frame("SEND", headers, body)


def _progress(query: StreamingQuery, batches: int) -> list[dict[str, Any]]:
    """What is told of this many batches with rows. Raises PerfError when they do not come."""
    found: dict[int, dict[str, Any]] = {}
    until = time.monotonic() + _BATCH_LIMIT_S
    while len(found) < batches:
        _check(query, until)
        for one in query.recentProgress:
            if _seen(one) is not None:
                found[one.batchId] = one
        time.sleep(_POLL_S)
    return [found[number] for number in sorted(found)][:batches]


def _await_rows(query: StreamingQuery, target: Target) -> None:
    """Sends until the query has seen something: then it follows. Raises PerfError when it does not."""
    until = time.monotonic() + _BATCH_LIMIT_S
    with Link(target) as link:
        while not any(_seen(one) for one in query.recentProgress):
            _check(query, until)
            link.send(_durable_frame() * _BURST)
            time.sleep(_POLL_S)


def _seen(one: Any) -> Any:
    """What was observed of a batch with rows, else None."""
    seen = one.observedMetrics.get("seen")
    return seen if seen is not None and seen.rows else None


def _check(query: StreamingQuery, until: float) -> None:
    error = query.exception()
    if error is not None:
        raise PerfError(f"the streaming query ended: {str(error).splitlines()[0]}")
    if time.monotonic() > until:
        raise PerfError(f"the streaming query did not get on within {_BATCH_LIMIT_S:g} s")


def _ages(one: Any) -> tuple[float, float]:
    """Seconds from the newest and the oldest row of a batch to its end."""
    began_s = datetime.fromisoformat(one.timestamp).timestamp()
    ended_s = began_s + one.durationMs["triggerExecution"] / 1000
    seen = _seen(one)
    return ended_s - seen.newest_ms / 1000, ended_s - seen.oldest_ms / 1000
