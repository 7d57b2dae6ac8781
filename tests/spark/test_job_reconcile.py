"""The log beside tables made of it, of which the test knows what they lack: Parquet, Delta, and a database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import lit, unix_millis

from artemis_py.spark.jobs.delta import DeltaPlace
from artemis_py.spark.jobs.reconcile import Key, Sink, reconcile
from artemis_py.spark.jobs.result import Result
from artemis_py.spark.jobs.source import JobError
from tests.spark.traffic import moment
from tests.spark.traffic_tables import Frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE_MS = 60_000
OLD_MS = 1_769_860_800_000
MESSAGES = (
    "broker string, address string, messageId long, publishedAt timestamp, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
ROWS = "id long, total string, seenAt timestamp"
ID = [Key("id", "header['order-id']")]


def message(number: int, order: str | None, *, after_ms: int = 0, address: str = "orders") -> tuple[Any, ...]:
    headers = [] if order is None else [("order-id", order.encode()), ("order-id", b"later ones do not count")]
    return ("b", address, number, moment(OLD_MS + after_ms), b"body %d" % number, headers)


def row(number: int | None, after_ms: int = 0) -> tuple[Any, ...]:
    return (number, "x", moment(OLD_MS + after_ms))


@pytest.fixture(scope="module")
def log(spark: SparkSession) -> Frames:
    """Ten orders: 7 is there twice, as its producer sent it again."""
    rows = [message(number, str(number)) for number in range(10)]
    rows += [message(70, "07"), message(80, "none", address="other")]
    return Frames({"messages": spark.createDataFrame(rows, MESSAGES)})


def written(frame: DataFrame, kind: str, folder: Path) -> Sink:
    """These rows as a sink of this kind."""
    if kind == "parquet":
        frame.write.parquet(str(folder / "table"))
        return Sink(str(folder / "table"))
    if kind == "delta":
        from pyspark.sql.pandas.types import to_arrow_schema

        parted = frame.withColumn("day", lit("2026-01-31"))
        place = DeltaPlace(str(folder / "table"))
        place.create(to_arrow_schema(parted.schema, timezone="UTC"), ["day"], {})
        place.commit(place.write(parted.coalesce(1), ["day"]), "test", 1, {})
        return Sink(place.url)
    url = f"jdbc:derby:{folder}/db;create=true"
    options = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver", "createTableColumnTypes": "total VARCHAR(20)"}
    frame.write.format("jdbc").options(url=url, dbtable="shop", **options).save()
    return Sink(url, "shop", {"driver": options["driver"]})


def told(result: Result) -> dict[str, int]:
    return {name: result.fact(name) for name in ("messages", "missing", "doubled", "late", "pending", "unknown")}


def keys(result: Result, what: str) -> list[str]:
    return [str(row["key"]) for row in rows_of(result.table("differences")) if what in str(row["what"])]


@pytest.mark.parametrize("kind", ["parquet", "delta", "database"])
def test_what_a_sink_lacks(spark: SparkSession, log: Frames, tmp_path: Path, kind: str) -> None:
    rows = [row(number) for number in (0, 1, 2, 3, 3, 4, 5, 6, 7, 99)] + [row(8, 11 * MINUTE_MS), row(8, MINUTE_MS)]
    sink = written(spark.createDataFrame([*rows, row(5, 11 * MINUTE_MS)], ROWS), kind, tmp_path)
    late = {"late_ms": 10 * MINUTE_MS, "sink_time": "seenAt"}
    result = reconcile(spark, log, sink, ID, where="address = 'orders'", **late)  # type: ignore[arg-type]
    assert told(result) == {"messages": 11, "missing": 1, "doubled": 3, "late": 0, "pending": 0, "unknown": 1}
    assert (keys(result, "missing"), keys(result, "doubled")) == (["9"], ["3", "5", "8"])
    assert (keys(result, "unknown"), result.exit_code) == (["99"], 1)
    assert result.frames["differences"].count() == 5
    found = {entry["address"]: entry for entry in rows_of(result.table("addresses"))}
    assert (found["orders"]["messages"], found["orders"]["missing"], found["orders"]["doubled"]) == (11, 1, 3)


def test_the_earliest_row_says_whether_a_message_is_late(spark: SparkSession, log: Frames, tmp_path: Path) -> None:
    rows = [row(number, 10 * MINUTE_MS) for number in range(10)]
    frame = spark.createDataFrame([*rows, row(7, 20 * MINUTE_MS)], ROWS).where("id != 2")
    frame = frame.unionByName(spark.createDataFrame([row(2, 10 * MINUTE_MS + 1)], ROWS))
    sink = written(frame.withColumn("seenMs", unix_millis("seenAt")), "parquet", tmp_path)
    late: dict[str, Any] = {"late_ms": 10 * MINUTE_MS, "sink_time": "SEENMS"}
    result = reconcile(spark, log, sink, ID, where="address = 'orders'", **late)
    assert (told(result)["late"], result.exit_code) == (1, 1)
    [found] = rows_of(result.table("differences"))
    assert (found["what"], found["key"], found["lateMs"]) == ("late", "2", 10 * MINUTE_MS + 1)


def test_nothing_differs(spark: SparkSession, log: Frames, tmp_path: Path) -> None:
    """One row for a key that two messages have is enough, and so are two."""
    sink = written(spark.createDataFrame([row(number) for number in (*range(10), 7)], ROWS), "parquet", tmp_path)
    result = reconcile(spark, log, sink, ID, where="address = 'orders'")
    assert (result.exit_code, list(result.table("differences").rows)) == (0, [])
    assert "no message is missing, doubled or late" in result.notes
    once = Sink(sink.place, where="id < 7 or total = 'y'")
    assert keys(reconcile(spark, log, once, ID, where="address = 'orders'"), "missing") == ["7", "8", "9"]


def test_messages_without_a_key_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    """Else a misspelt header would compare nothing, and find no difference."""
    rows = [message(1, "1"), message(2, None), message(3, "three"), message(4, None)]
    log = Frames({"messages": spark.createDataFrame(rows, MESSAGES)})
    sink = written(spark.createDataFrame([row(1), row(None)], ROWS), "parquet", tmp_path)
    result = reconcile(spark, log, sink, ID)
    assert told(result) == {"messages": 4, "missing": 3, "doubled": 0, "late": 0, "pending": 0, "unknown": 1}
    assert sorted(keys(result, "missing")) == ["null", "three"]
    assert any("3 messages have no key that fits the sink" in note for note in result.notes)


def test_what_is_not_yet_due(spark: SparkSession, tmp_path: Path) -> None:
    now_ms = int(datetime.now(UTC).timestamp() * 1000) - OLD_MS
    rows = [message(1, "1"), message(2, "2", after_ms=now_ms), message(3, "3")]
    log = Frames({"messages": spark.createDataFrame(rows, MESSAGES)})
    sink = written(spark.createDataFrame([row(1), row(3)], ROWS), "parquet", tmp_path)
    result = reconcile(spark, log, sink, ID, late_ms=60 * MINUTE_MS)
    assert (told(result)["missing"], told(result)["pending"], result.exit_code) == (0, 1, 0)
    assert reconcile(spark, log, sink, ID).exit_code == 1


def test_several_keys(spark: SparkSession, log: Frames, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("b", 0), ("b", 1), ("c", 2)], "broker string, number long")
    sink = written(frame, "parquet", tmp_path)
    both = [Key("broker", "broker"), Key("number", "messageId")]
    result = reconcile(spark, log, sink, both, where="messageId < 3 and text like 'body%'")
    assert (keys(result, "missing"), keys(result, "unknown")) == (["b, 2"], ["c, 2"])
    assert any("--key \"broker='east'\"" in note for note in result.notes), "it may be renamed"
    renamed = [Key("broker", "'c'"), Key("number", "messageId")]
    result = reconcile(spark, log, sink, renamed, where="messageId = 2")
    assert (keys(result, "missing"), "renamed" in " ".join(result.notes)) == ([], False)


@pytest.mark.parametrize(
    ("sink", "keys", "more", "said"),
    [
        ("nothing", ID, {}, "is neither a Delta table nor a directory with Parquet files"),
        ("table", [Key("no", "messageId")], {}, "has no column no; it has id, total, seenAt"),
        ("table", [Key("id", "colour")], {}, r"the expression 'colour' is not valid: .* header\['name'\] and text"),
        ("table", ID, {"where": "("}, r"the condition '\(' is not valid"),
        ("jdbc:derby:x", ID, {}, "name the table of the database with --sink-table"),
    ],
)
def test_what_cannot_be_compared(
    spark: SparkSession,
    log: Frames,
    tmp_path: Path,
    sink: str,
    keys: Sequence[Key],
    more: dict[str, Any],
    said: str,
) -> None:
    if sink == "table":
        written(spark.createDataFrame([row(1)], ROWS), "parquet", tmp_path)
    place = sink if sink.startswith("jdbc:") else str(tmp_path / sink)
    with pytest.raises(JobError, match=said):
        reconcile(spark, log, Sink(place), keys, **more)


def test_a_database_without_its_driver(spark: SparkSession, log: Frames) -> None:
    with pytest.raises(JobError, match=r"table t: .*driver.*--conf spark\.jars=FILE\.jar"):
        reconcile(spark, log, Sink("jdbc:nothing://x", "t"), ID)
