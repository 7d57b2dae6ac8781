"""Counts messages in and out: in total, per interval, and in the busiest second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.frames import at, bucket
from artemis_py.spark.jobs.intervals import interval_of
from artemis_py.spark.jobs.result import BYTES, COUNT, RATE, TIME, ZERO, Column, Plot, Result, collected, lines

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_COLUMNS: Final = ("broker", "address", "queue", "event", "timestamp", "bytes")
_EVENTS: Final = (names.PUBLISHED, names.DELIVERED, names.ACKED)
_KEYS: Final = ("broker", "address", "queue")


def throughput(spark: SparkSession, source: Source, *, interval_s: int | None = None) -> Result:
    """Published per address, delivered and acknowledged per queue. An overall rate is the average from the first to the
    last second of its row, both counted completely; a peak is the busiest second: so no average exceeds its peak.
    ``interval_s`` None: chosen by the span of the log.
    """
    interval_s = interval_of(source, interval_s)
    events = source.table(spark, "events", _COLUMNS).where(F.col("event").isin(*_EVENTS))
    seconds = _counts(events.withColumn("bucket", bucket("timestamp", 1)), "bucket").cache()
    addresses, queues = _addresses(seconds), _queues(seconds)
    intervals = _intervals(seconds, interval_s)
    frames = {
        "throughput_addresses": addresses,
        "throughput_queues": queues,
        "throughput_intervals": intervals,
    }
    shown = (
        Column("broker", "broker"), Column("address", "address"), Column("published", "published", COUNT),
        Column("bytes", "bytes", BYTES), Column("rate", "per s", RATE), Column("peak", "peak per s", RATE),
        Column("peakAt", "peak at", TIME),
    )  # fmt: skip
    of_queues = (
        Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"),
        Column("delivered", "delivered", COUNT), Column("acked", "acked", COUNT), Column("rate", "acked per s", RATE),
        Column("peak", "peak per s", RATE), Column("peakAt", "peak at", TIME),
    )  # fmt: skip
    tables = [
        collected("addresses", "Published per address", shown, addresses),
        collected("queues", "Consumed per queue", of_queues, queues),
    ]
    plots = [
        Plot(title, RATE, lines(_points(intervals, *of, interval_s)), interval_s=interval_s, between=ZERO)
        for title, of in (
            ("Published per address", ("published", "address")),
            ("Acknowledged per queue", ("acked", "queue")),
        )
    ]
    return Result("throughput", "Throughput", tables=tables, plots=plots, frames=frames)


def _counts(events: DataFrame, *more: str) -> DataFrame:
    """How many of each event there were, per queue (an address alone has none) and further columns."""
    return events.groupBy(*_KEYS, *more).agg(
        F.count(at(names.PUBLISHED)).alias("published"),
        F.coalesce(F.sum(at(names.PUBLISHED, "bytes")), F.lit(0)).alias("bytes"),
        F.count(at(names.DELIVERED)).alias("delivered"),
        F.count(at(names.ACKED)).alias("acked"),
    )


def _rate(count: str) -> Expression:
    """Per second, over all seconds from the first in which something happened to the last."""
    span_s = F.max(F.unix_seconds("bucket")) - F.min(F.unix_seconds("bucket")) + 1
    return (F.sum(count) / span_s).alias("rate")


def _addresses(seconds: DataFrame) -> DataFrame:
    return (
        seconds.where("published > 0")
        .groupBy("broker", "address")
        .agg(
            F.sum("published").alias("published"),
            F.sum("bytes").alias("bytes"),
            _rate("published"),
            F.max("published").alias("peak"),
            F.max_by("bucket", F.struct("published", -F.unix_seconds("bucket"))).alias("peakAt"),
        )
        .orderBy(F.desc("published"), "broker", "address")
    )


def _queues(seconds: DataFrame) -> DataFrame:
    return (
        seconds.where("queue is not null and delivered + acked > 0")
        .groupBy(*_KEYS)
        .agg(
            F.sum("delivered").alias("delivered"),
            F.sum("acked").alias("acked"),
            _rate("acked"),
            F.max("acked").alias("peak"),
            F.max_by("bucket", F.struct("acked", -F.unix_seconds("bucket"))).alias("peakAt"),
        )
        .orderBy(F.desc("acked"), *_KEYS)
    )


def _intervals(seconds: DataFrame, interval_s: int) -> DataFrame:
    sums = [F.sum(name).alias(name) for name in ("published", "bytes", "delivered", "acked")]
    spans = seconds.withColumn("bucket", bucket("bucket", interval_s))
    return spans.groupBy(*_KEYS, "bucket").agg(*sums).orderBy(*_KEYS, "bucket")


def _points(intervals: DataFrame, count: str, name: str, interval_s: int) -> list[tuple[str, float, float]]:
    """Rates of the eight rows with most, over time."""
    counted = intervals.where(F.col(count) > 0)
    most = counted.groupBy(name).agg(F.sum(count).alias("all")).orderBy(F.desc("all"), name).limit(8)
    rows = counted.join(F.broadcast(most), name).select(name, F.unix_seconds("bucket"), F.col(count) / interval_s)
    return [(str(who), float(when), float(rate)) for who, when, rate in rows.collect()]
