"""Shows how the messages of a queue were distributed among its consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.frames import at, bucket, percentiles
from artemis_py.spark.jobs.result import COUNT, MS, SHARE, TIME, Column, Plot, Result, collected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_COLUMNS: Final = ("broker", "address", "queue", "consumer", "messageId", "event", "timestamp")
_QUEUE: Final = ("broker", "address", "queue")
_INTERVAL_S_DEFAULT: Final = 60


def fairness(spark: SparkSession, source: Source, *, interval_s: int = _INTERVAL_S_DEFAULT) -> Result:
    """Shares of each consumer, and Jain's index of each queue: (Σx)² / (n · Σx²) over the deliveries of n consumers,
    which is 1 if all got the same and 1/n if one got everything (null if this time span has only acknowledgements). A
    consumer starves in an interval in which it got nothing while others of its queue did, although it got messages
    before and after.
    """
    seen = source.table(spark, "events", _COLUMNS).where(
        F.col("event").isin(names.DELIVERED, names.ACKED) & F.col("consumer").isNotNull()
    )
    each = seen.withColumn("bucket", bucket("timestamp", interval_s)).groupBy(*_QUEUE, "consumer", "messageId")
    handled = each.agg(
        F.count(at(names.DELIVERED)).alias("delivered"),
        F.count(at(names.ACKED)).alias("acked"),
        F.max(at(names.DELIVERED)).alias("deliveredAt"),
        F.max(at(names.ACKED)).alias("ackedAt"),
        F.min("timestamp").alias("firstAt"),
        F.max("timestamp").alias("lastAt"),
        F.min(at(names.DELIVERED, "bucket")).alias("bucket"),
    ).cache()
    consumers = _consumers(handled, _starved(handled, interval_s)).cache()
    queues = _queues(consumers)
    tables = [
        collected("queues", "Queues, the least fair first", _QUEUE_COLUMNS, queues),
        collected(
            "consumers", "Consumers", _CONSUMER_COLUMNS, consumers.orderBy(*_QUEUE, F.desc("delivered"), "consumer")
        ),
    ]
    frames = {"fairness_queues": queues, "fairness_consumers": consumers}
    bars = [(f"{row[2]} · {row[3]}", float(row[4])) for row in tables[1].rows[:24]]
    plots = [Plot("Delivered per consumer", COUNT, bars=bars)] if bars else []
    notes = ["consumers that never got a message are not in the log and do not count"] if tables[1].rows else []
    return Result("fairness", "Fairness between consumers", tables=tables, plots=plots, notes=notes, frames=frames)


_QUEUE_COLUMNS: Final = (
    Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"),
    Column("consumers", "consumers", COUNT), Column("delivered", "delivered", COUNT),
    Column("jain", "Jain's index", SHARE),
    Column("shareMin", "least share", SHARE), Column("shareMax", "largest share", SHARE),
    Column("starved", "starved intervals", COUNT),
)  # fmt: skip
_CONSUMER_COLUMNS: Final = (
    Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"), Column("consumer", "consumer"),
    Column("delivered", "delivered", COUNT), Column("acked", "acked", COUNT), Column("unacked", "not acked", COUNT),
    Column("share", "share", SHARE), Column("hold50", "hold p50", MS), Column("hold99", "hold p99", MS),
    Column("starved", "starved intervals", COUNT), Column("firstAt", "first seen", TIME),
    Column("lastAt", "last seen", TIME),
)  # fmt: skip


def _consumers(handled: DataFrame, starved: DataFrame) -> DataFrame:
    """A row per consumer. Unacked: deliveries that it gave back, or did not acknowledge in this time span."""
    hold = F.unix_millis("ackedAt") - F.unix_millis("deliveredAt")
    counted = (
        handled.withColumn("hold", F.when(F.col("acked") > 0, hold))
        .groupBy(*_QUEUE, "consumer")
        .agg(
            F.sum("delivered").alias("delivered"),
            F.sum("acked").alias("acked"),
            F.sum(F.greatest(F.col("delivered") - F.col("acked"), F.lit(0))).alias("unacked"),
            percentiles("hold", (0.5, 0.99)).alias("holds"),
            F.min("firstAt").alias("firstAt"),
            F.max("lastAt").alias("lastAt"),
        )
        .withColumn("hold50", F.element_at("holds", 1))
        .withColumn("hold99", F.element_at("holds", 2))
        .drop("holds")
    )
    total = F.sum("delivered").over(Window.partitionBy(*_QUEUE))
    shared = counted.withColumn("share", F.when(total > 0, F.col("delivered") / total))
    return shared.join(starved, [*_QUEUE, "consumer"], "left").fillna(0, ["starved"])


def _queues(consumers: DataFrame) -> DataFrame:
    got = F.col("delivered").cast("double")
    return (
        consumers.groupBy(*_QUEUE)
        .agg(
            F.count("*").alias("consumers"),
            F.sum("delivered").alias("delivered"),
            F.try_divide(F.sum(got) * F.sum(got), F.count("*") * F.sum(got * got)).alias("jain"),
            F.min("share").alias("shareMin"),
            F.max("share").alias("shareMax"),
            F.sum("starved").alias("starved"),
        )
        .orderBy("jain", *_QUEUE)
    )


def _starved(handled: DataFrame, interval_s: int) -> DataFrame:
    """In how many intervals each consumer got nothing while others of its queue did, between its first and its last."""
    served = handled.where("delivered > 0").groupBy(*_QUEUE, "consumer", "bucket").count()
    busy = served.select(*_QUEUE, "bucket").distinct()
    present = served.groupBy(*_QUEUE, "consumer").agg(F.min("bucket").alias("from"), F.max("bucket").alias("to"))
    chances = busy.join(present, list(_QUEUE)).where("bucket between `from` and `to`")
    missed = chances.join(served, [*_QUEUE, "consumer", "bucket"], "left_anti")
    return missed.groupBy(*_QUEUE, "consumer").agg(F.count("*").alias("starved"))
