"""Measures how long messages wait: publish → deliver → acknowledge, per queue, and per queue and interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.frames import at, bucket, ms_between, percentiles
from artemis_py.spark.jobs.intervals import interval_of
from artemis_py.spark.jobs.result import COUNT, MS, Column, Plot, Result, collected, lines

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_SHARES: Final = (0.5, 0.95, 0.99, 1.0)
_SUFFIXES: Final = ("50", "95", "99", "Max")
_MEASURES: Final = (
    ("wait", "publish → deliver"),
    ("hold", "deliver → acknowledge"),
    ("total", "publish → acknowledge"),
)
_QUEUE: Final = ("broker", "address", "queue")
_COLUMNS: Final = ("broker", "address", "queue", "messageId", "event", "timestamp")
_EVENTS: Final = (*names.ARRIVALS, names.DUE, names.DELIVERED, names.ACKED)


def latency(spark: SparkSession, source: Source, *, interval_s: int | None = None) -> Result:
    """Percentiles of three times, in ms. A scheduled message starts when it is due. The first delivery ends its wait;
    the last one before the acknowledgement starts its hold. An interval has the messages that started in it.
    ``interval_s`` None: chosen by the span of the log.
    """
    interval_s = interval_of(source, interval_s)
    lives = _lives(source.table(spark, "events", _COLUMNS), interval_s)
    measured = _percentiles(lives).cache()
    queues = measured.where("isTotal = 1").drop("bucket", "isTotal").orderBy(F.desc("messages"), *_QUEUE)
    times = measured.where("isTotal = 0 and bucket is not null").drop("isTotal", "earlier")
    times = times.orderBy(*_QUEUE, "bucket")
    table = collected("queues", "Latency per queue", _shown(), queues)
    busiest = {(row[0], row[2]) for row in table.rows[:8]}
    plots = [
        Plot(
            f"{title}, 99 of 100 messages",
            MS,
            lines(_points(times, f"{measure}99", busiest)),
            interval_s=interval_s,
        )
        for measure, title in _MEASURES
    ]
    notes = []
    earlier, waiting = queues.agg(F.sum("earlier"), F.sum(F.col("messages") - F.col("delivered"))).collect()[0]
    if earlier:
        notes.append(f"{earlier:,} messages that reached their queues before this time span are not counted")
    if waiting:
        notes.append(f"{waiting:,} messages were not delivered in this time span")
    frames = {"latency_queues": queues, "latency_intervals": times}
    return Result("latency", "Latency", tables=[table], plots=plots, notes=notes, frames=frames)


def _lives(events: DataFrame, interval_s: int) -> DataFrame:
    """One row per queue and message: when it began to be ready, was delivered first and last, and acknowledged."""
    each = events.where(F.col("event").isin(*_EVENTS) & F.col("queue").isNotNull()).groupBy(*_QUEUE, "messageId")
    lives = each.agg(
        F.min(at(names.ARRIVALS)).alias("routedAt"),
        F.max(at(names.DUE)).alias("dueAt"),
        F.min(at(names.DELIVERED)).alias("firstAt"),
        F.max(at(names.DELIVERED)).alias("lastAt"),
        F.max(at(names.ACKED)).alias("ackedAt"),
    )
    # What is settled as it is sent has an acknowledgement and may have no delivery of its own.
    return (
        lives.withColumn("beganAt", F.when(F.col("routedAt").isNotNull(), F.coalesce("dueAt", "routedAt")))
        .withColumn("deliveredAt", F.coalesce("firstAt", "ackedAt"))
        .withColumn("wait", ms_between("beganAt", "deliveredAt"))
        .withColumn("hold", F.when(F.col("beganAt").isNotNull(), _hold()))
        .withColumn("total", ms_between("beganAt", "ackedAt"))
        .withColumn("bucket", bucket("beganAt", interval_s))
    )


def _hold() -> Expression:
    return F.unix_millis(F.col("ackedAt")) - F.unix_millis(F.coalesce("lastAt", "ackedAt"))


def _percentiles(lives: DataFrame) -> DataFrame:
    """A row per queue (``isTotal`` 1) and per queue and bucket, from one pass over the log."""
    keys = [F.col(name) for name in _QUEUE]
    grouped = lives.groupingSets([keys, [*keys, F.col("bucket")]], *keys, F.col("bucket")).agg(
        F.count("beganAt").alias("messages"),
        F.count(F.when(F.col("beganAt").isNull(), True)).alias("earlier"),
        F.count("wait").alias("delivered"),
        F.count("total").alias("acked"),
        *(percentiles(measure, _SHARES).alias(measure) for measure, _ in _MEASURES),
        F.grouping("bucket").cast("int").alias("isTotal"),
    )
    values = [
        F.element_at(measure, place).alias(f"{measure}{suffix}")
        for measure, _ in _MEASURES
        for place, suffix in enumerate(_SUFFIXES, 1)
    ]
    return grouped.select(*_QUEUE, "bucket", "messages", "earlier", "delivered", "acked", *values, "isTotal")


def _shown() -> list[Column]:
    counts = [Column(name, name, COUNT) for name in ("messages", "delivered", "acked")]
    times = [
        Column(f"{measure}{suffix}", f"{measure} {suffix.lower() if suffix == 'Max' else 'p' + suffix}", MS)
        for measure, _ in _MEASURES
        for suffix in _SUFFIXES
    ]
    return [Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"), *counts, *times]


def _points(times: DataFrame, value: str, busiest: set[tuple[str, str]]) -> list[tuple[str, float, float]]:
    wanted = times.where(F.col("queue").isin(*{queue for _, queue in busiest}) & F.col(value).isNotNull())
    rows = wanted.select("broker", "queue", F.unix_seconds("bucket"), value).collect() if busiest else []
    return [(queue, float(when), float(much)) for broker, queue, when, much in rows if (broker, queue) in busiest]
