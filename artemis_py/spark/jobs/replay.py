"""Publishes messages of the log again: any selection, to any address, at a given rate; by default as a dry run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from artemis_py.spark.jobs.body_shapes import preview
from artemis_py.spark.jobs.result import BYTES, COUNT, TIME, Column, Result, Table, collected, in_utc
from artemis_py.spark.jobs.source import JobError, selected
from artemis_py.spark.write.transactions import OTHER_MESSAGES

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_COLUMNS: Final = (
    "broker", "offset", "messageId", "address", "publishedAt", "value", "headers", "bodyBytes", "priority",
    "routingType", "key", "queues", "origin", "user", "originalAddress", "originalQueue", "originalMessageId", "reason",
    "expiration", "deliverAt", "timestamp",
)  # fmt: skip
_NOT_REPEATED: Final = (
    "_AMQ_ORIG_%", "_AMQ_DUPL_ID", "reason", "destination", "priority", "persistent", "expires", "destination-type",
    "AMQ_SCHEDULED_%", "content-length", "x-replay-of",
)  # fmt: skip
"""Headers of the original that would be wrong or duplicated on the new message: LIKE patterns."""
REPLAY_HEADER: Final = "x-replay-of"
"""A header on each replayed message: broker and message id of the original."""
_CHUNK_ROWS_MAX: Final = 50_000
_CHUNK_SECONDS: Final = 2
"""At a given rate, how many seconds' worth of messages is published at once."""
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Target:
    """The destination: ``address`` (None: each message's original address), and options of the sink, including
    ``url``.
    """

    address: str | None
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows of one broker, ``first`` included, ``end`` not (None: to the end)."""

    broker: str
    first: int
    end: int | None


def replay(
    spark: SparkSession,
    source: Source,
    target: Target,
    *,
    where: str | None = None,
    rate: float | None = None,
    run_id: str | None = None,
    on_step: Callable[[str], None] = lambda _text: None,
    sleep_until: Callable[[float], None] = lambda at_s: time.sleep(max(0.0, at_s - time.monotonic())),
) -> Result:
    """Publishes the messages selected by the SQL condition ``where``, oldest first, at most ``rate`` per second on
    average. Without a ``run_id`` nothing is published: the result shows what would be.

    The condition may use every column of the table ``messages``, ``header['name']`` and ``text`` (the body). Each chunk
    is named by ``run_id``, the log and its first offset: a replay restarted with the same ``run_id`` after an
    interruption does not publish again what the broker still remembers. Raises JobError for a condition that Spark
    refuses, and if the run has published other chunks, or under another name of the log's broker (``x-replay-of``).
    """
    chosen = selected(source.table(spark, "messages", _COLUMNS), where)
    if target.address is None:
        chosen = chosen.where("coalesce(originalAddress, address) is not null")
    chosen = chosen.withColumn("to", F.coalesce(F.lit(target.address), "originalAddress", "address"))
    places = _numbered(chosen.select("broker", "offset", "bodyBytes", "address", "to", "publishedAt"))
    facts = _facts(places, rate)
    notes = []
    if run_id is None:
        notes.append("nothing was published: this was a dry run. To publish, add --publish")
    else:
        size = _chunk_rows(rate)
        chunks = _chunks(places, size)
        _publish(chosen, target, chunks, run_id, source.log_ids(), rate, size, on_step, sleep_until)
        facts += [(Column("chunks", "chunks published", COUNT), len(chunks)), (Column("run", "run id"), run_id)]
    tables = [_summary(places), _examples(chosen, places)]
    return Result("replay", "Replay", facts, tables, notes=notes, frames={"replay": summary_frame(places)})


# ---- what there is -------------------------------------------------------------------------------


def _numbered(chosen: DataFrame) -> DataFrame:
    """The rows' places in the order of the log, per broker, from 0 (column ``number``), kept.

    In two levels, so that no task sees all rows: how many each range of offsets has, and places within it.
    """
    ranged = chosen.repartitionByRange("broker", "offset").withColumn("range", F.spark_partition_id()).persist()
    ranged.count()
    sizes = ranged.groupBy("broker", "range").agg(F.count("*").alias("size"))
    before = Window.partitionBy("broker").orderBy("range").rowsBetween(Window.unboundedPreceding, -1)
    starts = sizes.withColumn("start", F.coalesce(F.sum("size").over(before), F.lit(0))).drop("size")
    within = F.row_number().over(Window.partitionBy("broker", "range").orderBy("offset")) - 1
    numbered = ranged.withColumn("within", within).join(F.broadcast(starts), ["broker", "range"])
    return numbered.withColumn("number", F.col("start") + F.col("within")).drop("within", "start", "range").persist()


def summary_frame(places: DataFrame) -> DataFrame:
    """A row per pair of source and target address."""
    return (
        places.groupBy("broker", "address", "to")
        .agg(
            F.count("*").alias("messages"),
            F.sum("bodyBytes").alias("bytes"),
            F.min("publishedAt").alias("firstAt"),
            F.max("publishedAt").alias("lastAt"),
        )
        .orderBy(F.desc("messages"), "broker", "address", "to")
    )


def _summary(places: DataFrame) -> Table:
    columns = (
        Column("broker", "broker"), Column("address", "published to"), Column("to", "goes to"),
        Column("messages", "messages", COUNT), Column("bytes", "bytes", BYTES), Column("firstAt", "first", TIME),
        Column("lastAt", "last", TIME),
    )  # fmt: skip
    return collected("selection", "The selection", columns, summary_frame(places))


def _facts(places: DataFrame, rate: float | None) -> list[tuple[Column, Any]]:
    row = places.agg(F.count("*"), F.coalesce(F.sum("bodyBytes"), F.lit(0))).first()
    assert row is not None
    facts: list[tuple[Column, Any]] = [
        (Column("messages", "messages", COUNT), row[0]),
        (Column("bytes", "bytes", BYTES), row[1]),
    ]
    if rate is not None:
        facts.append((Column("seconds", f"seconds at {rate:g} per second", COUNT), round(row[0] / rate)))
    return facts


def _examples(chosen: DataFrame, places: DataFrame) -> Table:
    columns = (
        Column("messageId", "message"), Column("address", "published to"), Column("publishedAt", "at", TIME),
        Column("value", "body"),
    )  # fmt: skip
    # Asked for by offset, so that little of the log is read for them.
    first = places.where(F.col("number") < _EXAMPLES).orderBy("broker", "offset").take(_EXAMPLES)
    wanted = F.col("offset").isin([row["offset"] for row in first]) & F.col("broker").isin(
        [row["broker"] for row in first]
    )
    cut = chosen.where(wanted).withColumn("value", F.substring("value", 1, 512)).orderBy("broker", "offset")
    rows = [in_utc(row) for row in cut.select(*(column.name for column in columns)).take(_EXAMPLES)]
    shown = [(str(row["messageId"]), row["address"], row["publishedAt"], preview(_bytes(row["value"]))) for row in rows]
    return Table("examples", "The first messages", columns, shown)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


# ---- publishing ----------------------------------------------------------------------------------


def _chunk_rows(rate: float | None) -> int:
    return _CHUNK_ROWS_MAX if rate is None else max(1, min(_CHUNK_ROWS_MAX, int(rate * _CHUNK_SECONDS)))


def _chunks(places: DataFrame, rows: int) -> list[_Chunk]:
    starts = places.where(F.col("number") % rows == 0).select("broker", "offset").orderBy("broker", "offset").collect()
    following = [*starts[1:], None]
    return [
        _Chunk(start["broker"], start["offset"], _end(start["broker"], after))
        for start, after in zip(starts, following, strict=True)
    ]


def _end(broker: str, following: Any) -> int | None:
    return following["offset"] if following is not None and following["broker"] == broker else None


def _publish(
    chosen: DataFrame,
    target: Target,
    chunks: list[_Chunk],
    run_id: str,
    log_ids: Mapping[str, str | None],
    rate: float | None,
    rows: int,
    on_step: Callable[[str], None],
    sleep_until: Callable[[float], None],
) -> None:
    began = time.monotonic()
    outgoing = _outgoing(chosen)
    for number, chunk in enumerate(chunks):
        if rate is not None:
            sleep_until(began + number * rows / rate)
        on_step(f"publishing chunk {number + 1} of {len(chunks)}")
        part = outgoing.where((F.col("broker") == chunk.broker) & (F.col("offset") >= chunk.first))
        if chunk.end is not None:
            part = part.where(F.col("offset") < chunk.end)
        in_order = part.coalesce(1).sortWithinPartitions("offset").drop("broker", "offset")
        # Not by its end, too: a chunk with another end must be refused, because a part of it may have been published.
        name = f"{run_id}:{log_ids.get(chunk.broker) or chunk.broker}:{chunk.first}"
        with _other_messages(run_id, chunk):
            in_order.write.format("artemis").mode("append").options(**target.options, publishId=name).save()


@contextmanager
def _other_messages(run_id: str, chunk: _Chunk) -> Iterator[None]:
    """Raises JobError where the broker knows other messages of this chunk."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if OTHER_MESSAGES not in str(problem):
            raise
        raise JobError(
            f"run {run_id} has published other messages from offset {chunk.first} of broker {chunk.broker} on: its "
            "condition, times, addresses or rate were others then, or the broker had another name, or messages came "
            "since (--to leaves them out). Continue it with what it began with, by --journal NAME=DIR also with the "
            "broker's name; another run id publishes everything again"
        ) from problem


def _outgoing(chosen: DataFrame) -> DataFrame:
    """Rows for the sink: the headers that are still right, and where the message comes from."""
    kept = F.filter("headers", lambda header: ~_is_left_out(header["key"]))
    source = F.concat_ws("/", "broker", F.col("messageId").cast("string")).cast("binary")
    told = F.struct(F.lit(REPLAY_HEADER).alias("key"), source.alias("value"))
    return chosen.select(
        "broker", "offset", F.col("to").alias("address"), "value", "priority", "routingType",
        F.array_append(kept, told).alias("headers"),
    )  # fmt: skip


def _is_left_out(name: Expression) -> Expression:
    found = F.lit(False)
    for pattern in _NOT_REPEATED:
        found = found | name.like(pattern)
    return found
