"""Groups dead and expired messages by cause, origin, headers and body, with examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs.body_shapes import body_shape, preview
from artemis_py.spark.jobs.result import COUNT, TIME, Column, Result, Table, collected

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, Row, SparkSession

    from artemis_py.spark.jobs.source import Source

_COLUMNS: Final = (
    "broker", "address", "messageId", "offset", "publishedAt", "headers", "value", "reason", "originalAddress",
    "originalQueue", "originalMessageId",
)  # fmt: skip
_OWN_HEADERS: Final = ("reason", "_AMQ_ORIG_%", "destination", "priority", "persistent", "expires", "delivery-count")
"""Headers that say nothing about the sender's intention: LIKE patterns."""
_GROUP: Final = ("broker", "reason", "originalAddress", "originalQueue", "origin", "headerNames", "shape")
_SHOWN: Final = (
    Column("broker", "broker"), Column("reason", "cause"), Column("originalAddress", "address"),
    Column("originalQueue", "queue"), Column("origin", "sent by"), Column("headerNames", "headers"),
    Column("shape", "body"), Column("messages", "messages", COUNT), Column("firstAt", "first", TIME),
    Column("lastAt", "last", TIME),
)  # fmt: skip
_EXAMPLE: Final = ("messageId", "originalMessageId", "address")
_GROUPS_SHOWN: Final = 50
_ORIGINALS_MAX: Final = 10_000
"""Up to this many originals are searched by number; beyond that, all messages are read."""


def dead_letters(spark: SparkSession, source: Source, *, examples: int = 2) -> Result:
    """Groups, the largest first, each with its first and last example (``examples`` 0: none, 1: the first)."""
    shaped = _shaped(spark, source).cache()
    groups = _groups(_with_senders(spark, source, shaped)).cache()
    table = collected("groups", "Dead and expired messages", _SHOWN, groups)
    count = groups.agg(F.coalesce(F.sum("messages"), F.lit(0))).collect()[0][0]
    facts = [(Column("messages", "messages", COUNT), count)]
    tables = [table, *([_examples(spark, source, groups, examples)] if examples else [])]
    return Result("dead-letters", "Dead letters", facts, tables, frames={"dead_letters": groups})


def _shaped(spark: SparkSession, source: Source) -> DataFrame:
    """The copies with the shape of their headers and bodies."""
    dead = source.table(spark, "messages", _COLUMNS).where("reason is not null")
    names = F.array_sort(F.array_distinct(F.transform("headers", lambda header: header["key"])))
    senders = F.array_join(F.filter(names, lambda name: ~_is_own(name)), ", ")
    shaped = dead.withColumn("headerNames", senders)
    return shaped.withColumn("shape", F.udf(_shape, "string", useArrow=False)("value")).drop("value", "headers")


def _with_senders(spark: SparkSession, source: Source, shaped: DataFrame) -> DataFrame:
    """And who sent the originals, which a log is asked for by their numbers."""
    sent = source.table(spark, "messages", ("broker", "messageId", "origin"))
    numbers = shaped.select(F.expr("try_cast(originalMessageId as bigint)")).distinct().take(_ORIGINALS_MAX + 1)
    if len(numbers) <= _ORIGINALS_MAX:
        sent = sent.where(F.col("messageId").isin([number for (number,) in numbers if number is not None]))
    named = sent.select("broker", F.col("messageId").cast("string").alias("originalMessageId"), "origin")
    return shaped.join(named, ["broker", "originalMessageId"], "left")


def _shape(value: bytearray | None) -> str:
    return body_shape(None if value is None else bytes(value))


def _preview(value: bytearray | None) -> str:
    return preview(None if value is None else bytes(value))


def _is_own(name: Expression) -> Expression:
    """Is this a header that the broker writes?"""
    found = F.lit(False)
    for pattern in _OWN_HEADERS:
        found = found | name.like(pattern)
    return found


def _groups(shaped: DataFrame) -> DataFrame:
    example = F.struct("offset", *_EXAMPLE)
    return (
        shaped.groupBy(*_GROUP)
        .agg(
            F.count("*").alias("messages"),
            F.min("publishedAt").alias("firstAt"),
            F.max("publishedAt").alias("lastAt"),
            F.min(example).alias("firstExample"),
            F.max(example).alias("lastExample"),
        )
        .orderBy(F.desc("messages"), *_GROUP)
    )


def _examples(spark: SparkSession, source: Source, groups: DataFrame, count: int) -> Table:
    """The first and the last message of each of the largest groups. Only their bodies are read once more and shown."""
    columns = [
        Column("group", "group", COUNT), Column("messageId", "message"), Column("originalMessageId", "was message"),
        Column("address", "now in"), Column("preview", "body"),
    ]  # fmt: skip
    chosen: list[tuple[int, str, Row]] = []
    for number, row in enumerate(groups.select("broker", "firstExample", "lastExample").take(_GROUPS_SHOWN), 1):
        both = [row.firstExample, row.lastExample]
        chosen += [(number, row.broker, one) for one in (both if count > 1 and both[0] != both[1] else both[:1])]
    bodies = source.table(spark, "messages", ("broker", "messageId", "value"))
    bodies = bodies.where(F.col("messageId").isin([one.messageId for _, _, one in chosen]))
    shown = {
        (row.broker, row.messageId): row.preview
        for row in bodies.select(
            "broker", "messageId", F.udf(_preview, "string", useArrow=False)("value").alias("preview")
        ).collect()
    }
    rows = [
        (number, *(str(one[name]) for name in _EXAMPLE), shown.get((broker, one.messageId), ""))
        for number, broker, one in chosen
    ]
    return Table("examples", "Examples of the largest groups", columns, rows)
