"""Shows messages that left queues without being consumed, and refused messages: whose, when, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.history import ACKED, ENDS
from artemis_py.spark.jobs.result import BYTES, COUNT, MS, TIME, Column, Result, collected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_EVENT_COLUMNS: Final = (
    "broker", "address", "queue", "messageId", "event", "reason", "origin", "count", "bytes", "timestamp", "offset",
)  # fmt: skip
_MESSAGE_COLUMNS: Final = (
    "broker", "messageId", "address", "origin", "user", "bodyBytes", "publishedAt", "originalMessageId",
    "originalQueue", "reason",
)  # fmt: skip
LOSSES: Final = {
    **{reason: text for reason, (_, text) in ENDS.items() if reason not in (ACKED, "moved", "superseded")},
    "refused": "the address was full and refused new messages",
}
"""Events in which a message is lost without being consumed, and why. To be superseded is what a value is for."""
_ACCURACY: Final = 10_000
"""Of percentiles: exact up to this many values, beyond that off by at most one rank in this many."""
_GROUP: Final = ("broker", "cause", "reason", "address", "queue", "origin", "user")
_SHOWN: Final = (
    Column("broker", "broker"), Column("cause", "cause"), Column("reason", "reason"), Column("address", "address"),
    Column("queue", "queue"), Column("origin", "sent by"), Column("user", "user"),
    Column("messages", "messages", COUNT),
    Column("kept", "kept elsewhere", COUNT), Column("keptIn", "in"), Column("lost", "lost", COUNT),
    Column("bytes", "bytes", BYTES), Column("age50", "age p50", MS), Column("firstAt", "first", TIME),
    Column("lastAt", "last", TIME),
)  # fmt: skip


def losses(spark: SparkSession, source: Source) -> Result:
    """Groups of what rings, DROP and FAIL, expiry, dead letters, purges and deletions removed, the largest first. A
    message with a copy in a dead-letter or expiry address is shown as kept there, not lost.
    """
    groups = _groups(_lost(spark, source)).cache()
    table = collected("losses", "What left without being consumed", _SHOWN, groups)
    counts = ("messages", "kept", "lost")
    causes = groups.groupBy("cause").agg(*(F.sum(name).alias(name) for name in counts)).collect()
    facts = [(Column(name, name, COUNT), sum(row[name] for row in causes)) for name in counts]
    found = {row["cause"] for row in causes}
    notes = [f"{cause}: {text}" for cause, text in LOSSES.items() if cause in found]
    return Result("losses", "Losses", facts, [table], notes=notes, frames={"losses": groups})


def _lost(spark: SparkSession, source: Source) -> DataFrame:
    """A row per message and queue that is done with it (per turn, of refusals), with what is known of its sender. One
    pass over each table.
    """
    events = source.table(spark, "events", _EVENT_COLUMNS).where(F.col("event").isin(*LOSSES)).alias("e")
    told = _told(source.table(spark, "messages", _MESSAGE_COLUMNS)).alias("t")
    same = (F.col("e.broker") == F.col("t.broker")) & (F.col("e.messageId") == F.col("t.messageId"))
    of_queue = F.col("t.copiedFrom").isNull() | (F.col("t.copiedFrom") == F.col("e.queue"))
    joined = events.join(told, same & of_queue, "left").groupBy(*(F.col(f"e.{name}") for name in _EVENT_COLUMNS))
    known = joined.agg(*(F.max(f"t.{name}").alias(f"told_{name}") for name in _TOLD))
    count = F.coalesce("count", F.lit(1))
    return known.select(
        "broker",
        F.col("event").alias("cause"),
        F.coalesce("told_copyReason", "reason").alias("reason"),
        "address",
        "queue",
        F.coalesce("origin", "told_origin").alias("origin"),
        F.col("told_user").alias("user"),
        count.alias("count"),
        F.when(F.col("told_keptIn").isNotNull(), count).otherwise(0).alias("kept"),
        F.col("told_keptIn").alias("keptIn"),
        F.coalesce("bytes", "told_bodyBytes", F.lit(0)).alias("bytes"),
        F.col("timestamp").alias("lostAt"),
        (F.unix_millis("timestamp") - F.unix_millis("told_publishedAt")).alias("age"),
    )


_TOLD: Final = ("origin", "user", "bodyBytes", "publishedAt", "keptIn", "copyReason")


def _told(messages: DataFrame) -> DataFrame:
    """What each row of ``messages`` has of a message: of its own who sent it and when; a copy, also where the message
    is kept that left the queue ``copiedFrom``, and why.
    """
    is_copy = F.col("originalMessageId").isNotNull() & F.col("reason").isNotNull()
    sent = F.struct(
        "messageId", F.lit(None).cast("string").alias("copiedFrom"), "origin", "user", "bodyBytes", "publishedAt",
        F.lit(None).cast("string").alias("keptIn"), F.lit(None).cast("string").alias("copyReason"),
    )  # fmt: skip
    copied = F.struct(
        F.expr("try_cast(originalMessageId as bigint)").alias("messageId"),
        F.coalesce("originalQueue", F.lit("")).alias("copiedFrom"), F.lit(None).cast("string").alias("origin"),
        F.lit(None).cast("string").alias("user"), F.lit(None).cast("bigint").alias("bodyBytes"),
        F.lit(None).cast("timestamp").alias("publishedAt"), F.col("address").alias("keptIn"),
        F.col("reason").alias("copyReason"),
    )  # fmt: skip
    return messages.select("broker", F.inline(F.when(is_copy, F.array(sent, copied)).otherwise(F.array(sent))))


def _groups(lost: DataFrame) -> DataFrame:
    return (
        lost.groupBy(*_GROUP)
        .agg(
            F.sum("count").alias("messages"),
            F.sum("kept").alias("kept"),
            F.array_join(F.array_sort(F.collect_set("keptIn")), ", ").alias("keptIn"),
            F.sum(F.col("count") - F.col("kept")).alias("lost"),
            F.sum("bytes").alias("bytes"),
            F.percentile_approx("age", 0.5, _ACCURACY).alias("age50"),
            F.min("lostAt").alias("firstAt"),
            F.max("lostAt").alias("lastAt"),
        )
        .orderBy(F.desc("lost"), F.desc("messages"), *_GROUP)
    )
