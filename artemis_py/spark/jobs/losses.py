"""What left queues without having been consumed, and what was refused: whose it was, when, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.frames import bucket, percentiles
from artemis_py.spark.jobs.result import BYTES, COUNT, MS, TIME, Column, Plot, Result, collected, lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_EVENT_COLUMNS: Final = (
    "broker", "address", "queue", "messageId", "event", "reason", "origin", "count", "bytes", "timestamp",
)  # fmt: skip
_MESSAGE_COLUMNS: Final = (
    "broker", "messageId", "address", "origin", "user", "bodyBytes", "publishedAt", "originalMessageId",
    "originalQueue", "reason",
)  # fmt: skip
_GROUP: Final = ("broker", "cause", "reason", "address", "queue", "origin", "user")
_SHOWN: Final = (
    Column("broker", "broker"), Column("cause", "cause"), Column("reason", "reason"), Column("address", "address"),
    Column("queue", "queue"), Column("origin", "sent by"), Column("user", "user"),
    Column("messages", "messages", COUNT),
    Column("kept", "kept elsewhere", COUNT), Column("keptIn", "in"), Column("lost", "lost", COUNT),
    Column("bytes", "bytes", BYTES), Column("age50", "age p50", MS), Column("firstAt", "first", TIME),
    Column("lastAt", "last", TIME),
)  # fmt: skip


def losses(spark: SparkSession, source: Source, *, interval_s: int = 60) -> Result:
    """Groups of what rings, DROP and FAIL, expiry, dead letters, purges and deletions removed, the largest first. Of a
    message that went on to a dead-letter or expiry address as a copy it is said where: that one is kept, not lost.
    """
    lost = _lost(spark, source).cache()
    groups = _groups(lost).cache()
    intervals = (
        lost.groupBy("broker", "cause", "address", "queue", bucket("lostAt", interval_s).alias("bucket"))
        .agg(F.sum("count").alias("messages"), F.sum("kept").alias("kept"))
        .orderBy("broker", "cause", "address", "queue", "bucket")
    )
    table = collected("losses", "What left without being consumed", _SHOWN, groups)
    causes = groups.groupBy("cause").agg(*(F.sum(name).alias(name) for name in ("messages", "kept", "lost")))
    by_cause = {row["cause"]: row for row in causes.collect()}
    facts = [
        (Column(name, name, COUNT), sum(row[name] for row in by_cause.values()))
        for name in ("messages", "kept", "lost")
    ]
    notes = [f"{cause}: {text}" for cause, text in names.LOSSES.items() if cause in by_cause]
    rows = intervals.groupBy("cause", F.unix_seconds("bucket").alias("at")).agg(F.sum("messages")).collect()
    plots = [
        Plot("Messages that left without being consumed", COUNT, lines([(c, float(t), float(n)) for c, t, n in rows]))
    ]
    frames = {"losses": groups, "losses_intervals": intervals}
    return Result("losses", "Losses", facts, [table], plots if rows else [], notes=notes, frames=frames)


def _lost(spark: SparkSession, source: Source) -> DataFrame:
    """A row per message and queue that is done with it (per turn, of refusals), with what is known of its sender."""
    events = source.table(spark, "events", _EVENT_COLUMNS).where(F.col("event").isin(*names.LOSSES)).alias("e")
    messages = source.table(spark, "messages", _MESSAGE_COLUMNS)
    sent = messages.select("broker", "messageId", "origin", "user", "bodyBytes", "publishedAt").alias("m")
    copies = (
        messages.where("originalMessageId is not null and reason is not null")
        .select(
            "broker",
            F.col("originalMessageId").cast("long").alias("messageId"),
            F.col("originalQueue").alias("queue"),
            F.col("address").alias("keptIn"),
            F.col("reason").alias("copyReason"),
        )
        .dropDuplicates(["broker", "messageId", "queue"])
        .alias("c")
    )
    joined = events.join(
        sent, (F.col("e.broker") == F.col("m.broker")) & (F.col("e.messageId") == F.col("m.messageId")), "left"
    ).join(
        copies,
        (F.col("e.broker") == F.col("c.broker"))
        & (F.col("e.messageId") == F.col("c.messageId"))
        & (F.col("e.queue") == F.col("c.queue")),
        "left",
    )
    count = F.coalesce("e.count", F.lit(1))
    return joined.select(
        "e.broker",
        F.col("e.event").alias("cause"),
        F.coalesce("c.copyReason", "e.reason").alias("reason"),
        "e.address",
        "e.queue",
        F.coalesce("e.origin", "m.origin").alias("origin"),
        "m.user",
        count.alias("count"),
        F.when(F.col("keptIn").isNotNull(), count).otherwise(0).alias("kept"),
        "keptIn",
        F.coalesce("e.bytes", "m.bodyBytes", F.lit(0)).alias("bytes"),
        F.col("e.timestamp").alias("lostAt"),
        (F.unix_millis("e.timestamp") - F.unix_millis("m.publishedAt")).alias("age"),
    )


def _groups(lost: DataFrame) -> DataFrame:
    return (
        lost.groupBy(*_GROUP)
        .agg(
            F.sum("count").alias("messages"),
            F.sum("kept").alias("kept"),
            F.array_join(F.array_sort(F.collect_set("keptIn")), ", ").alias("keptIn"),
            F.sum(F.col("count") - F.col("kept")).alias("lost"),
            F.sum("bytes").alias("bytes"),
            F.element_at(percentiles("age", (0.5,)), 1).alias("age50"),
            F.min("lostAt").alias("firstAt"),
            F.max("lostAt").alias("lastAt"),
        )
        .orderBy(F.desc("lost"), F.desc("messages"), *_GROUP)
    )
