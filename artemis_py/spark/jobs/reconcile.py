"""Compares the log with the table that a pipeline made of it, key by key: what is missing there, doubled, or late."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql import types as T

from artemis_py.spark.jobs.delta import DeltaPlace
from artemis_py.spark.jobs.result import COUNT, MS, TIME, Column, Result, collected
from artemis_py.spark.jobs.source import COLUMNS_ADVICE, JobError, is_url, refused, selected
from artemis_py.spark.tables.schema import MESSAGES

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

JDBC: Final = "jdbc:"
_ALWAYS: Final = ("broker", "address", "messageId", "publishedAt")
_OF: Final = {"header": "headers", "text": "value"}
"""What expressions may name, and the column of the log that it is made of."""
_KINDS: Final = ("missing", "doubled", "late", "unknown", "pending")
_DIFFERENCES: Final = _KINDS[:3]
_SHOWN: Final = (
    Column("what", "what"), Column("key", "key"), Column("broker", "broker"), Column("address", "address"),
    Column("messageId", "message"), Column("publishedAt", "published", TIME), Column("inLog", "in the log", COUNT),
    Column("inSink", "in the sink", COUNT), Column("sinkTime", "time in the sink", TIME), Column("lateMs", "after", MS),
)  # fmt: skip
_BY_ADDRESS: Final = (
    Column("address", "address"), Column("messages", "messages", COUNT), Column("missing", "missing", COUNT),
    Column("doubled", "doubled", COUNT), Column("late", "late", COUNT), Column("pending", "not yet due", COUNT),
)  # fmt: skip


class Key(NamedTuple):
    """A column of the sink, and the SQL expression over the log that has the same value."""

    column: str
    expression: str


@dataclass(frozen=True, slots=True)
class Sink:
    """The table: a directory or URL of Delta, a directory of Parquet, or ``jdbc:…`` with the name of its ``table``.
    ``options`` are those of deltalake for an object store, or of Spark's JDBC source.
    """

    place: str
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
    """SQL over its columns; None: all rows."""

    @property
    def name(self) -> str:
        """For people; a JDBC URL may have a password."""
        return f"table {self.table}" if self.place.startswith(JDBC) else self.place

    def frame(self, spark: SparkSession, columns: Sequence[str]) -> DataFrame:
        """Its rows with at least these columns. Raises JobError if it is not there, or lacks one."""
        frame = self._whole(spark, columns)
        there = {name.lower() for name in frame.columns}
        for name in columns:
            if name.lower() not in there:
                raise JobError(f"{self.name} has no column {name}; it has {', '.join(frame.columns)}")
        if self.where is None:
            return frame
        with refused("condition", self.where, f"The columns of {self.name} are {', '.join(frame.columns)}"):
            return frame.where(self.where)

    def _whole(self, spark: SparkSession, columns: Sequence[str]) -> DataFrame:
        if self.place.startswith(JDBC):
            return self._of_database(spark)
        delta = DeltaPlace(self.place, self.options)
        if delta.exists():
            wanted = {name.lower() for name in columns} | _words_of(self.where)
            names = [one.name for one in delta.open().schema().fields if one.name.lower() in wanted]
            return delta.frame(spark, names)
        if is_url(self.place):
            raise JobError(f"{self.place} has no Delta table; of an object store nothing else is read")
        if next(Path(self.place).rglob("*.parquet"), None) is None:
            raise JobError(f"{self.place} is neither a Delta table nor a directory with Parquet files")
        return spark.read.parquet(self.place)

    def _of_database(self, spark: SparkSession) -> DataFrame:
        from py4j.protocol import Py4JJavaError

        if self.table is None:
            raise JobError("name the table of the database with --sink-table")
        try:
            return spark.read.format("jdbc").options(**self.options, url=self.place, dbtable=self.table).load()
        except Py4JJavaError as problem:
            raise JobError(
                f"table {self.table}: {problem.java_exception.getMessage()}. Spark needs the database's driver: --conf "
                "spark.jars=FILE.jar"
            ) from None


def reconcile(
    spark: SparkSession,
    source: Source,
    sink: Sink,
    keys: Sequence[Key],
    *,
    where: str | None = None,
    late_ms: int | None = None,
    sink_time: str | None = None,
    on_step: Callable[[str], None] = lambda _text: None,
) -> Result:
    """Looks for each message of the log that meets ``where`` in the sink, by its keys. It is *missing* if it is not
    there, *doubled* if there are more rows than messages of this key, and *late* if the earliest of them has a
    ``sink_time`` (a timestamp, or epoch ms) more than ``late_ms`` after the message was published. One younger than
    that is not yet due. Rows whose key no message has are *unknown*, which is no difference. The exit code is 1 if
    there is a difference. Raises JobError if sink or expressions are not valid.
    """
    now_ms = time.time_ns() // 1_000_000
    names = [key.column for key in keys] + ([sink_time] if sink_time is not None else [])
    kinds = {field.name.lower(): field.dataType for field in sink.frame(spark, names).schema.fields}
    on_step("reading the log")
    log = _of_log(spark, source, keys, [kinds[key.column.lower()] for key in keys], where).persist()
    log.count()
    on_step("reading the sink")
    # Read only now: what came into it while the log was read is no loss.
    rows = _of_sink(sink.frame(spark, names), keys, sink_time).persist()
    compared = _compared(log, rows, len(keys), now_ms, late_ms).persist()
    sums = {"messages": F.col("inLog"), "rows": F.col("inSink"), **{kind: _count(kind) for kind in _KINDS}}
    sums["keyless"] = F.when(~F.col("hasKey"), F.col("inLog"))
    counts = compared.agg(*(F.coalesce(F.sum(one), F.lit(0)).alias(name) for name, one in sums.items())).collect()[0]
    differences = compared.where(F.col("what") != "").orderBy(_rank(), "publishedAt", "key")
    addresses = (
        compared.where("inLog is not null")
        .groupBy("address")
        .agg(F.sum("inLog").alias("messages"), *(F.sum(_count(kind)).alias(kind) for kind in _KINDS))
        .orderBy("address")
    )
    facts = [
        (Column("messages", "messages in the log", COUNT), counts["messages"]),
        (Column("rows", "rows in the sink", COUNT), counts["rows"]),
        (Column("missing", "missing messages", COUNT), counts["missing"]),
        (Column("doubled", "doubled keys", COUNT), counts["doubled"]),
        (Column("late", "late keys", COUNT), counts["late"]),
        (Column("pending", "messages not yet due", COUNT), counts["pending"]),
        (Column("unknown", "rows that no message has", COUNT), counts["unknown"]),
    ]
    tables = [
        collected("addresses", "By address", _BY_ADDRESS, addresses),
        collected("differences", "Differences, and what is not known or not yet due", _SHOWN, differences),
    ]
    notes = []
    if counts["keyless"]:
        notes.append(f"{counts['keyless']:,} messages have no key that fits the sink, so they cannot be there")
    if counts["missing"] and counts["unknown"] and any(key.expression.strip().lower() == "broker" for key in keys):
        notes.append(
            "streams and archives keep the first name of a broker that was renamed: if the missing messages are in the "
            "table under another name, say so, as in --key \"broker='east'\""
        )
    is_equal = not any(counts[kind] for kind in _DIFFERENCES)
    notes.append("no message is missing, doubled or late" if is_equal else "the log and the sink differ")
    frames = {"differences": differences.select(*(column.name for column in _SHOWN))}
    title = f"Reconcile with {sink.name}"
    return Result("reconcile", title, facts, tables, notes, frames, exit_code=0 if is_equal else 1)


def _words_of(*texts: str | None) -> set[str]:
    """All that may be names of columns in these expressions, in small letters: Spark does not tell cases apart."""
    return {word.lower() for text in texts if text for word in re.findall(r"\w+", text)}


def _of_log(
    spark: SparkSession, source: Source, keys: Sequence[Key], kinds: Sequence[T.DataType], where: str | None
) -> DataFrame:
    """A row for each key in the log, with its first message. Keys have the sink's types (``k0`` …)."""
    words = _words_of(where, *(key.expression for key in keys))
    words |= {_OF[word] for word in words & _OF.keys()}
    wanted = dict.fromkeys((*_ALWAYS, *(name for name in MESSAGES if name.lower() in words)))
    frame = selected(source.table(spark, "messages", list(wanted)), where)
    values: list[Expression] = []
    for number, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        with refused("expression", key.expression, COLUMNS_ADVICE):
            frame = frame.withColumn(f"v{number}", F.expr(key.expression))
        values.append(F.col(f"v{number}"))
        frame = frame.withColumn(f"k{number}", F.col(f"v{number}").try_cast(kind))
    typed = [F.col(f"k{number}") for number in range(len(keys))]
    has_key = F.lit(True)
    for one in typed:
        has_key = has_key & one.isNotNull()
    # What does not fit the sink is shown as it is in the log.
    frame = frame.withColumn("hasKey", has_key).withColumn(
        "key", F.when(has_key, _shown(typed)).otherwise(_shown(values))
    )
    first = F.min(F.struct("publishedAt", "broker", "address", "messageId"))
    found = frame.groupBy(*typed, "hasKey", "key").agg(F.count("*").alias("inLog"), first.alias("first"))
    return found.select(*typed, "hasKey", "key", "inLog", "first.*")


def _shown(values: Sequence[Expression]) -> Expression:
    return F.concat_ws(", ", *(F.coalesce(value.cast("string"), F.lit("null")) for value in values))


def _of_sink(frame: DataFrame, keys: Sequence[Key], sink_time: str | None) -> DataFrame:
    """A row for each key in the sink."""
    typed = [F.col(key.column).alias(f"s{number}") for number, key in enumerate(keys)]
    moment = F.lit(None).cast("timestamp")
    if sink_time is not None:
        is_number = isinstance(frame.schema[_exact(frame, sink_time)].dataType, T.NumericType)
        moment = (
            F.timestamp_millis(F.col(sink_time).cast("bigint")) if is_number else F.col(sink_time).cast("timestamp")
        )
    return frame.groupBy(*typed).agg(F.count("*").alias("inSink"), F.min(moment).alias("sinkTime"))


def _exact(frame: DataFrame, name: str) -> str:
    return next(one for one in frame.columns if one.lower() == name.lower())


def _compared(log: DataFrame, rows: DataFrame, keys: int, now_ms: int, late_ms: int | None) -> DataFrame:
    same = F.lit(True)
    for number in range(keys):
        same = same & (F.col(f"k{number}") == F.col(f"s{number}"))
    both = log.join(rows, same, "full_outer")
    published_ms = F.unix_millis("publishedAt")
    late = F.when(F.col("inLog").isNotNull(), F.unix_millis("sinkTime") - published_ms)
    is_missing = F.col("inSink").isNull()
    due_ms = now_ms if late_ms is None else now_ms - late_ms
    is_pending = is_missing & F.lit(late_ms is not None) & (published_ms > due_ms)
    what = F.concat_ws(
        ", ",
        F.when(is_missing & ~is_pending, "missing"),
        F.when(is_pending, "pending"),
        F.when(F.col("inLog").isNull(), "unknown"),
        F.when(F.col("inSink") > F.col("inLog"), "doubled"),
        F.when(late > (2**62 if late_ms is None else late_ms), "late"),
    )
    key = F.coalesce("key", _shown([F.col(f"s{number}") for number in range(keys)]))
    return both.withColumns({"lateMs": late, "what": what, "key": key})


def _count(kind: str) -> Expression:
    """What a row adds to the number of this kind: messages, rows of the sink, or one key."""
    counted = {"missing": F.col("inLog"), "pending": F.col("inLog"), "unknown": F.col("inSink")}.get(kind, F.lit(1))
    return F.when(F.col("what").contains(kind), counted).otherwise(0)


def _rank() -> Expression:
    """Differences first."""
    found = F.lit(len(_KINDS))
    for place, kind in reversed(list(enumerate(_KINDS))):
        found = F.when(F.col("what").contains(kind), place).otherwise(found)
    return found
